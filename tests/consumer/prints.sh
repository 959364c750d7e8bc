#!/bin/sh
# Runs a command, which must end with 0 and print a line that matches the extended expression.
# usage: prints.sh EXPRESSION COMMAND [ARGUMENT ...]
set -eu
expression=$1
shift
printed=$("$@" 2>&1) || { code=$?; printf '%s\nexit code %s\n' "$printed" "$code"; exit 1; }
printf '%s\n' "$printed"
printf '%s\n' "$printed" | grep -Eq -- "$expression" || { echo "no line matches $expression"; exit 1; }
