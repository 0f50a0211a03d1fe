package console_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"html"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"gridcast/builder"
	"gridcast/builder/almanac"
	"gridcast/builder/archive"
	"gridcast/builder/archive/archivetest"
	"gridcast/builder/ingest"
	"gridcast/builder/ledger"
	"gridcast/builder/predict"
	"gridcast/builder/season"
	"gridcast/builder/testseason"
	"gridcast/deploy/auditlog"
	"gridcast/deploy/console"
	"gridcast/deploy/console/browsertest"
	"gridcast/deploy/golden"
	"gridcast/deploy/must"
	"gridcast/deploy/operator"
	"gridcast/edge"
	"gridcast/edge/keys"
	"gridcast/scheduler"
	"gridcast/scheduler/webhook"
	"gridcast/snapshots"
	"gridcast/snapshots/blob"
	"gridcast/snapshots/blob/blobtest"
	"gridcast/snapshots/blob/memblob"
)

func TestMain(m *testing.M) { os.Exit(browsertest.Main(m)) }

const token = "correct horse battery staple"

// world is a service in this process with a settable race time, an edge and a console.
type world struct {
	t       testing.TB
	store   blob.Store
	builder *builder.Builder
	archive *season.Archive
	edge    *edge.Edge
	address string // of the edge
	console *httptest.Server
	close   func()        // closes the console, not its server
	weekend *season.Round // the one that the world is about
	key     string        // of the client "newsroom"

	mu    sync.Mutex
	at    time.Time // race time
	jobs  []scheduler.JobStatus
	token string // in place of token

	sources []operator.Source // of facts
}

// prepared holds the objects of a store with an archive and the picks of some rounds, which every world
// starts from.
var prepared struct {
	once    sync.Once
	objects map[string][]byte
}

// weekendOf returns the first round of 2024 and the one that worlds are about.
func weekendOf(a *season.Archive) (first, weekend *season.Round) {
	seasons := a.Facts().Seasons
	year := &seasons[slices.IndexFunc(seasons, func(s season.Season) bool { return s.Year == 2024 })]
	return &year.Rounds[0], &year.Rounds[len(year.Rounds)-3]
}

// prepare fills prepared.
func prepare(t testing.TB) {
	t.Helper()
	stored := archivetest.Stored(t, archivetest.Seasons(t, 2023, 2026))
	first, weekend := weekendOf(stored.Archive)
	s := testseason.New(t, testseason.Config{
		Stored: stored, Opened: first.StartsAt().AddDate(0, 0, -7), Policy: builder.Policy{Model: predict.Leader(), AutoVerifyAfter: time.Hour},
	})
	must.Do(t, s.Policy.Replay(t.Context(), s.Ledger, archive.Stored{Archive: stored.Archive}, weekend.GridKnownAt().Add(-time.Hour-time.Minute), nil))
	prepared.objects = blobtest.Objects(t, s.Store)
}

// newWorld starts some rounds before its weekend, with picks for the earlier rounds. Nothing is published.
func newWorld(t testing.TB, options ...func(*console.Config)) *world {
	t.Helper()
	prepared.once.Do(func() { prepare(t) })
	w := &world{t: t, store: memblob.New(memblob.Strict(t, snapshots.Immutable))}
	blobtest.Fill(t, w.store, prepared.objects)
	facts := archive.NewStore(w.store)
	loaded := must.Get(facts.Load(t.Context()))(t)
	w.archive = loaded.Archive
	_, w.weekend = weekendOf(w.archive)
	w.at = w.weekend.GridKnownAt().Add(-time.Hour)
	l := must.Get(ledger.Load(t.Context(), w.store, ledger.Simulated))(t)
	policy := builder.Policy{Model: predict.Leader()}
	log := slog.New(slog.DiscardHandler)
	w.builder = &builder.Builder{Store: w.store, Ledger: l, Facts: facts.Load, Policy: policy, Name: "test", Log: log}
	w.createKeys()
	w.startEdge(log)
	w.jobs = []scheduler.JobStatus{
		{Name: "build", Next: w.weekend.StartsAt(), NextReason: "lights_out", NextRound: 2024022, LastEnd: w.at, LastReason: "start", Runs: 1},
		{Name: "freeze", Next: w.weekend.GridKnownAt(), NextReason: "grid_known", NextRound: 2024022},
		{Name: "poll", Next: w.at.Add(5 * time.Minute), NextReason: "poll_weekend", LastEnd: w.at, LastReason: "poll_weekend 2024022", Runs: 12},
	}
	w.startConsole(log, facts, options)
	return w
}

func (w *world) createKeys() {
	must.Do(w.t, keys.Update(w.t.Context(), w.store, func(d *keys.List) error {
		for _, client := range []struct{ name, tier string }{{"newsroom", "trial"}, {"Fantasy League Ltd", "pro"}} {
			_, key, err := d.Create(keys.Request{Name: client.name, Tier: client.tier}, time.Now())
			if err != nil {
				return err
			}
			if w.key == "" {
				w.key = key
			}
		}
		return nil
	}))
}

func (w *world) startEdge(log *slog.Logger) {
	w.t.Helper()
	listener := must.Get(net.Listen("tcp", "127.0.0.1:0"))(w.t)
	w.address = listener.Addr().String()
	race := func(time.Time) time.Time { return w.now() }
	began := time.Now() // the clock of limits stands still, so that all requests are in one window
	w.edge = must.Get(edge.New(edge.DefaultConfig(), edge.Deps{Store: w.store, Log: log, Clock: func() time.Time { return began }, RaceTime: race, Listener: listener}))(w.t)
	ctx, cancel := context.WithCancel(w.t.Context())
	ended := make(chan error, 1)
	go func() { ended <- w.edge.Run(ctx) }()
	w.t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			w.t.Errorf("edge: %v", err)
		}
	})
	for range 32 { // 30 a minute are allowed
		request := must.Get(http.NewRequestWithContext(ctx, http.MethodGet, "http://"+listener.Addr().String()+"/api/v1/calendar", nil))(w.t)
		request.Header.Set("X-API-Key", w.key)
		must.Until(w.t, "the keys at the edge", func() bool { return w.edge.Status().Keys.Loaded })
		response := must.Get(http.DefaultClient.Do(request))(w.t)
		_ = response.Body.Close()
	}
}

func (w *world) startConsole(log *slog.Logger, facts *archive.Store, options []func(*console.Config)) {
	w.t.Helper()
	audit := must.Get(auditlog.Load(w.t.Context(), w.store))(w.t)
	assembly := &ingest.Ingest{
		Store: w.store, Facts: facts, Ledger: w.builder.Ledger, Log: log, Interval: func(time.Time) time.Duration { return time.Minute },
	}
	w.builder.Policy.Arrived = assembly.Arrived
	sender := must.Get(webhook.NewSender(webhook.SenderOptions{Master: []byte("correct horse battery staple, again"), InsecureLoopback: true}))(w.t)
	cfg := console.Config{
		Token: func() string { w.mu.Lock(); defer w.mu.Unlock(); return cmp.Or(w.token, token) }, Log: log, Speed: 1, Edges: []console.Edge{console.Local(w.edge)},
		Operator: &operator.Operator{
			Store: w.store, Ledger: w.builder.Ledger, Audit: audit, Tiers: keys.DefaultTiers(),
			Now: w.now, Build: w.builder.Build, Name: "test", Facts: facts.Load, Model: func(ctx context.Context) predict.Model { return w.builder.Rules(ctx).Model },
			Ingest: assembly, Webhooks: sender,
			Jobs: func() []scheduler.JobStatus { w.mu.Lock(); defer w.mu.Unlock(); return w.jobs },
			RunJob: func(name, _ string) (<-chan error, error) {
				done := make(chan error, 1)
				done <- nil
				if name == "freeze" {
					<-done
					done <- errors.New("the model has nobody to choose from")
				}
				return done, nil
			},
		},
	}
	cfg.Sources = func() []operator.Source { return w.sources }
	for _, o := range options {
		o(&cfg)
	}
	c := must.Get(console.New(cfg))(w.t)
	w.console, w.close = httptest.NewServer(c.Handler()), c.Close
	w.t.Cleanup(func() { c.Close(); w.console.Close() })
}

// round returns the present state of a round.
func (w *world) round(session int64) *almanac.Round {
	w.t.Helper()
	facts := must.Get(w.builder.Facts(w.t.Context()))(w.t)
	return must.Get(almanac.Join(facts.Archive.AsOf(w.now()), w.builder.Ledger.Fold()).Round(session))(w.t)
}

func (w *world) now() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.at
}

// set moves race time to an instant.
func (w *world) set(t time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.at = t
}

// build publishes as of now and waits until the edge serves it.
func (w *world) build(reason string) int64 {
	w.t.Helper()
	outcome := must.Get(w.builder.Build(w.t.Context(), builder.Request{At: w.now(), Reason: reason}))(w.t)
	must.Until(w.t, fmt.Sprintf("version %d at the edge", outcome.Version), func() bool { return w.edge.Status().Version >= outcome.Version })
	return outcome.Version
}

// answer is a response, read to its end; redirects are not followed.
type answer struct {
	*http.Response
	body string
}

// do sends a request with header lines such as "Accept: text/html".
func (w *world) do(method, path string, form url.Values, lines ...string) answer {
	w.t.Helper()
	request := must.Get(http.NewRequestWithContext(w.t.Context(), method, w.console.URL+path, strings.NewReader(form.Encode())))(w.t)
	if form != nil {
		request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for _, line := range lines {
		name, value, _ := strings.Cut(line, ": ")
		request.Header.Set(name, value)
	}
	response := must.Get(http.DefaultTransport.RoundTrip(request))(w.t)
	defer response.Body.Close()
	body := must.Get(io.ReadAll(response.Body))(w.t)
	return answer{response, string(body)}
}

// asOperator is do with the token, as a program sends it.
func (w *world) asOperator(method, path string, form url.Values, lines ...string) answer {
	w.t.Helper()
	return w.do(method, path, form, append(lines, "Authorization: Bearer "+token, "X-Operator: anna")...)
}

// varies is the part of a sentence that differs by run: a time, a duration, the port of a test, a generated
// identifier.
var varies = regexp.MustCompile(`(before|created on|revoked on|(works|too|now:|valid) until) \d+ [A-Z][a-z]+ 20\d\d \d\d:\d\d UTC|(\d+ d )?\d\d:\d\d:\d\d|\b\d+(\.\d+)? m?s\b|(127\.0\.0\.1|localhost):\d{2,}|\b([0-9a-f]{12}|[0-9a-f]{16}|wh[a-z2-7]{10})\b|…[A-Za-z0-9]+|gc_live_\w+…|/\S+/release\.archive|\b[0-9a-f]{64}\b`)

// says compares a text for people with testdata/sentences.txt.
func says(t *testing.T, name, got string) {
	t.Helper()
	golden.Sentence(t, name, strings.Join(strings.Fields(varies.ReplaceAllString(got, "~")), " "))
}

// answers compares the status of an answer, the page that it leads to and its text with testdata/sentences.txt.
func answers(t *testing.T, name string, a answer) {
	t.Helper()
	says(t, name, a.Status+" "+a.Header.Get("Location")+" "+words(a.body))
}

// section returns the text of a section of a page, "" without it.
func section(page, id string) string {
	_, page, _ = strings.Cut(page, `<section id="`+id+`"`)
	_, page, _ = strings.Cut(page, ">")
	page, _, _ = strings.Cut(page, "</section>")
	return words(page)
}

// chances are what the model gives: the drivers of the plot, and figures.
var chances = regexp.MustCompile(`Chance to win by lap, %.*?Place|\b\d+\.\d %`)

// race returns the text of the section about the running race, without chances.
func race(page string) string {
	return chances.ReplaceAllString(strings.Join(strings.Fields(section(page, "race")), " "), "~")
}

// bar returns the text of the bar of a page, which names the operator.
func bar(page string) string {
	_, page, _ = strings.Cut(page, `<header class="top">`)
	page, _, _ = strings.Cut(page, "</header>")
	return words(page)
}

var tags = regexp.MustCompile(`(?s)<(script|style).*?</(script|style)>|<[^>]*>`)

// words returns the text of a page.
func words(page string) string { return html.UnescapeString(tags.ReplaceAllString(page, " ")) }
