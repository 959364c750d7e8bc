#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs a command four times whose ranks all find the same bad input: told_once.sh TEXT COMMAND...
# It must fail each time with that text. A rank that is held up for more than 0.1 s may add that another one gave up
# (docs/decisions/0054), so one run may say more than once what is wrong.
text=$1
shift
repeated=0
for run in 1 2 3 4; do
    if said=$("$@" 2>&1); then
        echo "run $run ended well"
        exit 1
    fi
    case $(printf '%s\n' "$said" | grep -c "$text") in
    0)
        printf 'run %s does not say "%s":\n%s\n' "$run" "$text" "$said"
        exit 1
        ;;
    1) ;;
    *)
        repeated=$((repeated + 1))
        printf 'run %s says it more than once:\n%s\n' "$run" "$said"
        ;;
    esac
done
test "$repeated" -le 1
