#!/usr/bin/env bash
# Kills random ranks of three at random moments, over every transport, and prints how long survivors take to name them.
# usage: scripts/kill-campaign.sh [rounds]        default: 1000, a few minutes for each transport
set -euo pipefail
[[ ${1:-} != --help && ${1:-} != -h ]] || { sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0"; exit 0; }
cd "$(dirname "$(readlink -f "$0")")/.."
rounds=${1:-1000}
build=${BUILD:-build/release}
if [[ -z ${BUILD:-} ]]; then
  scripts/install-dependencies.sh bench >&2 # for both MPIs
  scripts/build.sh release comm_kill_campaign halocline-run halocline-mpi-openmpi halocline-mpi-mpich >&2
fi

export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
export OMPI_MCA_btl=self,vader OMPI_MCA_hwloc_base_binding_policy=none
failed=0
campaign() { "$build/tests/comm_kill_campaign" "$@" 2> >(grep -v 'was ended by signal 9' >&2); } # not each kill
for transport in shm ofi-tcp ofi-shm; do
  campaign "$transport" "$rounds" "$build/bin/halocline-run" || failed=1
done
command -v mpirun.openmpi >/dev/null && { campaign mpi "$rounds" mpirun.openmpi --enable-recovery || failed=1; }
command -v mpirun.mpich >/dev/null && { campaign mpi "$rounds" mpirun.mpich -disable-auto-cleanup || failed=1; }
exit $failed
