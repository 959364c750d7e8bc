# the Wilson-clover operator and its block solves, [L...] sites^4 on each rank; --np N ranks (default 1)
programs=(bench_dirac)
packages=bench
quickest=(4)
np=1

read_options() { take_whole_number --np np; }
run() { exec "$bin/halocline-run" -n "$np" -- "$bin/bench_dirac" "${options[@]}"; }
