package archive_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"gridcast/builder/archive"
	"gridcast/builder/season"
	"gridcast/builder/source/f1db"
	"gridcast/builder/source/media"
	"gridcast/builder/source/sourcetest"
	"gridcast/deploy/golden"
	"gridcast/deploy/must"
	"gridcast/snapshots"
	"gridcast/snapshots/blob"
	"gridcast/snapshots/blob/faultblob"
	"gridcast/snapshots/blob/memblob"
)

// packed returns the small facts after a change, in parts.
func packed(t *testing.T, base archive.Stored, change func(*season.Facts)) archive.Stored {
	t.Helper()
	facts := smallFacts()
	change(&facts)
	a := must.Get(season.New(facts))(t)
	return must.Get(archive.Encode(a, base))(t)
}

// keys returns the keys of the archives in a store.
func keys(t *testing.T, store blob.Store) map[string]int64 {
	t.Helper()
	found := map[string]int64{}
	for info, err := range store.List(t.Context(), "archives/") {
		must.Do(t, err)
		found[info.Key] = info.Size
	}
	return found
}

// A changed season replaces one part. A store opened anew reads the same facts, and a store that has the archive
// before reads the list and the new part alone.
func TestPartsOfASeason(t *testing.T) {
	inner := memblob.New(memblob.Strict(t, snapshots.Immutable))
	reads := map[string]int{}
	var mu sync.Mutex
	store := faultblob.Wrap(inner, func(_ context.Context, call faultblob.Call) faultblob.Fate {
		mu.Lock()
		defer mu.Unlock()
		if call.Op == faultblob.Get {
			reads[path.Dir(call.Key)]++
		}
		return faultblob.Fate{}
	})
	writer, follower := archive.NewStore(inner), archive.NewStore(store)
	first := packed(t, archive.Stored{}, func(*season.Facts) {})
	must.Do(t, writer.Put(t.Context(), first))
	must.Get(follower.Load(t.Context()))(t)
	before := keys(t, inner)
	must.Hold(t, len(before) == 1+3, "an archive of two seasons: objects %v, want the list and three parts", before)
	rename := func(f *season.Facts) { f.Seasons[1].Rounds[0].Name = "Another Grand Prix" }
	next := packed(t, first, rename)
	if whole := packed(t, archive.Stored{}, rename); whole.SHA256 != next.SHA256 || !bytes.Equal(whole.File(), next.File()) {
		t.Errorf("digest %s with parts of the archive before, %s without", next.SHA256, whole.SHA256)
	}
	must.Do(t, writer.Put(t.Context(), next))
	after := keys(t, inner)
	must.Hold(t, len(after) == len(before)+2, "after a change of one season: objects %v, want a list and a part more than %v", after, before)
	clear(reads)
	got := must.Get(follower.Load(t.Context()))(t)
	must.Equal(t, "reads of a changed archive", map[string]int{".": 1, "archives": 1, "archives/parts": 1}, reads)
	diff := cmp.Diff(next.Archive.Facts(), got.Archive.Facts())
	must.Hold(t, diff == "" && got.SHA256 == next.SHA256, "digest %s, want %s; facts (-want +got):\n%s", got.SHA256, next.SHA256, diff)
	must.Hold(t, bytes.Equal(next.File(), got.File()), "the file of the loaded archive differs")
	list, err := follower.List(t.Context())
	must.Hold(t, err == nil && len(list) == 2 && list[0].Bytes+list[1].Bytes != 0, "list: %+v, %v; want two archives with their sizes", list, err)
}

// Decades that are over share a part.
func TestPartsOfDecades(t *testing.T) {
	store := memblob.New()
	stored := packed(t, archive.Stored{}, func(f *season.Facts) {
		for year := 2005; year < 2024; year++ {
			s := season.Season{Year: year, Rounds: []season.Round{{Number: 1, GrandPrix: "g", Name: "G", Circuit: "c", Date: time.Date(year, 5, 1, 0, 0, 0, 0, time.UTC)}}}
			f.Seasons = slices.Insert(f.Seasons, len(f.Seasons)-2, s)
		}
	})
	must.Do(t, archive.NewStore(store).Put(t.Context(), stored))
	// The list; the header, the 2000s, the 2010s, and 2020 to 2025.
	got := keys(t, store)
	must.Hold(t, len(got) == 1+1+2+6, "%d objects, want 10: %v", len(got), got)
	again, err := archive.Read(stored.File())
	must.Hold(t, err == nil && again.SHA256 == stored.SHA256, "its file: digest %s, %v; want %s", again.SHA256, err, stored.SHA256)
}

// A damaged part is an error that names it, and a part that an earlier release compressed otherwise is the same part.
func TestDamagedParts(t *testing.T) {
	stored := packed(t, archive.Stored{}, func(*season.Facts) {})
	for name, c := range map[string]struct {
		folder string
		mangle func([]byte) []byte
		is     error // of Load and of Keep; nil: both succeed
	}{
		"a part that is cut":        {"archives/parts", func(data []byte) []byte { return data[:len(data)/2] }, archive.ErrDamaged},
		"a part with other lines":   {"archives/parts", func([]byte) []byte { return lines(t, "{}\n") }, archive.ErrDamaged},
		"a part compressed anew":    {"archives/parts", func(data []byte) []byte { return lines(t, unpacked(t, data)) }, nil},
		"a list with other members": {"archives", func([]byte) []byte { return []byte("{}") }, archive.ErrDamaged},
	} {
		t.Run(name, func(t *testing.T) {
			store := memblob.New()
			must.Do(t, archive.NewStore(store).Put(t.Context(), stored))
			for key := range keys(t, store) {
				if path.Dir(key) == c.folder {
					o := must.Get(store.Get(t.Context(), key, archive.MaxFile))(t)
					store.Corrupt(key, c.mangle(o.Data))
				}
			}
			got, err := archive.NewStore(store).Load(t.Context())
			kept := archive.NewStore(store).Keep(t.Context(), stored)
			must.Require(t, errors.Is(err, c.is) && errors.Is(kept, c.is), "load: %v, keep: %v; want %v", err, kept, c.is)
			if c.is == nil && !cmp.Equal(stored.Archive.Facts(), got.Archive.Facts()) {
				t.Error("it has other facts")
			}
		})
	}
}

// TestArchiveInUseIsLost loses the object that names the archive in use. Nobody takes the store for an empty one, and a person
// can name the archive again.
func TestArchiveInUseIsLost(t *testing.T) {
	stored := packed(t, archive.Stored{}, func(*season.Facts) {})
	for name, lose := range map[string]func(*memblob.Store){
		"missing":       func(s *memblob.Store) { must.Do(t, s.Delete(t.Context(), "archive.json")) },
		"without bytes": func(s *memblob.Store) { s.Corrupt("archive.json", nil) },
		"damaged":       func(s *memblob.Store) { s.Corrupt("archive.json", []byte("{")) },
	} {
		t.Run(name, func(t *testing.T) {
			store := memblob.New()
			s := archive.NewStore(store)
			must.Do(t, s.Put(t.Context(), stored))
			lose(store)
			err := must.Err(archive.NewStore(store).InUse(t.Context()))
			must.Require(t, err != nil && !errors.Is(err, blob.ErrNotFound), "in use: got %v, want that it is lost", err)
			list := must.Get(s.List(t.Context()))(t)
			must.Require(t, len(list) == 1 && !list[0].InUse, "list: got %+v", list)
			must.Do(t, s.Put(t.Context(), stored))
			must.Equal(t, "in use", stored.SHA256, must.Get(s.InUse(t.Context()))(t))
		})
	}
}

// TestCompare: a difference names seasons, rounds, lost results and colours, and says so in sentences.
func TestCompare(t *testing.T) {
	added := func(f *season.Facts) {
		next := f.Seasons[1].Rounds[0]
		next.Number, next.GrandPrix, next.Name, next.Date = 2, "h", "H", next.Date.AddDate(0, 0, 7)
		f.Seasons[1].Rounds = append(f.Seasons[1].Rounds, next)
	}
	for name, test := range map[string]struct {
		change    func(*season.Facts)
		want      archive.Diff
		onlyAdds  bool
		sentences string
	}{
		"nothing": {func(*season.Facts) {}, archive.Diff{}, true, "It holds the same rounds with the same facts."},
		"a round more": {
			added,
			archive.Diff{Rounds: []archive.RoundDiff{{Year: 2025, GrandPrix: "h", Name: "H", Kind: archive.RoundAdded}}},
			true, "It adds 1 rounds.",
		},
		"another grid": {
			func(f *season.Facts) { f.Seasons[0].Rounds[0].Grid = nil },
			archive.Diff{Rounds: []archive.RoundDiff{{Year: 2024, GrandPrix: "monaco", Name: "Monaco Grand Prix", Kind: archive.RoundChanged, Changed: []string{"grid"}}}},
			true, "1 rounds differ: Monaco Grand Prix 2024 (grid).",
		},
		"another result": {
			func(f *season.Facts) {
				r := &f.Seasons[0].Rounds[0]
				r.Results = slices.Clone(r.Results)
				r.Results[0].Laps = 77
			},
			archive.Diff{Rounds: []archive.RoundDiff{
				{Year: 2024, GrandPrix: "monaco", Name: "Monaco Grand Prix", Kind: archive.RoundChanged, Changed: []string{"results"}, NewResult: true},
			}},
			false, "1 rounds differ: Monaco Grand Prix 2024 (results).",
		},
		"a lost result": {
			func(f *season.Facts) { f.Seasons[0].Rounds[0].Results, f.Seasons[0].Rounds[0].FastestLaps = nil, nil },
			archive.Diff{Rounds: []archive.RoundDiff{{
				Year: 2024, GrandPrix: "monaco", Name: "Monaco Grand Prix", Kind: archive.RoundChanged, Changed: []string{"results", "fastest laps"}, LostResult: true,
			}}},
			false, "It lacks the results of 1 rounds: Monaco Grand Prix 2024 (results, fastest laps).\n1 rounds differ: Monaco Grand Prix 2024 (results, fastest laps).",
		},
		"a lost season": {
			func(f *season.Facts) { f.Seasons = f.Seasons[1:] },
			archive.Diff{SeasonsRemoved: []int{2024}, Rounds: []archive.RoundDiff{
				{Year: 2024, GrandPrix: "monaco", Name: "Monaco Grand Prix", Kind: archive.RoundRemoved, LostResult: true},
			}},
			false, "It lacks 1 seasons that the one in use has: 2024.\nIt lacks the results of 1 rounds: Monaco Grand Prix 2024.\n1 rounds are not in it.",
		},
		"lost colours": {
			func(f *season.Facts) { f.Seasons[0].Colours = nil },
			archive.Diff{ColoursLost: []int{2024}},
			false, "Team colours are lost in 1 seasons: 2024.",
		},
	} {
		t.Run(name, func(t *testing.T) {
			facts := smallFacts()
			before := must.Get(season.New(smallFacts()))(t)
			test.change(&facts)
			after := must.Get(season.New(facts))(t)
			got := archive.Compare(before, after)
			must.Equal(t, "difference", test.want, got)
			must.Equal(t, "OnlyAdds", test.onlyAdds, got.OnlyAdds())
			text := strings.Join(got.Sentences(), "\n")
			must.Hold(t, text == test.sentences, "sentences: got\n%s\nwant\n%s", text, test.sentences)
		})
	}
}

// TestEmbeddedIsImport makes the embedded seasons again from the release and compares.
func TestEmbeddedIsImport(t *testing.T) {
	must.Long(t, "reads a whole release")
	a, _ := must.Get2(f1db.Import(sourcetest.Path(t, sourcetest.F1DB2026), f1db.Options{From: 2007, Media: media.Default()}))(t)
	embedded := must.Get(archive.Embedded())(t)
	imported := must.Get(archive.Encode(a, archive.Frames(embedded)))(t)
	if golden.Updates() {
		// The tool zstd makes the file a quarter smaller than our encoder, and so the binary.
		file := must.Get(archive.Recompress(imported, func(lines []byte) ([]byte, error) {
			zstd := exec.Command("zstd", "--ultra", "-22", "--zstd=wlog=23", "--check", "--stdout", "--quiet")
			zstd.Stdin = bytes.NewReader(lines)
			return zstd.Output()
		}))(t)
		must.Do(t, os.WriteFile("seasons.zst", file, 0o600))
		t.Skip("seasons.zst written; run again without -update")
	}
	if embedded.SHA256 != imported.SHA256 {
		t.Errorf("seasons.zst has the digest %s, the release gives %s; run go test ./builder/archive -run EmbeddedIsImport -update", embedded.SHA256, imported.SHA256)
	}
}
