#!/bin/sh
# usage: interrupted_peer.sh COMMAND…: runs a bench with two peers that stay when their input ends, and interrupts it.
# Whoever reads this script's output to its end waits for them.
set -eu
begun=$(mktemp)
trap 'rm -f "$begun"' EXIT
stays="cd / && echo begun >>'$begun' && sleep 1000; true"
"$@" --peer "one=$stays" --peer "two=$stays" &
bench=$!
while kill -0 $bench 2>/dev/null && [ "$(wc -l <"$begun")" -lt 2 ]; do sleep 0.1; done
kill -TERM $bench
! wait $bench
