# the demo's solve over shm compared with each MPI as transport: whole, coarse level, its halo; --np N
# (default 2), --rounds N (default 7), options of coarse_solve

# A line of JSON for each transport: medians in ms, and the median over the rounds of the ratio to shm within a round.
# saved_percent: the share of the whole solve's time over that MPI that shm saves. All contenders bind their ranks to
# cores, or none does.
programs=(coarse_solve)
packages=bench
quickest=(--rounds 1)
np=2
rounds=7
parts=(solve coarse halo)

read_options() {
  local option
  take_whole_number --np np
  take_whole_number --rounds rounds
  for option in "${options[@]}"; do
    case $option in
      --transport | --transport=* | --json | --json=*) wrong "$option: each run has one of its own" ;;
    esac
  done
  [[ $np -gt 1 ]] || wrong "--np 1: one rank has no halo exchange to compare; take 2 or more"
}
mpis_as_transport() { # prints those that are here, one per line
  local mpi
  for mpi in openmpi mpich; do
    command -v "mpirun.$mpi" >/dev/null && [[ -e $build/lib/halocline/halocline-mpi-$mpi.so ]] || continue
    # MPICH never yields: with more ranks than processors each message takes milliseconds.
    [[ $mpi == openmpi || $np -le $(nproc) ]] || continue
    echo "$mpi"
  done
}
solve_over() { # CONTENDER: appends its seconds to files CONTENDER.PART
  local launch transport=mpi part
  if [[ $1 == shm ]]; then
    launch=("$bin/halocline-run" "${bind_ours[@]}" -n "$np" --) transport=shm
  else
    launch=("mpirun.$1" ${bind_mpi[$1]} -n "$np")
  fi
  rm -f "$out/json"
  "${launch[@]}" "$bin/coarse_solve" "${options[@]}" --transport "$transport" --json "$out/json" \
    >"$out/log" 2>&1 </dev/null || { cat "$out/log" >&2; say "coarse_solve failed over $1"; exit 1; }
  for part in "${parts[@]}"; do # of "seconds": {…}, the only object that has these keys
    grep -oE "\"$part\": *[0-9.eE+-]+" "$out/json" | sed -n '1s/.*: *//p' >>"$out/$1.$part" ||
      { say "coarse_solve wrote no \"$part\" over $1"; exit 1; }
  done
}
median() { sort -g | awk '{ v[NR] = $1 } END { print NR % 2 ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2 }'; }
# The facts with which lines of JSON end (bench/support/run_facts.hpp), as far as a script knows them.
facts() {
  local pinned=false compiler='' cxx
  [[ ${bind_ours[0]} != --bind ]] || pinned=true
  cxx=$(sed -n 's/^CMAKE_CXX_COMPILER:[A-Z]*=//p' "$build/CMakeCache.txt" 2>/dev/null || true)
  [[ ! $cxx ]] || compiler=$("$cxx" -E -P -x c++ - <<<__VERSION__ 2>/dev/null || true)
  echo "\"pinned\":$pinned,\"host\":\"$(uname -n)\",\"compiler\":${compiler:-\"unknown\"},\"git\":\"$HALOCLINE_BENCH_GIT\""
}
print_line() { # CONTENDER
  local part ms ratio saved ends line="{\"bench\":\"coarse_halo\",\"transport\":\"$1\",\"ranks\":$np,\"rounds\":$rounds"
  for part in "${parts[@]}"; do # each value by itself: a failure within another command's arguments would be lost
    ms=$(awk '{ print 1e3 * $1 }' "$out/$1.$part" | median)
    ms=$(printf '%.3f' "$ms")
    line+=",\"${part}_ms\":$ms"
    [[ $1 != shm ]] || continue
    ratio=$(paste "$out/$1.$part" "$out/shm.$part" | awk '!($2 > 0) { exit 1 } { print $1 / $2 }' | median) ||
      { say "\"$part\" took no time over shm: there is no ratio to it"; exit 1; }
    saved=$(awk -v r="$ratio" 'BEGIN { printf "%.1f", 100 * (1 - 1 / r) }')
    ratio=$(printf '%.2f' "$ratio")
    line+=",\"${part}_over_shm\":$ratio"
    [[ $part != solve ]] || line+=",\"saved_percent\":$saved"
  done
  ends=$(facts)
  echo "$line,$ends}"
}
run() {
  local contenders round who
  mapfile -t contenders < <(mpis_as_transport)
  [[ ${#contenders[@]} -gt 0 ]] || missing "there is no MPI here that could carry messages of $np ranks"
  OMPI_MCA_mpi_yield_when_idle=$(yields "$np")
  bind_alike "$np" "${contenders[@]}"
  contenders=(shm "${contenders[@]}")
  out=$(mktemp -d)
  trap 'rm -rf "$out"' EXIT
  solve_over shm # this first run generates the demo's configuration if there is none yet
  rm "$out"/shm.*
  for ((round = 0; round < rounds; ++round)); do
    for who in "${contenders[@]}"; do solve_over "$who"; done
  done
  for who in "${contenders[@]}"; do print_line "$who"; done
}
