#!/usr/bin/env bash
# Messages over verbs on one machine with an RDMA device, all through the same port (rdma_device.bash). In turns: one
# way over our channel compared with ib_write_lat (package perftest). Then, in the turns of bench_p2p: our matched
# messages and windows compared with each MPI over UCX, and before and after it ib_write_bw. Prints lines of JSON, then
# tables of medians.
# usage: verbs_on_device.sh FOLDER-OF-BENCHES [ROUNDS] [--without-mpi]      scripts/bench.sh verbs calls it
# exit status: 77 if perftest or a device with an active port is missing
set -euo pipefail
export LC_ALL=C # numbers are written 5.5
[[ ${1:-} != --help && ${1:-} != -h ]] || { sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0"; exit 0; }
support=$(dirname "$(readlink -f "$0")")
source "$support/rdma_device.bash"
source "$support/peers.bash"
bin=${1:?usage: verbs_on_device.sh FOLDER [ROUNDS] [--without-mpi]}
shift
rounds=9 with_mpi=1
for argument; do
  case $argument in
    --without-mpi) with_mpi=0 ;;
    *[!0-9]* | '' | 0) echo "bench.sh verbs: '$argument' is no number of rounds" >&2; exit 2 ;;
    *) rounds=$argument ;;
  esac
done
for tool in ib_write_lat ib_write_bw; do
  command -v $tool >/dev/null || { echo "bench.sh verbs: skipped: no $tool (package perftest)" >&2; exit 77; }
done
chosen=$(verbs_device) ||
  { echo "bench.sh verbs: skipped: no RDMA device ${HALOCLINE_COMM_VERBS_DEVICE:-} with an active port" >&2; exit 77; }
device=${chosen% *} port=${chosen#* }
export HALOCLINE_COMM_VERBS_DEVICE=$device HALOCLINE_COMM_VERBS_PORT=$port # for ours
machine=real
grep -q 'QEMU TCG' /proc/cpuinfo && machine=emulated
# Soft-RoCE works in kernel threads. Ranks that poll on every core of a small machine starve them for milliseconds
# at a time, in any program, so all are made to yield.
give_way=()
[[ $device != rxe* ]] || give_way=(chrt --idle 0)
let_mpis_start # in the emulated machine the environment of scripts/bench.sh is gone
sizes=(8 64 512 4096)    # of the channel
mpi_sizes=(8 64 512 4096 65536 1048576) long_sizes=(65536 1048576) mpi_seconds=60
# In an emulated machine a slice of 40 ms takes seconds to begin.
[[ $machine == real ]] || mpi_sizes=(8 4096 65536) long_sizes=(65536) mpi_seconds=15

# Server and client run on this machine. Prints the line of the results. In the foreground, timeout leaves both in the
# script's process group, so that Ctrl-C reaches the client; the server, as all that runs in the background, ignores it.
perftest() { # program, bytes, iterations; in a shell of its own, as part of a pipeline
  local run=(timeout --foreground 60 "${give_way[@]}" "$1" -d "$device" -i "$port" -F -s "$2" -n "$3")
  "${run[@]}" >/dev/null 2>&1 &
  trap "kill $! 2>/dev/null || true" EXIT
  for _ in $(seq 50); do ss -Hltn 'sport = :18515' | grep -q . && break; sleep 0.1; done
  "${run[@]}" localhost 2>/dev/null | awk -v bytes="$2" '$1 == bytes' || true
  wait
  trap - EXIT
}
ib_write_lat_of() { # bytes; t_typical is the median
  perftest ib_write_lat "$1" 500 | # sometimes it prints inf
    awk '$5 ~ /^[0-9.]+$/ && $5 > 0 {printf "{\"bench\":\"verbs\",\"who\":\"ib_write_lat\",\"bytes\":%d,\"us_median\":%s}\n", $1, $5}'
}
ib_write_bw_of() { # bytes; the average in MiB/s
  perftest ib_write_bw "$1" 300 |
    awk '$4 > 0 {printf "{\"bench\":\"verbs\",\"who\":\"ib_write_bw\",\"bytes\":%d,\"us_per_message\":%.3f}\n", $1, $1 / $4 / 1.048576}'
}

# Both MPIs through the same device, without shared memory. UCX connects by UD; in soft-RoCE it takes the datagrams that
# arrive for an IPv4 address for another's, so it gets the device's IPv6 one (GID 0).
ucx=(UCX_TLS=rc,ud,self "UCX_NET_DEVICES=$device:$port")
[[ $device != rxe* ]] || ucx+=(UCX_IB_GID_INDEX=0)
declare -A with_ucx=(
  [openmpi]='OMPI_MCA_pml=ucx OMPI_MCA_osc=ucx OMPI_MCA_btl=^openib,ofi,vader OMPI_MCA_opal_common_ucx_devices=any
    OMPI_MCA_opal_common_ucx_tls=any'
  [mpich]='')

all_of_it() {
  local _ bytes list mpi peers=()
  for _ in $(seq "$rounds"); do
    for bytes in "${sizes[@]}"; do
      "${give_way[@]}" "$bin/halocline-run" -n 2 -- "$bin/bench_verbs" "$bytes"
      ib_write_lat_of "$bytes"
    done
  done
  [[ $with_mpi == 1 ]] || return 0
  for mpi in $(mpis_with bench_p2p 2); do
    peers+=(--peer "$mpi=env ${ucx[*]} ${with_ucx[$mpi]//$'\n'/ } $(mpi_command "$mpi" 2 bench_p2p)")
  done
  list=$(IFS=,; echo "${mpi_sizes[*]}")
  for bytes in "${long_sizes[@]}"; do ib_write_bw_of "$bytes"; done
  # Rank 0 may wait long for a peer's answer. Of its stderr only the rows go, which the tables below hold; the emulated
  # machine has no /dev/fd.
  {
    HALOCLINE_STALL_MS=0 "${give_way[@]}" "$bin/halocline-run" -n 2 -- "$bin/bench_p2p" --transport verbs \
      --patterns latency,one-way --sizes "$list" --seconds "$mpi_seconds" "${peers[@]}" 2>&1 >&4 |
      sed '/^\(latency\|one-way\) /d' >&2
  } 4>&1
  for bytes in "${long_sizes[@]}"; do ib_write_bw_of "$bytes"; done
}

# Prints each line at once: awk may read them by the block, and tee needs a /dev/stderr.
exec 3>&1
all_of_it | while IFS= read -r line; do printf '%s\n' "$line" >&3; printf '%s\n' "$line"; done |
  awk -v machine="$machine" -f "$support/verbs_tables.awk"
