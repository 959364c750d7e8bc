#!/usr/bin/env bash
# Formats every source of the project in place (clang-format 14).
set -euo pipefail
cd "$(dirname "$0")/.."
git ls-files '*.cpp' '*.hpp' '*.h' | xargs clang-format-14 -i --style=file
