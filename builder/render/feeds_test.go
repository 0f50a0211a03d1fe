package render_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"

	ics "github.com/arran4/golang-ical"
	"github.com/google/go-cmp/cmp"
	"github.com/mmcdole/gofeed"

	"gridcast/builder/almanac"
	"gridcast/builder/ledger"
	"gridcast/builder/render"
	"gridcast/builder/season"
	"gridcast/deploy/must"
	"gridcast/schemas/catalog"
)

// decided is the small season after an operator has moved its last round twice and cancelled the third.
// The text of the circuit has every character that must be escaped.
func decided() *almanac.Almanac {
	a := small()
	rounds := a.Years[1].Rounds
	rounds[3].Circuit.Name = `Straße; der, "Könige" \ ` + strings.Repeat("lang und länger ", 8)
	rounds[3].Facts.Sessions = []season.Session{
		{Kind: season.Qualifying, Date: time.Date(2025, 6, 21, 0, 0, 0, 0, time.UTC), Start: time.Date(2025, 6, 21, 1, 0, 0, 0, time.UTC)},
		{Kind: season.Practice1, Date: time.Date(2025, 6, 20, 0, 0, 0, 0, time.UTC)},
		{Kind: season.Sprint, Date: time.Date(2025, 6, 21, 0, 0, 0, 0, time.UTC), Cancelled: true},
	}
	at := time.Date(2025, 6, 2, 9, 30, 0, 0, time.UTC)
	start := rounds[3].Start
	rounds[3].Record.Override.Changes = []ledger.CalendarChange{
		{Type: ledger.RoundMoved, At: at, Actor: "operator:anna", Reason: "heat & <rain>", Was: start.Add(-time.Hour), Start: start.Add(time.Hour)},
		{Type: ledger.RoundMoved, At: at.Add(time.Hour), Actor: "source:f1db@abc", Reason: "earlier", Was: start.Add(time.Hour), Start: start},
	}
	rounds[2].Record.Added = at.Add(-time.Hour)
	rounds[2].Record.Override.Changes = []ledger.CalendarChange{{Type: ledger.RoundCancelled, At: at.Add(2 * time.Hour), Actor: "operator:anna", Reason: "flood"}}
	return a
}

// TestCalendarFeed uses an independent parser.
func TestCalendarFeed(t *testing.T) {
	body := must.Get(render.Feed(decided(), catalog.Feeds[0], generated))(t)
	for line := range strings.SplitSeq(strings.TrimSuffix(string(body), "\r\n"), "\r\n") {
		if len(line) > 75 || strings.ContainsAny(line, "\r\n") {
			t.Errorf("line of %d bytes: %q", len(line), line)
		}
	}
	parsed, err := ics.ParseCalendar(bytes.NewReader(body))
	must.Require(t, err == nil, "%v in\n%s", err, body)
	type event struct {
		Title, Status, Sequence, Start string
	}
	got := map[string]event{}
	for _, e := range parsed.Events() {
		value := func(p ics.ComponentProperty) string {
			if found := e.GetProperty(p); found != nil {
				return found.Value
			}
			return ""
		}
		got[e.Id()] = event{value(ics.ComponentPropertySummary), value(ics.ComponentPropertyStatus), value(ics.ComponentPropertySequence), value(ics.ComponentPropertyDtStart)}
		if e.Id() == "2025004-race@gridcast" {
			want := decided().Years[1].Rounds[3].Circuit.Name + ", Town, Italy"
			must.Equal(t, "place", want, value(ics.ComponentPropertyLocation))
			end, err := e.GetEndAt()
			if want := time.Date(2025, 6, 22, 4, 0, 0, 0, time.UTC); err != nil || !end.Equal(want) {
				t.Errorf("end: got %v, %v, want %v", end, err, want)
			}
		}
	}
	want := map[string]event{
		"2025001-race@gridcast":       {"Grand Prix A 2025: Race", "CONFIRMED", "0", "20250601T130000Z"},
		"2025002-race@gridcast":       {"Grand Prix B 2025: Race", "CONFIRMED", "0", "20250608"},
		"2025003-race@gridcast":       {"Cancelled: Grand Prix C 2025: Race", "CANCELLED", "1", "20250615T130000Z"},
		"2025004-practice_1@gridcast": {"Grand Prix D 2025: Practice 1", "CONFIRMED", "2", "20250620"},
		"2025004-qualifying@gridcast": {"Grand Prix D 2025: Qualifying", "CONFIRMED", "2", "20250621T010000Z"},
		"2025004-sprint@gridcast":     {"Cancelled: Grand Prix D 2025: Sprint", "CANCELLED", "2", "20250621"},
		"2025004-race@gridcast":       {"Grand Prix D 2025: Race", "CONFIRMED", "2", "20250622T020000Z"},
	}
	diff := cmp.Diff(want, got)
	must.Hold(t, diff == "", "(-want +got)\n%s", diff)
}

// TestChangesFeed uses an independent parser.
func TestChangesFeed(t *testing.T) {
	body := must.Get(render.Feed(decided(), catalog.Feeds[1], generated))(t)
	parsed, err := gofeed.NewParser().Parse(bytes.NewReader(body))
	must.Require(t, err == nil, "%v in\n%s", err, body)
	if parsed.FeedType != "atom" || !parsed.UpdatedParsed.Equal(generated) {
		t.Errorf("got %s of %v, want Atom of %v", parsed.FeedType, parsed.UpdatedParsed, generated)
	}
	var titles, reasons []string
	ids := map[string]bool{}
	for _, item := range parsed.Items {
		titles, reasons, ids[item.GUID] = append(titles, item.Title), append(reasons, item.Description), true
	}
	want := []string{"Grand Prix C 2025 cancelled", "Grand Prix D 2025 moved to 22 June 02:00 UTC", "Grand Prix D 2025 moved to 22 June 03:00 UTC", "Grand Prix C 2025 joined the calendar: 15 June 13:00 UTC"}
	must.Equal(t, "titles", want, titles)
	must.Equal(t, "reasons", []string{"flood", "earlier", "heat & <rain>", "Grand Prix C 2025 joined the calendar: 15 June 13:00 UTC"}, reasons)
	must.Hold(t, len(ids) == 4, "got identifiers %v, want four", ids)
}

// Two changes of one round and one instant have two identifiers, which stay when later changes follow.
func TestChangesOfOneInstant(t *testing.T) {
	identifiers := func(moves int) []string {
		a := decided()
		record := &a.Years[1].Rounds[3].Record
		for range moves {
			record.Override.Changes = append(record.Override.Changes, record.Override.Changes[len(record.Override.Changes)-1])
		}
		body := must.Get(render.Feed(a, catalog.Feeds[1], generated))(t)
		parsed := must.Get(gofeed.NewParser().Parse(bytes.NewReader(body)))(t)
		var all []string
		for _, item := range parsed.Items {
			all = append(all, item.GUID)
		}
		slices.Sort(all)
		return all
	}
	before, after := identifiers(1), identifiers(2)
	must.Hold(t, len(slices.Compact(slices.Clone(after))) == 6, "six changes have the identifiers %v", after)
	for _, id := range before {
		must.Hold(t, slices.Contains(after, id), "%s has gone: got %v", id, after)
	}
}
