package f1db_test

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/gzip"

	"gridcast/builder/season"
	"gridcast/builder/source"
	"gridcast/builder/source/codehosttest"
	"gridcast/builder/source/f1db"
	"gridcast/builder/source/media"
	"gridcast/builder/source/sourcetest"
	"gridcast/deploy/golden"
	"gridcast/deploy/must"
)

// TestRepositoryIsTheRelease: the repository gives the same facts as the later release, except for
// corrections in between.
func TestRepositoryIsTheRelease(t *testing.T) {
	must.Long(t, "reads a whole repository")
	release := sourcetest.Path(t, sourcetest.F1DB2026)
	host := codehosttest.New(t, sourcetest.Path(t, sourcetest.F1DBHistory), time.Now)
	packed, commit := must.Get2(host.Archive(time.Date(2026, 6, 15, 0, 0, 0, 0, time.UTC)))(t)
	tree := must.Get(f1db.ReadTree(bytes.NewReader(packed), 2025, 2027))(t)
	must.Hold(t, tree.Commit == commit, "the tree is of commit %s, want %s", tree.Commit, commit)
	d, err := tree.Document(media.Media{})
	if err != nil || len(d.Unread) > 0 {
		t.Fatal(err, d.Unread)
	}
	got := d.Facts
	archive, _ := must.Get2(f1db.Import(release, f1db.Options{From: 2025}))(t)
	want := archive.Facts()
	corrected := map[string]bool{"barcelona-catalunya": true, "japan": true} // reasons of retirements, the number of a stop
	for i := range want.Seasons {
		for j := range want.Seasons[i].Rounds {
			r := want.Seasons[i].Rounds[j]
			if len(r.Results) == 0 || corrected[string(r.GrandPrix)] && want.Seasons[i].Year == 2026 || want.Seasons[i].Year == 2026 && r.Number > 7 {
				continue
			}
			if diff := cmp.Diff(r, got.Seasons[i].Rounds[j]); diff != "" {
				t.Errorf("%d %s (-release +repository):\n%s", want.Seasons[i].Year, r.Name, diff)
			}
		}
	}
	must.Equal(t, "lineages of the repository", want.Lineages, got.Lineages)

	again := must.Get(tree.Encode())(t)
	unpacked := must.Get(f1db.DecodeTree(again))(t)
	if !reflect.DeepEqual(tree, unpacked) {
		t.Errorf("packed and unpacked (-want +got):\n%s", cmp.Diff(tree, unpacked, cmp.AllowUnexported(f1db.Tree{})))
	}
	if second, err := tree.Encode(); err != nil || !bytes.Equal(again, second) {
		t.Errorf("the same tree was packed as other bytes: %v", err)
	}
}

// entry is one of a tar.
type entry struct {
	name    string
	content string
	kind    byte
	size    int64
}

func tarball(t *testing.T, entries ...entry) []byte {
	t.Helper()
	var packed bytes.Buffer
	zipped := gzip.NewWriter(&packed)
	archive := tar.NewWriter(zipped)
	for _, e := range entries {
		header := tar.Header{Name: e.name, Typeflag: e.kind, Size: max(e.size, int64(len(e.content))), Mode: 0o644}
		if e.kind == 0 {
			header.Typeflag = tar.TypeReg
		}
		if e.kind == tar.TypeSymlink {
			header.Linkname, header.Size = "/etc/passwd", 0
		}
		must.Do(t, archive.WriteHeader(&header))
		must.Get(archive.Write([]byte(e.content)))(t)
	}
	_ = archive.Close() // some tests want an entry shorter than its header says
	must.Do(t, zipped.Close())
	return packed.Bytes()
}

const raceFile = "f1db-main/src/data/seasons/2026/races/01-australia/race.yml"

// TestReadTreeRefuses: an archive of another shape is refused, and the error names the entry.
func TestReadTreeRefuses(t *testing.T) {
	good := entry{name: raceFile, content: "id: 1\n"}
	many := make([]entry, 0, f1db.MaxEntries+1)
	for i := range f1db.MaxEntries + 1 {
		many = append(many, entry{name: fmt.Sprintf("f1db-main/%d", i)})
	}
	said := make(map[string]string)
	for name, packed := range map[string][]byte{
		"no gzip":           []byte("<html>502 Bad Gateway</html>"),
		"empty":             nil,
		"cut off":           tarball(t, good)[:60],
		"link":              tarball(t, good, entry{name: "f1db-main/src/data/x.yml", kind: tar.TypeSymlink}),
		"device":            tarball(t, good, entry{name: "f1db-main/dev", kind: tar.TypeChar}),
		"climbs":            tarball(t, good, entry{name: "f1db-main/../../etc/cron.d/x", content: "x"}),
		"absolute":          tarball(t, good, entry{name: "/etc/cron.d/x", content: "x"}),
		"two tops":          tarball(t, good, entry{name: "other/src/data/x.yml", content: "x"}),
		"twice":             tarball(t, good, good),
		"large file":        tarball(t, good, entry{name: "f1db-main/large", content: strings.Repeat("x", 1<<20+1)}),
		"many entries":      tarball(t, many...),
		"nothing of theirs": tarball(t, entry{name: "f1db-main/README.md", content: "x"}),
		"a bomb":            tarball(t, bomb()...),
	} {
		said[name] = fmt.Sprint(must.Err(f1db.ReadTree(bytes.NewReader(packed), 2025, 2027)))
	}
	golden.Inputs(t, "testdata/trees.txt", said)
}

// bomb is small when packed and larger than MaxUnpacked, with each file within its limit.
func bomb() []entry {
	zeros := strings.Repeat("\x00", 1<<20)
	list := make([]entry, f1db.MaxUnpacked>>20+1)
	for i := range list {
		list[i] = entry{name: fmt.Sprintf("f1db-main/%d", i), content: zeros}
	}
	return list
}

// oneRace is a repository with one race; a test replaces a file of it.
var oneRace = map[string]string{
	raceFile: "id: 1\nround: 1\ndate: 2026-03-08\ntime: 04:00\ngrandPrixId: australia\nqualifyingFormat: KNOCKOUT\n" +
		"circuitId: melbourne\ncircuitType: STREET\ncourseLength: 5.278\nlaps: 58\nqualifyingDate: 2026-03-07\nqualifyingTime: 05:00\n",
	"f1db-main/src/data/seasons/2026/races/01-australia/race-results.yml": "- position: 1\n  driverNumber: 63\n  driverId: george-russell\n" +
		"  constructorId: mercedes\n  engineManufacturerId: mercedes\n  laps: 58\n  time: \"1:23:06.801\"\n  points: 25\n  gridPosition: PL\n",
	"f1db-main/src/data/seasons/2026/driver-standings.yml": "- position: 1\n  driverId: george-russell\n  points: 25\n",
	"f1db-main/src/data/circuits/melbourne.yml":            "id: melbourne\nfullName: Melbourne Grand Prix Circuit\nplaceName: Melbourne\ncountryId: australia\n",
	"f1db-main/src/data/grands-prix/australia.yml":         "id: australia\nfullName: Australian Grand Prix\n",
	"f1db-main/src/data/countries/australia.yml":           "id: australia\nname: Australia\nalpha3Code: AUS\n",
	"f1db-main/src/data/countries/united-kingdom.yml":      "id: united-kingdom\nname: United Kingdom\nalpha3Code: GBR\n",
	"f1db-main/src/data/drivers/george-russell.yml":        "id: george-russell\nname: George Russell\nfirstName: George\nlastName: Russell\nabbreviation: RUS\nnationalityCountryId: united-kingdom\n",
	"f1db-main/src/data/constructors/mercedes.yml":         "id: mercedes\nname: Mercedes\ncountryId: united-kingdom\n",
	"f1db-main/src/data/engine-manufacturers/mercedes.yml": "id: mercedes\nname: Mercedes\n",
}

// branch returns files as an archive that names no commit.
func branch(t *testing.T, files map[string]string) []byte {
	t.Helper()
	var entries []entry
	for _, name := range slices.Sorted(maps.Keys(files)) {
		entries = append(entries, entry{name: name, content: files[name]})
	}
	return tarball(t, entries...)
}

// factsOf reads files: the winner's time in milliseconds, the start, the notes and the parts that cannot be read.
func factsOf(t *testing.T, files map[string]string) (int, time.Time, []string, []season.Unread) {
	t.Helper()
	tree := must.Get(f1db.ReadTree(bytes.NewReader(branch(t, files)), 2025, 2027))(t)
	d := must.Get(tree.Document(media.Media{}))(t)
	r := d.Facts.Seasons[0].Rounds[0]
	if len(r.Results) == 0 {
		return 0, r.StartsAt(), d.Notes, d.Unread
	}
	return int(r.Results[0].Time / time.Millisecond), r.StartsAt(), d.Notes, d.Unread
}

// TestRepositoryFiles: a file with a wrong value costs its own parts, and the others are read; odd but harmless values
// pass.
func TestRepositoryFiles(t *testing.T) {
	results := "f1db-main/src/data/seasons/2026/races/01-australia/race-results.yml"
	replace := func(name, old, with string) map[string]string {
		files := make(map[string]string)
		for k, v := range oneRace {
			files[k] = v
		}
		must.Show(t, name, files[name], old)
		files[name] = strings.Replace(files[name], old, with, 1)
		return files
	}
	said := make(map[string]string)
	for name, test := range map[string]struct {
		files map[string]string
		ms    int
		start string
	}{
		"as it is":                {files: oneRace, ms: 4986801, start: "2026-03-08T04:00:00Z"},
		"unknown key":             {files: replace(raceFile, "round: 1", "round: 1\nturns: 14\nnew: {a: [1]}"), ms: 4986801},
		"hour unknown":            {files: replace(raceFile, "time: 04:00", "time:"), ms: 4986801, start: "2026-03-08T13:00:00Z"},
		"hour in base 60":         {files: replace(raceFile, "time: 04:00", "time: 900")},
		"no result yet":           {files: replace(results, oneRace[results], ""), start: "2026-03-08T04:00:00Z"},
		"time of no sense":        {files: replace(results, `"1:23:06.801"`, `"+-1:38:49.328"`)},
		"time left empty":         {files: replace(results, `"1:23:06.801"`, ""), ms: 0},
		"anchor":                  {files: replace(raceFile, "id: 1", "id: &a 1")},
		"alias":                   {files: replace(raceFile, "id: 1\nround: 1", "id: 1\nround: 1\nx: &a 1\ny: *a")},
		"tag":                     {files: replace(raceFile, "id: 1", "id: !!int \"1\"")},
		"two documents":           {files: replace(raceFile, "laps: 58", "laps: 58\n---\nid: 2")},
		"list for a value":        {files: replace(raceFile, "time: 04:00", "time: [4, 0]")},
		"text for a number":       {files: replace(results, "laps: 58", "laps: many")},
		"key twice":               {files: replace(raceFile, "round: 1", "round: 1\nround: 2")},
		"unknown driver":          {files: replace(results, "driverId: george-russell", "driverId: nobody")},
		"standings of the season": {files: replace("f1db-main/src/data/seasons/2026/driver-standings.yml", "points: 25", "points: [25]")},
		"id of another file":      {files: replace("f1db-main/src/data/drivers/george-russell.yml", "id: george-russell", "id: other")},
	} {
		t.Run(name, func(t *testing.T) {
			ms, start, skipped, unread := factsOf(t, test.files)
			said[name] = fmt.Sprintf("unread %v, skipped %q", unread, skipped)
			if len(unread) > 0 {
				for _, u := range unread {
					read := u.Section == season.ResultSection && start.Equal(time.Date(2026, 3, 8, 4, 0, 0, 0, time.UTC)) && ms == 0 || u.Section != season.ResultSection && ms == 4986801
					if !read {
						t.Errorf("%+v is left out, and the start is %s, the winner's time %d ms: want the other parts", u, start, ms)
					}
				}
				return
			}
			must.Hold(t, ms == test.ms, "the winner's time is %d ms, want %d", ms, test.ms)
			if test.start != "" && start.Format(time.RFC3339) != test.start {
				t.Errorf("the start is %s, want %s", start.Format(time.RFC3339), test.start)
			}
		})
	}
	golden.Inputs(t, "testdata/races.txt", said)
}

// TestBranchWithoutCommit: each state of a branch has a revision of its own, also if the archive of the host names no commit.
// Ingest judges no document twice whose revision it has judged.
func TestBranchWithoutCommit(t *testing.T) {
	files := maps.Clone(oneRace)
	host := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/gzip")
		_, _ = w.Write(branch(t, files))
	}))
	defer host.Close()
	upstream := must.Get(f1db.NewRepository(host.URL, "gridcast-test (operator@example.org)", media.Default()))(t)
	seen := make(map[string]bool)
	for i, laps := range []string{"laps: 58", "laps: 57"} {
		files[raceFile] = strings.Replace(oneRace[raceFile], "laps: 58", laps, 1)
		now := time.Date(2026, 6, 5, 12+i, 0, 0, 0, time.UTC)
		payload := must.Get(upstream.Fetch(t.Context(), now, 2025, 2027, source.Known{}))(t)
		document := must.Get(upstream.Read(payload.Packed))(t)
		if payload.Revision == "" || document.Revision != payload.Revision || seen[payload.Revision] {
			t.Errorf("%s: revision %q, read as %q; want one name that no other state has", laps, payload.Revision, document.Revision)
		}
		seen[payload.Revision] = true
	}
}

// TestLatestRelease fetches a release by path and by URL. An unchanged release is recognised by the
// host's validator or its sum, and one with another digest is refused. Every release has its own
// revision, because a round counts as lost only in the second release without it.
func TestLatestRelease(t *testing.T) {
	path := zipped(t, world(t))
	packed := must.Get(os.ReadFile(path))(t)
	conditional := 0
	host := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("ETag", `"1"`)
		if r.Header.Get("If-None-Match") == `"1"` {
			conditional++
			w.WriteHeader(http.StatusNotModified)
			return
		}
		w.Header().Set("Content-Type", "application/zip")
		_, _ = w.Write(packed)
	}))
	defer host.Close()
	now := time.Date(2023, 6, 5, 12, 0, 0, 0, time.UTC)
	for _, place := range []string{path, host.URL + "/release.zip", fmt.Sprintf("%s/release.zip#sha256=%s", host.URL, source.Sum(packed))} {
		upstream := must.Get(f1db.NewRelease(place, "gridcast-test (operator@example.org)", media.Default()))(t)
		first := must.Get(upstream.Fetch(t.Context(), now, 2022, 2024, source.Known{}))(t)
		document := must.Get(upstream.Read(first.Packed))(t)
		if first.Revision == "" || document.Revision != first.Revision || len(document.Facts.Seasons) != 1 {
			t.Errorf("%s: revision %q, read as %q with %d seasons; want one name and one season", place, first.Revision, document.Revision, len(document.Facts.Seasons))
		}
		again, err := upstream.Fetch(t.Context(), now.Add(time.Hour), 2022, 2024, source.Known{Validators: first.Validators, SHA256: source.Sum(first.Packed)})
		must.Hold(t, err == nil && again.NotModified, "%s again: not modified %t, error %v", place, again.NotModified, err)
	}
	must.Hold(t, conditional == 2, "%d requests were answered with a 304, want 2", conditional)
	other := must.Get(f1db.NewRelease(host.URL+"/release.zip#sha256="+strings.Repeat("0", 64), "gridcast-test", media.Default()))(t)
	var fault *source.Fault
	_, err := other.Fetch(t.Context(), now, 2022, 2024, source.Known{})
	must.Hold(t, errors.As(err, &fault) && fault.Kind == source.Malformed, "of another digest: got %v, want a malformed payload", err)
}
