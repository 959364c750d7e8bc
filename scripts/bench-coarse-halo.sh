#!/usr/bin/env bash
# What does the demo's solve gain from shared memory instead of MPI?  scripts/bench.sh coarse_halo
# usage: bench-coarse-halo.sh BIN [--np N] [--rounds N] [coarse_solve options]
# Runs coarse_solve in turns over shm and over each installed MPI as transport. Prints a JSON line for each: medians in
# ms, and the median over the rounds of the ratio to shm, for the whole solve, its coarse level and that level's halo
# exchanges. All contenders bind their ranks to cores, or none does.
set -euo pipefail
export LC_ALL=C # numbers are written 5.5
[[ ${1:-} != --help && ${1:-} != -h ]] || { sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0"; exit 0; }
source "$(dirname "$(readlink -f "$0")")/bench-binding.bash"
bin=${1:?usage: bench-coarse-halo.sh BIN [--np N] [--rounds N] [coarse_solve options]}
np=2 rounds=7 options=()
shift
wrong() { echo "bench-coarse-halo.sh: $*" >&2; exit 2; }
while [[ $# -gt 0 ]]; do
  case $1 in
    --np | --rounds)
      [[ ${2:-} =~ ^[1-9][0-9]*$ ]] || wrong "$1 '${2:-}': expected a whole number from 1 on"
      if [[ $1 == --np ]]; then np=$2; else rounds=$2; fi
      shift ;;
    --transport | --transport=* | --json | --json=*) wrong "$1: each run has one of its own" ;;
    *) options+=("$1") ;;
  esac
  shift
done

[[ $np -gt 1 ]] || wrong "--np 1: one rank has no halo exchange to compare; take 2 or more"

processors=$(env -u OMP_NUM_THREADS -u OMP_THREAD_LIMIT nproc) # nproc would count no more than these
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
parts=(solve coarse halo)
contenders=(shm)
for mpi in openmpi mpich; do
  command -v "mpirun.$mpi" >/dev/null && [[ -e $bin/../lib/halocline/halocline-mpi-$mpi.so ]] || continue
  # MPICH never yields: with more ranks than processors each message takes milliseconds.
  [[ $mpi == openmpi || $np -le $processors ]] || continue
  contenders+=("$mpi")
done
bind_alike "$bin" "$np" "${contenders[@]:1}"

run() { # contender, options
  local who=$1 launch transport=mpi
  shift
  if [[ $who == shm ]]; then
    launch=("$bin/halocline-run" "${bind_ours[@]}" -n "$np" --) transport=shm
  else
    launch=("mpirun.$who" ${bind_mpi[$who]} -n "$np")
    # Open MPI counts the machine's processors, not those that its ranks may use.
    [[ $np -le $processors ]] || launch=(env OMPI_MCA_mpi_yield_when_idle=1 "${launch[@]}")
  fi
  rm -f "$out/json"
  "${launch[@]}" "$bin/coarse_solve" "$@" --transport "$transport" --json "$out/json" >"$out/log" 2>&1 </dev/null ||
    { cat "$out/log" >&2; echo "bench-coarse-halo.sh: coarse_solve failed over $who" >&2; exit 1; }
  for part in "${parts[@]}"; do # of "seconds": {…}, the only object that has these keys
    grep -oE "\"$part\": *[0-9.eE+-]+" "$out/json" | sed -n '1s/.*: *//p' >>"$out/$who.$part" ||
      { echo "bench-coarse-halo.sh: coarse_solve wrote no \"$part\" over $who" >&2; exit 1; }
  done
}
median() { sort -g | awk '{ v[NR] = $1 } END { print NR % 2 ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2 }'; }

run shm "${options[@]}" # this first run generates the demo's configuration if there is none yet
rm "$out"/shm.*
for ((round = 0; round < rounds; ++round)); do
  for who in "${contenders[@]}"; do run "$who" "${options[@]}"; done
done

for who in "${contenders[@]}"; do
  line="{\"bench\":\"coarse_halo\",\"transport\":\"$who\",\"ranks\":$np,\"rounds\":$rounds"
  for part in "${parts[@]}"; do
    line+=$(printf ',"%s_ms":%.3f' "$part" "$(median <"$out/$who.$part" | awk '{ print 1e3 * $1 }')")
    [[ $who == shm ]] ||
      line+=$(printf ',"%s_over_shm":%.2f' "$part" "$(paste "$out/$who.$part" "$out/shm.$part" | awk '{ print $1 / $2 }' | median)")
  done
  echo "$line}"
done
