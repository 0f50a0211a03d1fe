#!/usr/bin/env bash
# Shows the OpenAPI document to other people's tools: redocly and spectral must have no warning, and the types of
# openapi-typescript must carry the assumptions of usage.ts. The clients that oapi-codegen, @hey-api/openapi-ts and
# openapi-fetch make of it, and the validating one of ogen, must compile and read every endpoint of a running demonstration.
# oasdiff finds no breaking change of the first six endpoints since six.yaml, but the decided ones of six-decided.txt.
# Needs npm.
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
rm -rf "$work"
mkdir -p "$work/demo"
go run -trimpath ./deploy/openapi >"$work/openapi.yaml"
go -C deploy/kit run -trimpath . --version check --clients "$PWD/$work/clients"
cp -r deploy/openapi/{usage.ts,read.ts,redocly.yaml,spectral.yaml,six.yaml,six-decided.txt,oapi,ogen} "$work"
ln -s "$tools" "$work/node_modules"
make -s build
gridcast=$PWD/.var/bin/gridcast
cd "$work"
# The demonstration starts while the linters run.
(cd demo && exec "$gridcast" serve --demo --demo-speed 1 --sandbox --listen 127.0.0.1:0 --operator-listen 127.0.0.1:0) >demo.log 2>&1 &
demo=$!
trap 'kill "$demo" 2>/dev/null || true; wait' EXIT
echo "redocly"
REDOCLY_TELEMETRY=off redocly lint openapi.yaml --format=codeframe >redocly.txt 2>&1 || { cat redocly.txt >&2; exit 1; }
if grep -q 'Warning was generated' redocly.txt; then
  cat redocly.txt >&2
  exit 1
fi
echo "spectral"
spectral lint openapi.yaml --ruleset spectral.yaml --fail-severity=hint --quiet=false
echo "the clients of a release: openapi-typescript and oapi-codegen"
cp clients/typescript/types.ts .
tsc --noEmit --strict --skipLibCheck --target es2022 --moduleResolution node usage.ts
echo "@hey-api/openapi-ts"
DO_NOT_TRACK=1 openapi-ts -i openapi.yaml -o hey -c @hey-api/client-fetch >hey.log 2>&1 || { cat hey.log >&2; exit 1; }
tsc --strict --skipLibCheck --target es2022 --module node16 --moduleResolution node16 --outDir js read.ts
echo "oapi-codegen"
mkdir -p oapi/api
cp clients/go/client.go oapi/api
(cd oapi && go build -o ../oapi-client .)
echo "ogen"
(cd ogen && go tool ogen --target api --package api --clean ../openapi.yaml >../ogen.log 2>&1 && go build -o ../ogen-client .) || { cat ogen.log >&2; exit 1; }
echo "oasdiff"
(cd ogen && go tool oasdiff breaking ../six.yaml ../openapi.yaml --match-path '^/api/v1/(standings|calendar|drivers|predictions|next-race|accuracy)$' \
  --fail-on ERR --err-ignore ../six-decided.txt)

echo "every endpoint, by each client"
until grep -q '^  pro ' demo.log; do kill -0 "$demo" || { cat demo.log >&2; exit 1; }; sleep 0.2; done
url=$(sed -n 's/^gridcast serves \(.*\)/\1/p' demo.log)
key=$(sed -n 's/^  pro  *[0-9]*  \(.*\)/\1/p' demo.log)
# Title odds and track record follow the first version, an edge makes downloads beside its work, and the sandbox follows.
tries=0
until curl -fsS --fail-early -H "X-API-Key: $key" "$url/api/v1/track-record" "$url/api/v1/bulk" "$url/sandbox/changes.atom" >/dev/null 2>&1; do
  tries=$((tries + 1))
  [ "$tries" -lt 300 ] || { echo "openapi: the demonstration made no track record, no download or no sandbox" >&2; cat demo.log >&2; exit 1; }
  sleep 1
done
./oapi-client "$url" "$key"
./ogen-client "$url" "$key"
node js/read.js "$url" "$key"
echo "openapi: clean"
