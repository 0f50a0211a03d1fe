#!/usr/bin/env bash
# Format, language, vet, lint, dead code: any finding fails.
set -euo pipefail
cd "$(dirname "$0")/.."
# The linters read packages as make build and make test compile them, so no package is compiled a second time.
export GOFLAGS="$(go env GOFLAGS) -trimpath" CGO_ENABLED=0
tool() { go tool -modfile=deploy/tools/go.mod "$@"; }

echo "gofumpt"
unformatted=$(tool gofumpt -l builder edge snapshots scheduler schemas deploy)
if [ -n "$unformatted" ]; then
  printf 'not formatted (gofumpt -w):\n%s\n' "$unformatted" >&2
  exit 1
fi
echo "language"
# A comment whose noun is "what it does" must be read twice. A few are plain, so a package may have three in a hundred.
find builder edge snapshots scheduler schemas deploy -name '*.go' | sort | xargs awk '
  match($0, /(^|[ \t])\/\/ ?/) {
    text = substr($0, RSTART + RLENGTH)
    if (text ~ /^(go:|nolint)/) next
    folder = FILENAME; sub(/\/[^\/]*$/, "", folder); comments[folder]++
    words = " " tolower(text) " "; gsub(/[^a-z0-9_]/, " ", words)
    if (words ~ / (who|whoever|whom|what|whatever) /) { found[folder]++; lines[folder] = lines[folder] "\n  " FILENAME ":" FNR ": " text }
  }
  END {
    for (folder in found) if (found[folder] > 0.03 * comments[folder]) {
      printf "%s: %.1f %% of %d comment lines say who or what instead of the thing:%s\n", folder, 100 * found[folder] / comments[folder], comments[folder], lines[folder]
      bad = 1
    }
    exit bad
  }' >&2
echo "go mod tidy"
go mod tidy -diff
for module in deploy/lab deploy/kit deploy/logcheck; do go -C "$module" mod tidy -diff; done # modules of their own
echo "golangci-lint" # runs go vet too
tool golangci-lint run ./...
tools=$PWD/deploy/tools/go.mod
for module in deploy/lab deploy/kit deploy/logcheck; do
  (cd "$module" && go tool -modfile="$tools" golangci-lint run ./...)
done
echo "fused operations"
# arm64 fuses x*y + z and rounds once, so chances would differ between processors: write float64(x*y) + z.
fused=$(GOARCH=arm64 go build -trimpath -gcflags=gridcast/...=-S ./builder/predict/... ./builder/render ./schemas/wire 2>&1 |
  grep -E 'FN?M(ADD|SUB)[DS]' | grep -oE '\(gridcast/[^)]+:[0-9]+\)' | sort -u || true)
fused+=$(grep -rnE 'math\.(Exp|Exp2|Expm1|Log|Log1p|Log2|Pow|Sin|Cos|Tanh)\(|(NormFloat64|ExpFloat64)\(' builder/predict --include='*.go' |
  grep -vE '_test.go:|/portable/' || true)
if [ -n "$fused" ]; then
  printf 'not the same on every processor (round each product; use builder/predict/portable):\n%s\n' "$fused" >&2
  exit 1
fi
echo "deadcode"
# A test is no caller, but the lab is one, because it measures the product. What neither reaches is in
# deploy/deadcode.txt, with the reason.
deadcode() { go tool -modfile="$tools" deadcode -filter '^gridcast(/|$)' -f '{{range .Funcs}}{{.Position.File}} {{.Name}}{{println}}{{end}}' "$@" | sed "s|^$root/||" | grep -v '^$' | sort; }
root=$PWD
measured=$(go -C deploy/lab list -deps -f '{{range .GoFiles}}{{$.Dir}}/{{.}}{{println}}{{end}}' ./... | sed -n "s|^$root/||p")
dead=$(deadcode ./deploy/gridcast | awk '
  FILENAME == ARGV[1] { measured[$1]; next }
  FILENAME == ARGV[2] { unreached[$0]; next }
  !($1 in measured) || $0 in unreached' <(echo "$measured") <(cd deploy/lab && deadcode ./...) -)
stays=$(grep -v '^#' deploy/deadcode.txt | cut -d' ' -f1,2 | sort)
new=$(comm -23 <(echo "$dead") <(echo "$stays"))
stale=$(comm -13 <(echo "$dead") <(echo "$stays"))
if [ -n "$new" ]; then
  printf 'no program calls (remove it, or give the reason in deploy/deadcode.txt):\n%s\n' "$new" >&2
  exit 1
fi
if [ -n "$stale" ]; then
  printf 'in deploy/deadcode.txt, but gone or reached:\n%s\n' "$stale" >&2
  exit 1
fi
echo "lint: clean"
