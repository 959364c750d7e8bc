#!/usr/bin/env bash
# Runs a bench from a fresh clone: ratios within one run, a table for readers, JSON lines for programs.
# usage: scripts/bench.sh question [options]      (no question: prints this list)
#   targets       are the targets of docs/status.md met? Runs the benches below that show it (8 minutes) and prints
#                 each figure with its target; --runs N: medians and ranges of N runs; --verbs: also over verbs (5
#                 minutes each); --quick: a minute and a half. Each call keeps its runs in a folder of its own, in
#                 build/release/bench-targets; --again [FOLDER]: judges those of a folder, by default the newest
#   halo          exchanges compared with the one-copy limit and each installed MPI, as installed and tuned, the
#                 important points first, then whether all points meet the targets: 10 minutes, at most one point
#                 more; --quick: one minute; --json F.json, --svg F.svg: F-2ranks.json, F-4ranks.json, F-self.json, …
#   halo_network  exchanges over libfabric's tcp on loopback compared with each MPI over tcp: 3 minutes; --seconds S,
#                 --provider NAME
#   p2p           messages of 8 B to 8 MiB compared with raw limits and each MPI, as installed and tuned; --quick,
#                 --svg FILE; --transport ofi: libfabric's tcp compared with MPIs over tcp; mpi: over each MPI compared
#                 with that MPI alone (--json F.json: F-openmpi.json, F-mpich.json); verbs; all: shm, ofi and mpi, 8
#                 minutes, to files
#   sum           sums of 1 to 64 doubles compared with a hand-written one and MPI_Allreduce; --np N ranks (default 2)
#   network_messages  large messages over loopback, by each MPI and libfabric's tcp, straight and in frames;
#                 2 minutes; --seconds S each
#   window        cost of post() of a prepared window compared with MPI_Isend and MPI_Start: half a minute; --quick
#   dirac         the Wilson-clover operator and its block solves, [L...] sites^4 on each rank; --np N ranks (default 1)
#   plan_setup    what making a halo plan costs, on one rank
#   lane_copy     packing of faces with lanes compared with a word-by-word loop and memcpy; --seconds S
#   checksum      exchanges of 2 ranks with and without a CRC32C after each message; --seconds S
#   stencil       halo::stencil compared with hand-written loops; --seconds S
#   verbs         messages of 8 B to 4 KiB compared with ib_write_lat, of 8 B to 1 MiB with each MPI over UCX and with
#                 ib_write_bw (in an emulated machine if there is no RDMA device), and our code before ibv_post_send:
#                 eight minutes; a number of rounds (default 9); --without-mpi: five minutes
#   solve         set-up and solve of the multigrid; --np N ranks (default 2); --peer 'COMMAND' takes turns with it
#   coarse_halo   the demo's solve over shm compared with each MPI as transport: whole, coarse level, its halo;
#                 --np N, --rounds N
#   all           each of these at its quickest, except targets and those over loopback: ten minutes
# exit status: 77 if what the question is about is missing here: libfabric, libibverbs, an MPI, an RDMA device
set -euo pipefail
export LC_ALL=C # numbers are written 5.5
here=$(cd "$(dirname "$(readlink -f "$0")")/.." && pwd)
list() { sed -n '/^# usage/,/^set/{s/^# \{0,1\}//;/^set/!p}' "$here/scripts/bench.sh"; }
questions=" targets halo halo_network p2p sum network_messages window dirac plan_setup lane_copy checksum stencil \
verbs solve coarse_halo all "
question=${1:-}
[[ -n $question && $question != --help && $question != -h ]] || { list; exit 0; }
[[ $questions == *" $question "* ]] || { echo "bench.sh: no question is called '$question'" >&2; list >&2; exit 2; }
shift
options=("$@")
build=$here/build/release
bin=$build/bin
packages=bench               # also the MPIs that it compares with
programs=("bench_$question") # the question can't do without the first
case $question in
  halo) programs+=(bench_targets) ;;
  halo_network) programs=(bench_halo) ;;
  network_messages | verbs) programs+=(bench_p2p) ;; # also for its MPI programs
  coarse_halo) programs=(coarse_solve) ;;
  targets) programs=(bench_{targets,halo,p2p,window,plan_setup,verbs} coarse_solve) ;;
  all)
    programs=(bench_{halo,targets,p2p,sum,window,dirac,plan_setup,lane_copy,checksum,stencil,verbs,solve})
    programs+=(coarse_solve) ;;
esac
# Also perftest, and what the emulated machine is made of.
[[ $question != verbs && ( $question != targets || " $* " != *" --verbs "* ) ]] || packages=all
if [[ ${1:-} == --help || ${1:-} == -h ]]; then
  list
  echo "the bench's own options, once it is built: build/release/bin/${programs[0]} --help"
  exit 0
fi

# The script's own options are read before anything is built, by options_of_X of question X, wherever they stand among
# `options`. All others go to the bench, last: there the later of two options counts.
wrong() { echo "bench.sh $question: $*" >&2; exit 2; }
take() { # NAME VARIABLE: sets it to the value of that option, if it was given
  local -n into=$2
  local others=() i
  for ((i = 0; i < ${#options[@]}; ++i)); do
    case ${options[i]} in
      "$1") into=${options[++i]:-} ;;
      "$1="*) into=${options[i]#*=} ;;
      *) others+=("${options[i]}"); continue ;;
    esac
    [[ $into ]] || wrong "$1 needs a value"
  done
  options=("${others[@]}")
}
take_flag() { # NAME VARIABLE: sets it to 1 if that option was given
  local -n into=$2
  local others=() option
  for option in "${options[@]}"; do
    if [[ $option == "$1" ]]; then into=1; else others+=("$option"); fi
  done
  options=("${others[@]}")
}
whole_number() { [[ $2 =~ ^[1-9][0-9]*$ ]] || wrong "$1 '$2': expected a whole number from 1 on"; } # NAME VALUE
take_ranks() { # DEFAULT: sets `np`
  np=$1
  take --np np
  whole_number --np "$np"
}

# Files of a question that runs a bench several times: F-PART.json for --json F.json.
json='' svg=''
written=()
take_files() { take --json json; take --svg svg; }
file_of() { # FILE PART
  local folder='' name=$1
  [[ $1 != */* ]] || folder=${1%/*}/ name=${1##*/}
  if [[ $1 == - || (-e $1 && ! -f $1) ]]; then # /dev/null
    echo "$1"
  elif [[ $name == ?*.* ]]; then
    echo "$folder${name%.*}-$2.${name##*.}"
  else
    echo "$folder$name-$2"
  fi
}
files_of() { # PART: sets `files` to the options for that part, and adds their names to `written`
  local kind
  files=()
  for kind in json svg; do
    [[ ${!kind} ]] || continue
    files+=("--$kind" "$(file_of "${!kind}" "$1")")
    written+=("${files[-1]}")
  done
}

# Prints the installed MPIs for which PROGRAM_<mpi> was built, one per line. MPICH's ranks never yield a processor:
# where they must share some, each of their messages takes milliseconds, so it is left out.
has_mpi() { [[ -x $bin/$2_$1 ]] && command -v "mpirun.$1" >/dev/null; } # MPI PROGRAM
mpis_with() { # PROGRAM RANKS
  local mpi
  for mpi in openmpi mpich; do
    if ! has_mpi "$mpi" "$1"; then
      echo "bench.sh: no $mpi here: it is left out" >&2
    elif [[ $mpi == mpich && $2 -gt $(nproc) ]]; then
      echo "bench.sh: mpich is left out: it yields no processor, and $2 ranks have $(nproc)" >&2
    else
      echo "$mpi"
    fi
  done
}
# Prints the command of a peer. Open MPI counts the machine's processors, not those that its ranks may use: where these
# are too few, it must be told that its ranks have to yield.
mpi_command() { # MPI RANKS PROGRAM [PROCESSORS]
  [[ $1 == mpich || $2 -le ${4:-$(nproc)} ]] || printf 'env OMPI_MCA_mpi_yield_when_idle=1 '
  echo "mpirun.$1 -n $2 '$bin/$3_$1'"
}
# Open MPI and MPICH over tcp on loopback, in an otherwise bare environment: a launcher that finds another launcher's
# variables takes itself for one of its ranks.
declare -A tcp=([openmpi]='OMPI_MCA_pml=ob1 OMPI_MCA_btl=tcp,self OMPI_MCA_btl_tcp_if_include=lo'
                [mpich]='UCX_TLS=tcp,self UCX_NET_DEVICES=lo')
bare_peer() { # MPI PROGRAM [VARIABLES]: prints the command of a peer of two ranks
  local name clean="env -i PATH='$PATH' HOME='${HOME:-/}'"
  for name in $(compgen -e | grep -E '^OMPI_(ALLOW|MCA)'); do clean+=" $name='${!name}'"; done
  echo "$clean ${3:-} $(mpi_command "$1" 2 "$2")"
}
tcp_peer() { bare_peer "$1" "$2" "${tcp[$1]}"; }

# Sets `peers` to options of bench_halo: each MPI as installed, and tuned to copy large messages, too, through shared
# memory without the kernel's help.
halo_modes=packed,in-place,neighbour
halo_peers() { # RANKS
  local mpi command
  local -A modes=([openmpi]=$halo_modes [mpich]=$halo_modes,neighbour-init) # the last is of MPI 4
  local -A tuned=([openmpi]='OMPI_MCA_btl_vader_eager_limit=32768 OMPI_MCA_btl_vader_single_copy_mechanism=none'
                  [mpich]='UCX_RNDV_THRESH=inf')
  peers=()
  for mpi in $(mpis_with bench_halo "$1"); do
    command=$(mpi_command "$mpi" "$1" bench_halo)
    peers+=(--peer "$mpi:${modes[$mpi]}=$command" --peer "$mpi-tuned:${modes[$mpi]}=env ${tuned[$mpi]} $command")
  done
}

has_runs() { compgen -G "$1/run-*.json" >/dev/null; } # FOLDER
newest_runs() { # prints the newest folder with runs: DATE or quick-DATE
  local folder date newest='' latest=''
  for folder in "$build/bench-targets"/*; do
    date=${folder##*/} date=${date#quick-}
    if [[ $date =~ ^[0-9]{8}T[0-9]{6}Z$ && $date > $latest ]] && has_runs "$folder"; then
      latest=$date newest=$folder
    fi
  done
  echo "$newest"
}
options_of_targets() {
  runs=1 verbs=0 rounds=9 halo=(180 60) p2p=(130 40) folder='' quick=''
  local again=0
  set -- "${options[@]}"
  while [[ $# -gt 0 ]]; do
    case $1 in
      --runs) runs=${2:-}; whole_number "$1" "$runs"; shift ;;
      --verbs) verbs=1 ;;
      --quick) quick=quick- halo=(20 8) p2p=(20 8) rounds=1 ;;
      --again) again=1; if [[ $# -gt 1 && $2 != -* ]]; then folder=$2; shift; fi ;;
      *) wrong "there is no option '$1'" ;;
    esac
    shift
  done
  [[ $again == 1 ]] || return 0
  [[ $runs$verbs$quick == 10 ]] || wrong "--again measures nothing: it goes with none of the other options"
  [[ $folder ]] || folder=$(newest_runs)
  [[ $folder ]] || { echo "bench.sh targets --again: no run in $build/bench-targets yet" >&2; exit 1; }
  has_runs "$folder" || wrong "--again '$folder': that folder has no run-N.json"
  programs=(bench_targets) packages=build
}
question_targets() {
  one_run() { # prints lines of JSON
    local mpi peers of_p2p=()
    for mpi in $(mpis_with bench_p2p 2); do of_p2p+=(--peer "$mpi=$(mpi_command "$mpi" 2 bench_p2p)"); done
    local two=("$bin/halocline-run" -n 2 --)
    local sizes=(--L 4,8,16 --bytes 96) two_cores # those of two ranks, which the target has 4 ranks share
    two_cores=$("${two[@]}" awk '/^Cpus_allowed_list/{print $2}' /proc/self/status | paste -sd,)
    halo_peers 2
    "${two[@]}" "$bin/bench_halo" "${sizes[@]}" --cut t,x --seconds "${halo[0]}" "${peers[@]}"
    peers=()
    ! has_mpi openmpi bench_halo || # MPICH never yields a core
      peers=(--peer "openmpi:$halo_modes=$(mpi_command openmpi 4 bench_halo "$(taskset -c "$two_cores" nproc)")")
    taskset -c "$two_cores" "$bin/halocline-run" -n 4 -- \
      "$bin/bench_halo" "${sizes[@]}" --cut t --seconds "${halo[1]}" "${peers[@]}"
    "$bin/bench_halo" --L 4 --bytes 96 --cut xyzt --layout appended --seconds 2
    "${two[@]}" "$bin/bench_p2p" --patterns latency,one-way --seconds "${p2p[0]}" "${of_p2p[@]}" \
      --sizes 8,64,256,512,1024,2048,4096,8192,16384,32768,65536,131072,1048576,8388608
    "${two[@]}" "$bin/bench_p2p" --patterns both-ways --sizes 131072,1048576,4194304,8388608 \
      --seconds "${p2p[1]}" "${of_p2p[@]}"
    "${two[@]}" "$bin/bench_window" --quick
    "$bin/bench_plan_setup"
    "${two[@]}" "$bin/bench_plan_setup"
    if [[ -x $bin/bench_verbs ]]; then "$bin/bench_verbs" --before-post; fi
    [[ $verbs == 0 ]] || "$here/scripts/bench.sh" verbs --without-mpi || {
      [[ $? -eq 77 ]] || return 1 # 77: no machine for it here
      echo "bench.sh targets: without figures over verbs, for which this machine lacks something" >&2
    }
    "$here/scripts/bench-coarse-halo.sh" "$bin" --rounds "$rounds"
  }
  failed() {
    echo "bench.sh targets: run $n of $runs failed; what it had measured is in $run.part" >&2
    [[ $n -eq 1 ]] || echo "bench.sh targets: --again '$folder' judges the runs before it" >&2
  }
  if [[ ! $folder ]]; then
    folder=$build/bench-targets/$quick$(date -u +%Y%m%dT%H%M%SZ)
    mkdir -p "$folder"
    for ((n = 1; n <= runs; ++n)); do
      run=$folder/run-$n.json
      trap failed EXIT
      one_run | { grep --line-buffered '^{' || true; } >"$run.part" # without the tables
      trap - EXIT
      mv "$run.part" "$run"
    done
  fi
  "$bin/bench_targets" --json "$folder/targets.json" "$folder"/run-*.json | tee "$folder/targets.md"
  echo "bench.sh: over all runs in $folder; the table is targets.md there, with targets.json" >&2
}

options_of_halo() {
  seconds=(420 120 40) sizes=(--L 4,8,12,16,24.12.12.12 --bytes 96,192) coarse=(--vectors 20,28)
  json=$build/bench-halo.json svg=$build/bench-halo.svg
  local quick=0
  take_flag --quick quick
  [[ $quick == 0 ]] || seconds=(30 16 8) sizes=(--L 4,8 --bytes 96) coarse=()
  take_files
}
question_halo() { # 2 ranks, then 4, then one that is its own neighbour; 1 and 2 threads if processors suffice
  local results=() files
  halo() { # ranks, seconds, name of its files, options
    local threads=1 t bind=(--no-bind) # the bench pins threads itself, unless ranks share processors
    for t in 2 4 8; do [[ $(nproc) -lt $((t * $1)) ]] || threads+=,$t; done
    [[ $(nproc) -ge $1 ]] || bind=()
    files_of "$3"
    results+=("${files[1]}")
    "$bin/halocline-run" "${bind[@]}" -n "$1" -- "$bin/bench_halo" --table --seconds "$2" --threads "$threads" \
      "${files[@]}" "${@:4}" "${options[@]}"
  }
  halo_peers 2
  halo 2 "${seconds[0]}" 2ranks "${sizes[@]}" "${coarse[@]}" "${peers[@]}"
  halo_peers 4
  halo 4 "${seconds[1]}" 4ranks "${sizes[@]}" --cut t,xt "${peers[@]}"
  halo 1 "${seconds[2]}" self "${sizes[@]}" --cut xyzt
  "$bin/bench_targets" "${results[@]}" | tee "$build/bench-halo-targets.md"
  echo "bench.sh: lines of JSON and charts are ${written[*]}; the judgement of all points is" \
    "$build/bench-halo-targets.md" >&2
}

question_halo_network() {
  peers=()
  for mpi in $(mpis_with bench_halo 2); do
    peers+=(--peer "$mpi:$halo_modes=$(tcp_peer "$mpi" bench_halo)")
  done
  exec "$bin/halocline-run" -n 2 -- "$bin/bench_halo" --table --transport ofi --seconds 180 \
    --layout appended --bytes 96 --L 4,8,12,16 --json "$build/bench-halo-network.json" "${peers[@]}" "${options[@]}"
}

options_of_p2p() {
  transport=shm
  take --transport transport
  case $transport in
    shm | ofi | verbs) ;;
    mpi) take_files ;; # one file for each MPI
    all) json=$build/bench-p2p.json svg=$build/bench-p2p.svg; take_files ;;
    *) wrong "--transport '$transport': expected shm, ofi, mpi, verbs or all" ;;
  esac
}
question_p2p() {
  # Tuned for this machine's small and medium sizes: eager up to 32 KiB, no single copies by the kernel.
  declare -A tuned=(
    [openmpi]='OMPI_MCA_btl_vader_eager_limit=32768 OMPI_MCA_btl_vader_single_copy_mechanism=none'
    [mpich]='UCX_RNDV_THRESH=32768 UCX_TLS=^cma')
  over() { # transport, options: prints lines of JSON, or writes the files named in the options
    local transport=$1 mpi peers=() command
    shift
    for mpi in $(mpis_with bench_p2p 2); do
      command=$(mpi_command "$mpi" 2 bench_p2p)
      case $transport in
        shm) peers+=(--peer "$mpi=$command" --peer "$mpi-tuned=env ${tuned[$mpi]} $command") ;;
        ofi) peers+=(--peer "$mpi=$(tcp_peer "$mpi" bench_p2p)") ;;
        mpi-"$mpi")
          "mpirun.$mpi" -n 2 "$bin/bench_p2p" --transport mpi --peer "$mpi=$(bare_peer "$mpi" bench_p2p)" "$@" ;;
      esac
    done
    [[ $transport == mpi-* ]] ||
      "$bin/halocline-run" -n 2 -- "$bin/bench_p2p" --transport "$transport" "${peers[@]}" "$@"
  }
  local parts=() part files
  case $transport in
    mpi) parts=($(mpis_with bench_p2p 2 | sed s/^/mpi-/)) ;;
    all) parts=(shm ofi $(mpis_with bench_p2p 2 | sed s/^/mpi-/)) ;;
    verbs)
      p2p=("$bin/halocline-run" -n 2 -- "$bin/bench_p2p" --transport verbs "${options[@]}")
      on_rdma_device 600 "${p2p[@]}" ;;
    *) over "$transport" "${options[@]}"; return ;;
  esac
  [[ ${#parts[@]} -gt 0 ]] || { echo "bench.sh p2p --transport mpi: there is no MPI here" >&2; exit 77; }
  [[ $transport == mpi ]] || options=(--seconds 120 "${options[@]}")
  for part in "${parts[@]}"; do
    if [[ $transport == mpi ]]; then files_of "${part#mpi-}"; else files_of "$part"; fi
    over "$part" "${files[@]}" "${options[@]}"
  done
  [[ ${#written[@]} -eq 0 ]] || echo "bench.sh: lines of JSON and charts are ${written[*]}" >&2
}

options_of_sum() { take_ranks 2; }
question_sum() {
  peers=()
  for mpi in $(mpis_with bench_sum "$np"); do peers+=(--peer "$mpi=$(mpi_command "$mpi" "$np" bench_sum)"); done
  exec "$bin/halocline-run" -n "$np" -- "$bin/bench_sum" "${peers[@]}" "${options[@]}"
}

question_network_messages() {
  peers=()
  for mpi in $(mpis_with bench_p2p 2); do
    peer=(--peer "$mpi=$(tcp_peer "$mpi" bench_p2p)")
    env ${tcp[$mpi]} "mpirun.$mpi" -n 2 "$bin/bench_network_messages" --transport mpi "${peer[@]}" "${options[@]}"
    peers+=("${peer[@]}")
  done
  exec "$bin/halocline-run" -n 2 -- "$bin/bench_network_messages" "${peers[@]}" "${options[@]}"
}

options_of_solve() { take_ranks 2; }
question_solve() { exec "$bin/halocline-run" -n "$np" -- "$bin/bench_solve" "${options[@]}"; }

options_of_dirac() { take_ranks 1; }
question_dirac() { exec "$bin/halocline-run" -n "$np" -- "$bin/bench_dirac" "${options[@]}"; }

# Runs a command where there is an RDMA device: here, or else in an emulated machine, whose environment is its own.
on_rdma_device() { # SECONDS COMMAND
  local within=$1
  shift
  if verbs_device >/dev/null; then exec "$@"; fi
  export VERBS_VM_SECONDS=${VERBS_VM_SECONDS:-$within}
  exec "$here/scripts/verbs-vm.sh" "$(printf '%q ' env HALOCLINE_BENCH_GIT="$HALOCLINE_BENCH_GIT" "$@")"
}
options_of_verbs() {
  local option
  for option in "${options[@]}"; do [[ $option == --without-mpi ]] || whole_number rounds "$option"; done
}
question_verbs() {
  "$bin/bench_verbs" --before-post
  on_rdma_device 1500 "$here/scripts/bench-verbs.sh" "$bin" "${options[@]}"
}

question_window() { # in turns, because the machine's speed changes from one minute to the next
  mpis=$(mpis_with bench_window 2)
  bind_alike "$bin" 2 $mpis
  for _ in 1 2 3; do
    "$bin/halocline-run" "${bind_ours[@]}" -n 2 -- "$bin/bench_window" "${options[@]}"
    for mpi in $mpis; do "mpirun.$mpi" ${bind_mpi[$mpi]} -n 2 "$bin/bench_window_$mpi" "${options[@]}"; done
  done
}

question_coarse_halo() { exec "$here/scripts/bench-coarse-halo.sh" "$bin" "${options[@]}"; }

options_of_all() { [[ ${#options[@]} -eq 0 ]] || wrong "there is no option '${options[0]}'"; }
question_all() {
  while read -r -a one; do
    echo "bench.sh ${one[*]}" >&2
    status=0
    "$here/scripts/bench.sh" "${one[@]}" </dev/null || status=$?
    [[ $status -eq 0 || $status -eq 77 ]] || exit "$status" # 77: verbs, but no machine for it here
  done <<'END'
halo --quick
p2p --quick
sum --seconds 4
window --quick
dirac 4
plan_setup
lane_copy --seconds 1
checksum --seconds 1
stencil --seconds 1
verbs 1 --without-mpi
solve --rounds 1 --vectors 8 --setup 1
coarse_halo --rounds 1
END
}

question_checksum() { exec "$bin/halocline-run" -n 2 -- "$bin/bench_checksum" "${options[@]}"; }

if declare -F "options_of_$question" >/dev/null; then "options_of_$question"; fi
"$here/scripts/install-dependencies.sh" "$packages" >&2
"$here/scripts/build.sh" release halocline-run "${programs[@]/%/?}" >&2 # ?: where it can be built
if [[ ! -x $bin/${programs[0]} ]]; then
  echo "bench.sh $question: ${programs[0]} can't be built; build/release.configure.log says what is missing" >&2
  exit 77
fi
source "$here/scripts/bench-binding.bash" # for contenders whose launchers bind; most benches pin their ranks themselves
source "$here/scripts/verbs-device.bash"

# For all lines of JSON: what is measured. A bench.sh that this one starts says the same.
git=$(git -C "$here" describe --always --dirty 2>/dev/null || echo unknown)
export HALOCLINE_BENCH_GIT=${HALOCLINE_BENCH_GIT:-$git}
# Lets Open MPI run as root and in containers that forbid binding.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_hwloc_base_binding_policy=none
unset OMP_NUM_THREADS # else halocline-run would give each rank that many processors, while the peers' ranks have one
unset OMP_THREAD_LIMIT # nproc would count no more than these
[[ $(nproc) -ge 2 ]] || export OMPI_MCA_mpi_yield_when_idle=1 # for the two ranks of runs that are no peers

if declare -F "question_$question" >/dev/null; then
  "question_$question"
else
  exec "$bin/bench_$question" "${options[@]}"
fi
