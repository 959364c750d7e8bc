#!/usr/bin/env bash
# Runs a bench from a fresh clone: ratios in one run, a table for eyes, JSON lines for machines.
# usage: scripts/bench.sh [question] [options]     questions: halo (default), dirac
set -euo pipefail
here=$(cd "$(dirname "$0")/.." && pwd)
question=${1:-halo}
shift || true
"$here/scripts/build.sh" release "bench_$question" halocline-run >&2
bin=$here/build/release/bin
case $question in
  halo) exec "$bin/halocline-run" -n 2 -- "$bin/bench_halo" "$@" ;;
  *) exec "$bin/bench_$question" "$@" ;;
esac
