#!/usr/bin/env bash
# Compares one-way latencies of small messages over verbs with ib_write_lat (package perftest), in turns on one machine
# with an RDMA device: lines of JSON, then the medians of the rounds' ratios.
# usage: scripts/verbs-latency.sh FOLDER-OF-BENCH_VERBS [ROUNDS]      scripts/bench.sh verbs calls it
set -euo pipefail
[[ ${1:-} != --help && ${1:-} != -h ]] || { sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0"; exit 0; }
bin=${1:?usage: scripts/verbs-latency.sh FOLDER [ROUNDS]}
rounds=${2:-9}
command -v ib_write_lat >/dev/null || { echo "verbs-latency: no ib_write_lat (package perftest)" >&2; exit 1; }
machine=real
grep -q 'QEMU TCG' /proc/cpuinfo && machine=emulated
# Soft-RoCE works in kernel threads. Ranks that poll on every core of a small machine starve them for milliseconds
# at a time, in either program, so both are made to yield.
give_way=()
[[ -e /sys/class/infiniband/rxe0 ]] && give_way=(chrt --idle 0)

# t_typical is the median. Server and client run on this machine, both through its first device.
ib_write_lat_of() { # bytes
  timeout 30 "${give_way[@]}" ib_write_lat -F -s "$1" -n 500 >/dev/null 2>&1 &
  for _ in $(seq 50); do ss -Hltn 'sport = :18515' | grep -q . && break; sleep 0.1; done
  timeout 30 "${give_way[@]}" ib_write_lat -F -s "$1" -n 500 localhost 2>/dev/null |
    awk -v bytes="$1" '$1 == bytes {printf "{\"bench\":\"verbs\",\"who\":\"ib_write_lat\",\"bytes\":%d,\"us_median\":%s}\n", bytes, $5}'
  wait
}

for _ in $(seq "$rounds"); do
  for bytes in 8 64 512 4096; do
    "${give_way[@]}" "$bin/halocline-run" -n 2 -- "$bin/bench_verbs" "$bytes"
    ib_write_lat_of "$bytes"
  done
done | tee /dev/stderr | awk -F'[:,}]' -v machine="$machine" '
  function middle(list,    i, k, n, v, t) {
    n = split(list, v, " ")
    for (i = 2; i <= n; ++i) for (k = i; k > 1 && v[k] + 0 < v[k - 1] + 0; --k) { t = v[k]; v[k] = v[k - 1]; v[k - 1] = t }
    return v[int((n + 1) / 2)]
  }
  { gsub("\"", "") }
  $4 == "halocline" { bytes = $6; ours[bytes] = ours[bytes] " " $8; last = $8 }
  $4 == "ib_write_lat" {
    theirs[bytes] = theirs[bytes] " " $8
    ratio[bytes] = ratio[bytes] " " last / $8
  }
  END {
    print "\nmedians on a machine that is " machine
    printf "%8s %16s %22s %8s\n", "bytes", "halocline, us", "ib_write_lat, us", "ratio"
    for (b = 8; b <= 4096; b *= 8) if (b in ours) {
      printf "%8d %16.2f %22.2f %8.2f   (%s )\n", b, middle(ours[b]), middle(theirs[b]), middle(ratio[b]), ratio[b]
    }
  }'
