#!/usr/bin/env bash
# Runs a bench from a fresh clone: ratios within one run, a table for readers, JSON lines for programs.
# usage: scripts/bench.sh question [options]      (no question: prints this list)
# exit status: 77 if what the question is about is missing here: libfabric, libibverbs, an MPI, an RDMA device

# Each question is a file of scripts/bench, whose README.md says what it consists of.
set -euo pipefail
export LC_ALL=C # numbers are written 5.5
here=$(cd "$(dirname "$(readlink -f "$0")")/.." && pwd)
questions=$here/scripts/bench
help_of() { # QUESTION: prints its first comment, with its name in front
  local name=$1 line
  while IFS= read -r line && [[ $line == '#'* ]]; do
    line=${line#\#}
    printf '  %-18s%s\n' "$name" "${line# }"
    name=''
  done <"$questions/$1.bash"
}
list() {
  local file
  sed -n '/^# usage/s/^# //p' "$here/scripts/bench.sh"
  for file in "$questions"/*.bash; do
    file=${file##*/}
    help_of "${file%.bash}"
  done
  sed -n '/^# exit status/s/^# //p' "$here/scripts/bench.sh"
}
question=${1:-}
[[ -n $question && $question != --help && $question != -h ]] || { list; exit 0; }
[[ $question =~ ^[a-z0-9_]+$ && -e $questions/$question.bash ]] ||
  { echo "bench.sh: no question is called '$question'" >&2; list >&2; exit 2; }
shift
options=("$@")
build=$here/build/release
bin=$build/bin

for part in options environment files peers rdma_device; do source "$questions/support/$part.bash"; done
read_options() { :; } # of a question without options of its own
source "$questions/$question.bash"
if [[ ${1:-} == --help || ${1:-} == -h ]]; then
  help_of "$question"
  echo "the bench's own options, once it is built: build/release/bin/${programs[0]} --help"
  exit 0
fi
read_options
if [[ ! ${BENCH_IS_BUILT:-} ]]; then # else the bench.sh that started this one did it: ask()
  "$here/scripts/install-dependencies.sh" "$packages" >&2
  "$here/scripts/build.sh" release halocline-run "${programs[@]/%/?}" >&2 # ?: where it can be built
fi
[[ -x $bin/${programs[0]} ]] ||
  missing "${programs[0]} can't be built; build/release.configure.log says what is missing"
prepare_environment
run
