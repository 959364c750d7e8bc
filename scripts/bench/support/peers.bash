# How MPI programs are started, as peers of ours or by themselves, and with which settings.

# Lets Open MPI start as root, with more ranks than cores, and in containers that forbid binding.
let_mpis_start() {
  export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
  export OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_hwloc_base_binding_policy=none
}
# Prints what OMPI_MCA_mpi_yield_when_idle should be. It is always said: Open MPI counts the machine's cores, so where
# two hardware threads are one core its ranks would give up processors that nobody else wants, and where its ranks may
# use only some of the cores they would not give up those that they share.
yields() { # RANKS [PROCESSORS]
  if [[ $1 -le ${2:-$(nproc)} ]]; then echo 0; else echo 1; fi
}

has_mpi() { [[ -x $bin/$2_$1 ]] && command -v "mpirun.$1" >/dev/null; } # MPI PROGRAM
# Prints the installed MPIs for which PROGRAM_<mpi> was built, one per line. MPICH's ranks never yield a processor:
# where they must share some, each of their messages takes milliseconds, so it is left out.
mpis_with() { # PROGRAM RANKS
  local mpi
  for mpi in openmpi mpich; do
    if ! has_mpi "$mpi" "$1"; then
      echo "${0##*/}: no $mpi here: it is left out" >&2
    elif [[ $mpi == mpich && $2 -gt $(nproc) ]]; then
      echo "${0##*/}: mpich is left out: it yields no processor, and $2 ranks have $(nproc)" >&2
    else
      echo "$mpi"
    fi
  done
}
# Prints the command of a peer.
mpi_command() { # MPI RANKS PROGRAM [PROCESSORS]
  [[ $1 == mpich ]] || # its ranks bind themselves
    printf 'env OMPI_MCA_mpi_yield_when_idle=%s OMPI_MCA_hwloc_base_binding_policy=none ' "$(yields "$2" "${4:-}")"
  echo "mpirun.$1 -n $2 '$bin/$3_$1'"
}

# The settings of MPIs that are called tuned, the same for all questions: messages of up to 32 KiB leave at once, larger
# ones go through shared memory without the kernel's help.
#   btl_vader_eager_limit        up to this size a message is copied into the receiver's queue without asking
#   btl_vader_single_copy_mechanism=none   larger ones are copied twice, in pieces, instead of once by CMA
#                                (process_vm_readv)
#   UCX_RNDV_THRESH              from this size on the receiver is asked first; by default UCX decides by its estimates
#   UCX_TLS=^cma                 all of UCX's transports but CMA
declare -A tuned=(
  [openmpi]='OMPI_MCA_btl_vader_eager_limit=32768 OMPI_MCA_btl_vader_single_copy_mechanism=none'
  [mpich]='UCX_RNDV_THRESH=32768 UCX_TLS=^cma')
# Over tcp on loopback.
declare -A tcp=(
  [openmpi]='OMPI_MCA_pml=ob1 OMPI_MCA_btl=tcp,self OMPI_MCA_btl_tcp_if_include=lo'
  [mpich]='UCX_TLS=tcp,self UCX_NET_DEVICES=lo')

# Prints the command of a peer of two ranks in an otherwise bare environment: a launcher that finds another launcher's
# variables takes itself for one of its ranks.
bare_peer() { # MPI PROGRAM [VARIABLES]
  local name clean="env -i PATH='$PATH' HOME='${HOME:-/}'"
  clean+=' ${HALOCLINE_BENCH_PROCESSORS:+HALOCLINE_BENCH_PROCESSORS=$HALOCLINE_BENCH_PROCESSORS}' # the bench sets it
  for name in $(compgen -e | grep -E '^OMPI_(ALLOW|MCA)'); do clean+=" $name='${!name}'"; done
  echo "$clean ${3:-} $(mpi_command "$1" 2 "$2")"
}
tcp_peer() { bare_peer "$1" "$2" "${tcp[$1]}"; } # MPI PROGRAM

# Peers of bench_halo: what each MPI's program knows to do.
declare -A halo_modes=([openmpi]=packed,in-place,neighbour [mpich]=packed,in-place,neighbour,neighbour-init) # of MPI 4
# Appends options of bench_halo: each MPI as installed and tuned.
add_halo_peers() { # ARRAY RANKS
  local -n array=$1
  local mpi command
  for mpi in $(mpis_with bench_halo "$2"); do
    command=$(mpi_command "$mpi" "$2" bench_halo)
    array+=(--peer "$mpi:${halo_modes[$mpi]}=$command")
    array+=(--peer "$mpi-tuned:${halo_modes[$mpi]}=env ${tuned[$mpi]} $command")
  done
}

# Where ranks of ours and of MPIs are started in turns, either all contenders bind their ranks to cores, or none does:
# a rank that the scheduler may move is slower. Sets `bind_ours` to options of halocline-run, and bind_mpi[openmpi],
# bind_mpi[mpich] to those of mpirun, as words.
bind_alike() { # RANKS [openmpi] [mpich]
  local np=$1 mpi
  shift
  declare -gA bind_mpi=([openmpi]='--bind-to core --map-by core' [mpich]='-bind-to core')
  bind_ours=(--bind)
  if "$bin/halocline-run" "${bind_ours[@]}" -n "$np" -- true 2>/dev/null; then
    for mpi in "$@"; do
      "mpirun.$mpi" ${bind_mpi[$mpi]} -n "$np" true >/dev/null 2>&1 </dev/null || { bind_ours=(--no-bind); break; }
    done
  else
    bind_ours=(--no-bind)
  fi
  [[ ${bind_ours[0]} != --bind ]] || return 0
  echo "${0##*/}: not all contenders can bind $np ranks to cores here: none does" >&2
  bind_mpi=([openmpi]='--bind-to none' [mpich]='-bind-to none')
}
# The same for commands that the user gives. Open MPI's launcher is told by the environment, which this sets; a command of
# another one must say how it binds.
bind_own_peers() { # RANKS
  local mpis=()
  ! command -v mpirun.openmpi >/dev/null || mpis=(openmpi)
  bind_alike "$1" "${mpis[@]}"
  OMPI_MCA_mpi_yield_when_idle=$(yields "$1")
  OMPI_MCA_hwloc_base_binding_policy=none
  [[ ${bind_ours[0]} != --bind ]] || OMPI_MCA_hwloc_base_binding_policy=core
}
