# several right-hand sides at once, and one by one; --np N ranks (default 2)
programs=(bench_propagator)
packages=bench
quickest=(--rounds 1 --rhs 3 --at-once 1 3 --setup 1)
np=2

read_options() { take_whole_number --np np; }
run() { exec "$bin/halocline-run" -n "$np" -- "$bin/bench_propagator" "${options[@]}"; }
