package deploy_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"gridcast/builder/archive/archivetest"
	"gridcast/builder/predict"
	"gridcast/deploy/must"
	"gridcast/schemas/catalog"
	"gridcast/schemas/wire"
)

// readReadme returns the text of README.md.
func readReadme(t *testing.T) string {
	t.Helper()
	text := must.Get(os.ReadFile("../README.md"))(t)
	return string(text)
}

// TestReadmeIsTwoPages bounds README.md to 1,500 words.
func TestReadmeIsTwoPages(t *testing.T) {
	n := len(strings.Fields(readReadme(t)))
	must.Hold(t, n <= 1500, "README.md has %d words, want at most 1,500", n)
}

// TestReadmeListsEveryEndpoint names an endpoint without a row in the table of README.md.
func TestReadmeListsEveryEndpoint(t *testing.T) {
	for _, e := range catalog.Endpoints {
		must.Show(t, "README.md", readReadme(t), "`"+e.Path+"` ")
	}
}

// TestReadmeNamesWhatExists follows every path and link in README.md and the pages of deploy/docs. It holds each of
// the six walks through the house to seven files.
func TestReadmeNamesWhatExists(t *testing.T) {
	pages := must.Get(filepath.Glob("docs/*.md"))(t)
	path := regexp.MustCompile("`((?:builder|edge|snapshots|scheduler|schemas|deploy)/[a-z0-9_./-]+)`")
	link := regexp.MustCompile(`\]\(([^)#:]+)(?:#[a-z0-9-]+)?\)`)
	for _, page := range append(pages, "../README.md") {
		text := must.Get(os.ReadFile(page))(t)
		for _, match := range path.FindAllStringSubmatch(string(text), -1) {
			must.Succeed(t, fmt.Sprintf("%s names %s", page, match[1]), must.Err(os.Stat(filepath.Join("..", match[1]))))
		}
		for _, match := range link.FindAllStringSubmatch(string(text), -1) {
			must.Succeed(t, fmt.Sprintf("%s links to %s", page, match[1]), must.Err(os.Stat(filepath.Join(filepath.Dir(page), match[1]))))
		}
	}
	_, walks, _ := strings.Cut(readReadme(t), "Six walks")
	walks, _, _ = strings.Cut(walks, "\n\nA new endpoint")
	list := strings.Split(walks, "\n- **")[1:]
	must.Require(t, len(list) == 6, "got %d walks, want 6", len(list))
	for _, walk := range list {
		name, files, _ := strings.Cut(walk, "**")
		// The console page of a command is another way in, not another step.
		steps := strings.Split(files, "→")
		must.Hold(t, len(steps) <= 7, "%s: %d steps, want at most 7", name, len(steps))
		for _, step := range steps {
			if !path.MatchString(step) {
				t.Errorf("%s: %q names no file", name, strings.TrimSpace(step))
			}
		}
	}
}

// TestWalkOfARequest holds the walk of a request to the code: the steps come in this order, each file declares its part,
// and the file before or the gateway calls it.
func TestWalkOfARequest(t *testing.T) {
	_, walk, _ := strings.Cut(readReadme(t), "- **a request**:")
	walk, _, _ = strings.Cut(walk, "\n- **")
	at := 0
	for _, step := range []struct{ file, declares, caller, calls string }{
		{"edge/edge.go", "return &fasthttp.Server{", "edge/edge.go", "s.Serve("},
		{"edge/gateway.go", "func (g *gateway) handle(ctx *fasthttp.RequestCtx)", "edge/edge.go", "e.gateway.handle,"},
		{"edge/request.go", "func (r *request) read(", "edge/gateway.go", "r.read(ctx"},
		{"edge/keys/entry.go", "func (t *Table) Find(", "edge/request.go", "table.Find("},
		{"edge/limit/window.go", "func (w *Window) Take(", "edge/gateway.go", "entry.Counter.Take("},
		{"edge/resident/page.go", "func (p *Page) Answer(", "edge/gateway.go", "page.Answer("},
		{"edge/answer.go", "func (a *answer) write(", "edge/gateway.go", "a.write(&ctx.Response)"},
	} {
		i := strings.Index(walk, "`"+step.file+"`")
		must.Hold(t, i >= at, "README.md: the walk of a request has %s at %d, want it after %d", step.file, i, at)
		at = max(at, i)
		for text, file := range map[string]string{step.declares: step.file, step.calls: step.caller} {
			source := must.Get(os.ReadFile(filepath.Join("..", file)))(t)
			must.Show(t, "the walk of a request has changed: "+file, string(source), text)
		}
	}
}

// TestReadmeShowsTheDemosPick compares the answer of /next-race in README.md with the pick that the demo freezes: the
// forecast of the published model when the grid of that round was known.
func TestReadmeShowsTheDemosPick(t *testing.T) {
	must.Long(t, "learns the published model")
	sample := regexp.MustCompile(`(?s)\{"ok":true,"data":\{"name".*?"generated_at":"[^"]*"\}\}`).FindString(readReadme(t))
	var got wire.Success[wire.NextRace]
	err := json.Unmarshal([]byte(strings.ReplaceAll(sample, "\n     ", "")), &got)
	must.Require(t, err == nil, "the sample in README.md: %v\n%s", err, sample)
	a := archivetest.Embedded(t)
	start := time.Time(got.Data.DateStart)
	for _, s := range a.Facts().Seasons {
		for _, r := range s.Rounds {
			if s.Year != start.Year() || r.Name != got.Data.Name {
				continue
			}
			view := a.AsOf(r.GridKnownAt())
			forecast := must.Get(predict.NewV2(predict.DefaultParams()).Predict(view, s.Year, r.GrandPrix))(t)
			codes := view.Codes(s.Year)
			circuit := a.Facts().Circuits[r.Circuit]
			podium := wire.Podium{P1: codes[forecast.Podium[0]], P2: codes[forecast.Podium[1]], P3: codes[forecast.Podium[2]]}
			want := wire.NextRace{
				Name: r.Name, Circuit: circuit.Name, Country: circuit.Country, DateStart: wire.Instant(r.Start),
				SecondsToLights: int64(start.Sub(time.Time(got.Meta.GeneratedAt)).Seconds()),
				Prediction:      &wire.Prediction{Winner: podium.P1, ConfidencePct: wire.PercentFrom(forecast.Candidates[0].Win), Podium: podium},
			}
			wantJSON := must.Get(wire.Marshal(want))(t)
			gotJSON := must.Get(wire.Marshal(got.Data))(t)
			must.Hold(t, string(gotJSON) == string(wantJSON), "README.md shows\n%s\nthe demo answers\n%s", gotJSON, wantJSON)
			return
		}
	}
	t.Fatalf("no round %q of %d", got.Data.Name, start.Year())
}
