#!/usr/bin/env bash
# Formats the given sources in place, by default those changed or new since the last commit (clang-format 14).
# usage: scripts/format.sh [FILE ...]
#        scripts/format.sh --check       all of the project's sources; changes nothing, exit 1 if one is not formatted
set -euo pipefail
[[ ${1:-} != --help && ${1:-} != -h ]] || { sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0"; exit 0; }
cd "$(dirname "$(readlink -f "$0")")/.."
command -v clang-format-14 >/dev/null || { echo "format.sh: no clang-format-14 (package clang-format-14)" >&2; exit 1; }
sources=('*.cpp' '*.hpp' '*.h' '*.c')
if [[ ${1:-} == --check ]]; then
  git ls-files -z -- "${sources[@]}" | xargs -0 clang-format-14 --style=file --dry-run --Werror || exit 1
  exit 0
fi
files=("$@")
[[ $# -gt 0 ]] || mapfile -t files < <(
  git diff --name-only --diff-filter=d HEAD -- "${sources[@]}"
  git ls-files --others --exclude-standard -- "${sources[@]}"
)
[[ ${#files[@]} -eq 0 ]] || clang-format-14 -i --style=file "${files[@]}"
