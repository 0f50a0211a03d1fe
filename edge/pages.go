package edge

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"html/template"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	"gridcast/edge/negotiate"
	"gridcast/edge/resident"
	"gridcast/schemas/catalog"
	"gridcast/schemas/frame"
	"gridcast/schemas/wire"
	"gridcast/snapshots"
)

var (
	//go:embed status.html
	statusSource string
	//go:embed status.css
	statusStyle string
	//go:embed start.html
	startSource string
	//go:embed start.css
	startStyle string
	//go:embed favicon.svg
	favicon []byte
)

// robots keeps crawlers on the pages for people: everything else needs a key or changes by
// the second.
const robots = "User-agent: *\nAllow: /$\nAllow: /docs\nAllow: /llms\nAllow: /openapi.json\nAllow: /calendar.ics\nAllow: /changes.atom\nAllow: /widget/\nAllow: /portraits/\nAllow: /.well-known/\nDisallow: /\n"

var (
	script    = resident.NewField("Content-Type", "text/javascript; charset=utf-8")
	html      = resident.NewField("Content-Type", "text/html; charset=utf-8")
	variesByA = resident.NewField("Vary", "Accept")
)

// pages answers requests without a key: the documents of the contract, health and status.
type pages struct {
	edge       *Edge
	widgets    map[string]*resident.Page // by path
	statusHTML *template.Template
	start      *startPage
}

func newPages(e *Edge) *pages {
	ago := func(seconds int64) string { return frame.LongTime(time.Duration(seconds) * time.Second) }
	functions := template.FuncMap{"ago": ago, "spaced": spaced, "alike": alike, "when": when, "until": until, "late": late}
	status := template.Must(frame.New(statusStyle).New("status").Funcs(functions).Parse(statusSource))
	widgets := map[string]*resident.Page{}
	for _, w := range e.deps.Widgets {
		widgets[w.path()] = document(script, w.Module, "public, max-age=31536000, immutable")
	}
	return &pages{edge: e, widgets: widgets, statusHTML: status, start: newStartPage(e)}
}

// serve answers a target outside the base path.
func (p *pages) serve(r *request) answer {
	target, _, _ := bytes.Cut(r.target, []byte{'?'})
	if len(target) > 1 {
		target = bytes.TrimSuffix(target, []byte{'/'})
	}
	path := string(target)
	page, known := p.find(path)
	switch {
	case !known:
		return answer{response: noRoute}
	case r.method != get:
		return answer{response: wrongMethod}
	case page != nil:
		return answer{response: page.Answer(r.acceptEncoding, r.ifNoneMatch)}
	}
	switch path {
	case healthPath:
		return answer{response: p.data(Health{Status: "ok"})} // the process answers, so that a restart would not help
	case readyPath:
		return p.readiness()
	case statusPath:
		return p.status(p.edge.real, r.accept)
	case sandboxPath + statusPath:
		return p.status(p.edge.sandbox, r.accept)
	case securityPath:
		return answer{response: security(p.edge.operator(), time.Now())}
	}
	return answer{response: notInVersion, retryAfter: retrySoon}
}

// find returns the page of a path, and reports whether the path is known. A known path has no page if its answer
// depends on the moment, or if the version lacks the feed.
func (p *pages) find(path string) (page *resident.Page, known bool) {
	if sandbox := p.edge.sandbox.current(); sandbox != nil {
		if below, ok := strings.CutPrefix(path, sandboxPath); ok {
			return published(sandbox, below)
		}
	}
	if page, known = published(p.edge.real.current(), path); known {
		return page, true
	}
	made := siteOf(p.edge.operator()).contract[path]
	switch {
	case path == "/":
		return p.start.answer(), true
	case path == securityPath:
		return nil, p.edge.operator().Contact != ""
	case path == healthPath, path == readyPath:
		return nil, true
	case path == uptimePath:
		return p.edge.uptime.Load().page, true
	case strings.HasPrefix(path, "/docs"), strings.HasPrefix(path, "/llms"):
		made = siteOf(p.edge.operator()).explained()[path]
	default:
		page = p.widgets[path]
	}
	if made != nil {
		page = made()
	}
	return page, page != nil
}

// sandboxPath is the folder of the pages without a key that a sandbox has of its own. Without a sandbox there are none.
const sandboxPath = "/sandbox"

// published is find for the paths that a world has of its own.
func published(set *resident.Set, path string) (page *resident.Page, known bool) {
	switch {
	case path == statusPath:
		return nil, true
	case slices.ContainsFunc(catalog.Feeds, func(f catalog.Feed) bool { return f.Path == path }):
		return set.Feed(path), true
	case strings.HasPrefix(path, "/"+catalog.Portraits):
		page = set.Feed(path)
	case resident.Proves(path):
		page = set.Proof(path)
	}
	return page, page != nil
}

// spaced writes a status for people.
func spaced(s wire.Status) string { return strings.ReplaceAll(string(s), "_", " ") }

// when writes an instant for people. A program finds it in the attribute.
func when(i wire.Instant) template.HTML {
	t := time.Time(i).UTC()
	return template.HTML(`<time datetime="` + t.Format(time.RFC3339) + `">` + t.Format("2 Jan 2006, 15:04:05 UTC") + `</time>`) //nolint:gosec // it has no text of others
}

// until writes an instant for people with the time that is left, which the script of the page counts down.
func until(i, now wire.Instant) template.HTML {
	left := "past"
	if d := time.Time(i).Sub(time.Time(now)); d > 0 {
		left = "in " + frame.LongTime(d)
	}
	return when(i) + template.HTML(` (<span data-until="`+time.Time(i).UTC().Format(time.RFC3339)+`">`+left+`</span>)`) //nolint:gosec // it has no text of others
}

// late returns the missing facts for which no pick waits.
func late(all []MissingFact) []MissingFact {
	return slices.DeleteFunc(slices.Clone(all), func(m MissingFact) bool { return m.Urgent })
}

// The paths with an answer that depends on the moment.
const (
	healthPath = "/healthz"
	readyPath  = "/readyz"
	statusPath = "/status"
)

// Health is the data of /healthz and /readyz.
type Health struct {
	Status string `json:"status"` // "ok"
}

// readiness reports whether load balancers should send requests here.
func (p *pages) readiness() answer {
	if err := p.edge.Ready(); err != nil {
		return answer{
			response:   refusal(http.StatusServiceUnavailable, wire.Unavailable, err.Error()),
			retryAfter: retrySoon,
		}
	}
	health := Health{Status: "ok"}
	if p.edge.deps.Builder != nil && p.edge.deps.Builder() != "" {
		health.Status = "ok, but versions are not built: see /status of the admin port"
	}
	return answer{response: p.data(health)}
}

func (p *pages) status(w *world, accept []byte) answer {
	status := p.edge.status(w).forStrangers()
	if !negotiate.PrefersHTML(accept) {
		fields := resident.Uncached(resident.JSON, variesByA)
		return answer{response: resident.New(http.StatusOK, nil, fields, marshal(wire.Wrap(status, time.Time(status.RaceTime))))}
	}
	var page bytes.Buffer
	shown := struct {
		StatusDocument

		Uptime *measured
		World  string // empty: the real one
	}{StatusDocument: status, World: "sandbox "}
	if w == p.edge.real {
		shown.Uptime, shown.World = p.edge.uptime.Load(), ""
	}
	if err := p.statusHTML.Execute(&page, shown); err != nil {
		panic("BUG: status page: " + err.Error())
	}
	told := p.edge.tell(page.Bytes())
	fields := append(protection(told), html, variesByA)
	return answer{response: resident.New(http.StatusOK, nil, resident.Uncached(fields...), told)}
}

// data makes a success response of a value that is computed on request.
func (p *pages) data(v any) *resident.Response {
	return resident.New(http.StatusOK, nil, resident.Uncached(resident.JSON), p.edge.success(v))
}

// untilRelease is the time for which a cache may keep a document: it changes with the program.
const untilRelease = "public, max-age=300"

// document makes the page of a document that is constant for the life of the process.
func document(contentType resident.Field, content []byte, lifetime string, more ...resident.Field) *resident.Page {
	body, err := snapshots.NewBody(content)
	if err != nil {
		panic("BUG: a page cannot be compressed: " + err.Error())
	}
	return resident.NewPage(body, contentType, resident.NewField("Cache-Control", lifetime), more...)
}

// inline finds the styles and scripts of a page.
var inline = regexp.MustCompile(`(?s)<(style|script)([^>]*)>(.*?)</(?:style|script)>`)

// protection returns the fields with which a browser runs only the page's own styles and scripts, and shows the
// page in no frame.
func protection(page []byte) []resident.Field {
	allowed := map[string][]string{}
	allow := func(kind string, content []byte) {
		sum := sha256.Sum256(content)
		allowed[kind] = append(allowed[kind], "'sha256-"+base64.StdEncoding.EncodeToString(sum[:])+"'")
	}
	for _, m := range inline.FindAllSubmatch(page, -1) {
		switch {
		case bytes.Contains(m[2], []byte("application/json")): // data, which nothing runs
		case bytes.Contains(m[2], []byte("src=")):
			if !slices.Contains(allowed["script"], "'self'") {
				allowed["script"] = append(allowed["script"], "'self'")
			}
		default:
			allow(string(m[1]), m[3])
		}
	}
	policy := []string{"default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; connect-src 'self'; img-src 'self' data:"}
	for _, kind := range []string{"style", "script"} {
		if len(allowed[kind]) > 0 {
			policy = append(policy, kind+"-src "+strings.Join(allowed[kind], " "))
		}
	}
	return []resident.Field{resident.NewField("Content-Security-Policy", strings.Join(policy, "; ")), resident.NewField("Referrer-Policy", "same-origin")}
}

// borrowed are rounds of a season whose same part comes under the same terms.
type borrowed struct {
	Part, Source, Licence string
	Year                  int64
	Names                 []string // of the rounds
}

// alike joins facts that differ only in their round, in their given order.
func alike(facts []wire.BorrowedFact) []borrowed {
	var all []borrowed
	for _, f := range facts {
		next := borrowed{Part: f.Part, Source: f.Source, Licence: f.Licence, Year: f.SessionKey / catalog.KeysPerSeason}
		i := slices.IndexFunc(all, func(b borrowed) bool {
			return b.Part == next.Part && b.Source == next.Source && b.Licence == next.Licence && b.Year == next.Year
		})
		if i < 0 {
			i, all = len(all), append(all, next)
		}
		all[i].Names = append(all[i].Names, f.GPName)
	}
	return all
}
