# are the targets of docs/status.md met? Runs the benches that show it (8 minutes) and prints each
# figure with its target; --runs N: medians and ranges of N runs; --verbs: also over verbs (5 minutes each);
# --quick: a minute and a half. Each call keeps its runs in a folder of its own, in
# build/release/bench-targets; --again [FOLDER]: judges those of a folder, by default the newest
programs=(bench_{targets,halo,p2p,window,plan_setup,verbs} coarse_solve)
packages=bench
runs=1
verbs=0
folder='' # where the runs are that shall be judged; '': those that this call makes
quick=''
rounds=9              # of coarse_halo
halo_seconds=(180 60) # with 2 ranks, 4 ranks
p2p_seconds=(130 40)  # one way, both ways

has_runs() { compgen -G "$1/run-*.json" >/dev/null; } # FOLDER
newest_runs() { # prints the newest folder with runs: DATE or quick-DATE
  local candidate date newest='' latest=''
  for candidate in "$build/bench-targets"/*; do
    date=${candidate##*/} date=${date#quick-}
    if [[ $date =~ ^[0-9]{8}T[0-9]{6}Z$ && $date > $latest ]] && has_runs "$candidate"; then
      latest=$date newest=$candidate
    fi
  done
  echo "$newest"
}
read_options() {
  local again=0
  set -- "${options[@]}"
  while [[ $# -gt 0 ]]; do
    case $1 in
      --runs) runs=${2:-}; whole_number "$1" "$runs"; shift ;;
      --verbs) verbs=1 packages=all ;; # as question verbs
      --quick) quick=quick- halo_seconds=(20 8) p2p_seconds=(20 8) rounds=1 ;;
      --again) again=1; if [[ $# -gt 1 && $2 != -* ]]; then folder=$2; shift; fi ;;
      *) wrong "there is no option '$1'" ;;
    esac
    shift
  done
  [[ $again == 1 ]] || return 0
  [[ $runs$verbs$quick == 10 ]] || wrong "--again measures nothing: it goes with none of the other options"
  [[ $folder ]] || folder=$(newest_runs)
  [[ $folder ]] || { say "--again: no run in $build/bench-targets yet"; exit 1; }
  has_runs "$folder" || wrong "--again '$folder': that folder has no run-N.json"
  programs=(bench_targets) packages=build
}

# Prints two processors, as taskset takes them: those to which two ranks of ours are bound, or if they are not, the
# first two that this process may use.
two_processors() {
  local list
  list=$("$bin/halocline-run" -n 2 -- awk '/^Cpus_allowed_list/ { print $2 }' /proc/self/status | sort -n | paste -sd,)
  [[ $list =~ ^[0-9]+,[0-9]+$ ]] || list=$(awk '/^Cpus_allowed_list/ {
      n = split($2, parts, ",")
      for (i = 1; i <= n; ++i) {
        ends = split(parts[i], end, "-")
        for (p = end[1] + 0; p <= end[ends] + 0 && seen < 2; ++p) printf "%s%d", seen++ ? "," : "", p
      }
    }' /proc/self/status)
  [[ $(taskset -c "$list" nproc) -le 2 ]] || { say "4 ranks can't be kept to the processors $list"; exit 1; }
  echo "$list"
}
exchanges() {
  local peers=() two sizes=(--L 4,8,16 --bytes 96)
  two=$(two_processors)
  add_halo_peers peers 2
  "$bin/halocline-run" -n 2 -- "$bin/bench_halo" "${sizes[@]}" --cut t,x --seconds "${halo_seconds[0]}" "${peers[@]}"
  peers=()
  ! has_mpi openmpi bench_halo || # MPICH never yields a core
    peers=(--peer "openmpi:${halo_modes[openmpi]}=$(mpi_command openmpi 4 bench_halo "$(taskset -c "$two" nproc)")")
  taskset -c "$two" "$bin/halocline-run" -n 4 -- \
    "$bin/bench_halo" "${sizes[@]}" --cut t --seconds "${halo_seconds[1]}" "${peers[@]}"
  "$bin/bench_halo" --L 4 --bytes 96 --cut xyzt --layout appended --seconds 2
}
messages() {
  local mpi peers=()
  for mpi in $(mpis_with bench_p2p 2); do peers+=(--peer "$mpi=$(mpi_command "$mpi" 2 bench_p2p)"); done
  "$bin/halocline-run" -n 2 -- "$bin/bench_p2p" --patterns latency,one-way --seconds "${p2p_seconds[0]}" \
    --sizes 8,64,256,512,1024,2048,4096,8192,16384,32768,65536,131072,1048576,8388608 "${peers[@]}"
  "$bin/halocline-run" -n 2 -- "$bin/bench_p2p" --patterns both-ways --sizes 131072,1048576,4194304,8388608 \
    --seconds "${p2p_seconds[1]}" "${peers[@]}"
}
ask_if_possible() { # WHAT QUESTION [options]: WHAT is left out if this machine lacks something
  ask "${@:2}" || {
    [[ $? -eq 77 ]] || return 1
    say "without figures $1, for which this machine lacks something"
  }
}
one_run() { # prints lines of JSON, and tables
  exchanges
  messages
  "$bin/halocline-run" -n 2 -- "$bin/bench_window" --quick
  "$bin/bench_plan_setup"
  "$bin/halocline-run" -n 2 -- "$bin/bench_plan_setup"
  if [[ -x $bin/bench_verbs ]]; then "$bin/bench_verbs" --before-post; fi
  [[ $verbs == 0 ]] || ask_if_possible "over verbs" verbs --without-mpi
  ask_if_possible "of the demo's solve" coarse_halo --rounds "$rounds"
}
say_what_failed() { # RUN FILE
  say "run $1 of $runs failed; what it had measured is in $2"
  [[ $1 -eq 1 ]] || say "--again '$folder' judges the runs before it"
}
run() {
  local n file
  if [[ ! $folder ]]; then
    folder=$build/bench-targets/$quick$(date -u +%Y%m%dT%H%M%SZ)
    mkdir -p "$folder"
    for ((n = 1; n <= runs; ++n)); do
      file=$folder/run-$n.json
      trap "$(printf '%q ' say_what_failed "$n" "$file.part")" EXIT
      one_run | { grep --line-buffered '^{' || true; } >"$file.part"
      trap - EXIT
      mv "$file.part" "$file"
    done
  fi
  "$bin/bench_targets" --json "$folder/targets.json" "$folder"/run-*.json | tee "$folder/targets.md"
  say "over all runs in $folder; the table is targets.md there, with targets.json"
}
