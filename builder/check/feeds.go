package check

import (
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"gridcast/schemas/catalog"
	"gridcast/schemas/wire"
)

// Feed checks a feed by itself, as a subscribed program reads it, and against the documents of its
// version, by path. /calendar.ics must have the sessions of /weekends from the season k.Current on, and
// /changes.atom the latest of /changes. A document that is not in bodies is not compared. The error does
// not name the path.
func Feed(f catalog.Feed, body []byte, k catalog.Known, bodies map[string][]byte) error {
	if !utf8.Valid(body) {
		return errors.New("not UTF-8")
	}
	switch f.Path {
	case "/calendar.ics":
		events, err := readCalendar(string(body))
		if err != nil {
			return err
		}
		return compareSessions(events, k, bodies)
	case "/changes.atom":
		return readAtom(body, bodies)
	}
	return fmt.Errorf("there is no check for the feed %s", f.Path)
}

// event is an event of a calendar, by the names of its properties without their parameters.
type event map[string]string

// readCalendar reads iCalendar (RFC 5545) strictly, as far as a calendar of events goes, and returns its
// events by UID.
func readCalendar(text string) (map[string]event, error) {
	lines, err := unfold(text)
	if err != nil {
		return nil, err
	}
	events := map[string]event{}
	calendar := event{}
	var open []string // components
	current := calendar
	for _, line := range lines {
		name, value, ok := strings.Cut(line, ":")
		name, _, _ = strings.Cut(name, ";")
		switch {
		case !ok || name == "" || strings.Trim(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZ-") != "":
			return nil, fmt.Errorf("not a property: %q", line)
		case name == "BEGIN":
			if want := []string{"VCALENDAR", "VEVENT"}; len(open) >= len(want) || value != want[len(open)] {
				return nil, fmt.Errorf("%s begins within %v", value, open)
			}
			if open = append(open, value); value == "VEVENT" {
				current = event{}
			}
		case name == "END":
			if len(open) == 0 || open[len(open)-1] != value {
				return nil, fmt.Errorf("%s ends within %v", value, open)
			}
			if open = open[:len(open)-1]; value == "VEVENT" {
				if _, twice := events[current["UID"]]; twice {
					return nil, fmt.Errorf("two events %q", current["UID"])
				}
				if err := current.check(); err != nil {
					return nil, fmt.Errorf("event %q: %w", current["UID"], err)
				}
				events[current["UID"]] = current
				current = calendar
			}
		case len(open) == 0:
			return nil, fmt.Errorf("%q is outside of the calendar", line)
		default:
			if _, twice := current[name]; twice {
				return nil, fmt.Errorf("%s twice: %q", name, line)
			}
			current[name] = value
		}
	}
	if len(open) > 0 || calendar["VERSION"] != "2.0" || calendar["PRODID"] == "" {
		return nil, fmt.Errorf("a calendar of version %q, made by %q, of which %v do not end", calendar["VERSION"], calendar["PRODID"], open)
	}
	return events, nil
}

// unfold returns the logical lines of iCalendar, without the folds of long ones.
func unfold(text string) (lines []string, err error) {
	if !strings.HasSuffix(text, "\r\n") {
		return nil, errors.New("the last line does not end with CR and LF")
	}
	for physical := range strings.SplitSeq(strings.TrimSuffix(text, "\r\n"), "\r\n") {
		if len(physical) > 75 {
			return nil, fmt.Errorf("a line of %d bytes, want at most 75: %q", len(physical), physical)
		}
		if i := strings.IndexFunc(physical, func(r rune) bool { return unicode.IsControl(r) && r != '\t' }); i >= 0 {
			return nil, fmt.Errorf("control character %q in %q", physical[i], physical)
		}
		if rest, folded := strings.CutPrefix(physical, " "); folded && len(lines) > 0 {
			lines[len(lines)-1] += rest
		} else {
			lines = append(lines, physical)
		}
	}
	return lines, nil
}

const icsInstant = "20060102T150405Z"

// check reports the first fault that keeps a program from showing the event.
func (e event) check() error {
	for _, name := range []string{"UID", "DTSTAMP", "DTSTART", "SEQUENCE", "SUMMARY", "STATUS"} {
		if e[name] == "" {
			return fmt.Errorf("no %s", name)
		}
	}
	if _, err := time.Parse(icsInstant, e["DTSTAMP"]); err != nil {
		return err
	}
	end, ends := e["DTEND"]
	if start, err := time.Parse(icsInstant, e["DTSTART"]); err == nil {
		if until, err := time.Parse(icsInstant, end); !ends || err != nil || !until.After(start) {
			return fmt.Errorf("begins at %s and ends at %q", e["DTSTART"], end)
		}
	} else if _, err := time.Parse("20060102", e["DTSTART"]); err != nil || ends {
		return fmt.Errorf("begins at %q and ends at %q", e["DTSTART"], end)
	}
	switch e["STATUS"] {
	case "CONFIRMED", "TENTATIVE", "CANCELLED":
		return nil
	}
	return fmt.Errorf("status %q", e["STATUS"])
}

// plain takes the escapes out of a text.
var plain = strings.NewReplacer(`\\`, `\`, `\;`, ";", `\,`, ",", `\n`, "\n", `\N`, "\n")

func compareSessions(events map[string]event, k catalog.Known, bodies map[string][]byte) error {
	want, whole, listed := 0, true, map[string]bool{}
	for _, year := range k.Seasons {
		if year < k.Current {
			continue
		}
		body, ok := bodies[catalog.Variant{Endpoint: catalog.Weekends, Year: year}.Path()]
		if !ok {
			whole = false
			continue
		}
		var weekends wire.Success[[]wire.Weekend]
		if err := json.Unmarshal(body, &weekends); err != nil {
			return fmt.Errorf("weekends of %d: %w", year, err)
		}
		for _, w := range weekends.Data {
			place := strings.Join([]string{w.Circuit.Name, w.Circuit.Locality, w.Circuit.Country}, ", ")
			for _, s := range w.Sessions {
				want++
				uid := fmt.Sprintf("%d-%s@gridcast", w.SessionKey, s.Session)
				listed[uid] = true
				start := strings.ReplaceAll(s.Date, "-", "")
				if !s.DateStart.IsZero() {
					start = time.Time(s.DateStart).UTC().Format(icsInstant)
				}
				status := map[wire.Status]string{wire.Cancelled: "CANCELLED", wire.Postponed: "TENTATIVE"}[w.Status]
				if status == "" {
					status = "CONFIRMED"
				}
				e := events[uid]
				if at := plain.Replace(e["LOCATION"]); e["DTSTART"] != start || e["STATUS"] != status || at != place {
					return fmt.Errorf("%s: starts at %q in %q and is %q, the weekends have %q, %q and %q", uid, e["DTSTART"], at, e["STATUS"], start, place, status)
				}
			}
		}
	}
	for uid, e := range events { // of a cancelled session, which has left its weekend
		if e["STATUS"] == "CANCELLED" && !listed[uid] {
			want++
		}
	}
	if whole && len(events) != want {
		return fmt.Errorf("%d events, the weekends have %d sessions", len(events), want)
	}
	return nil
}

// readAtom reads Atom (RFC 4287) and compares its entries with the changes.
func readAtom(body []byte, bodies map[string][]byte) error {
	type text struct {
		ID      string `xml:"http://www.w3.org/2005/Atom id"`
		Title   string `xml:"http://www.w3.org/2005/Atom title"`
		Updated string `xml:"http://www.w3.org/2005/Atom updated"`
	}
	var feed struct {
		XMLName xml.Name `xml:"http://www.w3.org/2005/Atom feed"`
		text
		Author  string `xml:"http://www.w3.org/2005/Atom author>name"`
		Entries []text `xml:"http://www.w3.org/2005/Atom entry"`
	}
	if err := xml.Unmarshal(body, &feed); err != nil {
		return err
	}
	if feed.Author == "" {
		return errors.New("no author")
	}
	ids := map[string]bool{}
	for _, e := range append([]text{feed.text}, feed.Entries...) {
		_, err := time.Parse(time.RFC3339, e.Updated)
		if e.ID == "" || ids[e.ID] || e.Title == "" || err != nil || strings.ContainsRune(e.Title, utf8.RuneError) {
			return fmt.Errorf("feed or entry with the id %q, the title %q, updated %q", e.ID, e.Title, e.Updated)
		}
		ids[e.ID] = true
	}
	changes, ok := bodies[catalog.Variant{Endpoint: catalog.Changes}.Path()]
	if !ok {
		return nil
	}
	var published wire.Success[[]wire.Change]
	if err := json.Unmarshal(changes, &published); err != nil {
		return fmt.Errorf("changes: %w", err)
	}
	if len(feed.Entries) > len(published.Data) || len(feed.Entries) == 0 && len(published.Data) > 0 {
		return fmt.Errorf("%d entries of %d changes", len(feed.Entries), len(published.Data))
	}
	for i, e := range feed.Entries {
		if want := published.Data[i].At.String(); e.Updated != want {
			return fmt.Errorf("entry %d is of %s, the change of %s", i+1, e.Updated, want)
		}
	}
	return nil
}
