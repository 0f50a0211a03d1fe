#!/usr/bin/env bash
# Runs every test and ends with a list of the skipped tests and their reasons. Arguments go to go test.
set -euo pipefail
cd "$(dirname "$0")/.." # go vet is a part of deploy/lint.sh
echo "All tests take about nine minutes on two cores; make test ARGS=-short takes three minutes." >&2
tools=$PWD/deploy/tools/go.mod
(cd deploy/bench && go tool -modfile="$tools" gotestsum --format pkgname-and-test-fails -- -vet=off "$@" ./...) # a module of its own
packages='./deploy/gridcast ./deploy/console ./...' # the slowest packages start first
# A package without goroutines has no races. deploy/gridcast tests a binary that is built without the detector; the
# tests of deploy/cdn and browsertest run nginx and Chromium.
case " $* " in *" -race "*)
  packages=$(grep -rlE --include='*.go' '\bgo (func\(|[a-z][A-Za-z.]*\()|\.Go\(|t\.Parallel\(' builder edge snapshots scheduler schemas deploy |
    grep -vE '^deploy/(bench|kit|tools|gridcast|cdn|console/browsertest)/' | xargs -n1 dirname | sort -u | sed 's#^#./#') ;;
*) # the kit is a module of its own, too
  (cd deploy/kit && go tool -modfile="$tools" gotestsum --format pkgname-and-test-fails -- -vet=off "$@" ./...) ;;
esac
exec go tool -modfile="$tools" gotestsum --format pkgname-and-test-fails -- -timeout 20m -vet=off "$@" $packages
