package f1db

import "gridcast/builder/season"

// Report counts the imported and the skipped rows of a release.
type Report struct {
	From, To int // first and last season
	Seasons  int
	Rounds   int
	Results  int // rows of race results
	Tables   []Table
	Skipped  []Skip

	// Unread are the parts that were left out, because a value cannot be read. An import fails if there is one.
	Unread []season.Unread

	sheets []season.Sheet
	born   map[season.DriverID]string // birth dates
}

// Table counts the rows of a table that was read.
type Table struct {
	Name     string
	Rows     int // in the release
	Imported int // in the archive
}

// Skip is a part of the release that is not in the archive, or that the release lacks.
type Skip struct {
	What string // a file, a table, or kind of row
	Rows int    // 0 where nothing was counted
	Why  string
}

// skip adds to the count of the same thing skipped for the same reason.
func (r *Report) skip(what, why string, rows int) {
	for i := range r.Skipped {
		if r.Skipped[i].What == what && r.Skipped[i].Why == why {
			r.Skipped[i].Rows += rows
			return
		}
	}
	r.Skipped = append(r.Skipped, Skip{What: what, Rows: rows, Why: why})
}
