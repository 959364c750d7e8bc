#!/usr/bin/env bash
# Kills random ranks of three at random moments, over every transport, and prints how long survivors take to name them.
# usage: scripts/kill-campaign.sh [rounds]        default: 1000, a few minutes for each transport
set -euo pipefail
export LC_ALL=C # numbers are written 5.5
[[ ${1:-} != --help && ${1:-} != -h ]] || { sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0"; exit 0; }
[[ ! ${BUILD:-} ]] || BUILD=$(realpath -m -- "$BUILD") # of the caller's folder
cd "$(dirname "$(readlink -f "$0")")/.."
rounds=${1:-1000}
[[ $rounds =~ ^[1-9][0-9]*$ ]] ||
  { echo "kill-campaign.sh: '$rounds': expected a number of rounds from 1 on" >&2; exit 2; }
build=${BUILD:-build/release}
if [[ -z ${BUILD:-} ]]; then
  scripts/install-dependencies.sh bench >&2 # for both MPIs
  scripts/build.sh release comm_kill_campaign halocline-run 'halocline-mpi-openmpi?' 'halocline-mpi-mpich?' >&2
fi

source scripts/bench/support/peers.bash
let_mpis_start
export OMPI_MCA_btl=self,vader
failed=0
campaign() { "$build/tests/comm_kill_campaign" "$@" 2> >(grep -v 'was ended by signal 9' >&2); } # not each kill
transports=(shm)
if grep -qs '^LIBFABRIC_FOUND:INTERNAL=1' "$build/CMakeCache.txt"; then
  transports+=(ofi-tcp ofi-shm)
else
  echo "kill-campaign.sh: no libfabric here: ofi-tcp and ofi-shm are left out" >&2
fi
for transport in "${transports[@]}"; do
  campaign "$transport" "$rounds" "$build/bin/halocline-run" || failed=1
done
over_mpi() { # MPI, option of its mpirun: the launcher leaves survivors alone
  if [[ -e $build/lib/halocline/halocline-mpi-$1.so ]] && command -v "mpirun.$1" >/dev/null; then
    campaign mpi "$rounds" "mpirun.$1" "$2" || failed=1
  else
    echo "kill-campaign.sh: no $1 here: it is left out" >&2
  fi
}
over_mpi openmpi --enable-recovery
over_mpi mpich -disable-auto-cleanup
exit $failed
