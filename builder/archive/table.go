package archive

import (
	"fmt"
	"time"

	"gridcast/builder/season"
)

// table is a table by columns, which compress better than rows and decode faster. Rows is
// their length; a column of zeros is absent. Names are places in the lists of the season,
// from 1; 0 is no name. Times are milliseconds.
type table struct {
	Rows     int              `json:"rows"`
	Driver   []int            `json:"driver,omitempty"`
	Team     []int            `json:"team,omitempty"`
	Engine   []int            `json:"engine,omitempty"`
	Number   []int            `json:"number,omitempty"`
	Position []int            `json:"position,omitempty"`
	Outcome  []season.Outcome `json:"outcome,omitempty"`
	Grid     []int            `json:"grid,omitempty"`
	Stop     []int            `json:"stop,omitempty"`
	Lap      []int            `json:"lap,omitempty"`
	Laps     []int            `json:"laps,omitempty"`
	Time     []int            `json:"time,omitempty"`
	Segment1 []int            `json:"segment_1,omitempty"`
	Segment2 []int            `json:"segment_2,omitempty"`
	Segment3 []int            `json:"segment_3,omitempty"`
	Points   []float64        `json:"points,omitempty"`
	Reason   []int            `json:"reason,omitempty"`
	Shared   []bool           `json:"shared,omitempty"`
}

// places gives each name a place in a list, from 1, in order of first use.
type places[T ~string] struct {
	list []T
	at   map[T]int
}

func (p *places[T]) of(name T) int {
	if name == "" {
		return 0
	}
	n, ok := p.at[name]
	if !ok {
		p.list = append(p.list, name)
		n = len(p.list)
		if p.at == nil {
			p.at = make(map[T]int)
		}
		p.at[name] = n
	}
	return n
}

// tableEncoder makes tables of rows and collects the names of a season. err is the first error.
type tableEncoder struct {
	drivers places[season.DriverID]
	teams   places[season.TeamID]
	engines places[season.EngineID]
	reasons places[string]
	err     error
}

// column returns a value of each row, or nil if all of them are zero.
func column[Row any, V comparable](rows []Row, value func(*Row) V) []V {
	var zero V
	values, any := make([]V, len(rows)), false
	for i := range rows {
		values[i] = value(&rows[i])
		any = any || values[i] != zero
	}
	if !any {
		return nil
	}
	return values
}

func (e *tableEncoder) millis(d time.Duration) int {
	if d%time.Millisecond != 0 && e.err == nil {
		e.err = fmt.Errorf("time %s is not of whole milliseconds", d)
	}
	return int(d / time.Millisecond)
}

// tableDecoder makes rows of tables. err is the first error.
type tableDecoder struct {
	names *seasonLine
	err   error
}

func (d *tableDecoder) fail(err error) {
	if d.err == nil {
		d.err = err
	}
}

// newRows returns as many rows as the table has, nil for none. Rows is not trusted beyond the
// first column, which every table has.
func newRows[Row any](d *tableDecoder, t table) []Row {
	if t.Rows != max(len(t.Driver), len(t.Team)) {
		d.fail(fmt.Errorf("table of %d rows names %d drivers and %d teams", t.Rows, len(t.Driver), len(t.Team)))
		return nil
	}
	if t.Rows == 0 {
		return nil
	}
	return make([]Row, t.Rows)
}

// spread sets a value of each row from a column, which is absent or as long as the table.
func spread[Row, V any](d *tableDecoder, rows []Row, column []V, set func(*Row, V)) {
	if column == nil {
		return
	}
	if len(column) != len(rows) {
		d.fail(fmt.Errorf("column of %d values in a table of %d rows", len(column), len(rows)))
		return
	}
	for i := range rows {
		set(&rows[i], column[i])
	}
}

// name returns the name at a place of a list.
func name[T ~string](d *tableDecoder, list []T, place int) T {
	switch {
	case place == 0:
		return ""
	case place < 0 || place > len(list):
		d.fail(fmt.Errorf("place %d in a list of %d names", place, len(list)))
		return ""
	}
	return list[place-1]
}

func duration(ms int) time.Duration { return time.Duration(ms) * time.Millisecond }
