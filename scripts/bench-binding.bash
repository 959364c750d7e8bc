# Sourced by benches that start our ranks and an MPI's in turns: a rank that the scheduler may move is slower, so either
# all contenders bind their ranks to cores, or none does.

# Sets `bind_ours` to options of halocline-run, and `bind_mpi[openmpi]`, `bind_mpi[mpich]` to those of mpirun.
bind_alike() { # BIN RANKS [openmpi] [mpich]
  local bin=$1 np=$2 mpi
  shift 2
  declare -gA bind_mpi=([openmpi]='--bind-to core --map-by core' [mpich]='-bind-to core')
  bind_ours=(--bind)
  if "$bin/halocline-run" "${bind_ours[@]}" -n "$np" -- true 2>/dev/null; then
    for mpi in "$@"; do # as words
      "mpirun.$mpi" ${bind_mpi[$mpi]} -n "$np" true >/dev/null 2>&1 </dev/null || { bind_ours=(--no-bind); break; }
    done
  else
    bind_ours=(--no-bind)
  fi
  [[ ${bind_ours[0]} == --bind ]] && return
  echo "${0##*/}: not all contenders can bind $np ranks to cores here: none does" >&2
  bind_mpi=([openmpi]='--bind-to none' [mpich]='-bind-to none')
}
