package operator

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// Span is a duration in the units of time.ParseDuration and in days (d) and weeks (w): 90m, 36h, 30d.
type Span time.Duration

// UnmarshalText implements encoding.TextUnmarshaler.
func (s *Span) UnmarshalText(text []byte) error {
	for unit, length := range map[string]time.Duration{"d": 24 * time.Hour, "w": 7 * 24 * time.Hour} {
		if number, ok := strings.CutSuffix(string(text), unit); ok {
			n, err := strconv.Atoi(number)
			span := time.Duration(n) * length
			if err != nil || span/length != time.Duration(n) { // the product has no room in a Duration
				return fmt.Errorf("%q: must be a whole number of days or weeks, such as 30d, of at most 292 years", text)
			}
			*s = Span(span)
			return nil
		}
	}
	d, err := time.ParseDuration(string(text))
	if err != nil {
		return fmt.Errorf("%q: must be a duration such as 90m, 36h or 30d", text)
	}
	*s = Span(d)
	return nil
}

// Expiry is an instant until which something is valid; zero: for ever.
type Expiry struct{ time.Time }

// UnmarshalText reads an instant, the last day as a date, a duration from now, or never.
func (e *Expiry) UnmarshalText(text []byte) error {
	if string(text) == "never" {
		e.Time = time.Time{}
		return nil
	}
	if day, err := time.Parse(time.DateOnly, string(text)); err == nil {
		e.Time = day.AddDate(0, 0, 1)
		return nil
	}
	if at, err := time.Parse(time.RFC3339, string(text)); err == nil {
		e.Time = at
		return nil
	}
	var in Span
	if err := in.UnmarshalText(text); err != nil || in <= 0 {
		return fmt.Errorf("%q: must be an instant such as 2027-01-31T00:00:00Z, the last day such as 2027-01-31, a duration such as 30d, or never", text)
	}
	e.Time = time.Now().Add(time.Duration(in))
	return nil
}

// Codes are drivers by code or id, in order.
type Codes []string

// gap is a driver's distance to the winner, such as +5.2s or +1 lap.
var gap = regexp.MustCompile(`(?i)\+\s*[0-9][0-9:.,]*\s*(s|sec|laps?)?\b`)

// UnmarshalText reads codes with anything between them. It skips remarks after a # and gaps. A text without a code is
// an error, because no code at all means another thing than the text: the classification of the source.
func (c *Codes) UnmarshalText(text []byte) error {
	*c = nil
	for line := range strings.Lines(string(text)) {
		line, _, _ = strings.Cut(line, "#")
		line = gap.ReplaceAllString(line, " ")
		*c = append(*c, strings.FieldsFunc(line, func(r rune) bool { return !unicode.IsLetter(r) && r != '-' })...)
	}
	if len(*c) == 0 && len(bytes.TrimSpace(text)) > 0 {
		return errors.New("no driver is named: write codes such as VER,NOR,RUS")
	}
	return nil
}
