#!/usr/bin/env bash
# Checks a Promela model for every interleaving.
# usage: check.sh holds|breaks MODEL.pml [-DNAME[=VALUE] ...]   exit 0: it does, 1: it doesn't, 77: Spin isn't there
set -euo pipefail
expected=$1 model=$(realpath "$2")
shift 2
command -v spin >/dev/null || { echo "spin isn't installed (Debian package: spin)"; exit 77; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"

spin -a "$@" "$model"
cc -O2 -w -DSAFETY -DCOLLAPSE -DMEMLIM=2000 -o pan pan.c # COLLAPSE: states packed
./pan -m1000000 >out 2>&1 || { cat out; exit 1; }
grep -E '^pan|State-vector|states, stored|errors:' out

# "Search not completed" unless every state was seen; deadlocks are errors too.
if grep -q 'errors: 0' out && ! grep -q 'Search not completed\|max search depth too small' out; then
  found=holds
elif grep -qE 'assertion violated|invalid end state' out; then
  found=breaks
else
  echo "no verdict"
  cat out
  exit 1
fi
[[ $found == "$expected" ]] || { echo "expected: $expected, found: $found"; exit 1; }
