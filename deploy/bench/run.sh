#!/usr/bin/env bash
# Builds the bench and runs it against the binary in .var/bin. Arguments go to the bench:
# --quick for a short look, --help for the rest.
set -euo pipefail
cd "$(dirname "$0")/../.."
if ! command -v wrk >/dev/null; then
  if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    apt-get install -q -y --no-install-recommends wrk
  else
    echo "the bench needs wrk: apt-get install wrk, brew install wrk, or https://github.com/wg/wrk" >&2
    exit 1
  fi
fi
go -C deploy/bench build -o ../../.var/bin/bench . # a module of its own
exec .var/bin/bench "$@"
