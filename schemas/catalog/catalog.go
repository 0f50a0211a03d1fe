// Package catalog is the table of endpoints and parameters. The builder renders by it and the
// edge routes by it; no other place in gridcast lists the variants.
//
// A request's path finds an [Endpoint] with [Lookup]; its raw query selects a [Variant] with
// [Endpoint.Select]; the variant's [Variant.Path] is the name under which its body is stored.
// Everything here is pure, and safe for concurrent use.
//
// # A new endpoint
//
// One row of [Endpoints] determines the variants of an endpoint, their requests and their paths in
// the store. A new endpoint takes:
//
//   - here, a [Name] with its comments, and a row, Additive, with the path patterns of its variants;
//   - in schemas, the structs of its body in wire, and an example in examples.yaml;
//   - in builder/render, a function, and its row of the table renderers (render.go);
//   - in builder/bulk, a row of the function tables, or a reason in the list of bulk_test.go;
//   - a line in deploy/CHANGELOG.md.
//
// "go generate ./schemas" makes everything else: the schema file, the path in the OpenAPI document, the contract, and
// the row in README.md. The comment of package generate says how. deploy/endpoint_test.go and the tests of those packages
// name a forgotten place. Two tests list all variants of a small season, and want
// the new ones too: variant_test.go here, and render_test.go in builder/render. The edge needs no change: it serves the
// variants of a version, and answers 503 for a variant that no version has yet. A cross-check of
// the new bodies with the others belongs to builder/check.
package catalog

import (
	"strings"
)

// BasePath precedes every endpoint path of the contract.
const BasePath = "/api/v1"

// Name identifies an endpoint.
type Name string

// The endpoints. The comment above a name is the summary and the description in the OpenAPI document, the comment behind
// it stands in README.md.
const (
	Standings   Name = "standings"   // the championship
	Calendar    Name = "calendar"    // rounds with start, status and winner
	Drivers     Name = "drivers"     // the current grid
	Predictions Name = "predictions" // frozen picks and verified results
	NextRace    Name = "next-race"   // the next race, countdown and pick
	Accuracy    Name = "accuracy"    // hit rates of the picks

	// Every starter's chances
	//
	// The whole distribution that each pick was frozen with: every starter's probability to win and to be on the
	// podium, the basis and the model. A frozen distribution never changes. Picks without a distribution are left out.
	Probabilities Name = "probabilities" // every starter's chances, as frozen

	// How good the forecasts really were
	//
	// Hits, podium accuracy, log-loss and Brier score of the picks that were frozen before their races (real), beside
	// pole and a model of qualifying alone on the same races, with 95 % intervals; and, apart from it, the forecasts
	// of today's model for past races (hindsight). A new verified result reaches it within a minute.
	TrackRecord Name = "track-record" // scores with intervals

	// The chances of the titles
	//
	// The chance of each title for every driver and constructor that can still win it by arithmetic, from 10,000
	// simulations of the remaining races and sprints. They start from the verified standings, and draw the form of
	// each team and driver from its uncertainty. A driver keeps his seat when he misses a race, unless the entries of
	// the next race say otherwise. For the latest season with a result, and later ones, after_rounds has the odds
	// after each round, from 2,000 simulations that know nothing of a later weekend. Odds follow a verified result
	// within a minute.
	TitleOdds Name = "title-odds" // each contender's chance of the title

	// The races to come
	//
	// Provisional chances and the expected podium of the next race and of each race to come, from the facts known now.
	// A forecast improves with entries, practice, sprint, qualifying and grid, and says from which session it learns
	// next. It follows new facts within a minute. It never counts as a pick: /predictions has the pick, once it is
	// frozen. The ledger notes the forecast once for each session of a weekend, and /track-record scores these.
	// /forecast-history has them. With session_key: that race, or an empty list if it has started.
	Forecast Name = "forecast" // coming races: provisional chances

	// How a forecast moved through its week
	//
	// Every forecast of a race that the ledger noted, with its instant: one as the week begins, one after each session,
	// one with the grid, at most nine. A noted forecast never changes, and stays when the race is over, postponed or
	// cancelled. /forecast has the present one, /probabilities the chances of the frozen pick, and /track-record scores
	// noted forecasts by basis. Without session_key: the latest race with a noted forecast. A race without one is an
	// empty list, such as a race from before the ledger.
	ForecastHistory Name = "forecast-history" // noted forecasts of a week

	// Classifications
	//
	// The whole verified classification of the race and, if there was one, of the sprint: grid, laps, time or gap, the
	// status of a driver who was not classified, points, and the revisions of the result. Only verified results are
	// shown. Without parameters: the latest season with a result. With session_key alone: that round, of whichever
	// season; with both, both must match. No match is an empty list.
	Results Name = "results" // classifications of race and sprint, with revisions

	// Weekends, session by session
	//
	// Where and when each round is held: every session with its start and status, the time zone of the circuit, and
	// identifiers to join with other data. Parameters as of /results.
	Weekends Name = "weekends" // every session's start, the time zone

	// Changes of published rounds
	//
	// Every change of a published round, the newest first: races moved, postponed, cancelled, reinstated and added,
	// results revised, picks voided, and decisions about a championship; each with the old value, the new value, the
	// reason and the instant. Another number in the calendar alone is no change, because a race keeps its session_key.
	// Nor is the first verified result of a race, which /calendar and /results show. Poll it with If-None-Match to
	// learn which of your copies to replace. /changes/log has the changes of all seasons in pages.
	Changes Name = "changes" // moved races, revised results, voided picks

	// The log of all changes, in pages
	//
	// The changes of all seasons, oldest first, in pages of 200. Begin without page and follow next. The last page
	// grows at its end alone, so keep its address and how many of its changes you have read; a page with a next one
	// never changes again. Each change is that of /changes, without names and rows of results.
	ChangesLog Name = "changes/log" // all changes

	// A running race, lap by lap
	//
	// The race that runs, or ran last: order, gaps, stops and every driver's chances at the end of the leader's last
	// lap. It is provisional until the result is verified; then it shows the verified classification. After
	// valid_until the order is stale, and clients say so. With session_key: every observed lap of a past race,
	// published when the race is over; state none where there is no timeline. Poll it every five seconds with
	// If-None-Match.
	Live Name = "live" // the running race lap by lap

	// Practice, qualifying, grids, laps and stops
	//
	// The sessions of a weekend: practice, qualifying with the times of its parts, the starting grids with the places
	// that each driver lost between qualifying and grid, fastest laps and pit stops. Qualifying and grid appear as
	// soon as they are known, laps and stops with the verified result. /results has the classifications of race and
	// sprint. Without session_key: the latest round of which a session is known; a session key without sessions gives
	// an empty list.
	Sessions Name = "sessions" // practice, qualifying, grids, pit stops

	// The championship after every round
	//
	// Position, points and wins of every driver, or of every constructor, after each verified round: the table behind
	// a chart of the season. The last round has the figures of /standings. Decisions that no race shows, such as
	// points taken, stand in decisions.
	StandingsProgress Name = "standings-progress" // the championship after every round

	// Team-mates compared
	//
	// Every two drivers who took part for the same team: qualifying, races, points, and the median gap in qualifying.
	// Qualifying counts as soon as it is known, a race once it is verified.
	HeadToHead Name = "head-to-head" // team-mates in qualifying and race

	// Careers of drivers and constructors
	//
	// Starts, wins, podiums, poles, fastest laps, points and titles over all verified rounds, with the teams of a
	// driver or the drivers of a constructor, for those with a race in the season of the next race or the one before.
	// All others are in /former-careers. With year: everybody's figures of that season.
	Careers Name = "careers" // starts, wins, titles of present drivers or teams

	// Careers that have ended
	//
	// The careers of drivers or constructors without a race in the season of the next race and the one before, as in
	// /careers. A result never changes them: it changes with the season, by a correction of an old result, or when
	// somebody returns.
	FormerCareers Name = "former-careers" // of all others

	// Identifiers that never change
	//
	// The identifiers of drivers, constructors, circuits and Grands Prix in the other documents, with the names that
	// F1DB, Jolpica and OpenF1 have for the same, and the three-letter codes of drivers by season. An identifier never
	// changes, also if a source changes its own. A round is its session_key; at F1DB it is the year and the Grand
	// Prix, at Jolpica the year and the round, which /calendar and /weekends have. The session_key of OpenF1 is
	// another number. Names are not known of everything. Jolpica's names are known of 830 drivers, 25 teams, 78
	// circuits and 25 Grands Prix, and OpenF1's names are known of 29 drivers, 15 teams, 26 circuits and 25 Grands
	// Prix. Jolpica has the identifiers of Ergast; those of drivers are joined by surname and date of birth, those of
	// circuits by place. Of older teams they are mostly not known.
	Identifiers Name = "identifiers" // lasting identifiers, other sources' names

	// Circuits, their layouts, winners and lap records
	//
	// Every circuit of the championship: place, length, number of turns, direction, the layouts by year, verified
	// races, winners, and the fastest race lap on the latest layout. With year: the circuits of that season, with the
	// figures of that season alone. Turns and direction are F1DB's, and are absent for a layout that is newer than
	// gridcast. Lap records are known of races whose fastest laps the source has.
	Circuits Name = "circuits" // layouts, winners, lap records

	// A whole season as one file
	//
	// A zip of the documents of one season, as NDJSON and as CSV, with the JSON Schemas, a list of the columns, the
	// licence and the credit line. A season has a new file some seconds after its documents have changed, and only
	// then; /status lists the hash of each. Facts from sources with non-commercial terms are left out, and the README
	// in it says which. Without the season are the documents that are of no season or are provisional: /drivers,
	// /next-race, /forecast, /live with its timelines, /identifiers, /former-careers and /changes/log. Ranges are not
	// offered.
	Bulk Name = "bulk"
)

// Endpoint is one row of the table.
type Endpoint struct {
	Name     Name
	Path     string  // after BasePath: "/" and the name
	Params   []Param // in documentation order
	Computed bool    // the edge completes the body for each request
	// File marks an endpoint whose body is a file. The builder makes the file from published
	// documents, and the edge sends it from disk, so no version has documents of its variants.
	File bool

	// Derived marks an endpoint whose bodies need more than the facts of a version. A job makes them after
	// the version, and they come with a later one.
	Derived bool

	// Additive marks an endpoint that came after the first six: a version that was published
	// before, or before its figures were ready, lacks some or all of its variants.
	Additive bool

	// Passing marks an endpoint whose bodies change with every lap of a race. Caches keep them for seconds, and
	// nobody counts a version that changes them alone.
	Passing bool

	// Past marks an endpoint that looks back: a request without a season gets the latest season with a row. Other
	// endpoints of one season look ahead: they show the season of the next race.
	Past bool

	// The shapes of its variants' paths. No variant has two of them.
	patterns []pattern
}

// Param is a query parameter that an endpoint understands. All parameters are optional.
type Param struct {
	Name    string
	Pattern string   // the form of a value, as a regular expression
	Values  []string // the allowed values, the default first; nil if Pattern is complete
}

// The parameter names of the contract.
const (
	typeParam       = "type"
	yearParam       = "year"
	sessionKeyParam = "session_key"
	pageParam       = "page"
)

// The values of the parameter type.
const (
	DriversType      = "drivers"
	ConstructorsType = "constructors"
	CircuitsType     = "circuits"
	GrandsPrixType   = "grands-prix"
)

var (
	championship = Param{typeParam, `^(drivers|constructors)$`, []string{DriversType, ConstructorsType}}
	identified   = Param{typeParam, `^(drivers|constructors|circuits|grands-prix)$`, []string{DriversType, ConstructorsType, CircuitsType, GrandsPrixType}}
	season       = Param{Name: yearParam, Pattern: `^[0-9]{4}$`}
	sessionKey   = Param{Name: sessionKeyParam, Pattern: `^[1-9][0-9]{0,15}$`}
	page         = Param{Name: pageParam, Pattern: `^[1-9][0-9]{0,5}$`}
)

// Endpoints is the table, in documentation order. It must not be changed.
//
// Each row ends with the patterns of its variants' paths, without the name at their beginning. A segment in braces is a
// parameter. With "=" it stands for the one value that no request spells: {year=all} for all
// seasons, {session_key=none} for every session key without a body of its own, {page=none} for every page to come. An endpoint
// with no path without a season serves the default season of the version where a request names none: see Known.Default.
var Endpoints = []Endpoint{
	endpoint(Endpoint{Name: Standings, Params: []Param{championship, season}, Past: true}, "/{type}/{year}"),
	endpoint(Endpoint{Name: Calendar, Params: []Param{season}}, "/{year}"),
	endpoint(Endpoint{Name: Drivers}, ""),
	endpoint(Endpoint{Name: Predictions, Params: []Param{season, sessionKey}, Past: true}, "/{year}", "/session/{session_key}", "/{session_key=none}"),
	endpoint(Endpoint{Name: NextRace, Computed: true}, ""),
	endpoint(Endpoint{Name: Accuracy, Params: []Param{season}}, "/{year}", "/{year=all}"),
	endpoint(Endpoint{Name: Probabilities, Params: []Param{season, sessionKey}, Additive: true, Past: true}, "/{year}", "/session/{session_key}", "/{session_key=none}"),
	endpoint(Endpoint{Name: TrackRecord, Params: []Param{season}, Additive: true, Derived: true}, "/{year}", "/{year=all}"),
	endpoint(Endpoint{Name: TitleOdds, Params: []Param{season}, Additive: true, Derived: true, Past: true}, "/{year}"),
	endpoint(Endpoint{Name: Forecast, Params: []Param{sessionKey}, Additive: true, Derived: true}, "", "/session/{session_key}", "/{session_key=none}"),
	endpoint(Endpoint{Name: ForecastHistory, Params: []Param{sessionKey}, Additive: true}, "", "/session/{session_key}", "/{session_key=none}"),
	endpoint(Endpoint{Name: Results, Params: []Param{season, sessionKey}, Additive: true, Past: true}, "/{year}", "/session/{session_key}", "/{session_key=none}"),
	endpoint(Endpoint{Name: Weekends, Params: []Param{season, sessionKey}, Additive: true}, "/{year}", "/session/{session_key}", "/{session_key=none}"),
	endpoint(Endpoint{Name: Changes, Params: []Param{season}, Additive: true}, "/{year}", "/{year=all}"),
	endpoint(Endpoint{Name: ChangesLog, Params: []Param{page}, Additive: true}, "/{page}", "/{page=none}"),
	endpoint(Endpoint{Name: Live, Params: []Param{sessionKey}, Additive: true, Derived: true, Passing: true}, "", "/session/{session_key}", "/{session_key=none}"),
	endpoint(Endpoint{Name: Sessions, Params: []Param{sessionKey}, Additive: true}, "", "/session/{session_key}", "/{session_key=none}"),
	endpoint(Endpoint{Name: StandingsProgress, Params: []Param{championship, season}, Additive: true, Past: true}, "/{type}/{year}"),
	endpoint(Endpoint{Name: HeadToHead, Params: []Param{season}, Additive: true, Past: true}, "/{year}"),
	endpoint(Endpoint{Name: Careers, Params: []Param{championship, season}, Additive: true}, "/{type}/{year}", "/{type}/{year=all}"),
	endpoint(Endpoint{Name: FormerCareers, Params: []Param{championship}, Additive: true}, "/{type}"),
	endpoint(Endpoint{Name: Identifiers, Params: []Param{identified}, Additive: true}, "/{type}"),
	endpoint(Endpoint{Name: Circuits, Params: []Param{season}, Additive: true}, "/{year}", "/{year=all}"),
	endpoint(Endpoint{Name: Bulk, Params: []Param{season}, Additive: true, File: true}, "/{year}"),
}

// Passing reports whether a stored path is that of a passing endpoint.
func Passing(path string) bool {
	name, _, _ := strings.Cut(path, "/")
	i, ok := Lookup("/" + name)
	return ok && Endpoints[i].Passing
}

// Derived reports whether the endpoint of that name is marked so.
func (n Name) Derived() bool {
	i, ok := Lookup("/" + string(n))
	return ok && Endpoints[i].Derived
}

// Lookup returns the index in Endpoints of the endpoint with a path: the bytes after BasePath.
// It accepts neither a trailing slash nor another spelling, and does not allocate. The edge removes one
// trailing slash before it calls Lookup.
func Lookup[T string | []byte](path T) (index int, ok bool) {
	for i := range Endpoints {
		if string(path) == Endpoints[i].Path {
			return i, true
		}
	}
	return 0, false
}

// Feed is a file of a published version for programs that send no key: calendars and feed readers.
// It is stored beside the variants and served unchanged, at the root.
type Feed struct {
	Path        string // of the request
	ContentType string
	Stored      string // the name under which its body is stored; no variant has that name
}

// Feeds lists the feeds, in documentation order. It must not be changed. A version from before a
// feed existed lacks it.
var Feeds = []Feed{
	{Path: "/calendar.ics", ContentType: "text/calendar; charset=utf-8", Stored: "feeds/calendar.ics"},
	{Path: "/changes.atom", ContentType: "application/atom+xml; charset=utf-8", Stored: "feeds/changes.atom"},
}

// Portraits is the folder of the drawn portraits, in the store and, below the root, in requests. An edge serves them
// without a key, like the feeds.
const Portraits = "portraits/"

// Portrait returns the name under which a driver's drawn portrait is stored. It is the path of the request without the
// first slash.
func Portrait(driverID string) string { return Portraits + driverID + ".svg" }
