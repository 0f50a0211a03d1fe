package archive_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"

	"gridcast/builder/archive"
	"gridcast/builder/season"
	"gridcast/builder/source/f1db"
	"gridcast/builder/source/sourcetest"
	"gridcast/deploy/golden"
	"gridcast/deploy/must"
)

// smallFacts hold at least one row of every table.
func smallFacts() season.Facts {
	day := time.Date(2024, 5, 26, 0, 0, 0, 0, time.UTC)
	lap := 90*time.Second + 123*time.Millisecond
	timed := []season.TimedLap{{Driver: "a", Team: "x", Time: lap, Laps: 20}, {Driver: "b"}}
	qualifying := []season.QualifyingRow{{Driver: "b", Team: "y", Position: 1, Time: lap, Segments: [3]time.Duration{lap, 0, lap}}}
	grid := []season.GridSlot{{Driver: "a", Team: "x", Back: true}, {Driver: "b", Team: "y", Position: 2, Penalty: 5}}
	results := []season.Result{
		{Driver: "a", Team: "x", Engine: "e", Position: 1, Grid: 2, Laps: 78, Time: 2 * time.Hour, Points: 25.5},
		{Driver: "b", Team: "y", Outcome: season.DidNotFinish, Reason: "Collision", Shared: true},
	}
	return season.Facts{
		Source:    "test <&>",
		Drivers:   map[season.DriverID]season.Driver{"a": {ID: "a", Name: "A", HeadshotURL: "https://h/"}, "b": {ID: "b", LastName: "Bé"}},
		Teams:     map[season.TeamID]season.Team{"x": {ID: "x", Name: "X", Country: "ITA"}, "y": {ID: "y"}},
		Engines:   map[season.EngineID]season.Engine{"e": {ID: "e", Name: "E"}},
		Circuits:  map[season.CircuitID]season.Circuit{"c": {ID: "c", Name: "C", Locality: "L", Country: "Monaco"}},
		Headshots: season.Headshots{Template: "https://images.example/{year}/{code}.png", Drivers: []season.DriverID{"b"}},
		Lineages:  []season.Lineage{{Links: []season.Link{{Team: "y", From: 2000, To: 2010}, {Team: "x", From: 2011}}}},
		Seasons: []season.Season{
			{
				Year: 2024, Colours: map[season.TeamID]string{"x": "#00FF00"},
				Rounds: []season.Round{{
					Number: 8, GrandPrix: "monaco", Name: "Monaco Grand Prix", Circuit: "c", Street: true, CourseKm: 3.337,
					ScheduledLaps: 78, Date: day, Start: day.Add(13 * time.Hour), Sprint: true,
					Sessions: []season.Session{
						{Kind: season.Sprint, Date: day.AddDate(0, 0, -1)},
						{Kind: season.Qualifying, Date: day.AddDate(0, 0, -1), Start: day.Add(-10 * time.Hour)},
					},
					Entries:    []season.Entry{{Driver: "a", Team: "x", Engine: "e", Number: 4}},
					Practice:   [4][]season.TimedLap{timed, nil, timed, timed},
					Qualifying: qualifying, SprintQualifying: qualifying, SprintGrid: grid, Grid: grid,
					SprintResults: results, Results: results,
					FastestLaps:     []season.FastestLap{{Driver: "a", Lap: 7, Time: lap}},
					PitStops:        []season.PitStop{{Driver: "b", Stop: 1, Lap: 3, Time: 23 * time.Second}},
					DriverStandings: []season.DriverStanding{{Driver: "a", Position: 1, Points: 25.5}, {Driver: "b"}},
					TeamStandings:   []season.TeamStanding{{Team: "x", Engine: "e", Position: 1, Points: 25.5}, {Team: "y"}},
				}},
			},
			{Year: 2025, Rounds: []season.Round{{Number: 1, GrandPrix: "g", Name: "G", Circuit: "c", Date: day.AddDate(1, 0, 0)}}},
		},
	}
}

func smallFile(t testing.TB) []byte {
	t.Helper()
	a := must.Get(season.New(smallFacts()))(t)
	return encode(t, a)
}

func encode(t testing.TB, a *season.Archive) []byte {
	t.Helper()
	stored := must.Get(archive.Encode(a, archive.Stored{}))(t)
	return stored.File()
}

func decode(file []byte) (*season.Archive, error) {
	stored, err := archive.Read(file)
	return stored.Archive, err
}

func TestDecodeInvertsEncode(t *testing.T) {
	file := smallFile(t)
	a := must.Get(decode(file))(t)
	must.Equal(t, "facts", smallFacts(), a.Facts())
	again := encode(t, a)
	must.Hold(t, bytes.Equal(file, again), "encoding what was decoded gives other bytes")
}

// TestSmallFactsFillEveryField makes sure that the test above sees every field there is.
func TestSmallFactsFillEveryField(t *testing.T) {
	r := reflect.ValueOf(smallFacts().Seasons[0].Rounds[0])
	for i := range r.NumField() {
		if r.Field(i).IsZero() && r.Type().Field(i).Tag.Get("json") != "-" {
			t.Errorf("Round.%s is zero", r.Type().Field(i).Name)
		}
	}
}

func TestDecodeInvertsEncodeAtFullScale(t *testing.T) {
	must.Long(t, "reads a whole release")
	a, _ := must.Get2(f1db.Import(sourcetest.Path(t, sourcetest.F1DB2024), f1db.Options{}))(t)
	file := encode(t, a)
	start := time.Now()
	got := must.Get(decode(file))(t)
	t.Logf("75 seasons: %d bytes, decoded in %d ms", len(file), time.Since(start).Milliseconds())
	if !reflect.DeepEqual(a.Facts(), got.Facts()) { // first, for cmp takes seconds
		t.Errorf("facts (-written +read):\n%s", cmp.Diff(a.Facts(), got.Facts()))
	}
}

func TestEmbedded(t *testing.T) {
	embedded := must.Get(archive.Embedded())(t)
	f := embedded.Archive.Facts()
	if got := len(f.Seasons); got != 20 || f.Seasons[0].Year != 2007 || f.Seasons[19].Year != 2026 {
		t.Errorf("%d seasons, from %d to %d; want 20 from 2007 to 2026", got, f.Seasons[0].Year, f.Seasons[got-1].Year)
	}
	got := embedded.Bytes()
	must.Hold(t, got <= 3<<20, "%d bytes, want at most 3 MB", got)
	for i, colour := range map[int]string{17: "#E8002D", 19: "#E80020"} {
		if got := f.Seasons[i].Colours["ferrari"]; got != colour {
			t.Errorf("Ferrari's colour of %d is %q", f.Seasons[i].Year, got)
		}
	}
	must.Hold(t, f.Source == f1db.Source, "source %q, want %q", f.Source, f1db.Source)
}

var packer = sync.OnceValues(func() (*zstd.Encoder, error) {
	return zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithWindowSize(1<<20))
})

// lines packs each line of a text as a part, as an archive file of one decade has them.
func lines(t testing.TB, text string) []byte {
	t.Helper()
	z := must.Get(packer())(t)
	var file []byte
	for line := range strings.Lines(text) {
		file = z.EncodeAll([]byte(line), file)
	}
	return file
}

func unpacked(t testing.TB, file []byte) string {
	t.Helper()
	z := must.Get(zstd.NewReader(bytes.NewReader(file)))(t)
	defer z.Close()
	text := must.Get(io.ReadAll(z))(t)
	return string(text)
}

// TestDecodeErrors: a file that is no archive, or a damaged one, is refused with the error in the golden file.
func TestDecodeErrors(t *testing.T) {
	file := smallFile(t)
	text := unpacked(t, file)
	change := func(old, with string) []byte {
		t.Helper()
		changed := strings.Replace(text, old, with, 1)
		must.Require(t, changed != text, "the file does not hold %s", old)
		return lines(t, changed)
	}
	flipped := bytes.Clone(file)
	flipped[len(flipped)-1] ^= 1 // in the sum at the end
	season2 := strings.LastIndex(text, `{"year":2025`)
	said := map[string]string{}
	for _, test := range []struct {
		name string
		file []byte
		is   error
	}{
		{"empty", nil, archive.ErrNotArchive},
		{"other bytes", []byte("hello, world"), archive.ErrNotArchive},
		{"not JSON", lines(t, "hello\n"), archive.ErrNotArchive},
		{"other JSON", lines(t, "{}\n"), archive.ErrNotArchive},
		{"newer version", change(`"version":3`, `"version":4`), archive.ErrVersion},
		{"earlier version", change(`"version":3`, `"version":2`), archive.ErrVersion},
		{"cut off", file[:len(file)-20], archive.ErrDamaged},
		{"wrong sum", flipped, archive.ErrDamaged},
		{"a season missing", lines(t, text[:season2]), archive.ErrDamaged},
		{"a season too many", change(`"seasons":2`, `"seasons":1`), archive.ErrDamaged},
		{"a line cut off", lines(t, text[:len(text)-1]), archive.ErrDamaged},
		{"a member twice", change(`"driver":"a",`, `"driver":"a","driver":"a",`), archive.ErrDamaged},
		{"a time in words", change(`"time":90123`, `"time":"1:30.123"`), archive.ErrDamaged},
		{"a time of many years", change(`"time":90123`, `"time":9223372036855`), archive.ErrDamaged},
		{"bad date", change(`"date":"2024-05-26"`, `"date":"26 May"`), archive.ErrDamaged},
		{"unknown driver", change(`"b":{"id":"b"`, `"z":{"id":"z"`), nil},
	} {
		_, err := decode(test.file)
		if err == nil || test.is != nil && !errors.Is(err, test.is) {
			t.Errorf("%s: got %v, want %v", test.name, err, test.is)
		}
		said[test.name] = strings.ReplaceAll(fmt.Sprint(err), "unable to", "cannot") // the decoder uses both
	}
	golden.Inputs(t, "testdata/damaged.txt", said)
}

// TestEveryPrefixIsDamaged cuts the file at every byte.
func TestEveryPrefixIsDamaged(t *testing.T) {
	file := smallFile(t)
	for n := range file {
		_, err := decode(file[:n])
		must.Require(t, err != nil, "the first %d of %d bytes were decoded", n, len(file))
	}
}

func TestEncodeRefusesFineTimes(t *testing.T) {
	f := smallFacts()
	f.Seasons[0].Rounds[0].Results[0].Time++
	a, err := season.New(f)
	must.Do(t, err)
	golden.Sentence(t, "a time of nanoseconds", must.Err(archive.Encode(a, archive.Stored{})), "unable to", "cannot") // the encoder uses both
}

func TestFiles(t *testing.T) {
	path := filepath.Join(t.TempDir(), "facts.zst")
	a := must.Get(season.New(smallFacts()))(t)
	stored := must.Get(archive.Encode(a, archive.Stored{}))(t)
	must.Do(t, archive.WriteFile(path, stored))
	got := must.Get(archive.ReadFile(path))(t)
	if diff := cmp.Diff(a.Facts(), got.Archive.Facts()); diff != "" {
		t.Error(diff)
	}
	must.Hold(t, got.SHA256 == stored.SHA256, "digest %s, want %s", got.SHA256, stored.SHA256)
	must.Fail(t, "wrote below a file", archive.WriteFile(filepath.Join(path, "below-a-file"), stored))
	entries, err := os.ReadDir(filepath.Dir(path))
	must.Hold(t, err == nil && len(entries) == 1, "%d files in the folder, error %v; want the archive alone", len(entries), err)
}

func FuzzDecode(f *testing.F) {
	text := unpacked(f, smallFile(f))
	f.Add(text)
	f.Add(`{"format":"gridcast-archive","version":3,"seasons":-5}` + "\n")
	f.Add(`{"format":"gridcast-archive","version":3,"seasons":1}` + "\n" + `{"year":2024,"rounds":[{"date":"x"}]}` + "\n")
	f.Fuzz(func(t *testing.T, text string) {
		a, err := decode(lines(t, text))
		if err != nil {
			return
		}
		// Encoding an accepted archive twice gives the same bytes.
		file := encode(t, a)
		b, err := decode(file)
		if err != nil {
			t.Fatalf("what was encoded is refused: %v", err)
		}
		if !bytes.Equal(file, encode(t, b)) {
			t.Error("decoding and encoding again gives other bytes")
		}
	})
}

// TestReadable checks that a person can read the file: every line is a JSON object.
func TestReadable(t *testing.T) {
	embedded := must.Get(archive.Embedded())(t)
	for i, line := range strings.Split(strings.TrimSuffix(unpacked(t, embedded.File()), "\n"), "\n") {
		must.Hold(t, json.Valid([]byte(line)) && line[0] == '{', "line %d is not a JSON object", i+1)
	}
}
