package assemble_test

import (
	order "cmp"
	"errors"
	"fmt"
	"maps"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"gridcast/builder/assemble"
	"gridcast/builder/season"
	"gridcast/deploy/golden"
	"gridcast/deploy/must"
)

// kindNames are the words of testdata/judgement.txt for the kinds of documents.
var kindNames = map[string]assemble.Kind{
	"check-only": assemble.CheckOnly, "sparse": assemble.Sparse, "full": assemble.Full, "manual": assemble.Manual,
}

// situation is one paragraph of testdata/judgement.txt, which explains the notation.
type situation struct {
	title  string
	setup  []string            // its lines but for the expected outcomes
	want   map[string][]string // outcomes by kind
	result map[string][]string // facts afterwards, by kind
}

// TestJudgement judges every situation of testdata/judgement.txt with a document of each kind. No input changes.
// testdata/reasons.txt has the reasons and the changed values that an operator reads, of the first kind that causes any.
func TestJudgement(t *testing.T) {
	texts := make(map[string]bool)
	for _, s := range situations(t) {
		for _, kind := range slices.Sorted(maps.Keys(s.want)) {
			t.Run(s.title+"/"+kind, func(t *testing.T) {
				if faults := s.faults(t, kind); faults != "" {
					t.Error(faults)
				}
			})
		}
		for _, kind := range []string{"full", "sparse", "manual", "check-only"} {
			if more := s.texts(t, kind); len(more) > 0 {
				for _, text := range more {
					texts[text] = true
				}
				break
			}
		}
	}
	golden.File(t, "testdata/reasons.txt", strings.Join(slices.Sorted(maps.Keys(texts)), "\n")+"\n")
}

// TestPermissions: the table of permissions has no entry without an effect. A situation comes out
// differently if a kind gets a permission or loses it.
func TestPermissions(t *testing.T) {
	if got := len(assemble.Permissions); got != assemble.PermissionCount {
		t.Fatalf("the test knows %d permissions, the table has %d", got, assemble.PermissionCount)
	}
	all := situations(t)
	for kindName, kind := range kindNames {
		for _, permission := range slices.Sorted(maps.Keys(assemble.Permissions)) {
			assemble.Toggle(kind, permission)
			noticed := slices.ContainsFunc(all, func(s situation) bool {
				for judged := range s.want {
					if (judged == kindName || s.involves(kindName)) && s.faults(t, judged) != "" {
						return true
					}
				}
				return false
			})
			assemble.Toggle(kind, permission)
			if !noticed && !slices.Contains(withoutEffect[kindName], permission) {
				t.Errorf("%s documents: no situation depends on the permission %s", kindName, permission)
			}
		}
	}
}

// withoutEffect holds the permissions that a kind cannot use, because it lacks another one.
var withoutEffect = map[string][]string{
	"check-only": {
		"namesAll", "movesHeldStart", "yields", "confirmable", "keepsRounds",
		"derivesEntries",
		"addsEngines", // it changes IDs alone: see TestIDs
	},
}

// involves reports whether an earlier or a later document has a kind.
func (s *situation) involves(kind string) bool {
	return slices.ContainsFunc(s.setup, func(line string) bool {
		return strings.HasPrefix(line, "before "+kind) || strings.HasPrefix(line, "after "+kind)
	})
}

func situations(t *testing.T) []situation {
	t.Helper()
	data := must.Get(os.ReadFile("testdata/judgement.txt"))(t)
	var all []situation
	for line := range strings.Lines(string(data)) {
		line, _, _ = strings.Cut(strings.TrimSpace(line), "# ")
		line = strings.TrimSpace(line)
		if title, ok := strings.CutPrefix(line, "== "); ok {
			all = append(all, situation{title: title, want: make(map[string][]string), result: make(map[string][]string)})
			continue
		}
		if line == "" || strings.HasPrefix(line, "#") || len(all) == 0 {
			continue
		}
		s := &all[len(all)-1]
		kinds, outcome, found := strings.Cut(line, ": ")
		into := s.want
		if rest, ok := strings.CutPrefix(kinds, "facts "); ok {
			kinds, into = rest, s.result
		}
		if kinds == "all" {
			kinds = "check-only, sparse, full, manual"
		}
		list := strings.Split(kinds, ", ")
		if _, ok := kindNames[list[0]]; !found || !ok {
			s.setup = append(s.setup, line)
			continue
		}
		for _, kind := range list {
			if _, ok := kindNames[kind]; !ok {
				t.Fatalf("%s: %q is no kind of document", s.title, kind)
			}
			if outcome != "nothing" {
				into[kind] = append(into[kind], strings.Split(outcome, "; ")...)
			} else {
				into[kind] = nil
			}
		}
	}
	return all
}

// faults judges the situation with a document of a kind and returns how the result differs from the
// expected one.
func (s *situation) faults(t *testing.T, kind string) string {
	t.Helper()
	w := s.build(t, kind)
	out, err := w.assemble(assemble.Assemble)
	if got := outcomes(&out, err); !slices.Equal(s.want[kind], got) {
		return "outcomes (-want +got):\n" + cmp.Diff(s.want[kind], got)
	}
	for _, fact := range s.result[kind] {
		if fault := w.check(t, &out.Facts, fact); fault != "" {
			return fault
		}
	}
	return ""
}

// texts judges the situation with a document of a kind and returns the reasons and the changed values.
func (s *situation) texts(t *testing.T, kind string) (all []string) {
	t.Helper()
	w := s.build(t, kind)
	before := fmt.Sprintf("%+v", w.in.Documents)
	out, err := w.assemble(assemble.Assemble)
	must.Equal(t, s.title+": the documents after Assemble", before, fmt.Sprintf("%+v", w.in.Documents))
	if err != nil {
		return []string{err.Error()}
	}
	for _, p := range slices.Concat(out.Applied, out.Held, out.Disputed, out.Unlicensed) {
		must.Hold(t, (p.Block == assemble.Start && !p.New) == !p.Was.IsZero(), "%s: the former start of %+v", s.title, p)
		must.Hold(t, !p.Accepted || len(p.Refused) == 0, "%s: accepted and refused: %+v", s.title, p)
		for _, r := range p.Refused {
			all = append(all, string(r.Gate)+": "+r.Reason)
		}
		if p.Accepted {
			all = append(all, "accepted: "+p.Round()+" "+string(p.Block))
		}
		for _, l := range p.Lines {
			if l.Was != "" && l.Is != "" {
				all = append(all, fmt.Sprintf("%s: %s -> %s", l.About, l.Was, l.Is))
			}
		}
	}
	for _, d := range out.Doubted {
		all = append(all, d.Lines...)
	}
	for _, l := range out.Lost {
		all = append(all, l.Text)
	}
	return all
}

// outcomes describes the output of Assemble in the words of testdata/judgement.txt.
func outcomes(out *assemble.Output, err error) []string {
	var withheld *assemble.WithheldError
	switch {
	case errors.As(err, &withheld):
		return []string{fmt.Sprintf("held season (%s)", withheld.Proposal.Refused[0].Gate)}
	case err != nil:
		return []string{"invalid"}
	}
	var all []string
	for _, list := range []struct {
		verdict   string
		proposals []assemble.Proposal
	}{{"applied", out.Applied}, {"held", out.Held}, {"disputed", out.Disputed}, {"unlicensed", out.Unlicensed}} {
		for _, p := range list.proposals {
			text := fmt.Sprintf("%s %s %s", list.verdict, order.Or(string(p.GrandPrix), string(p.Driver)), p.Block)
			if p.Source != "source" {
				text += " of " + p.Source
			}
			var gates []string
			for _, r := range p.Refused {
				if !slices.Contains(gates, string(r.Gate)) {
					gates = append(gates, string(r.Gate))
				}
			}
			if len(gates) > 0 {
				text += " (" + strings.Join(gates, ", ") + ")"
			}
			all = append(all, text)
		}
	}
	for _, c := range out.Confirmed {
		all = append(all, fmt.Sprintf("confirmed %s %s by %s", c.GrandPrix, c.Block, c.Source))
	}
	for _, m := range out.Missing {
		all = append(all, "missing "+string(m.GrandPrix))
	}
	for _, r := range out.Renames {
		all = append(all, fmt.Sprintf("renamed %s to %s", r.From, r.To))
	}
	for _, d := range out.Doubted {
		all = append(all, slices.Repeat([]string{"doubt"}, len(d.Lines))...)
	}
	for range out.Lost {
		all = append(all, "lost")
	}
	for _, c := range out.Recoded {
		all = append(all, fmt.Sprintf("recoded %s of %d from %s to %s", c.Driver, c.Year, c.From, c.To))
	}
	return all
}

// world is the season of a situation: eight rounds, on Sundays at 13:00 UTC from 3 March 2024.
type world struct {
	in     assemble.Input
	ledger map[season.GrandPrixID]assemble.Decided
	accept []string // Grand Prix and block of held proposals, or a WithheldError's season
	refuse []string // Grand Prix or driver, and block, of changes with an event that the ledger refuses
}

var grandPrix = []season.GrandPrixID{"bahrain", "jeddah", "melbourne", "suzuka", "miami", "monaco", "montreal", "spielberg"}

// teams of the drivers of the world.
var teams = map[season.DriverID]season.TeamID{"ann": "rosso", "bob": "rosso", "bobby": "rosso", "cid": "verde", "dan": "verde", "eve": "blu", "fay": "blu"}

func emptyFacts() season.Facts {
	f := season.Facts{
		Drivers: make(map[season.DriverID]season.Driver), Teams: make(map[season.TeamID]season.Team),
		Engines: make(map[season.EngineID]season.Engine), Circuits: make(map[season.CircuitID]season.Circuit),
	}
	for driver, team := range teams {
		f.Drivers[driver] = season.Driver{ID: driver, Name: string(driver)}
		f.Teams[team] = season.Team{ID: team, Name: string(team)}
	}
	f.Engines["v8"] = season.Engine{ID: "v8", Name: "V8"}
	f.Circuits["street"] = season.Circuit{ID: "street", Name: "street"}
	for _, gp := range grandPrix {
		f.Circuits[season.CircuitID(gp)] = season.Circuit{ID: season.CircuitID(gp), Name: string(gp)}
	}
	return f
}

// calendar returns the facts of a season in which nothing has been held.
func calendar() season.Facts {
	f := emptyFacts()
	s := season.Season{Year: 2024}
	for i, gp := range grandPrix {
		s.Rounds = append(s.Rounds, planned(gp, i))
	}
	f.Seasons = []season.Season{s}
	return f
}

func planned(gp season.GrandPrixID, week int) season.Round {
	day := time.Date(2024, 3, 3+7*week, 0, 0, 0, 0, time.UTC)
	return season.Round{Number: week + 1, GrandPrix: gp, Name: string(gp), Circuit: season.CircuitID(gp), Date: day, Start: day.Add(13 * time.Hour)}
}

// build makes the input of a situation in which the judged document has a kind.
func (s *situation) build(t *testing.T, kind string) *world {
	t.Helper()
	w := &world{ledger: make(map[season.GrandPrixID]assemble.Decided)}
	w.in = assemble.Input{
		Current: calendar(), Accepted: make(map[string]bool), Now: instant(t, "03-02 12:00"),
		Decided: func(_ int, gp season.GrandPrixID) assemble.Decided { return w.ledger[gp] },
		Since:   2025, // TestInvariants has weekends with all their tables
	}
	w.in.Current.Headshots = season.Headshots{Template: "https://portraits/{driver}", Drivers: []season.DriverID{"cid"}}
	document := func(source, kind string) *assemble.Document {
		for i := range w.in.Documents {
			if w.in.Documents[i].Source == source {
				return &w.in.Documents[i]
			}
		}
		d := assemble.Document{
			Source: source, Revision: "r1", From: 2024, To: 2024, Kind: kindNames[kind], Facts: calendar(), Forced: make(map[assemble.BlockID]bool),
		}
		if kind == "manual" {
			d.Facts = emptyFacts()
			d.Facts.Seasons = []season.Season{{Year: 2024}}
		}
		w.in.Documents = append(w.in.Documents, d)
		return &w.in.Documents[len(w.in.Documents)-1]
	}
	for _, line := range s.setup {
		word := strings.Fields(line)
		switch word[0] {
		case "now":
			w.in.Now = instant(t, word[1]+" "+word[2])
		case "since":
			w.in.Since = number(t, word[1])
		case "ours":
			edit(t, &w.in.Current, word[1:])
		case "before", "after":
			d := document(word[0], word[1])
			edit(t, &d.Facts, word[2:])
		case "assumed":
			d := document(word[0], "manual")
			d.Assumed = true
			edit(t, &d.Facts, word[1:])
		case "says":
			d := document("source", kind)
			switch word[1] {
			case "covers":
				d.From, d.To = number(t, word[2]), number(t, word[2])
			case "again":
				d.Earlier = map[int]bool{2024: true}
			case "committed":
				d.Committed, d.Latest = instant(t, word[2]+" "+word[3]), instant(t, word[5]+" "+word[6])
			case "unknown":
				d.Sheets = append(d.Sheets, season.Sheet{Year: 2024, GrandPrix: season.GrandPrixID(word[2]), Section: season.ResultSection, Unknown: []string{"a word"}})
			case "no-season":
				d.Facts.Seasons = nil
			case "cars", "sprint-cars":
				sheet := season.Sheet{Year: 2024, GrandPrix: season.GrandPrixID(word[2]), Section: season.ResultSection}
				if word[1] == "sprint-cars" {
					sheet.Section = season.Section(season.Sprint)
				}
				for _, row := range list(t, word[3]) {
					sheet.Rows = append(sheet.Rows, season.SheetRow{Driver: row.driver, Number: row.car})
				}
				d.Sheets = append(d.Sheets, sheet)
			default:
				edit(t, &d.Facts, word[1:])
			}
		case "force":
			document("source", kind).Forced[assemble.BlockID{Year: 2024, GrandPrix: season.GrandPrixID(word[1]), Block: assemble.Block(word[2])}] = true
		case "accept":
			w.accept = append(w.accept, strings.Join(word[1:], " "))
		case "refuse":
			w.refuse = append(w.refuse, strings.Join(word[1:], " "))
		case "alias":
			if word[1] == "driver" {
				w.in.Aliases = map[season.DriverID]season.DriverID{season.DriverID(word[2]): season.DriverID(word[3])}
			} else {
				w.in.Named = append(w.in.Named, assemble.Alias{Kind: assemble.AliasKind(word[1]), From: word[2], To: word[3]})
			}
		case "ledger":
			w.decide(t, season.GrandPrixID(word[1]), word[2:])
		case "release":
			r := assemble.Release{BlockID: assemble.BlockID{Year: 2024, GrandPrix: season.GrandPrixID(word[1]), Block: assemble.Block(word[2])}}
			for _, field := range word[3:] {
				into, text := &r.Entered, field
				if rest, ok := strings.CutPrefix(field, "before:"); ok {
					into, text = &r.Before, rest
				}
				set(t, into, text)
			}
			w.in.Released = append(w.in.Released, r)
		default:
			t.Fatalf("%s: %q: no such line", s.title, line)
		}
	}
	return w
}

// assemble runs a function such as Assemble. Proposals to be accepted are held in a first run, and changes that the ledger
// refuses are applied in a run before the last one.
func (w *world) assemble(run func(assemble.Input) (assemble.Output, error)) (assemble.Output, error) {
	out, err := w.accepted(run)
	if len(w.refuse) == 0 {
		return out, err
	}
	w.in.Refused = make(map[string]string)
	for _, p := range out.Applied {
		if slices.Contains(w.refuse, fmt.Sprintf("%s %s", order.Or(string(p.GrandPrix), string(p.Driver)), p.Block)) {
			w.in.Refused[p.ID] = "a rule of the ledger"
		}
	}
	for _, r := range out.Renames {
		if slices.Contains(w.refuse, string(r.From)+" names") {
			w.in.Refused[r.ID()] = "a rule of the ledger"
		}
	}
	return run(w.in)
}

func (w *world) accepted(run func(assemble.Input) (assemble.Output, error)) (assemble.Output, error) {
	out, err := run(w.in)
	if len(w.accept) == 0 {
		return out, err
	}
	heldProposals := out.Held
	if withheld := (*assemble.WithheldError)(nil); errors.As(err, &withheld) {
		heldProposals = []assemble.Proposal{withheld.Proposal}
	}
	for _, p := range heldProposals {
		if slices.Contains(w.accept, strings.TrimSpace(fmt.Sprintf("%s %s", order.Or(string(p.GrandPrix), string(p.Driver)), p.Block))) {
			w.in.Accepted[p.ID] = true
		}
	}
	return run(w.in)
}

// decide sets the ledger's record of a round.
func (w *world) decide(t *testing.T, gp season.GrandPrixID, fields []string) {
	t.Helper()
	d := w.ledger[gp]
	for _, field := range fields {
		name, value, _ := strings.Cut(field, "=")
		switch name {
		case "start":
			d.Start = instant(t, strings.ReplaceAll(value, "T", " "))
		case "by-person":
			d.StartHeld = true
		case "postponed":
			d.Postponed = true
		case "points", "listed", "team-points":
			who, points, _ := strings.Cut(value, ":")
			who, engine, _ := strings.Cut(who, "*")
			d.Championship = append(d.Championship, assemble.Adjustment{Constructors: name == "team-points", Competitor: who, Engine: season.EngineID(engine), Points: float64(number(t, points)), Listed: name == "listed"})
		case "verified":
			for _, driver := range strings.Split(value, ",") {
				d.Verified = append(d.Verified, season.DriverID(driver))
			}
		default:
			t.Fatalf("ledger %s: no such field", field)
		}
	}
	w.ledger[gp] = d
}

// edit changes facts by the words of a line: "bahrain result=ann,bob", "without bahrain",
// "new imola", "name ann Annie", "colour rosso #FF0000".
func edit(t *testing.T, f *season.Facts, word []string) {
	t.Helper()
	if len(word) == 0 {
		return
	}
	s := &f.Seasons[0]
	switch word[0] {
	case "nothing":
	case "without":
		s.Rounds = slices.DeleteFunc(slices.Clone(s.Rounds), func(r season.Round) bool { return slices.Contains(word[1:], string(r.GrandPrix)) })
	case "new":
		r := planned(season.GrandPrixID(word[1]), 8)
		r.Circuit = "street"
		for _, field := range word[2:] {
			set(t, &r, field)
		}
		s.Rounds = append(slices.Clone(s.Rounds), r)
	case "colour":
		s.Colours = maps.Clone(s.Colours)
		if s.Colours == nil {
			s.Colours = make(map[season.TeamID]string)
		}
		s.Colours[season.TeamID(word[1])] = word[2]
	case "name":
		f.Drivers[season.DriverID(word[1])] = season.Driver{ID: season.DriverID(word[1]), Name: word[2]}
	case "team":
		f.Teams[season.TeamID(word[1])] = season.Team{ID: season.TeamID(word[1]), Name: word[2]}
	case "engine":
		f.Engines[season.EngineID(word[1])] = season.Engine{ID: season.EngineID(word[1]), Name: word[2]}
	case "circuit":
		f.Circuits[season.CircuitID(word[1])] = season.Circuit{ID: season.CircuitID(word[1]), Name: word[2]}
	case "former":
		old, year := planned(grandPrix[0], 0), number(t, word[1])
		old.Date, old.Start = old.Date.AddDate(year-2024, 0, 0), old.Start.AddDate(year-2024, 0, 0)
		set(t, &old, "entries="+word[2])
		f.Seasons = append(f.Seasons, season.Season{Year: year, Rounds: []season.Round{old}})
	case "code":
		d := f.Drivers[season.DriverID(word[1])]
		d.Abbreviation = word[2]
		f.Drivers[season.DriverID(word[1])] = d
	case "forget":
		delete(f.Drivers, season.DriverID(word[1]))
	default:
		gp := season.GrandPrixID(word[0])
		at := slices.IndexFunc(s.Rounds, func(r season.Round) bool { return r.GrandPrix == gp })
		if at < 0 {
			at = len(s.Rounds)
			s.Rounds = append(s.Rounds, season.Round{GrandPrix: gp})
		}
		for _, field := range word[1:] {
			set(t, &s.Rounds[at], field)
		}
	}
}

// set sets a field of a round: "result=ann,bob@0!DSQ", "start=03-03T15:00", "hour=unknown".
func set(t *testing.T, r *season.Round, field string) {
	t.Helper()
	name, value, _ := strings.Cut(field, "=")
	switch name {
	case "number":
		r.Number = number(t, value)
	case "circuit":
		r.Circuit = season.CircuitID(value)
	case "street":
		r.Street = value == "yes"
	case "has-sprint":
		r.Sprint = value == "yes"
	case "start":
		r.Start = instant(t, strings.ReplaceAll(value, "T", " "))
		r.Date = r.Start.Truncate(24 * time.Hour)
	case "hour":
		r.Start = time.Time{}
	case "calendar":
		r.Number, r.Name, r.Circuit = 9, string(r.GrandPrix), season.CircuitID(value)
	case "qualifying-at", "sprint-at", "sprint-qualifying-at":
		kind := map[string]season.SessionKind{
			"qualifying-at": season.Qualifying, "sprint-at": season.Sprint, "sprint-qualifying-at": season.SprintQualifying,
		}[name]
		at := instant(t, strings.ReplaceAll(value, "T", " "))
		r.Sessions = append(slices.Clone(r.Sessions), season.Session{Kind: kind, Date: at.Truncate(24 * time.Hour), Start: at})
	case "sprint-day":
		at := instant(t, value+" 00:00")
		r.Sessions = append(slices.Clone(r.Sessions), season.Session{Kind: season.Sprint, Date: at})
	case "practice":
		for _, row := range list(t, value) {
			r.Practice[0] = append(r.Practice[0], season.TimedLap{Driver: row.driver, Team: row.team, Time: row.time})
		}
	case "entries":
		r.Entries = nil
		for _, row := range list(t, value) {
			r.Entries = append(r.Entries, season.Entry{Driver: row.driver, Team: row.team, Engine: row.engine, Number: row.car})
		}
	case "qualifying":
		r.Qualifying = qualifying(t, value)
	case "sprint-qualifying":
		r.SprintQualifying = qualifying(t, value)
	case "grid":
		r.Grid = grid(t, value)
	case "sprint-grid":
		r.SprintGrid = grid(t, value)
	case "result":
		r.Results = result(t, value, 25, 18, 15, 12, 10, 8)
	case "result-2014":
		r.Results = result(t, value, 50, 36, 30, 24)
	case "sprint":
		r.SprintResults = result(t, value, 8, 7, 6, 5, 4, 3)
	case "standings":
		r.DriverStandings = nil
		for i, row := range list(t, value) {
			r.DriverStandings = append(r.DriverStandings, season.DriverStanding{Driver: row.driver, Position: i + 1, Points: row.points})
		}
	case "team-standings":
		r.TeamStandings = nil
		for i, row := range list(t, value) {
			r.TeamStandings = append(r.TeamStandings, season.TeamStanding{Team: season.TeamID(row.driver), Engine: row.engine, Position: i + 1, Points: row.points})
		}
	default:
		t.Fatalf("%q: no such field of a round", field)
	}
}

// listed is a driver of a list such as "ann,bob@3:12/80s!DSQ*v8#44".
type listed struct {
	driver   season.DriverID
	team     season.TeamID
	engine   season.EngineID
	position int
	points   float64
	time     time.Duration
	outcome  season.Outcome
	car      int
	explicit string // the marks of the fields that the list gives
}

// marks begin the fields of a row of a list.
const marks = "@:/!*#+"

func list(t *testing.T, text string) []listed {
	t.Helper()
	var rows []listed
	for i, item := range strings.Split(text, ",") {
		row := listed{position: i + 1, car: i + 1}
		end := strings.IndexAny(item+"@", marks)
		row.driver = season.DriverID(item[:end])
		row.team = teams[row.driver]
		for rest := item[end:]; rest != ""; {
			mark := rest[0]
			value := rest[1:]
			rest = ""
			if at := strings.IndexAny(value, marks); at >= 0 {
				value, rest = value[:at], value[at:]
			}
			row.explicit += string(mark)
			switch mark {
			case '@':
				row.position = number(t, value)
			case ':':
				row.points = float64(number(t, value))
			case '/':
				row.time = time.Duration(number(t, value)) * time.Second
			case '!':
				row.outcome, row.position = season.Outcome(value), 0
			case '*':
				row.engine = season.EngineID(value)
			case '#':
				row.car = number(t, value)
			case '+':
				row.team = season.TeamID(value)
			}
		}
		rows = append(rows, row)
	}
	return rows
}

func qualifying(t *testing.T, text string) (rows []season.QualifyingRow) {
	t.Helper()
	for _, row := range list(t, text) {
		rows = append(rows, season.QualifyingRow{Driver: row.driver, Team: row.team, Position: row.position, Time: row.time})
	}
	return rows
}

func grid(t *testing.T, text string) (rows []season.GridSlot) {
	t.Helper()
	for _, row := range list(t, text) {
		rows = append(rows, season.GridSlot{Driver: row.driver, Team: row.team, Position: row.position})
	}
	return rows
}

func result(t *testing.T, text string, points ...float64) (rows []season.Result) {
	t.Helper()
	for _, row := range list(t, text) {
		if !strings.Contains(row.explicit, ":") && row.position > 0 {
			row.points = points[row.position-1]
		}
		rows = append(rows, season.Result{
			Driver: row.driver, Team: row.team, Engine: row.engine, Position: row.position, Outcome: row.outcome, Points: row.points, Time: row.time,
		})
	}
	return rows
}

func number(t *testing.T, text string) int {
	t.Helper()
	return must.Get(strconv.Atoi(text))(t)
}

// instant reads a day and an hour of 2024.
func instant(t *testing.T, text string) time.Time {
	t.Helper()
	return must.Get(time.Parse("2006-01-02 15:04", "2024-"+text))(t)
}

// check returns how facts differ from the words of a line: "bahrain result=ann,bob", "no imola",
// "name ann Annie", "colour rosso #FF0000".
func (w *world) check(t *testing.T, f *season.Facts, text string) string {
	t.Helper()
	word := strings.Fields(text)
	var got string
	switch word[0] {
	case "no":
		if _, ok := f.Round(2024, season.GrandPrixID(word[1])); ok {
			return "facts have the round " + word[1]
		}
		return ""
	case "order":
		var all []string
		for _, r := range f.Seasons[0].Rounds {
			all = append(all, string(r.GrandPrix))
		}
		if got = strings.Join(all, ","); !strings.HasSuffix(got, word[1]) {
			return "the rounds are " + got
		}
		return ""
	case "name":
		got = f.Drivers[season.DriverID(word[1])].Name
	case "team":
		got = f.Teams[season.TeamID(word[1])].Name
	case "engine":
		got = f.Engines[season.EngineID(word[1])].Name
	case "circuit":
		got = f.Circuits[season.CircuitID(word[1])].Name
	case "portraits":
		got = fmt.Sprint(f.Headshots.Drivers)
	case "colour":
		got = f.Seasons[0].Colours[season.TeamID(word[1])]
	default:
		r, ok := f.Round(2024, season.GrandPrixID(word[0]))
		if !ok {
			return "facts have no round " + word[0]
		}
		want := *r
		for _, field := range word[1:] {
			set(t, &want, field)
		}
		if !reflect.DeepEqual(&want, r) {
			return text + " (-want +got):\n" + cmp.Diff(&want, r)
		}
		return ""
	}
	if got != word[2] {
		return fmt.Sprintf("the %s of %s is %q, want %q", word[0], word[1], got, word[2])
	}
	return ""
}
