// Package columns reads version 1 of the archive file, in which each table is spread into
// columns. Archives in a store are named by their sum and never written again, so that form is
// read for ever; nothing writes it.
//
// A season's line first lists its drivers, teams, engines and reasons of retirement. A table
// is an object of equally long columns, named as the fields of a row are, a column of zeros
// being absent; names are places in the lists, from 1, and 0 is no name.
package columns

import (
	"fmt"
	"reflect"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"gridcast/builder/season"
)

// Header reads the first line: all facts but the seasons, and how many of them follow.
func Header(line []byte) (facts season.Facts, seasons int, err error) {
	var h struct {
		Source   string           `json:"source"`
		Seasons  int              `json:"seasons"`
		Drivers  []season.Driver  `json:"drivers"`
		Teams    []season.Team    `json:"teams"`
		Engines  []season.Engine  `json:"engines"`
		Circuits []season.Circuit `json:"circuits"`
		Lineages [][]season.Link  `json:"lineages"`
	}
	if err := json.Unmarshal(line, &h); err != nil {
		return facts, 0, err
	}
	facts = season.Facts{
		Source:   h.Source,
		Drivers:  make(map[season.DriverID]season.Driver, len(h.Drivers)),
		Teams:    make(map[season.TeamID]season.Team, len(h.Teams)),
		Engines:  make(map[season.EngineID]season.Engine, len(h.Engines)),
		Circuits: make(map[season.CircuitID]season.Circuit, len(h.Circuits)),
	}
	for _, d := range h.Drivers {
		facts.Drivers[d.ID] = d
	}
	for _, t := range h.Teams {
		facts.Teams[t.ID] = t
	}
	for _, e := range h.Engines {
		facts.Engines[e.ID] = e
	}
	for _, c := range h.Circuits {
		facts.Circuits[c.ID] = c
	}
	for _, links := range h.Lineages {
		facts.Lineages = append(facts.Lineages, season.Lineage{Links: links})
	}
	return facts, h.Seasons, nil
}

// names are the lists of a season's line.
type names struct {
	Drivers []string `json:"drivers"`
	Teams   []string `json:"teams"`
	Engines []string `json:"engines"`
	Reasons []string `json:"reasons"`
}

// Season reads the line of a season. Instants are read by times.
func Season(line []byte, times *json.Unmarshalers) (season.Season, error) {
	var n names
	if err := json.Unmarshal(line, &n); err != nil {
		return season.Season{}, err
	}
	var s struct {
		Year    int                      `json:"year"`
		Colours map[season.TeamID]string `json:"colours"`
		Rounds  []struct {
			season.Round
			Practice1 []season.TimedLap `json:"practice_1"`
			Practice2 []season.TimedLap `json:"practice_2"`
			Practice3 []season.TimedLap `json:"practice_3"`
			Practice4 []season.TimedLap `json:"practice_4"`
		} `json:"rounds"`
	}
	err := json.Unmarshal(line, &s, json.WithUnmarshalers(json.JoinUnmarshalers(times,
		table[season.Entry](&n), table[season.TimedLap](&n), table[season.QualifyingRow](&n), table[season.GridSlot](&n),
		table[season.Result](&n), table[season.FastestLap](&n), table[season.PitStop](&n),
		table[season.DriverStanding](&n), table[season.TeamStanding](&n),
	)))
	if err != nil {
		return season.Season{}, err
	}
	read := season.Season{Year: s.Year, Colours: s.Colours, Rounds: make([]season.Round, len(s.Rounds))}
	for i := range s.Rounds {
		r := &s.Rounds[i]
		r.Practice = [4][]season.TimedLap{r.Practice1, r.Practice2, r.Practice3, r.Practice4}
		read.Rounds[i] = r.Round
	}
	return read, nil
}

// table reads rows of one kind.
func table[Row any](n *names) *json.Unmarshalers {
	return json.UnmarshalFromFunc(func(d *jsontext.Decoder, rows *[]Row) error {
		var columns map[string]jsontext.Value
		if err := json.UnmarshalDecode(d, &columns); err != nil {
			return err
		}
		// The length is not trusted beyond the first column, which every table has.
		var length, drivers, teams int
		for column, into := range map[string]*int{"driver": &drivers, "team": &teams} {
			var places []int
			if raw, ok := columns[column]; ok {
				if err := json.Unmarshal(raw, &places); err != nil {
					return fmt.Errorf("column %s: %w", column, err)
				}
			}
			*into = len(places)
		}
		if err := json.Unmarshal(columns["rows"], &length); err != nil || length != max(drivers, teams) {
			return fmt.Errorf("table of %s rows names %d drivers and %d teams", columns["rows"], drivers, teams)
		}
		if length == 0 {
			return nil
		}
		*rows = make([]Row, length)
		for column, raw := range columns {
			if err := n.spread(reflect.ValueOf(*rows), column, raw); err != nil {
				return fmt.Errorf("column %s: %w", column, err)
			}
		}
		return nil
	})
}

// spread sets a field of each row from its column. A column without a field is left alone.
func (n *names) spread(rows reflect.Value, column string, raw jsontext.Value) error {
	at, ok := field(rows.Type().Elem(), column)
	if !ok {
		return nil
	}
	// A column holds the values themselves, but places for names and milliseconds for times.
	kind := rows.Index(0).FieldByIndex(at[:1]).Type()
	if len(at) == 2 {
		kind = kind.Elem()
	}
	var list []string
	switch kind {
	case reflect.TypeFor[season.DriverID]():
		list = n.Drivers
	case reflect.TypeFor[season.TeamID]():
		list = n.Teams
	case reflect.TypeFor[season.EngineID]():
		list = n.Engines
	case reflect.TypeFor[string]():
		list = n.Reasons
	case reflect.TypeFor[time.Duration]():
	default:
		values := reflect.New(reflect.SliceOf(kind))
		if err := json.Unmarshal(raw, values.Interface()); err != nil {
			return err
		}
		return each(rows, values.Elem().Len(), at, func(field reflect.Value, i int) error {
			field.Set(values.Elem().Index(i))
			return nil
		})
	}
	var values []int64
	if err := json.Unmarshal(raw, &values); err != nil {
		return err
	}
	return each(rows, len(values), at, func(field reflect.Value, i int) error {
		switch v := values[i]; {
		case field.Kind() == reflect.Int64:
			field.SetInt(v * int64(time.Millisecond))
		case v < 0 || v > int64(len(list)):
			return fmt.Errorf("place %d in a list of %d names", v, len(list))
		case v > 0:
			field.SetString(list[v-1])
		}
		return nil
	})
}

// each calls set with a field of every row.
func each(rows reflect.Value, values int, at []int, set func(field reflect.Value, row int) error) error {
	if values != rows.Len() {
		return fmt.Errorf("%d values in a table of %d rows", values, rows.Len())
	}
	for i := range values {
		f := rows.Index(i).Field(at[0])
		if len(at) == 2 {
			f = f.Index(at[1])
		}
		if err := set(f, i); err != nil {
			return err
		}
	}
	return nil
}

// field returns where a column belongs in a row: the index of a field and, of a segment of
// qualifying, the index within it.
func field(row reflect.Type, column string) ([]int, bool) {
	segment := map[string]int{"segment_1": 0, "segment_2": 1, "segment_3": 2}
	for i := range row.NumField() {
		switch tag := row.Field(i).Tag.Get("json"); tag {
		case column:
			return []int{i}, true
		case "segments":
			if j, ok := segment[column]; ok {
				return []int{i, j}, true
			}
		}
	}
	return nil, false
}
