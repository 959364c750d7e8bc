#!/bin/sh
# usage: one_line_each.sh COMMAND…: runs bench_halo; every line of "halo" has other keys up to "layout" than the others.
set -eu
written=$(mktemp)
trap 'rm -f "$written"' EXIT
"$@" >"$written" # no pipe, which would have the exit status of its last command
lines=$(grep '^{"bench":"halo",' "$written" | sed 's/,"flag_ns".*//')
twice=$(echo "$lines" | sort | uniq -d)
[ -z "$twice" ] || { printf 'more than one line of:\n%s\n' "$twice" >&2; exit 1; }
for mode in packed packed-tuned; do # both were there
  echo "$lines" | grep -q "\"who\":\"openmpi\",\"mode\":\"$mode\"" || { printf 'no %s in:\n%s\n' $mode "$lines" >&2; exit 1; }
done
