#!/usr/bin/env bash
# Configures and builds one preset (default: release), after installing what it needs.
# usage: scripts/build.sh [preset] [target ...]      TARGET?: left out if what it needs was not found
set -euo pipefail
[[ ${1:-} != --help && ${1:-} != -h ]] || { sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0"; exit 0; }
cd "$(dirname "$(readlink -f "$0")")/.."
preset=${1:-release}
shift || true

scripts/install-dependencies.sh build
launcher=()
command -v ccache >/dev/null && launcher=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache)
log=build/$preset.configure.log
mkdir -p build
cmake --preset "$preset" "${launcher[@]}" >"$log" 2>&1 || { cat "$log" >&2; exit 1; }
targets=()
for target; do
  if [[ $target == *\? ]]; then
    target=${target%\?}
    grep -q "^build $target: phony" "build/$preset/build.ninja" ||
      { echo "build.sh: no $target: $log says what was not found"; continue; }
  fi
  targets+=("$target")
done
[[ $# -eq 0 || ${#targets[@]} -gt 0 ]] || exit 0
[[ $# -eq 0 ]] || targets=(--target "${targets[@]}")
cmake --build --preset "$preset" "${targets[@]}"
