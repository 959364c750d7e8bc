# messages of 8 B to 8 MiB compared with raw limits and each MPI, as installed and tuned; --quick: seconds,
# --svg FILE; --transport ofi: libfabric's tcp compared with MPIs over tcp; mpi: over each MPI compared
# with that MPI alone (--json F.json: F-openmpi.json, F-mpich.json); verbs; all: shm, ofi and mpi, 8
# minutes, to files
programs=(bench_p2p)
packages=bench
quickest=(--quick)
transport=shm
provider=() # of libfabric, for ours over it

read_options() {
  take --transport transport
  take_each --provider provider
  [[ ${#provider[@]} -eq 0 || $transport == ofi || $transport == all ]] ||
    wrong "--provider is of libfabric: it needs --transport ofi or all"
  case $transport in
    shm | ofi) ;;
    verbs) packages=all ;; # also what the emulated machine is made of
    mpi) take_files ;;     # one file for each MPI
    all) json=$build/bench-p2p.json svg=$build/bench-p2p.svg; take_files ;;
    *) wrong "--transport '$transport': expected shm, ofi, mpi, verbs or all" ;;
  esac
}
over() { # shm|ofi|mpi-openmpi|mpi-mpich [options]: prints lines of JSON, or writes the files named in the options
  local mpi peers=() command
  case $1 in
    mpi-*)
      mpi=${1#mpi-}
      "mpirun.$mpi" -n 2 "$bin/bench_p2p" --transport mpi --peer "$mpi=$(bare_peer "$mpi" bench_p2p)" "${@:2}"
      return ;;
    shm)
      for mpi in $(mpis_with bench_p2p 2); do
        command=$(mpi_command "$mpi" 2 bench_p2p)
        peers+=(--peer "$mpi=$command" --peer "$mpi-tuned=env ${tuned[$mpi]} $command")
      done ;;
    ofi)
      for mpi in $(mpis_with bench_p2p 2); do peers+=(--peer "$mpi=$(tcp_peer "$mpi" bench_p2p)"); done
      peers+=("${provider[@]/#/--provider=}") ;;
  esac
  "$bin/halocline-run" -n 2 -- "$bin/bench_p2p" --transport "$1" "${peers[@]}" "${@:2}"
}
run() {
  local mpi parts=() part files
  case $transport in
    shm) over shm "${options[@]}"; return ;;
    ofi)
      was_found LIBFABRIC || missing "this build has no libfabric"
      over ofi "${options[@]}"
      return ;;
    verbs)
      was_found LIBIBVERBS || missing "this build has no libibverbs"
      on_rdma_device 600 "$bin/halocline-run" -n 2 -- "$bin/bench_p2p" --transport verbs "${options[@]}" ;;
    all)
      parts=(shm)
      options=(--seconds 120 "${options[@]}")
      if was_found LIBFABRIC; then parts+=(ofi); else say "no libfabric here: ofi is left out"; fi ;;
  esac
  for mpi in $(mpis_with bench_p2p 2); do parts+=("mpi-$mpi"); done
  [[ ${#parts[@]} -gt 0 ]] || missing "--transport mpi: there is no MPI here"
  for part in "${parts[@]}"; do
    files=()
    if [[ $transport == mpi ]]; then add_files files "${part#mpi-}"; else add_files files "$part"; fi
    over "$part" "${files[@]}" "${options[@]}"
  done
  finish_files
  [[ ${#written[@]} -eq 0 ]] || say "lines of JSON and charts are ${written[*]}"
}
