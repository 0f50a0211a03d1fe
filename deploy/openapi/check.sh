#!/usr/bin/env bash
# Shows the OpenAPI document to other people's tools: redocly and spectral must have no warning,
# and the types that openapi-typescript makes must carry what usage.ts relies on. Needs npm.
set -euo pipefail
cd "$(dirname "$0")/../.."
deploy/tools/npm.sh
tools=$PWD/.var/node/node_modules
if [ ! -x "$tools/.bin/redocly" ]; then
  echo "openapi: skipped, its tools are not in .var/node" >&2
  exit 0
fi
if ! node -e 'const [a, b] = process.versions.node.split("."); process.exit(a > 20 || a == 20 && b >= 19 ? 0 : 1)'; then
  echo "openapi: skipped, redocly needs Node 20.19 or later, this is $(node --version)" >&2
  exit 0
fi
export PATH=$tools/.bin:$PATH
work=.var/openapi
mkdir -p "$work"
go run ./deploy/openapi >"$work/openapi.yaml"
cp deploy/openapi/usage.ts deploy/openapi/spectral.yaml "$work"
cd "$work"
echo "redocly"
REDOCLY_TELEMETRY=off redocly lint openapi.yaml --format=codeframe >redocly.txt 2>&1 || { cat redocly.txt >&2; exit 1; }
if grep -q 'Warning was generated' redocly.txt; then
  cat redocly.txt >&2
  exit 1
fi
echo "spectral"
spectral lint openapi.yaml --ruleset spectral.yaml --fail-severity=hint --quiet=false
echo "openapi-typescript"
openapi-typescript openapi.yaml -o types.ts >/dev/null
tsc --noEmit --strict --skipLibCheck --target es2022 --moduleResolution node usage.ts
echo "openapi: clean"
