# Where messages over verbs are measured.

# Prints DEVICE PORT: those of HALOCLINE_COMM_VERBS_DEVICE and HALOCLINE_COMM_VERBS_PORT, by default the first device
# whose port 1 is active. Fails if that port is not active.
verbs_device() {
  local port=${HALOCLINE_COMM_VERBS_PORT:-1} folder
  for folder in /sys/class/infiniband/*; do
    [[ ${folder##*/} == "${HALOCLINE_COMM_VERBS_DEVICE:-${folder##*/}}" ]] || continue
    if grep -qs ': ACTIVE$' "$folder/ports/$port/state"; then # "4: ACTIVE"
      echo "${folder##*/} $port"
      return
    fi
  done
  return 1
}
# Becomes a command where there is an RDMA device: here, or else in an emulated machine, whose environment is its own.
on_rdma_device() { # SECONDS COMMAND
  local within=$1
  shift
  if verbs_device >/dev/null; then exec "$@"; fi
  export VERBS_VM_SECONDS=${VERBS_VM_SECONDS:-$within}
  exec "$here/scripts/verbs-vm.sh" "$(printf '%q ' env HALOCLINE_BENCH_GIT="$HALOCLINE_BENCH_GIT" "$@")"
}
