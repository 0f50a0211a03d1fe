#!/usr/bin/env bash
# Format, vet, lint, dead code: any finding fails.
set -euo pipefail
cd "$(dirname "$0")/.."
tool() { go tool -modfile=deploy/tools/go.mod "$@"; }

echo "gofumpt"
unformatted=$(tool gofumpt -l builder edge snapshots scheduler schemas deploy)
if [ -n "$unformatted" ]; then
  printf 'not formatted (gofumpt -w):\n%s\n' "$unformatted" >&2
  exit 1
fi
echo "go mod tidy"
go mod tidy -diff
echo "golangci-lint"
tool golangci-lint run ./...
echo "deadcode"
dead=$(tool deadcode -test ./...)
if [ -n "$dead" ]; then
  printf 'never called, not even by a test:\n%s\n' "$dead" >&2
  exit 1
fi
echo "lint: clean"
