# set-up and solve of the multigrid; --np N ranks (default 2); --peer 'COMMAND' takes turns with it
programs=(bench_solve)
packages=bench
quickest=(--rounds 1 --vectors 8 --setup 1)
np=2

read_options() { take_whole_number --np np; }
run() { exec "$bin/halocline-run" -n "$np" -- "$bin/bench_solve" "${options[@]}"; }
