#!/usr/bin/env bash
# Runs every test and ends with a list of what was skipped and why. Arguments go to go test.
set -euo pipefail
cd "$(dirname "$0")/.."
echo "All tests take about a quarter of an hour on two cores; make test ARGS=-short takes three minutes." >&2
tools=$PWD/deploy/tools/go.mod
(cd deploy/bench && go tool -modfile="$tools" gotestsum --format pkgname-and-test-fails -- "$@" ./...) # a module of its own
case " $* " in *" -race "*) ;; *) # what is installed runs nothing at the same time
  (cd deploy/kit && go tool -modfile="$tools" gotestsum --format pkgname-and-test-fails -- "$@" ./...) ;;
esac
exec go tool -modfile="$tools" gotestsum --format pkgname-and-test-fails -- -timeout 20m "$@" ./...
