# sums of 1 to 64 doubles compared with a hand-written one and each MPI's MPI_Allreduce, as installed and tuned,
# also persistent where it is MPI 4; --np N ranks (default 2)
programs=(bench_sum)
packages=bench
quickest=(--seconds 4)
np=2

read_options() { take_whole_number --np np; }
declare -A calls=([openmpi]=allreduce [mpich]=allreduce,allreduce-init) # of MPI 4
run() {
  local mpi command peers=()
  for mpi in $(mpis_with bench_sum "$np"); do
    command=$(mpi_command "$mpi" "$np" bench_sum)
    peers+=(--peer "$mpi:${calls[$mpi]}=$command" --peer "$mpi-tuned:${calls[$mpi]}=env ${tuned[$mpi]} $command")
  done
  exec "$bin/halocline-run" -n "$np" -- "$bin/bench_sum" "${peers[@]}" "${options[@]}"
}
