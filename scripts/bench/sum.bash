# sums of 1 to 64 doubles compared with a hand-written one and MPI_Allreduce; --np N ranks (default 2)
programs=(bench_sum)
packages=bench
quickest=(--seconds 4)
np=2

read_options() { take_whole_number --np np; }
run() {
  local mpi peers=()
  for mpi in $(mpis_with bench_sum "$np"); do peers+=(--peer "$mpi=$(mpi_command "$mpi" "$np" bench_sum)"); done
  exec "$bin/halocline-run" -n "$np" -- "$bin/bench_sum" "${peers[@]}" "${options[@]}"
}
