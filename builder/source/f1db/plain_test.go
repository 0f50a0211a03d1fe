package f1db_test

import (
	"reflect"
	"testing"
	"time"

	"gridcast/builder/source"
	"gridcast/builder/source/codehosttest"
	"gridcast/builder/source/f1db"
	"gridcast/builder/source/media"
	"gridcast/builder/source/sourcetest"
)

// spellings are tables, and whether their lines are read without a YAML parser.
var spellings = map[string]bool{
	"- position: 1\n  driverId: a-b\n  time: \"1:42:06.304\"\n  gap:\n  points: 12.5\n- position: DNF\n  reasonRetired: Power unit (oil)\n": true,
	"- position: 1":                                true,
	"- sharedCar: true\n  laps: 0\n":               true,
	"- new: anything\n  stop: 2\n":                 true,
	"- driverNumber: 007\n  q1: \"\"\n":            true,
	"- driverId: 2026-03-08\n":                     true,
	"- driverId: true\n":                           true,
	"- driverId: 1e3\n":                            true,
	"":                                             false,
	"# no rows yet\n":                              false,
	"[]\n":                                         false,
	"- position: 1\n\n- position: 2\n":             false,
	"- position: 1\r\n":                            false,
	"- position: 1 \n":                             false,
	"- position: 1 # one\n":                        false,
	"- position: 1\n  position: 2\n":               false,
	"- position: &a 1\n":                           false,
	"- position: *a\n":                             false,
	"- position: !!int 1\n":                        false,
	"- position: [1]\n":                            false,
	"- position: 'one'\n":                          false,
	"- position: one: two\n":                       false,
	"- position: |\n    one\n":                     false,
	"- reasonRetired: two\n    lines\n":            false,
	"- reasonRetired: \"two\n    lines\"\n":        false,
	"- reasonRetired: \"a \\\"b\\\"\"\n":           false,
	"- reasonRetired: \"a\" b\n":                   false,
	"- reasonRetired: \"a\n":                       false,
	"- reasonRetired: caf\u00e9\n":                 false,
	"- reasonRetired: \"caf\u00e9\"\n":             false,
	"- driverId: null\n":                           false,
	"- driverId: ~\n":                              false,
	"- lap: 007\n":                                 false,
	"- lap: 0x10\n":                                false,
	"- lap: 1.000\n":                               false,
	"- laps: -1\n":                                 false,
	"- lap: many\n":                                false,
	"- lap: \"1\"\n":                               false,
	"- lap: 1.0\n":                                 false,
	"- points: 1e3\n":                              false,
	"- points: .5\n":                               false,
	"- points: \"1\"\n":                            false,
	"- sharedCar: yes\n":                           false,
	"- sharedCar: \"true\"\n":                      false,
	"  position: 1\n":                              false,
	"position: 1\n":                                false,
	"- position: 1\n   laps: 2\n":                  false,
	"- position: 1\n---\n- position: 2\n":          false,
	"- position:1\n":                               false,
	"- a key: 1\n":                                 false,
	"- - position: 1\n":                            false,
	"- position: 1\nlaps: 2\n":                     false,
	"- position: 1\n\tlaps: 2\n":                   false,
	"- position: 1\n  lap: 99999999999999999999\n": false,
}

// TestPlainRows: the lines of a table give the rows that the YAML parser gives, or are left to it.
func TestPlainRows(t *testing.T) {
	for content, plain := range spellings {
		if got := f1db.Spell(content).Plain; got != plain {
			t.Errorf("%q: read by its lines: %t, want %t", content, got, plain)
		}
		wantSameRows(t, content)
	}
}

// TestTablesArePlain: every table of F1DB is read by its lines.
func TestTablesArePlain(t *testing.T) {
	at := time.Date(2026, 6, 9, 0, 0, 0, 0, time.UTC)
	host := codehosttest.New(t, sourcetest.Path(t, sourcetest.F1DBHistory), func() time.Time { return at })
	upstream, err := f1db.NewRepository(host.URL, "gridcast-test (operator@example.org)", media.Default())
	if err != nil {
		t.Fatal(err)
	}
	payload, err := upstream.Fetch(t.Context(), at, 2026, 2026, source.Known{})
	if err != nil {
		t.Fatal(err)
	}
	tree, err := f1db.Unpack(payload.Packed)
	if err != nil {
		t.Fatal(err)
	}
	tables := f1db.TablesOf(tree)
	if len(tables) < 50 {
		t.Errorf("got %d tables, want those of five months", len(tables))
	}
	for name, content := range tables {
		if !wantSameRows(t, content) {
			t.Errorf("%s is left to the YAML parser", name)
		}
	}
}

// FuzzPlainRows: no bytes give other rows by their lines than by the YAML parser.
func FuzzPlainRows(f *testing.F) {
	for content := range spellings {
		f.Add(content)
	}
	f.Fuzz(func(t *testing.T, content string) { wantSameRows(t, content) })
}

// wantSameRows reads a table in both ways and reports whether its lines could be read.
func wantSameRows(t *testing.T, content string) bool {
	t.Helper()
	s := f1db.Spell(content)
	if s.Plain && (s.Err != nil || !reflect.DeepEqual(s.Lines, s.Parsed)) {
		t.Errorf("%q: by its lines %+v, by the parser %+v, %v", content, s.Lines, s.Parsed, s.Err)
	}
	return s.Plain
}
