package bulk_test

import (
	"archive/zip"
	"bytes"
	"encoding/csv"
	"encoding/json"
	"io"
	"maps"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"gridcast/builder"
	"gridcast/builder/bulk"
	"gridcast/builder/bulk/bulktest"
	"gridcast/builder/check"
	"gridcast/builder/predict"
	"gridcast/builder/season"
	"gridcast/builder/testseason"
	"gridcast/deploy/golden"
	"gridcast/deploy/must"
	"gridcast/schemas/wire"
	"gridcast/snapshots"
)

// download makes the downloads of the current version, by year.
func download(t *testing.T, b *builder.Builder) map[int][]byte {
	t.Helper()
	v := must.Get(snapshots.Open(t.Context(), b.Store, nil))(t)
	sources := must.Get(bulk.Downloads{}.Sources(v))(t)
	made := map[int][]byte{}
	for year := range sources {
		made[year] = must.Get((bulk.Downloads{}).Make(v, year))(t)
	}
	return made
}

// sourcesOf returns the inputs of the downloads of the current version.
func sourcesOf(t *testing.T, b *builder.Builder) map[int]string {
	t.Helper()
	v := must.Get(snapshots.Open(t.Context(), b.Store, nil))(t)
	return must.Get(bulk.Downloads{}.Sources(v))(t)
}

// unpacked returns the files of a download, by name without the folder.
func unpacked(t *testing.T, data []byte) map[string]string {
	t.Helper()
	packed := must.Get(zip.NewReader(bytes.NewReader(data), int64(len(data))))(t)
	files := map[string]string{}
	for _, f := range packed.File {
		r := must.Get(f.Open())(t)
		text := must.Get(io.ReadAll(r))(t)
		_, name, _ := strings.Cut(f.Name, "/")
		files[name] = string(text)
	}
	return files
}

func table(t *testing.T, text string) (rows []map[string]string) {
	t.Helper()
	all := must.Get(csv.NewReader(strings.NewReader(text)).ReadAll())(t)
	for _, row := range all[1:] {
		named := map[string]string{}
		for i, column := range all[0] {
			named[column] = row[i]
		}
		rows = append(rows, named)
	}
	return rows
}

// twoSeasons is service on an archive without a file.
func twoSeasons(t *testing.T, opened time.Time, policy builder.Policy) *testseason.Season {
	t.Helper()
	two := must.Get(season.New(testseason.ShortFacts(t, testseason.Austria)))(t)
	return testseason.New(t, testseason.Config{Archive: two, Opened: opened, Policy: policy})
}

// TestDownloadsFollowTheSeason walks over a race: each season has a download, only the one that changes
// gets another input, and versions of two services give the same bytes of it.
func TestDownloadsFollowTheSeason(t *testing.T) {
	must.Long(t, "builds some versions, one after the other")
	policy := builder.Policy{Model: predict.GridFrequency(), AutoVerifyAfter: time.Hour}
	qualified := time.Date(2024, 6, 29, 16, 0, 0, 0, time.UTC) // of Austria, the eleventh round
	verified := time.Date(2024, 6, 30, 17, 0, 0, 0, time.UTC)
	b := twoSeasons(t, qualified.Add(-time.Hour), policy)
	b.Publish(qualified)
	first, sources := download(t, b.Builder), sourcesOf(t, b.Builder)
	if len(first) != 2 || !maps.EqualFunc(first, download(t, b.Builder), bytes.Equal) {
		t.Errorf("%d downloads, want those of two seasons, the same each time", len(first))
	}
	files := unpacked(t, first[2024])
	for _, name := range []string{
		"README.txt", "columns.csv", "schemas/results.schema.json", "schemas/common.schema.json",
		"calendar.ndjson", "calendar.csv", "results.ndjson", "results.csv", "results_sprint.csv", "results_revisions.csv", "weekends_sessions.csv",
		"standings_drivers.csv", "standings_constructors.csv", "changes.csv", "changes_old_race.csv", "predictions.csv", "probabilities_drivers.csv", "accuracy.csv",
	} {
		_, ok := files[name]
		must.Hold(t, ok, "%s is missing", name)
	}
	golden.File(t, "testdata/README.txt", files["README.txt"])
	race := table(t, files["results.csv"])
	if want := (map[string]string{
		"session_key": "2024001", "gp_name": "Bahrain Grand Prix", "position": "1", "driver": "VER", "driver_id": "max-verstappen", "name": "Max Verstappen", "team": "Red Bull", "team_id": "red-bull", "team_colour": "#3671C6", "number": "1",
		"status": "classified", "grid": "1", "laps": "57", "time_ms": "5504742", "gap_ms": "", "gap_laps": "", "points": "26", "reason": "", "shared": "",
	}); cmp.Diff(want, race[0]) != "" {
		t.Errorf("the first row of all: %s", cmp.Diff(want, race[0]))
	}
	got, want := len(race), strings.Count(files["results.ndjson"], `"status":"`)-len(table(t, files["results_sprint.csv"]))
	must.Hold(t, got == want && got >= 190, "got %d rows, want %d", got, want)

	b.Publish(verified)
	second, later := download(t, b.Builder), sourcesOf(t, b.Builder)
	for year, d := range second {
		bulktest.CheckKeys(t, d)
		if bytes.Equal(d, first[year]) != (year != 2024) || (sources[year] == later[year]) != (year != 2024) {
			t.Errorf("%d: input %s after %s, and %d bytes after %d", year, later[year], sources[year], len(d), len(first[year]))
		}
	}
	var record wire.ResultRecord
	lines := strings.Split(strings.TrimSpace(unpacked(t, second[2024])["results.ndjson"]), "\n")
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &record); err != nil || record.SessionKey != 2024011 || record.Race[0].Driver != "RUS" {
		t.Errorf("the result that was verified is not in it: %+v, %v", record, err)
	}

	// Somebody else comes to the same facts, and rendered most of them earlier.
	other := twoSeasons(t, qualified.Add(-12*time.Hour), policy)
	other.Publish(qualified.Add(-12 * time.Hour))
	other.Publish(qualified)
	other.Publish(verified)
	for year, d := range download(t, other.Builder) {
		if !bytes.Equal(d, second[year]) {
			t.Errorf("%d: the version of another builder gives other bytes of the same season\n%s", year, cmp.Diff(unpacked(t, second[year]), unpacked(t, d)))
		}
	}

	// A rollback restores the downloads of the earlier version.
	versions := must.Get(snapshots.List(t.Context(), b.Store))(t)
	publisher := snapshots.Publisher{Store: b.Store}
	must.Get(publisher.Rollback(t.Context(), versions[1].Version, "test", "wrong", verified.Add(time.Minute)))(t)
	must.Hold(t, maps.EqualFunc(first, download(t, b.Builder), bytes.Equal), "after the rollback the downloads are others")
}

// downloadable returns a season of two rounds, one of them borrowed, and its documents.
func downloadable() (bulk.Season, map[string][]byte) {
	return bulk.Season{Year: 2025, Without: []bulk.Borrowed{{SessionKey: 2025002, GPName: "Grand Prix B"}}}, map[string][]byte{
		"calendar/2025":          []byte(`{"ok":true,"data":[{"round":1,"session_key":2025001,"gp_name":"A, \"the first\"","circuit":"Ring\nOne","locality":"T","country":"C","date":"2025-06-01","sprint":false,"status":"scheduled"},{"round":2,"session_key":2025002,"gp_name":"Grand Prix B","circuit":"Ring","locality":"T","country":"C","date":"2025-06-08","sprint":false,"status":"finished","winner":"ANN"}]}`),
		"results/2025":           []byte(`{"ok":true,"data":[{"session_key":2025002,"gp_name":"Grand Prix B","revisions":[],"race":[{"driver":"ANN","name":"Ann","team":"T","status":"classified","points":25}]}]}`),
		"standings/drivers/2025": []byte(`{"ok":true,"data":[{"driver":"ANN","name":"Ann","team":"T","points":25,"wins":1,"podiums":1}]}`),
	}
}

// TestBorrowedFactsAreNotInDownloads: a download leaves out rounds that rest on sources with
// non-commercial terms, and the tables that sum them up. Its README lists them.
func TestBorrowedFactsAreNotInDownloads(t *testing.T) {
	two, documents := downloadable()
	data := must.Get(two.Zip(documents))(t)
	for name, text := range unpacked(t, data) {
		switch {
		case name == "README.txt":
			must.Show(t, "the README", text, "2025002  Grand Prix B\n")
		case regexp.MustCompile("2025002|ANN").MatchString(text), strings.HasPrefix(name, "standings"):
			t.Errorf("%s: %s", name, text)
		case name == "calendar.csv":
			_, row, _ := strings.Cut(text, "\r\n")
			must.Equal(t, "the row of the calendar", "1,2025001,\"A, \"\"the first\"\"\",\"Ring\r\nOne\",T,C,2025-06-01,,false,scheduled,\r\n", row)
		case name == "results.csv":
			if !strings.HasPrefix(text, "session_key,gp_name,position,driver,") || strings.Count(text, "\r\n") != 1 {
				t.Errorf("a table without rows: %q", text)
			}
		}
	}
	must.Succeed(t, "Bulk", check.Bulk(data, map[string][]byte{"calendar": documents["calendar/2025"], "results": documents["results/2025"]}, two.Keys()))
	without := two
	without.Without = nil
	must.Hold(t, two.Source(nil) != without.Source(nil), "what is left out does not count as what it is made of")
}

// TestBulkCheck has downloads that are wrong in one way each.
func TestBulkCheck(t *testing.T) {
	two, documents := downloadable()
	good := must.Get(two.Zip(documents))(t)
	named, keys := map[string][]byte{"calendar": documents["calendar/2025"], "results": documents["results/2025"]}, two.Keys()
	damaged := bytes.Clone(good)
	damaged[bytes.Index(damaged, []byte("README.txt"))+80] ^= 1
	complete := two
	complete.Without = nil
	borrowed := must.Get(complete.Zip(documents))(t)
	for _, tt := range []struct {
		decision  string
		data      []byte
		documents map[string][]byte
		without   []int64
	}{
		{"no zip", good[:len(good)-30], named, keys},
		{"a file that is damaged", damaged, named, keys},
		{"records of another document", good, map[string][]byte{"calendar": []byte(`{"data":[]}`)}, keys},
		{"a document that is not in it", good, map[string][]byte{"calendar": named["calendar"], "results": named["results"], "weekends": []byte(`{"data":[]}`)}, keys},
		{"a round that should be left out", borrowed, two.Named(documents), keys},
	} {
		must.Fail(t, tt.decision+" passes", check.Bulk(tt.data, tt.documents, tt.without))
	}
}
