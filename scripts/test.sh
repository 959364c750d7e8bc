#!/usr/bin/env bash
# Installs dependencies, builds, and runs every test on a bare Debian 12; ends with ctest's own summary.
# usage: scripts/test.sh [ctest options]        e.g. scripts/test.sh -R halo
#        PRESET=tsan scripts/test.sh -L threads
set -euo pipefail
[[ ${1:-} != --help && ${1:-} != -h ]] || { sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0"; exit 0; }
here=$(cd "$(dirname "$(readlink -f "$0")")/.." && pwd)
cd "$here"
preset=${PRESET:-release}

scripts/install-dependencies.sh all >&2
scripts/build.sh "$preset" all >&2
cd "build/$preset"
ctest --output-on-failure --timeout 300 --no-tests=error "$@"
