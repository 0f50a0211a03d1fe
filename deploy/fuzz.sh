#!/usr/bin/env bash
# Runs every fuzz target for the time given (default 10s); a finding fails and is kept by go
# test in the package's testdata.
set -euo pipefail
cd "$(dirname "$0")/.."
time=${1:-10s}

# go test may report its own time limit, "context deadline exceeded", as a failure without an
# input that fails. That says nothing of the target: then, and only then, it runs once more.
fuzz() {
  local output
  for attempt in 1 2; do
    if output=$(go test "./$1" -run '^$' -fuzz "^$2\$" -fuzztime "$time" 2>&1); then
      printf '%s\n' "$output" | tail -n 2
      return 0
    fi
    printf '%s\n' "$output"
    if [ "$attempt" = 2 ] || grep -q 'Failing input' <<<"$output" || ! grep -q 'context deadline exceeded' <<<"$output"; then
      return 1
    fi
  done
}
export -f fuzz
export time

# Two targets at a time: a target spends most of its time on compiling and starting.
grep -rl --include='*_test.go' '^func Fuzz' builder edge snapshots scheduler schemas deploy | sort | while read -r file; do
  for target in $(sed -n 's/^func \(Fuzz[A-Za-z0-9_]*\)(.*/\1/p' "$file"); do echo "$(dirname "$file") $target"; done
done | xargs -P 2 -L 1 bash -c 'output=$(fuzz "$0" "$1" 2>&1); status=$?; printf "== ./%s %s\n%s\n" "$0" "$1" "$output"; exit "$status"'
