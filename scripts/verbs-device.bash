# Sourced by benches over verbs.

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
