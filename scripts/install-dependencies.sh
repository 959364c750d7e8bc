#!/usr/bin/env bash
# Installs what a bare Debian 12 lacks to build, measure and test Halocline; silent if nothing is missing.
# If it may not install packages, it prints the exact command to run and stops. Other systems are left to CMake, which
# names what it does not find.
# usage: scripts/install-dependencies.sh [build | bench | all]      HALOCLINE_WITHOUT_MPI=1: without Open MPI and MPICH
#                                                HALOCLINE_WITHOUT_PACKAGES=1: nothing is installed, nor insisted on
#   build   what the build needs; optional packages (transports) are installed too, but not insisted on
#   bench   these and the optional ones
#   all     these and what only tests need (the default)
set -euo pipefail
[[ ${1:-} != --help && ${1:-} != -h ]] || { sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0"; exit 0; }
purpose=${1:-all}
[[ $purpose =~ ^(build|bench|all)$ ]] ||
  { echo "install-dependencies.sh: '$purpose': expected build, bench or all" >&2; exit 2; }
[[ ! ${HALOCLINE_WITHOUT_PACKAGES:-} ]] || exit 0

needed=(
  g++ cmake ninja-build pkg-config
  libeigen3-dev libhwy-dev zlib1g-dev libssl-dev libtomlplusplus-dev   # libraries
  libcli11-dev nlohmann-json3-dev                              # programs
  libgtest-dev                                                 # tests, which a build of everything has
)
optional=(
  ccache
  libfabric-dev                                                # transport ofi
  libibverbs-dev ibverbs-providers                             # transport verbs
  libpmix-dev                                                  # bootstrap pmix
)
[[ ${HALOCLINE_WITHOUT_MPI:-} ]] || optional+=(openmpi-bin libopenmpi-dev mpich libmpich-dev) # transport mpi, both
for_tests=(
  spin                                                         # models of the slot protocols
  locales                                                      # tests in a locale that writes 5,5 (localedef's charmaps)
  nftables                                                     # tests of links that lose packets
  qemu-system-x86 busybox-static kmod cpio iproute2 perftest   # tests of verbs: scripts/verbs-vm.sh
)
[[ $purpose == all ]] && optional+=("${for_tests[@]}")

if ! command -v dpkg-query >/dev/null; then
  echo "install-dependencies.sh: no dpkg here, so nothing is installed; CMake will name what it does not find" >&2
  exit 0
fi
absent() { # prints those of its arguments that are not installed
  local package
  for package; do
    dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'install ok installed' || echo "$package"
  done
}
mapfile -t must < <(absent "${needed[@]}")
mapfile -t may < <(absent "${optional[@]}")
missing=("${must[@]}" "${may[@]}")
[[ ${#missing[@]} -eq 0 ]] && exit 0

install=(apt-get install -y --no-install-recommends)
as_root=()
if [[ $(id -u) -ne 0 ]]; then
  if command -v sudo >/dev/null && sudo -n true 2>/dev/null; then
    as_root=(sudo env DEBIAN_FRONTEND=noninteractive) # sudo passes no variables on
  else
    [[ $purpose == build ]] && missing=("${must[@]}")
    [[ ${#missing[@]} -eq 0 ]] && exit 0
    printf 'Missing packages. Run this, then start again:\n  sudo apt-get update && sudo %s\n' \
      "${install[*]} ${missing[*]}" >&2
    echo "Or set HALOCLINE_WITHOUT_PACKAGES=1, to go on with what is there." >&2
    exit 1
  fi
fi

# Each build would try again what this system's sources don't have: PACKAGE SECONDS, when it failed.
failures=$(dirname "$(readlink -f "$0")")/../build/packages-that-failed
declare -A failed_at=()
[[ ! -e $failures ]] || while read -r package when; do
  if [[ $when =~ ^[0-9]+$ ]]; then failed_at[$package]=$when; fi
done <"$failures"
printf -v now '%(%s)T' -1
recently_failed() { [[ $((now - ${failed_at[$1]:-0})) -lt 600 ]]; }
try=() left=()
for package in "${may[@]}"; do
  if recently_failed "$package"; then left+=("$package"); else try+=("$package"); fi
done
[[ ${#left[@]} -eq 0 ]] ||
  echo "install-dependencies.sh: left out, as they failed minutes ago (build/${failures##*/}): ${left[*]}" >&2
may=("${try[@]}") missing=("${must[@]}" "${try[@]}")
[[ ${#missing[@]} -eq 0 ]] && exit 0

export DEBIAN_FRONTEND=noninteractive
get() { "${as_root[@]}" "${install[@]}" "$@" -qq >/dev/null; }
echo "installing: ${missing[*]}"
"${as_root[@]}" apt-get update -qq || echo "install-dependencies.sh: apt-get update failed: known packages are used" >&2
[[ ${#must[@]} -eq 0 ]] || get "${must[@]}" ||
  { echo "install-dependencies.sh: these can't be installed: ${must[*]}" >&2; exit 1; }
if [[ ${#may[@]} -gt 0 ]] && ! get "${may[@]}" 2>/dev/null; then # apt-get installs all or none of them
  mkdir -p "${failures%/*}"
  for package in "${may[@]}"; do
    get "$package" && continue
    echo "install-dependencies.sh: $package can't be installed: what needs it is left out" >&2
    echo "$package $now" >>"$failures"
  done
  echo "install-dependencies.sh: this is tried again in ten minutes, or without build/${failures##*/};" \
    "HALOCLINE_WITHOUT_PACKAGES=1: never" >&2
fi
