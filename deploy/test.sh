#!/usr/bin/env bash
# Runs every test and ends with a list of what was skipped and why. Arguments go to go test.
set -euo pipefail
cd "$(dirname "$0")/.." # go vet is a part of deploy/lint.sh
echo "All tests take about a quarter of an hour on two cores; make test ARGS=-short takes three minutes." >&2
tools=$PWD/deploy/tools/go.mod
(cd deploy/bench && go tool -modfile="$tools" gotestsum --format pkgname-and-test-fails -- -vet=off "$@" ./...) # a module of its own
packages='./deploy/gridcast ./deploy/console ./...' # those that take longest begin first
case " $* " in *" -race "*) # where a package starts nothing beside itself, nothing can race; the binary that deploy/gridcast tests is built without the detector
  packages=$(grep -rlE --include='*.go' '\bgo (func\(|[a-z][A-Za-z.]*\()|\.Go\(|t\.Parallel\(' builder edge snapshots scheduler schemas deploy |
    grep -vE '^deploy/(bench|kit|tools|gridcast)/' | xargs -n1 dirname | sort -u | sed 's#^#./#') ;;
*) # the kit is a module of its own too
  (cd deploy/kit && go tool -modfile="$tools" gotestsum --format pkgname-and-test-fails -- -vet=off "$@" ./...) ;;
esac
exec go tool -modfile="$tools" gotestsum --format pkgname-and-test-fails -- -timeout 20m -vet=off "$@" $packages
