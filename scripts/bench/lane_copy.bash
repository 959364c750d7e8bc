# packing of faces with lanes compared with a word-by-word loop and memcpy; --seconds S
programs=(bench_lane_copy)
packages=bench
quickest=(--seconds 1)

run() { exec "$bin/bench_lane_copy" "${options[@]}"; }
