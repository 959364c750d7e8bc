#!/bin/bash
# Runs a program under an MPI's launcher, which must end with 0; each rank must have loaded this module and no other.
# usage: loads.sh MODULE LAUNCHER -n RANKS -- PROGRAM [ARGUMENT ...]
set -euo pipefail
module=$1 launcher=$2 ranks=$4
shift 5
notes=$(mktemp -d)
trap 'rm -rf "$notes"' EXIT

"$launcher" -n "$ranks" env LD_DEBUG=files LD_DEBUG_OUTPUT="$notes/of" "$@"

loaded=$(sed -n 's/.*calling init: \(.*halocline-mpi-[^/]*\)$/\1/p' "$notes"/of.* | xargs -r -d '\n' readlink -f)
expected=$(for ((i = 0; i < ranks; ++i)); do readlink -f "$module"; done)
[[ $loaded == "$expected" ]] || { printf 'loaded:\n%s\nexpected:\n%s\n' "$loaded" "$expected"; exit 1; }
