#!/usr/bin/env bash
# Builds the bench and runs it against the binary in .var/bin. Arguments go to the bench: --quick shows that it
# works, --help lists the rest; load as the first argument measures two edges above their capacity. Servers that are not
# installed (apt-get install --no-install-recommends nginx-light haproxy lighttpd) have rows that say so.
set -euo pipefail
cd "$(dirname "$0")/../../.."
go -C deploy/lab build -o ../../.var/bin/bench ./bench # of a module of its own
exec .var/bin/bench "$@"
