package edge

import (
	"bytes"
	"crypto/sha512"
	"encoding/base64"
	"encoding/json"
	"html/template"
	"slices"
	"sync"
	"time"

	"gridcast/edge/resident"
	"gridcast/schemas/catalog"
	"gridcast/schemas/frame"
	"gridcast/schemas/wire"
)

// Shown are the endpoints whose data the start page can show to readers without a key.
var Shown = []string{string(catalog.NextRace), string(catalog.Results), string(catalog.Standings), string(catalog.TitleOdds), string(catalog.TrackRecord)}

// startPage makes the start page.
//
// Cache, by the manifest's digest and the start of the next race: filling and compressing a page takes milliseconds, and a
// crowd asks for it at lights out.
type startPage struct {
	edge     *Edge
	template *template.Template
	fixed    startFilling // the parts that do not depend on the version

	mu   sync.Mutex
	of   startKey       // of the kept page
	page *resident.Page // nil: none yet
}

// startKey identifies the inputs of a page.
type startKey struct {
	manifest string // SHA-256; empty: no version is served
	next     int64  // seconds since 1970; 0: no race is ahead
}

// startFilling is the data of the start page's template.
type startFilling struct {
	StartPage
	Widget servedWidget

	Season    int
	Next      *wire.NextRace
	Result    *wire.ResultRecord
	Standings []wire.DriverStanding

	// The data of the charts, in the shapes of their endpoints; nil: not shown.
	Progress     []wire.DriverProgress
	Odds         *wire.TitleOdds
	Forecast     []wire.ForecastRecord
	Record       *wire.TrackRecord
	PublicSeason bool // any of these
	Simulated    bool // the ledger's picks were made after their races
}

// servedWidget is a file of the widget: its path and its hash. Both are empty where none is served.
type servedWidget struct{ Path, Integrity string }

func newStartPage(e *Edge) *startPage {
	p := &startPage{edge: e, template: template.Must(frame.New(startStyle).New("start").Parse(startSource))}
	if len(e.deps.Widgets) > 0 {
		newest := e.deps.Widgets[0]
		sum := sha512.Sum384(newest.Module)
		p.fixed.Widget = servedWidget{newest.path(), "sha384-" + base64.StdEncoding.EncodeToString(sum[:])}
	}
	return p
}

// answer returns the page of the served version.
func (p *startPage) answer() *resident.Page {
	set, now := p.edge.real.current(), p.edge.deps.RaceTime(time.Now())
	var next *wire.CountdownRound
	var of startKey
	if set != nil {
		of.manifest = set.Version().Pointer.Manifest
		if next = set.Countdown().Next(now); next != nil {
			of.next = time.Time(next.Start).Unix()
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.page != nil && p.of == of {
		return p.page
	}
	if p.edge.deps.Start != nil && p.page == nil {
		p.fixed.StartPage = p.edge.deps.Start()
	}
	filling := p.fixed
	if set != nil {
		filling.read(set, next, now, p.edge.cfg.StartPage)
	}
	var filled bytes.Buffer
	if err := p.template.Execute(&filled, filling); err != nil {
		panic("BUG: start page: " + err.Error())
	}
	page := p.edge.tell(filled.Bytes())
	p.of, p.page = of, document(html, page, startLifetime, protection(page)...)
	return p.page
}

// startLifetime is the time for which a cache may keep the start page.
const startLifetime = "public, max-age=30"

// rows is the length of the lists on the page, and lines that of the charts.
const rows, lines = 10, 8

// read fills in the data of the shown endpoints.
func (f *startFilling) read(set *resident.Set, next *wire.CountdownRound, now time.Time, shown []string) {
	shows := func(name catalog.Name) bool { return slices.Contains(shown, string(name)) }
	f.Season, f.PublicSeason = set.Known().Current, len(shown) > 0
	f.Simulated = set.Version().Manifest.Ledger.Kind == "simulated"
	if shows(catalog.NextRace) {
		if next != nil {
			f.Next = read[*wire.NextRace](next.Append(nil, now))
		}
		if all := read[[]wire.ForecastRecord](body(set, "/forecast")); len(all) > 0 && len(all[0].Drivers) > 0 {
			all[0].Drivers = all[0].Drivers[:min(len(all[0].Drivers), lines)]
			f.Forecast = all[:1]
		}
	}
	if shows(catalog.Results) {
		if all := read[[]wire.ResultRecord](body(set, "/results")); len(all) > 0 {
			f.Result = &all[len(all)-1]
			f.Result.Race = f.Result.Race[:min(len(f.Result.Race), rows)]
		}
	}
	if shows(catalog.Standings) {
		f.Standings = read[[]wire.DriverStanding](body(set, "/standings"))
		f.Standings = f.Standings[:min(len(f.Standings), rows)]
		f.Progress = read[[]wire.DriverProgress](body(set, "/standings-progress"))
		f.Progress = f.Progress[:min(len(f.Progress), lines)]
	}
	if shows(catalog.TitleOdds) {
		if f.Odds = read[*wire.TitleOdds](body(set, "/title-odds")); f.Odds != nil { // the chart draws drivers alone
			f.Odds.Constructors = nil
			for i := range f.Odds.AfterRounds {
				f.Odds.AfterRounds[i].Constructors = nil
			}
		}
	}
	if shows(catalog.TrackRecord) {
		if f.Record = read[*wire.TrackRecord](body(set, "/track-record")); f.Record != nil {
			for _, r := range []*wire.Record{&f.Record.Real, &f.Record.Hindsight} { // the chart draws the whole alone
				*r = wire.Record{Races: r.Races, RacesWithChances: r.RacesWithChances, Picks: r.Picks, Reliability: r.Reliability}
			}
		}
	}
}

// body returns the answer to a request without parameters, nil if the version has none.
func body(set *resident.Set, path string) []byte {
	page := set.Find([]byte(catalog.BasePath + path))
	if page == nil || page.Countdown != nil {
		return nil
	}
	return page.Answer(nil, nil).Body
}

// read returns the data of an answer. A version that lacks it, or that a newer builder made, shows less.
func read[T any](answer []byte) (data T) {
	var b wire.Success[T]
	if len(answer) == 0 || json.Unmarshal(answer, &b) != nil {
		return data
	}
	return b.Data
}
