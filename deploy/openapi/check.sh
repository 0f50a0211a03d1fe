#!/usr/bin/env bash
# Shows the OpenAPI document to other people's tools: redocly and spectral must have no warning,
# and the types that openapi-typescript makes must carry what usage.ts relies on. Needs npm.
set -euo pipefail
cd "$(dirname "$0")/../.."
if ! command -v npm >/dev/null; then
  echo "openapi: skipped, no npm on this machine (https://nodejs.org)" >&2
  exit 0
fi
work=.var/openapi
mkdir -p "$work"
go run ./deploy/openapi >"$work/openapi.yaml"
cp deploy/openapi/usage.ts deploy/openapi/spectral.yaml "$work"
cd "$work"
[ -f package.json ] || echo '{"private":true}' >package.json
npm install --silent --no-audit --no-fund --no-save \
  @redocly/cli@2.77.0 @stoplight/spectral-cli@6.16.3 openapi-typescript@7.13.0 typescript@5.9.3
echo "redocly"
REDOCLY_TELEMETRY=off npx redocly lint openapi.yaml --format=codeframe >redocly.txt 2>&1 || { cat redocly.txt >&2; exit 1; }
if grep -q 'Warning was generated' redocly.txt; then
  cat redocly.txt >&2
  exit 1
fi
echo "spectral"
npx spectral lint openapi.yaml --ruleset spectral.yaml --fail-severity=hint --quiet=false
echo "openapi-typescript"
npx openapi-typescript openapi.yaml -o types.ts >/dev/null
npx tsc --noEmit --strict --skipLibCheck --target es2022 --moduleResolution node usage.ts
echo "openapi: clean"
