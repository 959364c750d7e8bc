#!/usr/bin/env bash
# Configures and builds one preset (default: release), after installing what it needs.
# usage: scripts/build.sh [preset] [target ...]      TARGET?: left out if what it needs was not found
set -euo pipefail
[[ ${1:-} != --help && ${1:-} != -h ]] || { sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0"; exit 0; }
cd "$(dirname "$(readlink -f "$0")")/.."
preset=${1:-release}
shift || true

scripts/install-dependencies.sh build
log=build/$preset.configure.log
mkdir -p build
launcher=()
if command -v ccache >/dev/null; then
  # Without a folder for its cache that this user may write to, ccache fails at the first file.
  if trial=$(ccache "${CXX:-c++}" -x c++ -c /dev/null -o /dev/null 2>&1); then
    launcher=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache)
  else
    launcher=(-DCMAKE_CXX_COMPILER_LAUNCHER=)
    echo "build.sh: without ccache, which does not work here: ${trial##*$'\n'}" >&2
  fi
fi
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
