#!/usr/bin/env bash
# Runs every test and ends with a list of what was skipped and why. Arguments go to go test.
set -euo pipefail
cd "$(dirname "$0")/.."
exec go tool -modfile=deploy/tools/go.mod gotestsum --format pkgname-and-test-fails -- -timeout 20m "$@" ./...
