#!/usr/bin/env bash
# The main job, from nothing: install, build, make an 8^4 gauge configuration at beta = 6.0 (once), and solve the
# Wilson-clover system on it with a two-level multigrid on several processes.
#
# usage: scripts/demo.sh [--np N] [coarse_solve options]      (default: 2 processes over shared memory)
#   scripts/demo.sh --transport mpi        the same over MPI; starts mpirun itself
#   scripts/demo.sh --np 3 --blocks 2.2.2.2
#   MPIRUN=mpirun.mpich scripts/demo.sh --transport mpi
set -euo pipefail
[[ ${1:-} != --help && ${1:-} != -h ]] || { sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0"; exit 0; }
here=$(cd "$(dirname "$(readlink -f "$0")")/.." && pwd)

np=2
transport=shm
options=()
while [[ $# -gt 0 ]]; do
  case $1 in
    --np | --transport) [[ $# -gt 1 ]] || { echo "demo.sh: $1 needs a value" >&2; exit 2; } ;;&
    --np) np=$2; shift 2 ;;
    --np=*) np=${1#*=}; shift ;;
    --transport) transport=$2; options+=(--transport "$2"); shift 2 ;;
    --transport=*) transport=${1#*=}; options+=("$1"); shift ;;
    *) options+=("$1"); shift ;;
  esac
done
[[ $np =~ ^[1-9][0-9]*$ ]] || { echo "demo.sh: --np $np: expected a number of processes >= 1" >&2; exit 2; }

"$here/scripts/build.sh" release coarse_solve generate_gauge halocline-run halocline-info >&2
bin=$here/build/release/bin

if [[ $transport == mpi ]]; then
  mpirun=${MPIRUN:-}
  for candidate in mpirun mpirun.openmpi mpirun.mpich mpiexec; do
    [[ -n $mpirun ]] || ! command -v "$candidate" >/dev/null || mpirun=$candidate
  done
  [[ -n $mpirun ]] || { echo "demo.sh: --transport mpi: no mpirun found; install openmpi-bin or mpich" >&2; exit 2; }
  launch=("$mpirun" -n "$np")
  if [[ $("$mpirun" --version 2>&1) =~ Open\ MPI|OpenRTE ]]; then
    # Allows more processes than cores, and containers that run as root.
    export OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
    # It counts the machine's processors, not those that its ranks may use (taskset).
    [[ $np -le $(env -u OMP_NUM_THREADS -u OMP_THREAD_LIMIT nproc) ]] || export OMPI_MCA_mpi_yield_when_idle=1
  fi
else
  launch=("$bin/halocline-run" -n "$np" --)
fi
exec "${launch[@]}" "$bin/coarse_solve" "${options[@]}"
