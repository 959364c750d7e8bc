# large messages over loopback, by each MPI and libfabric's tcp, straight and in frames; 2 minutes;
# --seconds S each, --provider NAME of libfabric
programs=(bench_network_messages bench_p2p) # also for its MPI programs
packages=bench
provider=() # for ours over libfabric; the bench refuses it over an MPI

read_options() { take_each --provider provider; }
run() {
  local mpi peer peers=()
  for mpi in $(mpis_with bench_p2p 2); do
    peer=(--peer "$mpi=$(tcp_peer "$mpi" bench_p2p)")
    env ${tcp[$mpi]} "mpirun.$mpi" -n 2 "$bin/bench_network_messages" --transport mpi "${peer[@]}" "${options[@]}"
    peers+=("${peer[@]}")
  done
  exec "$bin/halocline-run" -n 2 -- "$bin/bench_network_messages" "${peers[@]}" "${provider[@]/#/--provider=}" \
    "${options[@]}"
}
