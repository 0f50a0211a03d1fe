package edge_test

import (
	"context"
	"crypto/sha512"
	"encoding/base64"
	"encoding/json"
	"html"
	"io/fs"
	"log/slog"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"gridcast/deploy/golden"
	"gridcast/deploy/must"
	"gridcast/edge"
	"gridcast/edge/edgetest"
	"gridcast/edge/keys"
	"gridcast/schemas"
	"gridcast/schemas/docs"
	"gridcast/schemas/wire"
	"gridcast/snapshots"
	"gridcast/snapshots/blob"
	"gridcast/snapshots/blob/faultblob"
	"gridcast/snapshots/blob/memblob"
)

// TestStartPageNamesTheNewestWidget, with its hash.
func TestStartPageNamesTheNewestWidget(t *testing.T) {
	module := []byte("export const widget = 2;")
	w := newWorld(t, func(_ *edge.Config, d *edge.Deps, _ *setup) {
		d.Widgets = []edge.Widget{{Version: "2.0.0", Module: module}, {Version: "1.0.0", Module: []byte("export const widget = 1;")}}
		d.Start = func() edge.StartPage { return edge.StartPage{Key: "gc_live_shown", Console: "http://console.example/"} }
	})
	sum := sha512.Sum384(module)
	page := html.UnescapeString(string(w.do("GET", "/").body))
	must.Show(t, "the start page", page, `src="/widget/2.0.0/gridcast.js" integrity="sha384-`+base64.StdEncoding.EncodeToString(sum[:])+`"`,
		`key="gc_live_shown"`, `href="http://console.example/"`, "its token is in the file that the demo named")
}

// TestStartPageShowsWhatTheOperatorShows: without a setting the page has no data that wants a key, and with it the
// data of the served version.
func TestStartPageShowsWhatTheOperatorShows(t *testing.T) {
	shown := func(names ...string) string {
		w := newWorld(t, func(c *edge.Config, _ *edge.Deps, _ *setup) { c.StartPage = names })
		w.await("version 1", func() bool { return w.edge.Status().Version == 1 })
		first := w.do("GET", "/")
		again := w.do("GET", "/", "If-None-Match: "+first.Header.Get("ETag"))
		must.Hold(t, again.StatusCode == http.StatusNotModified, "%v: got %d for an unchanged page, want 304", names, again.StatusCode)
		w.race.set(edgetest.AbuDhabi.Add(time.Second))
		if after := w.do("GET", "/"); slices.Contains(names, "next-race") == (after.Header.Get("ETag") == first.Header.Get("ETag")) {
			t.Errorf("%v: the page follows the next race only where it shows it", names)
		}
		return string(first.body)
	}
	parts := []string{`id="next"`, `id="standings"`, "(62.5 %)"}
	must.Hide(t, "the page of an operator who shows nothing", shown(), append(parts, "application/json", "Abu Dhabi")...)
	must.Show(t, "the page", shown(edge.Shown...), parts...)
	page := shown("standings")
	must.Hide(t, "the page with the standings", page, parts[0])
	must.Show(t, "the page with the standings", page, parts[1])
	for _, wrong := range []string{"", "predictions", "all"} {
		cfg := edge.DefaultConfig()
		if cfg.StartPage = []string{wrong}; cfg.Validate() == nil {
			t.Errorf("--start-page %q is accepted", wrong)
		}
	}
}

// TestServiceAnswersAsDocumented asks every path outside of the API that the OpenAPI document has: the status is documented,
// and 304 is documented exactly where a tag is answered with it.
func TestServiceAnswersAsDocumented(t *testing.T) {
	var api struct {
		Paths map[string]struct {
			Get struct {
				Security   []any
				Parameters []struct{ In, Name, Example string }
				Responses  map[string]any
			}
		}
	}
	must.Do(t, json.Unmarshal(schemas.OpenAPIJSON(), &api))
	w := newWorld(t)
	w.openSandbox(1001)
	asked := 0
	for path, item := range api.Paths {
		if item.Get.Security == nil {
			continue
		}
		for _, p := range item.Get.Parameters {
			path = strings.Replace(path, "{"+p.Name+"}", p.Example, 1)
		}
		first := w.do("GET", path)
		if _, ok := item.Get.Responses[strconv.Itoa(first.StatusCode)]; !ok {
			t.Errorf("%s: got %d, documented are %v", path, first.StatusCode, slices.Sorted(maps.Keys(item.Get.Responses)))
		}
		if first.StatusCode != http.StatusOK {
			continue // of a version without signatures, and of the log
		}
		again := w.do("GET", path, "If-None-Match: "+first.Header.Get("ETag"))
		_, ok := item.Get.Responses["304"]
		must.Hold(t, ok == (again.StatusCode == http.StatusNotModified), "%s: got %d for its tag, 304 documented: %t", path, again.StatusCode, ok)
		asked++
	}
	must.Hold(t, asked >= 13, "asked %d paths", asked)
}

// TestStatusIsDocumented: the OpenAPI document has every field of /status that everybody sees.
func TestStatusIsDocumented(t *testing.T) {
	var api struct {
		Components struct {
			Schemas map[string]documented
		}
	}
	must.Do(t, json.Unmarshal(schemas.OpenAPIJSON(), &api))
	hidden := map[string]bool{"missing.mend": true, "refused_documents.reason": true, "keys.skipped": true} // see forStrangers
	fields := 0
	var walk func(path string, typ reflect.Type, s documented)
	walk = func(path string, typ reflect.Type, s documented) {
		for typ.Kind() == reflect.Pointer || typ.Kind() == reflect.Slice {
			typ = typ.Elem()
		}
		if s.Items != nil {
			s = *s.Items
		}
		if name, ok := strings.CutPrefix(s.Ref, "#/components/schemas/"); ok {
			s = api.Components.Schemas[name]
		}
		if typ.Kind() != reflect.Struct || s.Properties == nil {
			return
		}
		for i := range typ.NumField() {
			name, _, _ := strings.Cut(typ.Field(i).Tag.Get("json"), ",")
			at := strings.TrimPrefix(path+"."+name, ".")
			property, ok := s.Properties[name]
			must.Hold(t, ok != hidden[at] || !typ.Field(i).IsExported(), "%s: documented %t, for everybody %t", at, ok, !hidden[at])
			fields++
			walk(at, typ.Field(i).Type, property)
		}
	}
	walk("", reflect.TypeFor[edge.StatusDocument](), api.Components.Schemas["Status"])
	must.Hold(t, fields >= 50, "compared %d fields", fields)
}

// documented is the part of a schema that names fields.
type documented struct {
	Ref        string `json:"$ref"`
	Properties map[string]documented
	Items      *documented
}

// TestFeedsAreThoseOfTheVersion: the feeds change with the version, any website may read them, and an
// older version has none.
func TestFeedsAreThoseOfTheVersion(t *testing.T) {
	w := newWorld(t)
	first := w.do("GET", "/calendar.ics")
	got := first.Header.Get("Access-Control-Allow-Origin")
	must.Hold(t, got == "*", "got Access-Control-Allow-Origin %q, want *", got)
	store := memblob.New()
	publish := func(n int64, without ...string) {
		must.Do(t, w.edge.Accept(edgetest.Publish(t, store, n, without...)))
	}
	publish(2)
	second := w.do("GET", "/calendar.ics", "If-None-Match: "+first.Header.Get("ETag"))
	if second.StatusCode != http.StatusOK || string(second.body) != "/calendar.ics of version 2" {
		t.Errorf("got %d %s, want the calendar of version 2", second.StatusCode, second.body)
	}
	publish(3, "feeds/calendar.ics")
	r := w.do("GET", "/calendar.ics")
	must.Hold(t, r.StatusCode == http.StatusServiceUnavailable, "got %d from a version without the calendar, want 503", r.StatusCode)
	r = w.do("GET", "/changes.atom")
	must.Hold(t, r.StatusCode == http.StatusOK, "got %d, want the other feed", r.StatusCode)
}

// TestEveryReaderFindsTheOperator: contact and terms of the settings are in each document that has a place for them, and
// nothing names an operator that has set none.
func TestEveryReaderFindsTheOperator(t *testing.T) {
	w := newWorld(t)
	get := func(path string, status int, want ...string) string {
		t.Helper()
		r := w.do("GET", path, "Accept: text/html")
		must.Hold(t, r.StatusCode == status, "%s: got %d, want %d", path, r.StatusCode, status)
		must.Show(t, path, string(r.body), want...)
		return string(r.body)
	}
	get("/.well-known/security.txt", 404, "not_found")
	get("/.well-known/api-catalog", 200, `{"anchor":"/.well-known/api-catalog","item":[{"href":"/api/v1"}]}`)
	served := get("/openapi.json", 200)
	must.Hold(t, served == string(schemas.OpenAPIJSON()), "without an operator /openapi.json is not the document of the contract")

	version := edgetest.Publish(t, memblob.New(), 2)
	version.Manifest.Operator = snapshots.Operator{
		Address: "https://api.example.com", Contact: "mailto:api@example.com", Terms: "https://example.com/terms?a=1&b=2",
		Policy: "https://example.com/security", Languages: "en, de",
	}
	must.Do(t, w.edge.Accept(version))
	text := get("/.well-known/security.txt", 200)
	var expires time.Time
	fields := map[string]string{}
	for line := range strings.Lines(text) {
		name, value, ok := strings.Cut(strings.TrimSpace(line), ": ")
		must.Hold(t, ok && fields[name] == "", "line %q is no field, or the second of its name", line)
		fields[name] = value
	}
	expires = must.Get(time.Parse(time.RFC3339, fields["Expires"]))(t)
	left := time.Until(expires)
	must.Hold(t, left > 300*24*time.Hour && left < 366*24*time.Hour, "it expires at %s, want ten to twelve months ahead", expires)
	delete(fields, "Expires")
	must.Equal(t, "security.txt", map[string]string{
		"Contact": "mailto:api@example.com", "Preferred-Languages": "en, de", "Policy": "https://example.com/security",
		"Canonical": "https://api.example.com/.well-known/security.txt",
	}, fields)

	catalog := w.do("GET", "/.well-known/api-catalog")
	must.Equal(t, "content type", `application/linkset+json; profile="https://www.rfc-editor.org/info/rfc9727"`, catalog.Header.Get("Content-Type"))
	must.Equal(t, "link", `</.well-known/api-catalog>; rel="api-catalog"`, w.do("HEAD", "/.well-known/api-catalog").Header.Get("Link"))
	var set struct {
		Linkset []map[string]json.RawMessage `json:"linkset"`
	}
	must.Do(t, json.Unmarshal(catalog.body, &set))
	must.Hold(t, len(set.Linkset) == 2, "%d link contexts, want catalog and API", len(set.Linkset))
	followed := 0
	for _, relation := range []string{"service-desc", "service-doc", "service-meta", "status", "terms-of-service"} {
		var links []struct{ Href string }
		must.Do(t, json.Unmarshal(set.Linkset[1][relation], &links))
		for _, l := range links {
			if path, ours := strings.CutPrefix(l.Href, "https://api.example.com"); ours {
				get(path, 200)
				followed++
			}
		}
	}
	must.Hold(t, followed == 6, "followed %d links of ours, want 6", followed)

	var info struct {
		Info struct {
			Contact        struct{ Email string }
			License        struct{ URL string }
			TermsOfService string
		}
	}
	must.Do(t, json.Unmarshal([]byte(get("/openapi.json", 200)), &info))
	must.Hold(t, info.Info.Contact.Email == "api@example.com" && info.Info.TermsOfService == version.Manifest.Operator.Terms && info.Info.License.URL == docs.License,
		"OpenAPI has the info %+v", info.Info)
	get("/openapi.yaml", 200, "email: api@example.com")
	for _, path := range []string{"/", "/status", "/docs", "/docs/errors", "/docs/results"} {
		get(path, 200, `<a href="mailto:api@example.com">Contact</a> <a href="https://example.com/terms?a=1&amp;b=2">Terms</a>`, `href="/docs"`, `href="/status"`)
	}
	get("/docs/changelog.atom", 200, `<feed xmlns="http://www.w3.org/2005/Atom">`)
}

// service checks the body of a service path against its schema.
func service(t testing.TB, path string, r response) {
	t.Helper()
	err := schemas.ValidateBody(path, r.body)
	must.Hold(t, err == nil, "%v\n%s", err, r.body)
}

func TestReadiness(t *testing.T) {
	w := newWorld(t, withoutKeys, withoutVersion)
	ready := func(status int) {
		t.Helper()
		want := `"status":"ok"`
		if why := w.edge.Ready(); why != nil {
			want = why.Error()
		}
		r := w.do("GET", "/readyz")
		must.Equal(t, "the status of /readyz", status, r.StatusCode)
		must.Show(t, "/readyz", string(r.body), want)
		must.Equal(t, "the status of /healthz", http.StatusOK, w.do("GET", "/healthz").StatusCode)
	}
	ready(503)
	withoutKeys := w.edge.Ready()
	w.createKeys()
	w.await("keys", func() bool { return w.edge.Status().Keys.Loaded })
	ready(503)
	why := w.edge.Ready()
	must.Hold(t, why != nil && why.Error() != withoutKeys.Error(), "got %v with keys and %v without, want two reasons", why, withoutKeys)
	edgetest.Publish(t, w.store, 1)
	<-w.edge.Started()
	ready(200)
}

func TestStatus(t *testing.T) {
	w := newWorld(t)
	status := func() edge.StatusDocument {
		t.Helper()
		r := w.do("GET", "/status", "Accept: application/json")
		service(t, "/status", r)
		body := must.JSON[wire.Success[edge.StatusDocument]](t, r.body)
		return body.Data
	}
	s := status()
	if !s.Ready || s.Version != 1 || s.AgeSeconds != 0 || s.Overdue || s.Held || s.Season != 2024 ||
		s.Ledger.Kind != "simulated" || s.Ledger.Seq != 7 || !time.Time(s.NextRace).Equal(edgetest.AbuDhabi) ||
		!s.Keys.Loaded || s.Keys.Count != 6 || s.Refused != nil {
		t.Errorf("fresh: got %+v", s)
	}
	if f := s.Facts; f == nil || len(f.Sources) != 2 || len(f.Rounds) != 1 || f.Rounds[0].Result != wire.FactsProvisional {
		t.Errorf("facts: got %+v, want those that the version came with", f)
	}
	w.race.set(edgetest.AbuDhabi.Add(time.Second))
	s = status()
	must.Hold(t, s.Overdue && s.AgeSeconds == 3601, "after the due time: got %+v, want it overdue and 3601 s old", s)

	edgetest.Publish(t, w.store, 2, "drivers")
	w.await("version 2 refused", func() bool { return w.edge.Status().Refused != nil })
	s = status()
	must.Hold(t, s.Version == 1 && s.Refused.Version == 2, "after a version without drivers: got %+v, want 1 served and 2 refused", s)
	golden.Sentence(t, "a version without drivers", s.Refused.Reason)
	edgetest.Publish(t, w.store, 3)
	w.await("version 3", func() bool { return w.edge.Status().Version == 3 })

	hold(t, w.store, "wrong points")
	w.await("hold", func() bool { return w.edge.Status().Held })
	s = status()
	must.Hold(t, s.Version == 3 && s.HeldReason == "wrong points", "held: got %+v, want version 3", s)
}

// TestStatusSaysWhatIsMissing uses a version whose archive lacks facts. The status shows each while it is
// overdue, and operators see the command that fixes it.
func TestStatusSaysWhatIsMissing(t *testing.T) {
	w := newWorld(t)
	base := must.Get(snapshots.LoadBase(t.Context(), w.store, nil))(t)
	m := base.Manifest
	draft := snapshots.Draft{Base: base, About: m.About}
	draft.Missing = []snapshots.Missing{
		{Code: "archive_old", Since: m.BuiltAt.AddDate(0, -1, 0), Text: "the archive ends with the season 2023", Fix: "gridcast source pull"},
		{Code: "grid_overdue", Since: edgetest.AbuDhabi.Add(-30 * time.Minute), Until: edgetest.AbuDhabi, Session: 2024024, Urgent: true, Text: "the grid has not come", Fix: "gridcast source pull"},
	}
	draft.Refused = []snapshots.RefusedEntry{{Path: "calendar/2024", Reason: "data[0].winner is secret"}}
	for _, e := range m.Entries {
		draft.Variants = append(draft.Variants, snapshots.Reused(e))
	}
	publisher := snapshots.Publisher{Store: w.store}
	must.Get(publisher.Publish(t.Context(), draft))(t)
	m.Missing, m.Refused = draft.Missing, draft.Refused
	w.await("version 2", func() bool { return w.edge.Status().Version == 2 })
	for _, tt := range []struct {
		before time.Duration // the race
		want   []string
	}{
		{31 * time.Minute, []string{"archive_old"}},
		{30 * time.Minute, []string{"archive_old", "grid_overdue"}},
		{0, []string{"archive_old"}},
	} {
		w.race.set(edgetest.AbuDhabi.Add(-tt.before))
		var codes []string
		for _, fact := range w.edge.Status().Missing {
			codes = append(codes, fact.Code)
			must.Hold(t, fact.Fix != "", "operators get no command that fixes %s", fact.Code)
		}
		must.Hold(t, slices.Equal(codes, tt.want), "%v before the race: got %v, want %v", tt.before, codes, tt.want)
	}
	w.race.set(edgetest.AbuDhabi.Add(-time.Minute))
	r := w.do("GET", "/status", "Accept: application/json")
	service(t, "/status", r)
	page := w.do("GET", "/status", "Accept: text/html")
	for _, body := range []string{string(r.body), html.UnescapeString(string(page.body))} {
		must.Show(t, "the public status", body, m.Missing[0].Text, m.Missing[1].Text, m.Refused[0].Path)
		must.Hide(t, "the public status", body, m.Missing[0].Fix, m.Refused[0].Reason)
	}
}

// hold holds the pointer, like an operator who wants no automatic builds.
func hold(t testing.TB, store blob.Store, reason string) {
	t.Helper()
	pointer, tag := must.Get2(snapshots.LoadPointer(t.Context(), store))(t)
	pointer.Held, pointer.Reason = true, reason
	data := must.Get(json.Marshal(pointer))(t)
	must.Get(store.Swap(t.Context(), snapshots.PointerKey, tag, data))(t)
}

func TestStatusPage(t *testing.T) {
	w := newWorld(t)
	w.await("a poll", func() bool { return !w.edge.Status().Stale })
	browser := "Accept: text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"
	r := w.do("GET", "/status", browser)
	must.Hold(t, r.Header.Get("Content-Type") == "text/html; charset=utf-8" && r.Header.Get("Vary") == "Accept", "got\n%swant a page that varies by Accept", r.head)
	goldenPage(t, "status.html", r)
	goldenPage(t, "status-empty.html", newWorld(t, withoutKeys, withoutVersion).do("GET", "/status", browser))
}

// realTime is an instant of real time in a page: when the keys were loaded.
var realTime = regexp.MustCompile(`since <time[^>]*>[^<]*</time>`)

// goldenPage compares the main part of a page with a file that a person can read.
func goldenPage(t *testing.T, file string, r response) {
	t.Helper()
	page := string(r.body)
	_, page, _ = strings.Cut(page, "<main")
	page, _, _ = strings.Cut(page, "</main>")
	page = realTime.ReplaceAllString("<main"+page+"</main>\n", "since …")
	golden.File(t, "testdata/"+file, page)
}

// TestDirectoryGoesAway takes the disk of a store away from a running edge. The edge goes on, names the directory to
// operators alone, and follows again once the disk is back.
func TestDirectoryGoesAway(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	store, stored := onDisk(t, dir)
	w := newWorld(t, stored)
	must.Do(t, os.Rename(dir, dir+"-elsewhere"))
	w.await("the store is missed", func() bool { return w.edge.Status().StoreProblem != "" && w.edge.Status().Keys.Problem != "" })
	s := w.edge.Status()
	must.Hold(t, s.Version == 1 && s.Refused == nil, "without its disk: got %+v, want version 1 served", s)
	must.Show(t, "the problem of the store", s.StoreProblem, dir)
	secret := func() {
		for _, accept := range []string{"application/json", "text/html"} {
			must.Hide(t, "/status as "+accept, string(w.do("GET", "/status", "Accept: "+accept).body), dir)
		}
	}
	secret()
	must.Do(t, os.Rename(dir+"-elsewhere", dir))
	edgetest.Publish(t, store, 2)
	w.await("version 2", func() bool { return w.edge.Status().Version == 2 && w.edge.Status().StoreProblem == "" })
	must.Do(t, os.Remove(filepath.Join(dir, snapshots.PointerKey)))
	w.await("the pointer is missed", func() bool { return w.edge.Status().Refused != nil })
	must.Show(t, "the reason for operators", w.edge.Status().Refused.Reason, dir)
	secret()
}

// TestWaitingEdgeSaysWhy starts edges with a missing part: each logs the part
// and the remedy.
func TestWaitingEdgeSaysWhy(t *testing.T) {
	for _, tt := range []struct {
		name string
		part option
		want string // the problem and the command that helps
	}{
		{"keys", withoutKeys, `problem="the store has no list of API keys yet" remedy="gridcast keys create --name NAME --tier standard --store 'mem:`},
		{"keys that cannot be read", func(_ *edge.Config, d *edge.Deps, s *setup) {
			s.keys = false
			d.Store = faultblob.Wrap(d.Store, func(_ context.Context, call faultblob.Call) faultblob.Fate {
				if call.Key == keys.Object {
					return faultblob.Fate{Err: fs.ErrPermission}
				}
				return faultblob.Fate{}
			})
		}, `problem="permission denied" remedy="gridcast doctor edge --store `},
		{"a version", withoutVersion, `problem="the store has no version yet: the first build of its scheduler publishes one" remedy="gridcast doctor edge --store `},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var log must.Buffer
			w := newWorld(t, tt.part, func(_ *edge.Config, d *edge.Deps, s *setup) {
				d.Log, s.warnAfter = slog.New(slog.NewTextHandler(&log, nil)), time.Millisecond
			})
			w.await("a warning", func() bool { return log.Says(tt.want) })
			if err := w.stop(); err != nil {
				t.Error(err)
			}
			// Before the answer of the store, the edge may have logged that it waits for it.
			if n := strings.Count(log.String(), tt.want); n != 1 {
				t.Errorf("%d warnings, want one:\n%s", n, log.String())
			}
		})
	}
}

// TestSlowStartIsNotAMissingVersion reads the first version from storage that does not answer yet: the edge does not
// say that there is none.
func TestSlowStartIsNotAMissingVersion(t *testing.T) {
	var log must.Buffer
	answers := make(chan struct{})
	w := newWorld(t, func(_ *edge.Config, d *edge.Deps, s *setup) {
		edgetest.Publish(t, d.Store, 1)
		d.Store = faultblob.Wrap(d.Store, func(_ context.Context, call faultblob.Call) faultblob.Fate {
			if call.Key == snapshots.PointerKey {
				<-answers
			}
			return faultblob.Fate{}
		})
		d.Log, s.warnAfter, s.version = slog.New(slog.NewTextHandler(&log, nil)), time.Millisecond, false
	})
	w.await("a warning", func() bool { return log.Says("gridcast doctor edge --store") })
	close(answers)
	w.await("the version", func() bool { return w.edge.Status().Version == 1 })
	must.Hide(t, "the log", log.String(), "the store has no")
}
