package console_test

import (
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"gridcast/builder/assemble"
	"gridcast/builder/ingest"
	"gridcast/builder/season"
	"gridcast/builder/source"
	"gridcast/builder/source/f1db"
	"gridcast/builder/source/jolpica"
	"gridcast/builder/source/media"
	"gridcast/builder/source/sourcetest"
	"gridcast/deploy/console"
	"gridcast/deploy/console/browsertest"
	"gridcast/deploy/must"
	"gridcast/deploy/operator"
)

// TestSourcesOnAPhone: of two sources, one has held changes and the other fails. An operator sees the state
// and the differences of both, accepts a change, and the public status page follows.
func TestSourcesOnAPhone(t *testing.T) {
	must.Long(t, "a browser takes half a minute")
	open := func(make func(string, string) (source.Upstream, error), api *sourcetest.Replay) source.Upstream {
		t.Helper()
		return must.Get(make(api.URL, "gridcast-test (operator@example.org)"))(t)
	}
	shut := sourcetest.Jolpica(t)
	shut.Instead(sourcetest.Answer(401, "application/json", `{"detail":"Access is restricted to authenticated users."}`))
	repository := func(base, agent string) (source.Upstream, error) {
		return f1db.NewRepository(base, agent, media.Default())
	}
	var in *ingest.Ingest
	w := newWorld(t, func(c *console.Config) {
		in = c.Operator.Ingest
		in.Sources = []ingest.Source{
			{Upstream: open(jolpica.New, sourcetest.Jolpica(t))},
			{Upstream: open(repository, shut), CheckOnly: true},
		}
		c.Sources = func() []operator.Source { return operator.SourcesOf(in) }
	})
	report := must.Get(in.Poll(t.Context(), w.now(), true))(t)
	waiting := func(gp season.GrandPrixID, block assemble.Block, list []assemble.Proposal) string {
		for _, c := range list {
			if c.GrandPrix == gp && c.Block == block {
				return c.ID
			}
		}
		return ""
	}
	id := waiting("qatar", assemble.Grid, report.Held)
	must.Require(t, id != "", "a grid with two cars in one slot does not wait: %+v", report.Held)
	w.builder.Provenance = in.Provenance
	w.build("start")

	b := browsertest.Open(t)
	b.Phone()
	w.signIn(b)
	says(t, "two sources", b.Text("#sources"))
	says(t, "notices of two sources", b.Text("#notices"))
	b.Picture("20-sources")
	b.Phone()
	form := `form[action='/sources/changes/` + id + `/accept']`
	b.Do(browsertest.Type(chromedp.CSS(form+` [name=reason]`), "the slot of a car that was not there"), browsertest.Press(chromedp.CSS(form+` button`)), browsertest.Visible(chromedp.CSS(`#ask[open]`)))
	says(t, "before a change is accepted", b.Text("#ask")) // with the gate and the driver
	b.Look("21-accept-asked")
	b.Do(browsertest.Press(chromedp.CSS(`#ask button[value=yes]`)), browsertest.Visible(chromedp.CSS(`#run[data-state=done], #run[data-state=failed]`)))
	says(t, "after a change is accepted", b.Text("#run-text"))
	state := must.Get(ingest.LoadPollState(t.Context(), w.store, "jolpica"))(t)
	must.Hold(t, waiting("qatar", assemble.Grid, state.Held) == "", "the change still waits")

	// The public page shows the same state, without the unlicensed facts.
	b.Do(chromedp.Navigate("http://"+w.address+"/status"), browsertest.Visible(chromedp.CSS(`.rounds`)))
	_, facts, _ := strings.Cut(b.Text("main"), "How the facts stand")
	says(t, "public status of two sources", facts)
	b.Picture("22-status")
}
