#!/bin/sh
# Compiles every public header alone and prints what is wrong with it.
# usage: headers_alone.sh SOURCE PROCESSES COMPILER FLAGS...
set -eu
cd "$1"
processes=$2
shift 2
headers=$(find ./*/include -name '*.hpp' -o -name '*.h')
test -n "$headers" || { echo "no headers in $PWD" >&2; exit 1; }
for folder in */include; do
  set -- "$@" "-I$folder"
done
printf '%s\n' "$headers" | xargs -P "$processes" -I HEADER "$@" -x c++ -fsyntax-only -Werror -include HEADER /dev/null
