#!/usr/bin/env bash
# Runs all tests of configuration `verbs` in the build folder, on a machine with RDMA devices that is thrown away
# afterwards (comm.verbs_vm). Also fails if there are no such tests, or if one is skipped that may not be.
set -uo pipefail

# Tests that concern other transports, in programs that are run over every transport, or need more ranks than two.
with_leave='^(MessengerDirect\.ASilentPeerDoesNotHoldUpTheMessagesOfAnother|(Straight)?Window\.NoAllocationBetweenInitAndWait|Window\.SmallOnesRunAhead|WindowFromOrdinaryMemory\..*|WindowRefused\..*|OneSided\.MixedJobsHaveBoth|Ending\.AFarewellBehindAPeerThatIsMissingIsSeenAtOnce)$'

# A separate folder, because ctest runs both outside and inside the machine.
mkdir -p Testing && mount -t tmpfs none Testing || exit 1
ctest -C verbs -L verbs -E verbs_vm --timeout 900 --no-tests=error --output-on-failure | tee Testing/report
failed=$?
log=Testing/Temporary/LastTest.log
if grep -F '(Skipped)' Testing/report; then
  echo "verbs_tests: these entries were skipped, although this machine has devices" >&2
  failed=1
fi
if sed -n 's/^\[  SKIPPED \] \([^ ,]*\).*/\1/p' "$log" | grep -vE '^[0-9]+$' | sort -u | grep -vE "$with_leave"; then
  echo "verbs_tests: these tests were skipped without leave" >&2
  failed=1
fi
if grep -F 'Running 0 tests' "$log"; then
  echo "verbs_tests: a filter matches nothing" >&2
  failed=1
fi
exit "$failed"
