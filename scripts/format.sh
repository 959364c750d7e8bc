#!/usr/bin/env bash
# Formats the given sources in place, by default those changed since the last commit (clang-format 14).
# usage: scripts/format.sh [FILE ...]
set -euo pipefail
cd "$(dirname "$0")/.."
files=("$@")
[[ $# -gt 0 ]] || mapfile -t files < <(git diff --name-only --diff-filter=d HEAD -- '*.cpp' '*.hpp' '*.h')
[[ ${#files[@]} -eq 0 ]] || clang-format-14 -i --style=file "${files[@]}"
