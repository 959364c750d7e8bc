#!/usr/bin/env bash
# Installs what a bare Debian 12 lacks to build and test Halocline; silent if nothing is missing.
# If it may not install packages, it prints the exact command to run and stops.
# usage: scripts/install-dependencies.sh      HALOCLINE_WITHOUT_MPI=1: without Open MPI and MPICH
set -euo pipefail
[[ ${1:-} != --help && ${1:-} != -h ]] || { sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0"; exit 0; }

packages=(
  g++ cmake ninja-build pkg-config ccache
  libeigen3-dev libhwy-dev zlib1g-dev libssl-dev libtomlplusplus-dev   # libraries
  libcli11-dev nlohmann-json3-dev                              # programs
  libfabric-dev                                                # transport ofi
  libibverbs-dev ibverbs-providers                             # transport verbs
  libpmix-dev                                                  # bootstrap pmix
  libgtest-dev spin                                            # tests; models of the slot protocols
  locales                                                      # tests in a locale that writes 5,5 (localedef's charmaps)
  nftables                                                     # tests of links that lose packets
  qemu-system-x86 busybox-static kmod cpio iproute2 perftest   # tests of verbs: scripts/verbs-vm.sh
)
[[ ${HALOCLINE_WITHOUT_MPI:-} ]] || packages+=(openmpi-bin libopenmpi-dev mpich libmpich-dev) # transport mpi, both

missing=()
for package in "${packages[@]}"; do
  dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'install ok installed' || missing+=("$package")
done
[[ ${#missing[@]} -eq 0 ]] && exit 0

install=(apt-get install -y --no-install-recommends "${missing[@]}")
run_as_root=()
if [[ $(id -u) -ne 0 ]]; then
  if command -v sudo >/dev/null && sudo -n true 2>/dev/null; then
    run_as_root=(sudo)
  else
    printf 'Missing packages. Run this, then start again:\n  sudo %s\n' "${install[*]}" >&2
    exit 1
  fi
fi
echo "installing: ${missing[*]}"
"${run_as_root[@]}" apt-get update -qq
DEBIAN_FRONTEND=noninteractive "${run_as_root[@]}" "${install[@]}" -qq >/dev/null
