package calendar

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	ics "github.com/arran4/golang-ical"

	"gridcast/builder/names"
	"gridcast/builder/season"
)

// event is an event of an iCalendar file.
type event struct {
	*ics.VEvent
	title     string
	cancelled bool
	date      time.Time
	start     time.Time // zero: the hour is not known
	gp        season.GrandPrixID
	by        string             // the word that decided on the Grand Prix
	kind      season.SessionKind // empty: the race
	claim     claim              // of the race
	note      string             // the detail that is lost
}

func (e *event) text(p ics.ComponentProperty) string {
	if property := e.GetProperty(p); property != nil {
		return property.Value
	}
	return ""
}

func (e *event) String() string {
	at := ", on " + e.date.Format(time.DateOnly)
	switch {
	case e.date.IsZero():
		at = ""
	case !e.start.IsZero():
		at = ", at " + e.start.Format("2006-01-02 15:04 UTC")
	}
	return fmt.Sprintf("event %q%s", e.title, at)
}

// claim is the strength with which an event claims to be the race.
type claim int

const (
	noClaim   claim = iota
	sponsored       // its title has further words before the Grand Prix, such as a sponsor
	alone           // its title is the Grand Prix alone
	race            // its title has the word race
)

// readEvents reads an iCalendar file: an event for each session, or for the race alone.
func readEvents(file []byte, l *lexicon) (Reading, error) {
	var read Reading
	parsed, err := ics.ParseCalendar(strings.NewReader(read.sound(file)))
	if err != nil {
		return Reading{}, fmt.Errorf("read the calendar: %w", err)
	}
	zones := zonesOf(parsed)
	type edition struct {
		gp   season.GrandPrixID
		year int
	}
	weekends := make(map[edition][]*event)
	var order []edition
	for _, e := range latest(parsed.Events(), &read) {
		if why := e.recognise(l, zones); why != "" {
			read.leave(e, why)
			continue
		}
		id := edition{e.gp, e.date.Year()}
		if weekends[id] == nil {
			order = append(order, id)
		}
		weekends[id] = append(weekends[id], e)
	}
	var faults []error
	for _, id := range order {
		known, held := l.season(id.year)
		var round *season.Round
		if held {
			round, _ = known.Round(id.gp)
		}
		if err := read.weekend(weekends[id], round, l.editions[id.gp]); err != nil {
			faults = append(faults, err)
		}
	}
	if len(read.Rounds) == 0 && len(faults) == 0 {
		faults = append(faults, fmt.Errorf("no event of the calendar is the race or a session of a known Grand Prix: %s",
			cmp.Or(strings.Join(read.Left, "; "), "it has no events")))
	}
	return read, errors.Join(faults...)
}

// needed are the properties of an event without which it may be another event.
var needed = regexp.MustCompile(`(?i)^(BEGIN|END|DTSTART|DTEND|SUMMARY|LOCATION|STATUS|UID|SEQUENCE|RECURRENCE-ID|RRULE|RDATE)\b`)

// sound returns an iCalendar file without the lines that cannot be read, and without the events that need them or do not
// end.
func (read *Reading) sound(file []byte) string {
	var kept, event strings.Builder
	began, fault, line := 0, "", 1 // the first line of an event, 0 outside of events; why the event is left out
	leave := func(format string, args ...any) { read.Left = append(read.Left, fmt.Sprintf(format, args...)) }
	for text := range strings.Lines(folded.Replace(string(file))) {
		content := strings.TrimRight(strings.ReplaceAll(text, "\x00", ""), "\r\n")
		property, err := ics.ParseProperty(ics.ContentLine(content))
		begins, ends := strings.EqualFold(content, "BEGIN:VEVENT"), strings.EqualFold(content, "END:VEVENT")
		if began > 0 && (begins || strings.EqualFold(content, "END:VCALENDAR")) {
			leave("the event of line %d is left out: it does not end", began)
			began = 0
		}
		switch readable := property != nil && err == nil; {
		case begins:
			began, fault = line, ""
			event.Reset()
			event.WriteString(content + "\n")
		case content == "":
		case !readable && began > 0 && needed.MatchString(content):
			fault = cmp.Or(fault, fmt.Sprintf("line %d is left out with its event: %q cannot be read", line, content))
		case !readable:
			leave("line %d is left out: %q cannot be read", line, content)
		case began == 0:
			kept.WriteString(content + "\n")
		case !ends:
			event.WriteString(content + "\n")
		case fault != "":
			leave("%s", fault)
			began = 0
		default:
			kept.WriteString(event.String() + content + "\n")
			began = 0
		}
		line += 1 + strings.Count(text, "\x00")
	}
	return kept.String()
}

// folded marks the folds of long lines with a zero byte, so that they still count as lines.
var folded = strings.NewReplacer("\r\n ", "\x00", "\r\n\t", "\x00", "\n ", "\x00", "\n\t", "\x00")

// latest returns the events of a file without those that another revision of the same event replaces: a higher
// SEQUENCE, or the later place in the file.
func latest(all []*ics.VEvent, read *Reading) []*event {
	var events []*event
	at := make(map[string]int)
	sequence := func(e *event) int {
		n, _ := strconv.Atoi(e.text(ics.ComponentPropertySequence))
		return n
	}
	for _, component := range all {
		e := &event{VEvent: component}
		e.title = strings.TrimSpace(e.text(ics.ComponentPropertySummary))
		e.cancelled = strings.EqualFold(e.text(ics.ComponentPropertyStatus), "CANCELLED")
		uid := e.text(ics.ComponentPropertyUniqueId)
		i, twice := at[uid+" "+e.text(ics.ComponentPropertyRecurrenceId)]
		switch {
		case uid == "" || !twice:
			at[uid+" "+e.text(ics.ComponentPropertyRecurrenceId)] = len(events)
			events = append(events, e)
		case sequence(e) < sequence(events[i]):
			read.leave(e, "a later revision of the event replaces it")
		default:
			read.leave(events[i], "a later revision of the event replaces it")
			events[i] = e
		}
	}
	return events
}

// recognise finds the time, the Grand Prix and the session of an event. It returns why the event is left out.
func (e *event) recognise(l *lexicon, zones zones) (why string) {
	if why := e.readStart(zones); why != "" {
		return why
	}
	for _, rule := range []ics.ComponentProperty{ics.ComponentPropertyRrule, ics.ComponentPropertyRdate} {
		if text := e.text(rule); text != "" && !strings.HasSuffix(text, "COUNT=1") {
			return "it repeats, and a session is held once"
		}
	}
	title := sprintWeekend.ReplaceAllString(spaced(e.title), " ")
	if other := otherSeries.FindString(title + spaced(e.text(ics.ComponentPropertyCategories))); other != "" {
		return fmt.Sprintf("it is of another series, %q", strings.TrimSpace(other))
	}
	m := l.find(e.title, e.text(ics.ComponentPropertyLocation), e.date.Year())
	if m.gp == "" {
		return m.why
	}
	e.gp, e.by = m.gp, m.by
	if e.kind = kindOf(title); e.kind == "" {
		if e.claim = l.claims(e.title); e.claim == noClaim {
			return "it is neither the race nor a known session"
		}
	}
	return ""
}

// weekend adds the round of the events of one Grand Prix in one year. known is the round of the facts in use, nil if
// they have none. Two events that claim to be one session are a fault, which names both.
func (read *Reading) weekend(events []*event, known *season.Round, latest season.Round) error {
	held, cancelled, err := read.race(events)
	if err != nil {
		return err
	}
	if held == nil && (cancelled != nil || known == nil) {
		for _, e := range events {
			switch {
			case e == cancelled:
				read.leave(e, "the race is cancelled in the file: gridcast rounds cancel KEY calls it off")
			case cancelled != nil:
				read.leave(e, "its race is cancelled in the file")
			default:
				read.leave(e, fmt.Sprintf("the %s of %d has sessions but no race", latest.Name, e.date.Year()))
			}
		}
		return nil
	}
	first := cmp.Or(held, events[0])
	r := Round{Place: fmt.Sprintf("event %q", first.title), Year: first.date.Year(), GrandPrix: first.gp, Circuit: latest.Circuit}
	if known != nil {
		r.Circuit, r.Date, r.Start = known.Circuit, known.Date, known.Start
	}
	if held != nil {
		r.Date, r.Start = held.date, held.start
	}
	sessions := make(map[season.SessionKind]*event)
	for _, e := range events {
		switch other := sessions[e.kind]; {
		case e.kind == "":
			if e == held {
				read.list(e, "race")
				r.Sprint = r.Sprint || sprintWeekend.MatchString(spaced(e.title))
			}
			continue
		case e.date.After(r.Date) || e.date.Before(r.Date.AddDate(0, 0, -6)):
			read.leave(e, fmt.Sprintf("its day is not in the week before the race of the %s on %s", latest.Name, r.Date.Format(time.DateOnly)))
			continue
		case other != nil && other.date.Equal(e.date) && other.start.Equal(e.start):
			read.leave(e, fmt.Sprintf("%s is the same session", other))
			continue
		case other != nil && !other.cancelled && !e.cancelled:
			return fmt.Errorf("%s and %s both claim to be the %s of the %s: take one out, or --map its words to another Grand Prix or to %s",
				other, e, e.kind, latest.Name, NoGrandPrix)
		case other != nil && e.cancelled:
			read.leave(e, fmt.Sprintf("it is cancelled, and %s is held", other))
			continue
		}
		sessions[e.kind] = e
	}
	for _, e := range events {
		if sessions[e.kind] != e {
			continue
		}
		r.Sprint = r.Sprint || e.kind == season.Sprint && !e.cancelled
		r.Sessions = append(r.Sessions, season.Session{Kind: e.kind, Date: e.date, Start: e.start, Cancelled: e.cancelled})
		read.list(e, string(e.kind))
	}
	season.SortSessions(r.Sessions)
	read.Rounds = append(read.Rounds, r)
	return nil
}

// race returns the event that is the race of a weekend, or the event that says that the race is cancelled. The
// strongest claim wins, and weaker ones of the same weekend are left out.
func (read *Reading) race(events []*event) (held, cancelled *event, err error) {
	for _, e := range events {
		switch {
		case e.kind != "":
		case e.cancelled:
			cancelled = e
		case held == nil || e.claim > held.claim:
			held = e
		}
	}
	for _, e := range events {
		if held == nil || e == held || e.kind != "" {
			continue
		}
		days := held.date.Sub(e.date).Hours() / 24
		switch {
		case e.cancelled:
			read.leave(e, fmt.Sprintf("it is cancelled, and %s is the race", held))
			cancelled = nil
		case e.date.Equal(held.date) && e.start.Equal(held.start), e.claim < held.claim && days >= 0 && days <= 4:
			read.leave(e, fmt.Sprintf("%s is the race", held))
		default:
			return nil, nil, fmt.Errorf("%s (by %q) and %s (by %q) both claim to be the race of %s: take one out, or --map its words to another Grand Prix or to %s",
				held, held.by, e, e.by, held.gp, NoGrandPrix)
		}
	}
	return held, cancelled, nil
}

func (read *Reading) leave(e *event, why string) {
	read.Left = append(read.Left, fmt.Sprintf("%s is left out: %s", e, why))
}

func (read *Reading) list(e *event, session string) {
	text := fmt.Sprintf("%s: %s of %s, by %q", e, session, e.gp, e.by)
	if e.cancelled {
		text += ", cancelled"
	}
	read.Listed = append(read.Listed, text)
	if e.note != "" {
		read.Left = append(read.Left, fmt.Sprintf("%s: %s", e, e.note))
	}
}

var (
	separator = regexp.MustCompile(`\s[-–—]\s|[:|·•(),/]`)
	generic   = regexp.MustCompile(`^(formula|formel|grosser|one|1|f1|fia|world|championship|season|round|rd|r?\d+|\d{4}|in|at|day|start|weekend|week|final|live)$`)
	raceWords = regexp.MustCompile(`^(race|races|rennen|gara|carrera|corrida|course)$`)
	// activities are words of events around a race, which no sponsor has.
	activities = regexp.MustCompile(` (walk|parade|zone|fan|fans|party|press|conference|autographs?|concert|tour|test|tests|testing|tickets?|sale|sales|` +
		`watch|watchalong|preview|review|show|showrun|ceremony|gala|opening|camp|quiz|deadline|briefing|screening|lunch|dinner|meeting|forum|festival|` +
		`hospitality|paddock|pit|pits|lane|drivers|driver|signing|practice|training|session|lap|laps|grid|podium|warm|support|track|shuttle|travel|flight|hotel|` +
		`run|talk|legends|media|launch|reveal|anthem|museum|exhibition|market|merchandise|store|club|lounge) `)
	sprintWeekend = regexp.MustCompile(` sprint (race )?(weekend|event|round|format) `)
	otherSeries   = regexp.MustCompile(` (f[2-4]|formula ([2-4]|two|three|four|e|regional)|f1 academy|academy|porsche|supercup|carrera cup|supercars?|moto ?gp|moto ?[23]|` +
		`w series|indycar|nascar|wec|imsa|gt[34]|gt world|e ?sports?|sim racing|f1 sim|support races?|historics?|historique|ferrari challenge|superbikes?|wrc|dtm) `)
)

// spaced returns the words of a name in lower case, with a blank before and after each.
func spaced(name string) string { return " " + strings.ReplaceAll(names.Slug(name), "-", " ") + " " }

// claims returns how a title claims to be the race: by a part that says so, as in "F1: Race (São Paulo GP)", by naming
// the Grand Prix alone, or with other words before it, as in "HEINEKEN DUTCH GRAND PRIX 2027".
func (l *lexicon) claims(title string) claim {
	strength, named := alone, false
	for _, part := range separator.Split(sprintWeekend.ReplaceAllString(title, " "), -1) {
		rest, says, gp, behind := l.rest(wordsOf(part))
		switch {
		case len(rest) == 0 && says:
			return race
		case len(rest) == 0:
		case gp && !behind && len(rest) <= 6 && !activities.MatchString(" "+strings.Join(rest, " ")+" "):
			strength = min(strength, sponsored)
		default:
			return noClaim
		}
		named = named || gp || l.scan(wordsOf(part), 9999).gp != ""
	}
	if !named {
		return noClaim
	}
	return strength
}

// rest returns the words of a part of a title without names, links and general words. says reports the word race, gp
// the words Grand Prix, and behind whether more words follow than one sponsor, as in GRAN PREMIO DE ESPAÑA TELEFÓNICA.
func (l *lexicon) rest(words []string) (rest []string, says, gp, behind bool) {
	named, after := false, 0 // a name has come; the words behind the last name and the words Grand Prix
	for i := 0; i < len(words); i++ {
		n := min(longest, len(words)-i)
		for ; n > 0 && !l.knows(strings.Join(words[i:i+n], " ")); n-- {
		}
		switch word := words[i]; {
		case sponsor(words[i:]) > 0:
			rest, i = append(rest, word), i+sponsor(words[i:])-1
		case n > 0:
			named, after, i = true, 0, i+n-1
		case word == "gp":
			if gp = true; named {
				after = 1 // nothing follows, as in DUTCH GRAND PRIX
			}
		case raceWords.MatchString(word):
			says = true
		case generic.MatchString(word), slices.Contains(links, word):
		default:
			rest = append(rest, word)
			if gp {
				after++
			}
		}
	}
	return rest, says, gp, gp && after > 1
}

// kindOf returns the kind of session of a title, empty for the race and for an unknown event.
func kindOf(title string) season.SessionKind {
	for _, k := range []struct {
		kind  season.SessionKind
		words string
	}{
		{season.SprintQualifying, "sprint qualifying|sprint qualification|sprint quali|sprint shootout|sq"},
		{season.Sprint, "sprint"},
		{season.Practice1, "practice 1|practice one|fp1|first practice|first free practice|free practice one|practice session 1|libres 1|libere 1|training 1|1 training|1 freies training"},
		{season.Practice2, "practice 2|practice two|fp2|second practice|second free practice|practice session 2|libres 2|libere 2|training 2|2 training|2 freies training"},
		{season.Practice3, "practice 3|practice three|fp3|third practice|third free practice|practice session 3|libres 3|libere 3|training 3|3 training|3 freies training"},
		{season.Qualifying, "qualifying|qualification|qualifications|quali|qualifikation|qualifiche|clasificacion|classificacao|kwalificatie|qualifs"},
	} {
		for words := range strings.SplitSeq(k.words, "|") {
			if strings.Contains(title, " "+words+" ") {
				return k.kind
			}
		}
	}
	return ""
}

// readStart finds the day and the instant of an event. It returns why the event is left out. An hour that cannot be
// read is lost, and the day stays.
func (e *event) readStart(zones zones) (why string) {
	property := e.GetProperty(ics.ComponentPropertyDtStart)
	if property == nil {
		return "it has no start"
	}
	const form, days = "20060102T150405", "20060102"
	day, err := time.Parse(days, property.Value[:min(len(days), len(property.Value))])
	if err != nil {
		return fmt.Sprintf("its start %q is no day", property.Value)
	}
	e.date = day
	if len(property.Value) == len(days) {
		if end, err := time.Parse(days, e.text(ics.ComponentPropertyDtEnd)); err == nil && end.After(day.AddDate(0, 0, 1)) {
			e.date, e.note = end.AddDate(0, 0, -1), "it takes several days, and the last one counts"
		}
		return ""
	}
	utc, ok := strings.CutSuffix(property.Value, "Z")
	zone := time.UTC
	if !ok {
		named := zones.general
		if ids := property.ICalParameters["TZID"]; len(ids) == 1 {
			named = ids[0]
		}
		if zone, err = zones.find(named); err != nil {
			e.note = fmt.Sprintf("its hour %q is left out: %v", property.Value, err)
			return ""
		}
	}
	start, err := time.ParseInLocation(form, utc, zone)
	if err != nil {
		e.note = fmt.Sprintf("its hour %q cannot be read and is left out", property.Value)
		return ""
	}
	e.date, e.start = season.DayOf(start), start.UTC()
	return ""
}

// zones finds time zones by the names of a file.
type zones struct {
	general string            // of times without a zone
	iana    map[string]string // the IANA names of those of Windows, and of the file's own names
}

func zonesOf(c *ics.Calendar) zones {
	z := zones{iana: make(map[string]string)}
	for zone, list := range otherNames("zone") {
		for _, name := range list {
			z.iana[name] = zone
		}
	}
	for _, p := range c.CalendarProperties {
		if p.IANAToken == "X-WR-TIMEZONE" {
			z.general = p.Value
		}
	}
	for _, component := range c.Components {
		if own, ok := component.(*ics.VTimezone); ok {
			if id, known := own.GetProperty("TZID"), own.GetProperty("X-LIC-LOCATION"); id != nil && known != nil {
				z.iana[id.Value] = known.Value
			}
		}
	}
	return z
}

// find returns a time zone by its IANA name, also at the end of a path, or by the name that Windows has for it.
func (z zones) find(name string) (*time.Location, error) {
	if name == "" {
		return nil, errors.New("it names no time zone: want an instant in UTC, such as 20270307T040000Z, or with TZID")
	}
	candidates := []string{z.iana[name], name}
	if parts := strings.Split(name, "/"); len(parts) > 2 {
		candidates = append(candidates, strings.Join(parts[len(parts)-2:], "/"), strings.Join(parts[len(parts)-3:], "/"))
	}
	for _, candidate := range candidates {
		if candidate == "" || candidate == "Local" { // which depend on the machine
			continue
		}
		if known, err := time.LoadLocation(candidate); err == nil {
			return known, nil
		}
	}
	return nil, fmt.Errorf("the time zone %q is not known: want an IANA name such as Europe/London", name)
}
