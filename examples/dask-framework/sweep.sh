#!/bin/sh
# Record every configuration twice: sh sweep.sh FOLDER, in the folder of record.py.  About five minutes on two cores.
for n in 1 2; do
  for each in "tree 1 1" "tree 2 1" "tree 1 2" "fetching 2 1" "fetching 4 1" "fetching 2 2" \
              "shuffled 1 1" "shuffled 2 1" "shuffled 1 2" "shuffled 2 2"; do
    set -- "$1" $each
    python record.py "$1" "$2" "$3" "$4" "$2-$3x$4-$n" || exit 1
    set -- "$1"
  done
done
