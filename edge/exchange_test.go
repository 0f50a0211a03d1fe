package edge_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/valyala/fasthttp"

	"gridcast/deploy/golden"
	"gridcast/deploy/must"
	"gridcast/edge"
	"gridcast/edge/edgetest"
	"gridcast/snapshots"
)

// TestExchanges sends the requests of each file in testdata/exchanges, and compares the answers with those that stand
// below them. A block is a decision, "## TEXT", with an optional world in brackets; a request, in which {pro} is the key
// of a tier and {calendar} the hash in the tag of a document; an empty line; and the answer: its status, the fields
// that not every answer has, and its body, that of an error or the first target with the same content. Every answer keeps
// the rules of check. Every body has the hash of its tag, every 200 of an endpoint obeys the contract, and HEAD has the
// same header as GET. The flag -update writes the answers anew.
func TestExchanges(t *testing.T) {
	worlds := map[string]*world{
		"":           newWorld(t),
		"no keys":    newWorld(t, withoutKeys),
		"no version": newWorld(t, withoutVersion),
		"spent trial": newWorld(t, func(c *edge.Config, _ *edge.Deps, _ *setup) {
			c.Tiers["trial"] = 1
		}),
		"widgets": newWorld(t, func(_ *edge.Config, d *edge.Deps, _ *setup) {
			d.Widgets = []edge.Widget{{Version: "2.0.0", Module: []byte("export const widget = 2;")}, {Version: "1.0.0", Module: []byte("export const widget = 1;")}}
		}),
	}
	downloads := newWorld(t, inDir(t.TempDir()))
	edgetest.PublishBulk(t, downloads.store, map[int][]byte{2023: file(70_000, 1), 2024: file(1000, 2)})
	downloads.awaitDownloads(2)
	worlds["downloads"] = downloads
	worlds["spent trial"].do("GET", "/api/v1/drivers", "X-API-Key: "+worlds["spent trial"].key["trial"])
	typo := []byte(worlds[""].key["pro"])
	typo[20] ^= 1
	worlds[""].key["typo"] = string(typo)
	known := map[string]string{} // placeholders by hash
	for _, name := range []string{"calendar", "drivers"} {
		hash := strings.Trim(worlds[""].get("/api/v1/"+name).Header.Get("ETag"), `"`)
		worlds[""].key[name], known[hash] = hash, "{"+name+"}"
	}
	downloads.key["bulk"] = strings.Trim(downloads.get("/api/v1/bulk?year=2023").Header.Get("ETag"), `"`)
	known[downloads.key["bulk"]] = "{bulk}"
	files := must.Get(filepath.Glob("testdata/exchanges/*.txt"))(t)
	must.Require(t, len(files) >= 6, "got %d files", len(files))
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			about, blocks, _ := strings.Cut(string(must.Get(os.ReadFile(file))(t)), "\n## ")
			var got strings.Builder
			got.WriteString(about)
			bodies := map[string]string{} // the first target of each content
			for block := range strings.SplitSeq(blocks, "\n## ") {
				decision, rest, _ := strings.Cut(block, "\n")
				sent, _, _ := strings.Cut(strings.TrimRight(rest, "\n")+"\n\n", "\n\n")
				_, in, _ := strings.Cut(strings.TrimSuffix(decision, "]"), " [")
				e := exchange{t: t, decision: decision, world: worlds[in], known: known, bodies: bodies}
				fmt.Fprintf(&got, "\n## %s\n%s\n\n%s", decision, sent, e.answer(sent))
			}
			golden.File(t, file, got.String())
		})
	}
}

// exchange is a request of a file and its answer.
type exchange struct {
	t        *testing.T
	decision string
	world    *world
	known    map[string]string // names of hashes
	bodies   map[string]string // targets of contents
}

// answer sends a request and returns the text of the answer.
func (e exchange) answer(sent string) string {
	must.Require(e.t, e.world != nil, "%s: no such world", e.decision)
	for _, name := range slices.Sorted(maps.Keys(e.world.key)) {
		sent = strings.ReplaceAll(sent, "{"+name+"}", e.world.key[name])
	}
	line, fields, _ := strings.Cut(sent, "\n")
	method, target, _ := strings.Cut(line, " ")
	lines := slices.Collect(strings.SplitSeq(fields, "\n"))
	if fields == "" {
		lines = nil
	}
	r := e.world.do(method, target, lines...)
	var text strings.Builder
	fmt.Fprintln(&text, r.Status)
	for line := range strings.SplitSeq(strings.TrimSuffix(r.head, "\r\n\r\n"), "\r\n") {
		name, value, ok := strings.Cut(line, ": ")
		switch {
		case !ok || strings.HasPrefix(name, "X-RateLimit-"),
			name == "Content-Length" && e.world != nil && !strings.HasPrefix(target, "/api/v1/bulk"), slices.Contains([]string{"Server", "Date", "X-Content-Type-Options", "Access-Control-Allow-Origin"}, name),
			name == "Access-Control-Expose-Headers" && method != "OPTIONS":
			continue
		case name == "ETag":
			value = e.tag(value)
		case name == "Retry-After": // windows of keys end at instants of their own
			value = "…"
		}
		fmt.Fprintf(&text, "%s: %s\n", name, digests.ReplaceAllString(value, "sha256-…"))
	}
	must.Require(e.t, !e.t.Failed(), "%s", e.decision)
	if r.StatusCode >= 400 {
		return text.String() + string(r.body) + "\n"
	}
	if len(r.body) == 0 {
		return text.String()
	}
	head := e.world.do("HEAD", target, lines...)
	if got, want := comparable(head.head), comparable(r.head); got != want && method == "GET" {
		e.t.Errorf("%s: HEAD differs:\n%s\nGET:\n%s", e.decision, got, want)
	}
	plain := decode(e.t, r.Header.Get("Content-Encoding"), r.body)
	if hash := snapshots.ETag(snapshots.Digest(plain)); r.Header.Get("ETag") != "" && !strings.HasPrefix(r.Header.Get("ETag"), `"`+hash) {
		e.t.Errorf("%s: the body has the hash %s, its tag is %s", e.decision, hash, r.Header.Get("ETag"))
	}
	if strings.HasPrefix(target, "/api/v1/") && !strings.HasPrefix(target, "/api/v1/bulk") {
		valid(e.t, target, plain)
	}
	of, ok := e.bodies[string(plain)]
	if !ok {
		of = target
		e.bodies[string(plain)] = of
	}
	return fmt.Sprintf("%sthe body of %s\n", text.String(), of)
}

// tag returns a tag with a known hash as its name, and any other as an ellipsis.
func (e exchange) tag(tag string) string {
	hash, coding, _ := strings.Cut(strings.Trim(tag, `"`), "-")
	name, ok := e.known[hash]
	if !ok {
		name = "…"
	}
	if coding != "" {
		coding = "-" + coding
	}
	return `"` + name + coding + `"`
}

// digests are those of the style sheets and scripts of a page.
var digests = regexp.MustCompile(`sha256-[^']+`)

// comparable removes the counts of requests and seconds.
func comparable(head string) string {
	var kept []string
	for line := range strings.Lines(head) {
		if !strings.HasPrefix(line, "X-RateLimit-Remaining") && !strings.HasPrefix(line, "Date") {
			kept = append(kept, line)
		}
	}
	return strings.Join(kept, "")
}

func decode(t testing.TB, encoding string, body []byte) []byte {
	t.Helper()
	decoders := map[string]func(dst, src []byte) ([]byte, error){
		"": func(_, src []byte) ([]byte, error) { return src, nil }, "br": fasthttp.AppendUnbrotliBytes, "gzip": fasthttp.AppendGunzipBytes, "zstd": fasthttp.AppendUnzstdBytes,
	}
	return must.Get(decoders[encoding](nil, body))(t)
}
