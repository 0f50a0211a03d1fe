package stewards

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"gridcast/builder/almanac"
	"gridcast/builder/ledger"
)

// ReadClassification reads the whole classification of a race, of its sprint, or of both. An operator
// writes it down from the official documents in the form of ledger.Classification:
//
//	{"rows": [{"driver": "NOR", "position": 1, "points": 25}, …, {"driver": "HAM"}], "sprint": […]}
//
// A session without rows in the document gives nil.
//
// The document names drivers by code or id. Team and engine may be left out if the driver took part
// for one only. Every driver of the session must be there, and no other driver, because a row left
// out by mistake would cost the driver the points. Rows stay in their order, rows without a place at
// the end.
func ReadClassification(r *almanac.Round, document []byte) (rows, sprint []ledger.Row, err error) {
	dec := json.NewDecoder(bytes.NewReader(document))
	dec.DisallowUnknownFields()
	var c ledger.Classification
	if err := dec.Decode(&c); err != nil {
		return nil, nil, fmt.Errorf("read the classification of %d: %w", r.Session, err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, nil, fmt.Errorf("read the classification of %d: there is more than one document", r.Session)
	}
	if len(c.Rows) == 0 && len(c.Sprint) == 0 {
		return nil, nil, fmt.Errorf("read the classification of %d: there are neither rows nor a sprint", r.Session)
	}
	if err := cmp.Or(Session{Round: r}.complete(c.Rows), Session{Round: r, Sprint: true}.complete(c.Sprint)); err != nil {
		return nil, nil, err
	}
	return c.Rows, c.Sprint, nil
}

// complete fills in teams and engines, and refuses rows that lack a driver of the session. No rows
// are complete.
func (s Session) complete(rows []ledger.Row) error {
	if len(rows) == 0 {
		return nil
	}
	took, err := s.attended()
	if err != nil {
		return fmt.Errorf("read the classification of %w", err)
	}
	var errs []error
	for i := range rows {
		if err := completeRow(s.Round, &rows[i], took); err != nil {
			errs = append(errs, fmt.Errorf("row %d: %w", i+1, err))
		}
	}
	for _, part := range took {
		if !slices.ContainsFunc(rows, func(row ledger.Row) bool { return row.Driver == part.Driver }) {
			errs = append(errs, fmt.Errorf("%s is missing", part.Driver))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("read the classification of %s: %w", s, err)
	}
	return nil
}

// TookPart returns a row with driver, team and engine for everybody in the source's result. Without a
// result it uses the entries.
func (s Session) TookPart() []ledger.Row {
	if source := s.source(); source != nil {
		return source
	}
	entries := s.Round.Facts.Entries
	took := make([]ledger.Row, len(entries))
	for i, e := range entries {
		took[i] = ledger.Row{Driver: e.Driver, Team: e.Team, Engine: e.Engine}
	}
	return took
}

// attended is TookPart, or an error with the command that helps if nobody is known to have taken part.
func (s Session) attended() ([]ledger.Row, error) {
	took := s.TookPart()
	if len(took) == 0 {
		return nil, fmt.Errorf("%s: no entries are known: gridcast entries set %d --template first", s, s.Round.Session)
	}
	return took, nil
}

// completeRow finds the driver that a row names and fills in the team and engine.
func completeRow(r *almanac.Round, row *ledger.Row, took []ledger.Row) error {
	driver, err := r.FindDriver(string(row.Driver))
	if err != nil {
		return err
	}
	row.Driver = driver
	var fits []ledger.Row
	known := false
	for _, part := range took {
		if part.Driver != driver {
			continue
		}
		known = true
		if (row.Team == "" || row.Team == part.Team) && (row.Engine == "" || row.Engine == part.Engine) {
			fits = append(fits, part)
		}
	}
	switch {
	case !known:
		return fmt.Errorf("%s did not take part", driver)
	case len(fits) == 0:
		entrant := string(row.Team)
		if row.Engine != "" {
			entrant += " with " + string(row.Engine)
		}
		return fmt.Errorf("%s did not take part for %s", driver, entrant)
	}
	for _, part := range fits[1:] {
		if part.Team != fits[0].Team || part.Engine != fits[0].Engine {
			return fmt.Errorf("%s took part for several teams: say for which", driver)
		}
	}
	row.Team, row.Engine = fits[0].Team, fits[0].Engine
	return nil
}
