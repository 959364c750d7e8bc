# set-up and solve of the multigrid; --np N ranks (default 2); --peer 'COMMAND' takes turns with it: its ranks are
# bound to cores as ours if it is one of Open MPI's mpirun (else it must say so, such as mpirun.mpich -bind-to core)
programs=(bench_solve)
packages=bench
quickest=(--rounds 1 --vectors 8 --setup 1)
np=2

read_options() { take_whole_number --np np; }
run() {
  bind_own_peers "$np"
  exec "$bin/halocline-run" "${bind_ours[@]}" -n "$np" -- "$bin/bench_solve" "${options[@]}"
}
