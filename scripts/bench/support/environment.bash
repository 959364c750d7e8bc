# What all benches find in the environment, and what this build can measure.

# Clears what would change what is measured, and says which code it is.
prepare_environment() {
  local name cleared=()
  for name in $(compgen -e | grep -E '^HALOCLINE_(CONFIG|CHECK|BOOTSTRAP|NODE|MPI|(COMM|FAULTS)_.*)$'); do
    case $name in # these choose the device that is measured (rdma_device.bash)
      HALOCLINE_COMM_VERBS_DEVICE | HALOCLINE_COMM_VERBS_PORT | HALOCLINE_COMM_VERBS_GID_INDEX) continue ;;
    esac
    cleared+=("$name")
    unset "$name"
  done
  [[ ${#cleared[@]} -eq 0 ]] || say "measured without what the environment sets: ${cleared[*]}"
  unset OMP_NUM_THREADS # else halocline-run would give each rank that many processors, while the peers' ranks have one
  unset OMP_THREAD_LIMIT # nproc would count no more than these
  # For all lines of JSON: what is measured. A bench.sh that this one starts says the same.
  local git
  git=$(git -C "$here" describe --always --dirty 2>/dev/null || echo unknown)
  export HALOCLINE_BENCH_GIT=${HALOCLINE_BENCH_GIT:-$git}
  let_mpis_start
  OMPI_MCA_mpi_yield_when_idle=$(yields 2) # of runs with two ranks that are no peers
  export OMPI_MCA_mpi_yield_when_idle
}

ask() { BENCH_IS_BUILT=1 "$here/scripts/bench.sh" "$@"; } # QUESTION [options]: of the same build

was_found() { grep -qs "^$1_FOUND:INTERNAL=1" "$build/CMakeCache.txt"; } # LIBFABRIC, LIBIBVERBS
