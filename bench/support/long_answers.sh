#!/bin/sh
# A peer program whose answers are lines of 20 000 bytes: 4500 times 1, 5500 times 9.
while read -r _; do
  awk 'BEGIN { for (i = 0; i < 10000; ++i) printf "%d ", i < 4500 ? 1 : 9; print "" }'
done
