#!/usr/bin/env bash
# Runs a bench from a fresh clone: ratios within one run, a table for readers, JSON lines for programs.
# usage: scripts/bench.sh question [options]      (no question: prints this list)
#   targets       are the targets of docs/status.md met? Runs the benches below that show it (8 minutes) and prints
#                 each figure with its target; --runs N: medians and ranges of N runs; --verbs: also over verbs (5
#                 minutes each); --quick: a minute and a half; --again: judges the existing runs
#   halo          exchanges compared with the one-copy limit and each installed MPI, as installed and tuned, the
#                 important points first, then whether all points meet the targets: 10 minutes, at most one point
#                 more; --quick: one minute
#   halo_network  exchanges over libfabric's tcp on loopback compared with each MPI over tcp: 3 minutes; --seconds S,
#                 --provider NAME
#   p2p           messages of 8 B to 8 MiB compared with raw limits and each MPI, as installed and tuned; --quick,
#                 --svg FILE; --transport ofi: libfabric's tcp compared with MPIs over tcp; mpi: over each MPI compared
#                 with that MPI alone; verbs; all: shm, ofi and mpi, 8 minutes, to files
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
set -euo pipefail
here=$(cd "$(dirname "$(readlink -f "$0")")/.." && pwd)
list() { sed -n '/^# usage/,/^set/{s/^# \{0,1\}//;/^set/!p}' "$0"; }
questions=" targets halo halo_network p2p sum network_messages window dirac plan_setup lane_copy checksum stencil verbs solve coarse_halo all "
question=${1:-}
[[ -n $question && $question != --help && $question != -h ]] || { list; exit 0; }
[[ $questions == *" $question "* ]] || { echo "bench.sh: no question is called '$question'" >&2; list >&2; exit 2; }
shift
targets=("bench_$question")
[[ $question == coarse_halo ]] && targets=(coarse_solve)
[[ $question == network_messages || $question == verbs ]] && targets+=(bench_p2p) # also for its MPI programs
[[ $question == halo ]] && targets+=(bench_targets)
[[ $question == halo_network ]] && targets=(bench_halo)
[[ $question == targets ]] && targets=(bench_{targets,halo,p2p,window,plan_setup,verbs} coarse_solve)
[[ $question == all ]] && targets=(bench_{halo,targets,p2p,sum,window,dirac,plan_setup,lane_copy,checksum,stencil,verbs,solve} coarse_solve)
"$here/scripts/install-dependencies.sh" bench >&2 # also for the MPIs that it compares with
"$here/scripts/build.sh" release "${targets[@]}" halocline-run >&2
bin=$here/build/release/bin

source "$here/scripts/bench-binding.bash" # for contenders whose launchers bind; most benches pin their ranks themselves
# Lets Open MPI run as root and in containers that forbid binding.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_hwloc_base_binding_policy=none
unset OMP_NUM_THREADS # else halocline-run would give each rank that many processors, while the peers' ranks have one

# Open MPI and MPICH over tcp on loopback, in an otherwise bare environment: a launcher that finds another launcher's
# variables takes itself for one of its ranks.
declare -A tcp=([openmpi]='OMPI_MCA_pml=ob1 OMPI_MCA_btl=tcp,self OMPI_MCA_btl_tcp_if_include=lo'
                [mpich]='UCX_TLS=tcp,self UCX_NET_DEVICES=lo')
bare_peer() { # MPI, program without suffix, variables: prints a command
  local clean="env -i PATH='$PATH' HOME='$HOME' $(env | grep -E '^(OMPI_ALLOW|OMPI_MCA)' | tr '\n' ' ')"
  echo "$clean ${3:-} mpirun.$1 -n 2 '$bin/$2_$1'"
}
tcp_peer() { bare_peer "$1" "$2" "${tcp[$1]}"; }
# Prints the installed MPIs for which PROGRAM_<mpi> was built, one per line.
mpis_with() { # PROGRAM
  local mpi
  for mpi in openmpi mpich; do
    if [[ -x $bin/$1_$mpi ]] && command -v "mpirun.$mpi" >/dev/null; then
      echo "$mpi"
    else
      echo "bench.sh: no $mpi here: it is left out" >&2
    fi
  done
}
# Sets `np` from a leading --np N (else DEFAULT), and `options` to the rest.
ranks_from() { # DEFAULT [options]
  np=$1
  shift
  if [[ ${1:-} == --np ]]; then np=${2:?--np needs a number}; shift 2; fi
  options=("$@")
}

# Sets `peers` to options of bench_halo: each MPI as installed, and tuned to copy large messages, too, through shared
# memory without the kernel's help.
halo_peers() { # RANKS MODES-OF-OPENMPI MODES-OF-MPICH
  local mpi
  local -A modes=([openmpi]=$2 [mpich]=$3)
  local -A tuned=([openmpi]='OMPI_MCA_btl_vader_eager_limit=32768 OMPI_MCA_btl_vader_single_copy_mechanism=none'
                  [mpich]='UCX_RNDV_THRESH=inf')
  peers=()
  for mpi in $(mpis_with bench_halo); do
    # MPICH never yields: an exchange of more ranks than processors takes milliseconds.
    [[ $mpi == openmpi || $(nproc) -ge $1 ]] || continue
    peers+=(--peer "$mpi:${modes[$mpi]}=mpirun.$mpi -n $1 '$bin/bench_halo_$mpi'")
    peers+=(--peer "$mpi-tuned:${modes[$mpi]}=env ${tuned[$mpi]} mpirun.$mpi -n $1 '$bin/bench_halo_$mpi'")
  done
}

git=$(git -C "$here" describe --always --dirty 2>/dev/null || echo unknown)

question_targets() {
  runs=1 verbs=0 halo=(180 60) p2p=(130 40) rounds=3
  while [[ $# -gt 0 ]]; do
    case $1 in
      --runs) runs=${2:?--runs needs a number}; shift ;;
      --verbs) verbs=1 ;;
      --quick) halo=(20 8) p2p=(20 8) rounds=1 ;;
      --again) runs=0 ;;
      *) echo "bench.sh targets: there is no option '$1'" >&2; exit 2 ;;
    esac
    shift
  done
  out=$bin/../bench-targets
  mkdir -p "$out"
  one_run() { # prints lines of JSON
    local mpi peers of_p2p=() modes=packed,in-place,neighbour
    for mpi in $(mpis_with bench_p2p); do of_p2p+=(--peer "$mpi=mpirun.$mpi -n 2 '$bin/bench_p2p_$mpi'"); done
    local two=("$bin/halocline-run" -n 2 --)
    local sizes=(--L 4,8,16 --bytes 96) two_cores # those of two ranks, which the target has 4 ranks share
    two_cores=$("${two[@]}" awk '/^Cpus_allowed_list/{print $2}' /proc/self/status | paste -sd,)
    halo_peers 2 $modes $modes
    "${two[@]}" "$bin/bench_halo" --git "$git" "${sizes[@]}" --cut t,x --seconds "${halo[0]}" "${peers[@]}"
    peers=()
    [[ -z $(mpis_with bench_halo 2>/dev/null | grep openmpi) ]] ||
      peers=(--peer "openmpi:$modes=mpirun.openmpi -n 4 '$bin/bench_halo_openmpi'") # MPICH never yields a core
    taskset -c "$two_cores" "$bin/halocline-run" -n 4 -- "$bin/bench_halo" --git "$git" "${sizes[@]}" --cut t --seconds "${halo[1]}" "${peers[@]}"
    "$bin/bench_halo" --git "$git" --L 4 --bytes 96 --cut xyzt --layout appended --seconds 2
    "${two[@]}" "$bin/bench_p2p" --git "$git" --patterns latency,one-way --seconds "${p2p[0]}" "${of_p2p[@]}" \
      --sizes 8,64,256,512,1024,2048,4096,8192,16384,32768,65536,131072,1048576,8388608
    "${two[@]}" "$bin/bench_p2p" --git "$git" --patterns both-ways --sizes 131072,1048576,4194304,8388608 \
      --seconds "${p2p[1]}" "${of_p2p[@]}"
    "${two[@]}" "$bin/bench_window" --quick
    "$bin/bench_plan_setup"
    "${two[@]}" "$bin/bench_plan_setup"
    "$bin/bench_verbs" --before-post
    [[ $verbs == 0 ]] || "$0" verbs --without-mpi || [[ $? -eq 77 ]] # 77: no machine for it here
    "$here/scripts/bench-coarse-halo.sh" "$bin" --rounds "$rounds"
  }
  for ((; runs > 0; --runs)); do
    run=$out/run-$(date -u +%Y%m%dT%H%M%SZ).json
    one_run | { grep '^{' || true; } >"$run.part" # without the tables
    mv "$run.part" "$run"
  done
  compgen -G "$out/run-*.json" >/dev/null || { echo "bench.sh targets --again: no run in $out yet" >&2; exit 1; }
  "$bin/bench_targets" --json "$out/targets.json" "$out"/run-*.json | tee "$out/targets.md"
  echo "bench.sh: over all runs in build/release/bench-targets; the table is targets.md there, with targets.json" >&2
}

question_halo() { # 2 ranks, then 4, then one that is its own neighbour; 1 and 2 threads if processors suffice
  seconds=(420 120 40) sizes=(--L 4,8,12,16,24.12.12.12 --bytes 96,192) coarse=(--vectors 20,28)
  if [[ ${1:-} == --quick ]]; then seconds=(30 16 8) sizes=(--L 4,8 --bytes 96) coarse=(); shift; fi
  more=("$@") modes=packed,in-place,neighbour
  halo() { # ranks, seconds, name of its files, options
    local threads=1 t bind=(--no-bind) # the bench pins threads itself, unless ranks share processors
    for t in 2 4 8; do [[ $(nproc) -lt $((t * $1)) ]] || threads+=,$t; done
    [[ $(nproc) -ge $1 ]] || bind=()
    "$bin/halocline-run" "${bind[@]}" -n "$1" -- "$bin/bench_halo" --git "$git" --table --seconds "$2" --threads "$threads" \
      --json "$bin/../bench-halo-$3.json" --svg "$bin/../bench-halo-$3.svg" "${@:4}" "${more[@]}"
  }
  halo_peers 2 $modes $modes,neighbour-init
  halo 2 "${seconds[0]}" 2ranks "${sizes[@]}" "${coarse[@]}" "${peers[@]}"
  halo_peers 4 $modes $modes,neighbour-init
  halo 4 "${seconds[1]}" 4ranks "${sizes[@]}" --cut t,xt "${peers[@]}"
  halo 1 "${seconds[2]}" self "${sizes[@]}" --cut xyzt
  "$bin/bench_targets" "$bin"/../bench-halo-{2ranks,4ranks,self}.json | tee "$bin/../bench-halo-targets.md"
  echo "bench.sh: lines of JSON and charts are build/release/bench-halo-{2ranks,4ranks,self}.{json,svg}; the judgement of" \
    "all points is build/release/bench-halo-targets.md" >&2
}

question_halo_network() {
  peers=()
  [[ " $* " == *" --seconds "* ]] || set -- --seconds 180 "$@"
  for mpi in $(mpis_with bench_halo); do
    peers+=(--peer "$mpi:packed,in-place,neighbour=$(tcp_peer "$mpi" bench_halo)")
  done
  exec "$bin/halocline-run" -n 2 -- "$bin/bench_halo" --git "$git" --table --transport ofi \
    --layout appended --bytes 96 --L 4,8,12,16 --json "$bin/../bench-halo-network.json" "${peers[@]}" "$@"
}

question_p2p() {
  # Tuned for this machine's small and medium sizes: eager up to 32 KiB, no single copies by the kernel.
  declare -A tuned=(
    [openmpi]='OMPI_MCA_btl_vader_eager_limit=32768 OMPI_MCA_btl_vader_single_copy_mechanism=none'
    [mpich]='UCX_RNDV_THRESH=32768 UCX_TLS=^cma')
  over() { # transport, options: prints lines of JSON, or writes the files named in the options
    local transport=$1 mpi peers=()
    shift
    for mpi in $(mpis_with bench_p2p); do
      case $transport in
        shm)
          peers+=(--peer "$mpi=mpirun.$mpi -n 2 '$bin/bench_p2p_$mpi'")
          peers+=(--peer "$mpi-tuned=env ${tuned[$mpi]} mpirun.$mpi -n 2 '$bin/bench_p2p_$mpi'") ;;
        ofi) peers+=(--peer "$mpi=$(tcp_peer "$mpi" bench_p2p)") ;;
        mpi-"$mpi")
          "mpirun.$mpi" -n 2 "$bin/bench_p2p" --git "$git" --transport mpi --peer "$mpi=$(bare_peer "$mpi" bench_p2p)" "$@" ;;
      esac
    done
    [[ $transport == mpi-* ]] ||
      "$bin/halocline-run" -n 2 -- "$bin/bench_p2p" --git "$git" --transport "$transport" "${peers[@]}" "$@"
  }
  transport=shm
  if [[ ${1:-} == --transport ]]; then transport=${2:?--transport needs a name}; shift 2; fi
  case $transport in
    mpi) for mpi in $(mpis_with bench_p2p); do over "mpi-$mpi" "$@"; done ;;
    all)
      for transport in shm ofi $(mpis_with bench_p2p | sed s/^/mpi-/); do
        over "$transport" --json "$bin/../bench-p2p-$transport.json" --svg "$bin/../bench-p2p-$transport.svg" --seconds 120 "$@"
      done
      echo "bench.sh: lines of JSON and charts are build/release/bench-p2p-{shm,ofi,mpi-openmpi,mpi-mpich}.{json,svg}" >&2 ;;
    verbs)
      p2p=("$bin/halocline-run" -n 2 -- "$bin/bench_p2p" --git "$git" --transport verbs "$@")
      if compgen -G '/sys/class/infiniband/*' >/dev/null; then exec "${p2p[@]}"; fi
      VERBS_VM_SECONDS=600 exec "$here/scripts/verbs-vm.sh" "$(printf '%q ' "${p2p[@]}")" ;;
    *) over "$transport" "$@" ;;
  esac
}

question_sum() {
  ranks_from 2 "$@"
  peers=()
  for mpi in $(mpis_with bench_sum); do
    # MPICH never yields a core: a sum of more ranks than cores takes milliseconds.
    [[ $mpi == mpich && $np -gt $(nproc) ]] || peers+=(--peer "$mpi=mpirun.$mpi -n $np '$bin/bench_sum_$mpi'")
  done
  exec "$bin/halocline-run" -n "$np" -- "$bin/bench_sum" "${peers[@]}" "${options[@]}"
}

question_network_messages() {
  peers=()
  for mpi in $(mpis_with bench_p2p); do
    peer=(--peer "$mpi=$(tcp_peer "$mpi" bench_p2p)")
    env ${tcp[$mpi]} "mpirun.$mpi" -n 2 "$bin/bench_network_messages" --transport mpi "${peer[@]}" "$@"
    peers+=("${peer[@]}")
  done
  exec "$bin/halocline-run" -n 2 -- "$bin/bench_network_messages" "${peers[@]}" "$@"
}

question_solve() {
  ranks_from 2 "$@"
  exec "$bin/halocline-run" -n "$np" -- "$bin/bench_solve" --git "$git" "${options[@]}"
}

question_dirac() {
  ranks_from 1 "$@"
  exec "$bin/halocline-run" -n "$np" -- "$bin/bench_dirac" "${options[@]}"
}

question_verbs() {
  "$bin/bench_verbs" --before-post
  compare=$(printf '%q ' "$here/scripts/bench-verbs.sh" "$bin" "$@")
  if compgen -G '/sys/class/infiniband/*' >/dev/null; then exec bash -c "$compare"; fi
  VERBS_VM_SECONDS=1500 exec "$here/scripts/verbs-vm.sh" "$compare"
}

question_window() { # in turns, because the machine's speed changes from one minute to the next
  mpis=$(mpis_with bench_window)
  bind_alike "$bin" 2 $mpis
  for _ in 1 2 3; do
    "$bin/halocline-run" "${bind_ours[@]}" -n 2 -- "$bin/bench_window" "$@"
    for mpi in $mpis; do "mpirun.$mpi" ${bind_mpi[$mpi]} -n 2 "$bin/bench_window_$mpi" "$@"; done
  done
}

question_coarse_halo() { exec "$here/scripts/bench-coarse-halo.sh" "$bin" "$@"; }

question_all() {
  while read -r -a one; do
    echo "bench.sh ${one[*]}" >&2
    status=0
    "$0" "${one[@]}" </dev/null || status=$?
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

question_checksum() { exec "$bin/halocline-run" -n 2 -- "$bin/bench_checksum" "$@"; }

if declare -F "question_$question" >/dev/null; then
  "question_$question" "$@"
else
  exec "$bin/bench_$question" "$@"
fi
