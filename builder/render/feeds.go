package render

import (
	"bytes"
	"crypto/sha256"
	"encoding/xml"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"gridcast/builder/almanac"
	"gridcast/builder/ledger"
	"gridcast/schemas/catalog"
	"gridcast/schemas/wire"
)

// Feed returns the bytes of a feed as first rendered at generatedAt.
func Feed(a *almanac.Almanac, f catalog.Feed, generatedAt time.Time) ([]byte, error) {
	switch f.Path {
	case "/calendar.ics":
		return calendarFeed(a, generatedAt), nil
	case "/changes.atom":
		return changesFeed(a, generatedAt)
	}
	return nil, fmt.Errorf("render %s: no renderer for this feed", f.Path)
}

// calendarFeed writes the season to look back at and the known ones after it, as iCalendar (RFC 5545), so that it has two
// seasons around a turn of the year: an event for each session, also for a cancelled one. The UID comes from the session key and never changes; the SEQUENCE is
// the number of times that the ledger has moved, postponed, cancelled or reinstated the round.
func calendarFeed(a *almanac.Almanac, generatedAt time.Time) []byte {
	var c calendarWriter
	c.line("BEGIN", "VCALENDAR")
	c.line("VERSION", "2.0")
	c.line("PRODID", "-//gridcast//calendar//EN")
	c.line("METHOD", "PUBLISH")
	c.line("X-WR-CALNAME", fmt.Sprintf("gridcast %d", a.Current))
	c.line("REFRESH-INTERVAL;VALUE=DURATION", "PT1H")
	c.line("X-PUBLISHED-TTL", "PT1H")
	first := min(a.Current, a.Past())
	for r := range a.All() {
		if r.Year < first {
			continue
		}
		for _, s := range slices.Concat(weekend(r).Sessions, earlier(r, true)) {
			c.event(r, s, generatedAt)
		}
	}
	c.line("END", "VCALENDAR")
	return c.Bytes()
}

// calendarWriter writes lines of iCalendar: folded at 75 bytes, ended by CR and LF.
type calendarWriter struct{ bytes.Buffer }

func (c *calendarWriter) line(name, value string) {
	line := name + ":" + value
	for room := 75; len(line) > room; room = 74 { // a folded line starts with a space
		cut := room
		for !utf8.RuneStart(line[cut]) {
			cut--
		}
		_, _ = c.WriteString(line[:cut] + "\r\n ")
		line = line[cut:]
	}
	_, _ = c.WriteString(line + "\r\n")
}

// icsText escapes the special characters of a value.
var icsText = strings.NewReplacer(`\`, `\\`, ";", `\;`, ",", `\,`, "\n", `\n`, "\r", "")

var sessionNames = map[string]string{
	"practice_1": "Practice 1", "practice_2": "Practice 2", "practice_3": "Practice 3", "practice_4": "Practice 4",
	"sprint_qualifying": "Sprint qualifying", "sprint": "Sprint", "qualifying": "Qualifying", "race": "Race",
}

// The duration of a session in a calendar.
const (
	raceTakes    = 2 * time.Hour
	sessionTakes = time.Hour
)

func (c *calendarWriter) event(r *almanac.Round, s wire.WeekendSession, generatedAt time.Time) {
	const instant = "20060102T150405Z"
	title, status := fmt.Sprintf("%s %d: %s", r.Facts.Name, r.Year, sessionNames[s.Session]), "CONFIRMED"
	switch {
	case r.State == almanac.Cancelled, s.Status == wire.Cancelled:
		title, status = "Cancelled: "+title, "CANCELLED" // many programs show the title alone
	case r.State == almanac.Postponed:
		title, status = "Postponed: "+title, "TENTATIVE"
	}
	c.line("BEGIN", "VEVENT")
	c.line("UID", fmt.Sprintf("%d-%s@gridcast", r.Session, s.Session))
	c.line("SEQUENCE", strconv.Itoa(len(r.Record.Override.Changes)))
	c.line("DTSTAMP", generatedAt.UTC().Format(instant))
	if start := time.Time(s.DateStart); start.IsZero() {
		day, _ := time.Parse(time.DateOnly, s.Date)
		c.line("DTSTART;VALUE=DATE", day.Format("20060102"))
	} else {
		takes := sessionTakes
		if s.Session == "race" {
			takes = raceTakes
		}
		c.line("DTSTART", start.UTC().Format(instant))
		c.line("DTEND", start.Add(takes).UTC().Format(instant))
	}
	c.line("SUMMARY", icsText.Replace(title))
	c.line("LOCATION", icsText.Replace(strings.Join([]string{r.Circuit.Name, r.Circuit.Locality, r.Circuit.Country}, ", ")))
	c.line("STATUS", status)
	c.line("TRANSP", "TRANSPARENT")
	c.line("END", "VEVENT")
}

// atomFeed is the document of RFC 4287.
type atomFeed struct {
	XMLName xml.Name    `xml:"http://www.w3.org/2005/Atom feed"`
	ID      string      `xml:"id"`
	Title   string      `xml:"title"`
	Updated string      `xml:"updated"`
	Author  string      `xml:"author>name"`
	Links   []atomLink  `xml:"link"`
	Entries []atomEntry `xml:"entry"`
}

type atomLink struct {
	Rel  string `xml:"rel,attr"`
	Href string `xml:"href,attr"`
}

type atomEntry struct {
	ID      string   `xml:"id"`
	Title   string   `xml:"title"`
	Updated string   `xml:"updated"`
	Link    atomLink `xml:"link"`
	Summary string   `xml:"summary"`
}

// feedEntries is the number of changes in a feed, the latest ones.
const feedEntries = 100

func changesFeed(a *almanac.Almanac, generatedAt time.Time) ([]byte, error) {
	feed := atomFeed{
		ID: atomID("changes"), Title: "What has changed in the season", Updated: wire.Instant(generatedAt).String(), Author: "gridcast",
		Links: []atomLink{{"self", "changes.atom"}, {"alternate", "/docs#changes"}},
	}
	all := a.Changes(0)
	records := changes(a, 0)
	ids, named := make([]string, len(all)), map[string]int{}
	for i := len(all) - 1; i >= 0; i-- { // from the oldest, so that an entry keeps its identifier
		rec, revision := &records[i], 0
		if rec.New != nil {
			revision = rec.New.Revision
		}
		name := fmt.Sprintf("%d %s %s %d", rec.SessionKey, rec.Kind, all[i].At.UTC().Format(time.RFC3339Nano), revision)
		if named[name]++; named[name] > 1 { // two changes of one instant
			name += fmt.Sprint(" ", named[name])
		}
		ids[i] = atomID(name)
	}
	for i := range min(len(all), feedEntries) {
		c, rec := &all[i], &records[i]
		entry := atomEntry{
			ID:    ids[i],
			Title: title(c), Updated: rec.At.String(), Summary: rec.Reason,
			Link: atomLink{"alternate", "/docs#changes"},
		}
		if entry.Summary == "" {
			entry.Summary = entry.Title
		}
		feed.Entries = append(feed.Entries, entry)
	}
	body, err := xml.MarshalIndent(feed, "", " ")
	if err != nil {
		return nil, fmt.Errorf("render changes.atom: %w", err)
	}
	return append([]byte(xml.Header), append(body, '\n')...), nil
}

// atomID makes a permanent identifier: a UUID of version 8 (RFC 9562), because
// the address of the feed is not known here.
func atomID(name string) string {
	sum := sha256.Sum256([]byte("gridcast " + name))
	id := sum[:16]
	id[6], id[8] = id[6]&0x0f|0x80, id[8]&0x3f|0x80
	return fmt.Sprintf("urn:uuid:%x-%x-%x-%x-%x", id[:4], id[4:6], id[6:8], id[8:10], id[10:])
}

func title(c *almanac.Change) string {
	r := c.Round
	name := fmt.Sprintf("%s %d", r.Facts.Name, r.Year)
	start := func(t time.Time) string { return t.UTC().Format("2 January 15:04 UTC") }
	switch c.Type {
	case ledger.RoundMoved:
		return name + " moved to " + start(c.NewStart)
	case ledger.RoundPostponed:
		return name + " postponed"
	case ledger.RoundCancelled:
		return name + " cancelled"
	case ledger.RoundReinstated:
		if c.NewStart.IsZero() {
			return name + " is back in the calendar"
		}
		return name + " is back in the calendar: " + start(c.NewStart)
	case ledger.KeysAssigned:
		if c.NewStart.IsZero() {
			return name + " joined the calendar"
		}
		return name + " joined the calendar: " + start(c.NewStart)
	case ledger.PickVoided:
		return name + ": the pick no longer counts"
	case ledger.DriverWithdrawn:
		return name + ": " + r.Driver(c.Driver).Name + " does not start"
	case ledger.DriverReturned:
		return name + ": " + r.Driver(c.Driver).Name + " starts after all"
	case ledger.ChampionshipDecided:
		who, _ := c.Competitor()
		text := fmt.Sprintf("%s %d, %s' championship: %s", who, r.Year, almanac.ChampionshipName(c.Championship.Constructors), c.Championship)
		if c.Restored {
			text += ", which no longer counts"
		}
		return text
	}
	before, after := almanac.Podium(c.Old.Rows), almanac.Podium(c.New.Rows)
	if winner := after[0]; winner != before[0] {
		return fmt.Sprintf("%s: result revised, won by %s", name, r.Driver(winner).Name)
	}
	return name + ": result revised"
}
