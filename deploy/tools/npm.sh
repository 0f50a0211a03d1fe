#!/usr/bin/env bash
# Installs what package.json beside it pins into .var/node: axe-core, before which the tests of the
# pages go, and the tools of make openapi. Where there is no npm, or no network, it says so and is
# content: those tests are skipped then. Anything else that goes wrong fails.
set -euo pipefail
cd "$(dirname "$0")/../.."
if ! command -v npm >/dev/null; then
  echo "npm.sh: no npm on this machine (https://nodejs.org): pages are not held against axe-core" >&2
  exit 0
fi
into=.var/node
mkdir -p "$into"
want=$(cat deploy/tools/package.json deploy/tools/package-lock.json | sha256sum)
[ "$(cat "$into/installed" 2>/dev/null)" != "$want" ] || exit 0
rm -f "$into/installed"
cp deploy/tools/package.json deploy/tools/package-lock.json deploy/tools/.npmrc "$into"
if ! npm ci --prefix "$into" --ignore-scripts --no-audit --no-fund --loglevel=error >"$into/npm.log" 2>&1; then
  cat "$into/npm.log" >&2
  # What came and is not what the lock says is a fault; whatever else there is between here and the
  # registry is no network.
  if ! grep -qE 'EINTEGRITY|EUSAGE' "$into/npm.log"; then
    echo "npm.sh: the registry gives no packages: pages are not held against axe-core" >&2
    exit 0
  fi
  exit 1
fi
echo "$want" >"$into/installed"
