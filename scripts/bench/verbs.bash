# messages of 8 B to 4 KiB compared with ib_write_lat, of 8 B to 1 MiB with each MPI over UCX and with
# ib_write_bw (in an emulated machine if there is no RDMA device), and our code before ibv_post_send: eight
# minutes; a number of rounds (default 9); --without-mpi: five minutes
programs=(bench_verbs bench_p2p) # also for its MPI programs
packages=all                     # also perftest, and what the emulated machine is made of
quickest=(1 --without-mpi)

read_options() {
  local option
  for option in "${options[@]}"; do [[ $option == --without-mpi ]] || whole_number rounds "$option"; done
}
run() {
  "$bin/bench_verbs" --before-post
  on_rdma_device 1500 "$questions/support/verbs_on_device.sh" "$bin" "${options[@]}"
}
