# exchanges of 2 ranks with and without a checksum after each message; --seconds S
programs=(bench_checksum)
packages=bench
quickest=(--seconds 1)

run() { exec "$bin/halocline-run" -n 2 -- "$bin/bench_checksum" "${options[@]}"; }
