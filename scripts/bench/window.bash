# cost of post() of a prepared window compared with MPI_Isend and MPI_Start: half a minute; --quick: seconds
programs=(bench_window)
packages=bench
quickest=(--quick)

run() { # in turns, because the machine's speed changes from one minute to the next
  local mpi mpis
  mpis=$(mpis_with bench_window 2)
  bind_alike 2 $mpis
  for _ in 1 2 3; do
    "$bin/halocline-run" "${bind_ours[@]}" -n 2 -- "$bin/bench_window" "${options[@]}"
    for mpi in $mpis; do "mpirun.$mpi" ${bind_mpi[$mpi]} -n 2 "$bin/bench_window_$mpi" "${options[@]}"; done
  done
}
