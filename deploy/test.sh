#!/usr/bin/env bash
# Runs every test and ends with a list of the skipped tests and their reasons. Arguments go to go test.
set -euo pipefail
cd "$(dirname "$0")/.." # go vet is a part of deploy/lint.sh
# Stores of tests wait for the disk at each of their thousand files; in memory they do not. The folder there
# needs room, and programs must run from it. Its name stays the same, because go test caches results by TMPDIR.
if [ -z "${TMPDIR:-}" ] && [ "$(df --output=avail /dev/shm 2>/dev/null | tail -n 1)" -gt 4000000 ] 2>/dev/null; then
  memory=/dev/shm/gridcast-$(cksum <<<"$PWD" | cut -d' ' -f1)
  trap 'rm -rf "$memory"' EXIT
  mkdir -p "$memory"
  chmod 755 "$memory" # nginx of another user reads there
  if cp "$(type -P true)" "$memory/true" && "$memory/true"; then export TMPDIR=$memory; fi
fi
# Tests allocate a lot and live for seconds, so a rarer collection of garbage saves a sixth of their CPU time.
export GOGC=${GOGC:-400} GOMEMLIMIT=${GOMEMLIMIT:-2GiB}
echo "All tests take some minutes on two cores; make test ARGS=-short skips the longest." >&2
tools=$PWD/deploy/tools/go.mod
# Compiled as make build compiles, no package is compiled a second time for tests. Only the race detector needs C.
export GOFLAGS="$(go env GOFLAGS) -trimpath"
case " $* " in *" -race "*) ;; *) export CGO_ENABLED=0 ;; esac
# Without symbols and debug information, which no test reads, a test binary links in two thirds of the CPU time.
# Many tests wait for servers, clocks and browsers, so two packages more than there are cores run at a time.
tests() { go tool -modfile="$tools" gotestsum --format pkgname-and-test-fails -- -vet=off '-ldflags=-s -w' -p "$(($(getconf _NPROCESSORS_ONLN) + 2))" "$@"; }
# The slowest packages start first, and those that mostly wait run beside them.
slowest='./deploy/gridcast ./deploy ./deploy/console ./builder/assemble ./deploy/service ./builder ./edge ./edge/limit/redislimit ./snapshots/blob/s3blob ./snapshots ./builder/ingest ./builder/predict ./scheduler'
packages="$slowest ./..."
modules='lab kit logcheck'                         # modules of their own, tested beside the rest
# A package without goroutines has no races. deploy/gridcast tests a binary that is built without the detector; the
# tests of deploy/cdn, widget and browsertest run nginx and Chromium.
case " $* " in *" -race "*)
  modules='lab/bench'
  packages=$(grep -rlE --include='*.go' '\bgo (func\(|[a-z][A-Za-z.]*\()|\.Go\(|t\.Parallel\(' builder edge snapshots scheduler schemas deploy |
    grep -vE '^deploy/(lab|kit|logcheck|tools|gridcast|cdn|widget|console/browsertest)/' | xargs -n1 dirname | sort -u | sed 's#^#./#')
  packages="$(tr ' ' '\n' <<<"$slowest" | grep -xF "$packages") $packages" ;;
esac
for module in $modules; do (cd "deploy/$module" && tests "$@" ./...) || exit; done &
status=0
tests -timeout 20m "$@" $packages || status=$?
wait $! || status=$?
exit "$status"
