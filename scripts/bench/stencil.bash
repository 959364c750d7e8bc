# halo::stencil compared with hand-written loops; --seconds S
programs=(bench_stencil)
packages=bench
quickest=(--seconds 1)

run() { exec "$bin/bench_stencil" "${options[@]}"; }
