#!/usr/bin/env bash
# Builds the bench and runs it against the binary in .var/bin. Arguments go to the bench: --quick shows that it
# works, --help lists the rest. nginx and HAProxy (apt-get install nginx-light haproxy) are left out where they are not
# installed.
set -euo pipefail
cd "$(dirname "$0")/../../.."
go -C deploy/lab build -o ../../.var/bin/bench ./bench # of a module of its own
exec .var/bin/bench "$@"
