#!/usr/bin/env bash
# Runs every fuzz target for the time given (default 10s); a finding fails and is kept by go
# test in the package's testdata.
set -euo pipefail
cd "$(dirname "$0")/.."
time=${1:-10s}
grep -rl --include='*_test.go' '^func Fuzz' builder edge snapshots scheduler schemas deploy | sort | while read -r file; do
  for target in $(sed -n 's/^func \(Fuzz[A-Za-z0-9_]*\)(.*/\1/p' "$file"); do
    echo "== ./$(dirname "$file") $target"
    go test "./$(dirname "$file")" -run '^$' -fuzz "^${target}\$" -fuzztime "$time"
  done
done
