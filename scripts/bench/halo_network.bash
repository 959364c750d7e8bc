# exchanges over libfabric's tcp on loopback compared with each MPI over tcp: 3 minutes; --seconds S,
# --provider NAME
programs=(bench_halo)
packages=bench

run() {
  local mpi peers=()
  was_found LIBFABRIC || missing "this build has no libfabric"
  for mpi in $(mpis_with bench_halo 2); do
    peers+=(--peer "$mpi:${halo_modes[openmpi]}=$(tcp_peer "$mpi" bench_halo)")
  done
  exec "$bin/halocline-run" -n 2 -- "$bin/bench_halo" --table --transport ofi --seconds 180 \
    --layout appended --bytes 96 --L 4,8,12,16 --json "$build/bench-halo-network.json" "${peers[@]}" "${options[@]}"
}
