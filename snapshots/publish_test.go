package snapshots_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"gridcast/deploy/must"
	"gridcast/snapshots"
	"gridcast/snapshots/blob"
	"gridcast/snapshots/blob/memblob"
)

var raceDay = time.Date(2024, 11, 24, 6, 0, 0, 0, time.UTC)

// strict returns a store that fails the test if an immutable object is written twice.
func strict(t *testing.T) *memblob.Store {
	return memblob.New(memblob.Strict(t, snapshots.Immutable))
}

func directory(t *testing.T) blob.Store { return openDirectory(t, t.TempDir()) }

// bodies are the identity bytes of a version by path.
type bodies map[string]string

// draftOf returns a draft with these bodies, each packed.
func draftOf(base *snapshots.Base, content bodies) snapshots.Draft {
	d := snapshots.Draft{Base: base, About: snapshots.About{
		Builder: "test", BuiltAt: raceDay, DueAt: raceDay.Add(time.Hour),
		CurrentSeason: 2024, Seasons: []int{2023, 2024},
		Archive: snapshots.Digest([]byte("archive")),
		Ledger:  snapshots.Ledger{Kind: "simulated", Seq: 3, Hash: snapshots.Digest([]byte("ledger"))},
	}}
	for path, body := range content {
		d.Variants = append(d.Variants, variant(path, body))
	}
	return d
}

func variant(path, body string) snapshots.Variant {
	return snapshots.New(path, []byte(body), packed(body), raceDay)
}

// packed is a body as gzip, however small it is.
func packed(body string) []byte {
	w, _ := gzips.Get().(*gzip.Writer)
	defer gzips.Put(w)
	var b bytes.Buffer
	w.Reset(&b)
	_, _ = io.WriteString(w, body)
	_ = w.Close()
	return b.Bytes()
}

var gzips = sync.Pool{New: func() any { return gzip.NewWriter(nil) }}

func packedSize(bodies ...string) (size int64) {
	for _, body := range bodies {
		size += int64(len(packed(body)))
	}
	return size
}

func loadBase(t *testing.T, s blob.Store) *snapshots.Base {
	t.Helper()
	return must.Get(snapshots.LoadBase(t.Context(), s, nil))(t)
}

func publish(t *testing.T, s blob.Store, content bodies) snapshots.Receipt {
	t.Helper()
	p := snapshots.Publisher{Store: s}
	return must.Get(p.Publish(t.Context(), draftOf(loadBase(t, s), content)))(t)
}

// served reads the current version as an edge does.
func served(t *testing.T, s blob.Store) (int64, bodies) {
	t.Helper()
	v := must.Get(snapshots.Open(t.Context(), s, nil))(t)
	return v.Pointer.Version, contentOf(v)
}

func contentOf(v *snapshots.Version) bodies {
	content := bodies{}
	for path, b := range v.All() {
		content[path] = string(b.Identity)
	}
	return content
}

func TestPublish(t *testing.T) {
	for name, open := range map[string]func(*testing.T) blob.Store{
		"memory":    func(t *testing.T) blob.Store { return strict(t) },
		"directory": directory,
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t)
			first := bodies{"calendar/2024": "c1", "drivers": "d1", "standings/drivers/2024": "s1"}
			r := publish(t, s, first)
			want := snapshots.Receipt{Version: 1, Variants: 3, ObjectsWritten: 3, BytesWritten: packedSize("c1", "d1", "s1")}
			must.Equal(t, "first receipt", want, withoutSeconds(r))

			second := bodies{"calendar/2024": "c1", "drivers": "d2", "standings/drivers/2024": "s1", "standings/drivers/2023": "new"}
			r = publish(t, s, second)
			want = snapshots.Receipt{Version: 2, Variants: 4, ObjectsWritten: 2, ObjectsReused: 2, BytesWritten: packedSize("d2", "new")}
			must.Equal(t, "second receipt", want, withoutSeconds(r))
			version, got := served(t, s)
			if diff := cmp.Diff(second, got); version != 2 || diff != "" {
				t.Errorf("served version %d, want 2 (-want +got):\n%s", version, diff)
			}
		})
	}
}

func withoutSeconds(r snapshots.Receipt) snapshots.Receipt {
	r.Seconds, r.Base = 0, nil
	return r
}

func TestEntriesOfAVersion(t *testing.T) {
	s := strict(t)
	publish(t, s, bodies{"drivers": "d1"})
	base := loadBase(t, s)
	got, _ := base.Entry("drivers")
	digest := snapshots.Digest([]byte("d1"))
	want := snapshots.ManifestEntry{
		Path: "drivers", Object: "objects/1/drivers.json.gz", SHA256: digest, Size: 2, ETag: digest[:32], GeneratedAt: raceDay,
		Packed: snapshots.Packed{SHA256: snapshots.Digest(packed("d1")), Size: packedSize("d1")},
	}
	must.Equal(t, "entry", want, got)
	if body, err := base.Body(t.Context(), got); err != nil || string(body) != "d1" {
		t.Errorf("body of the entry: got %q, %v", body, err)
	}
}

// A draft changes the version only if a reader could notice a difference.
func TestUnchanged(t *testing.T) {
	for _, test := range []struct {
		name    string
		change  func(*snapshots.Draft)
		publish bool
	}{
		{"nothing", func(*snapshots.Draft) {}, false},
		{"builder, reason and time of the build", func(d *snapshots.Draft) {
			d.Builder, d.Reason, d.BuiltAt = "another", "because", d.BuiltAt.Add(time.Minute)
		}, false},
		{"the same bytes, rendered later", func(d *snapshots.Draft) {
			d.Variants[0] = snapshots.New("drivers", []byte("d1"), nil, raceDay.Add(time.Minute))
		}, false},
		{"a body", func(d *snapshots.Draft) { d.Variants[0] = variant("drivers", "d2") }, true},
		{"a body loses its tag", func(d *snapshots.Draft) { d.Variants[0] = snapshots.Unfinished("drivers", []byte("d1")) }, true},
		{"a new variant", func(d *snapshots.Draft) { d.Variants = append(d.Variants, variant("calendar/2024", "c")) }, true},
		{"due time", func(d *snapshots.Draft) { d.DueAt = d.DueAt.Add(time.Minute) }, true},
		{"ledger head", func(d *snapshots.Draft) { d.Ledger.Seq++ }, true},
		{"archive", func(d *snapshots.Draft) { d.Archive = snapshots.Digest(nil) }, true},
		{"current season", func(d *snapshots.Draft) { d.CurrentSeason = 2023 }, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := strict(t)
			publish(t, s, bodies{"drivers": "d1"})
			d := draftOf(loadBase(t, s), bodies{"drivers": "d1"})
			test.change(&d)
			p := snapshots.Publisher{Store: s}
			r := must.Get(p.Publish(t.Context(), d))(t)
			if r.Unchanged == test.publish {
				t.Errorf("unchanged: got %v, want %v", r.Unchanged, !test.publish)
			}
			if version, _ := served(t, s); version != r.Version || (version == 2) != test.publish {
				t.Errorf("version %d is current, the receipt says %d; published: want %v", version, r.Version, test.publish)
			}
		})
	}
}

func TestReuse(t *testing.T) {
	s := strict(t)
	publish(t, s, bodies{"drivers": "d1", "calendar/2024": "c1"})
	base := loadBase(t, s)
	entry, _ := base.Entry("drivers")

	d := draftOf(base, bodies{"calendar/2024": "c2"})
	d.Variants = append(d.Variants, snapshots.Reused(entry))
	p := snapshots.Publisher{Store: s}
	must.Get(p.Publish(t.Context(), d))(t)
	if got, _ := loadBase(t, s).Entry("drivers"); !cmp.Equal(got, entry) {
		t.Errorf("reused entry (-want +got):\n%s", cmp.Diff(entry, got))
	}

	forged := entry
	forged.Object = "objects/9/drivers.json"
	d = draftOf(loadBase(t, s), bodies{"calendar/2024": "c3"})
	d.Variants = append(d.Variants, snapshots.Reused(forged))
	must.Fail(t, "an entry that the base does not have was published", must.Err(p.Publish(t.Context(), d)))
}

func TestMayNotFollow(t *testing.T) {
	for name, change := range map[string]func(*snapshots.Draft){
		"an earlier time":             func(d *snapshots.Draft) { d.BuiltAt = d.BuiltAt.Add(-time.Second) },
		"a season lost":               func(d *snapshots.Draft) { d.Seasons = []int{2024} },
		"another kind of ledger":      func(d *snapshots.Draft) { d.Ledger.Kind = "real" },
		"a shorter ledger":            func(d *snapshots.Draft) { d.Ledger.Seq-- },
		"another ledger of that size": func(d *snapshots.Draft) { d.Ledger.Hash = snapshots.Digest(nil) },
	} {
		t.Run(name, func(t *testing.T) {
			s := strict(t)
			publish(t, s, bodies{"drivers": "d1"})
			d := draftOf(loadBase(t, s), bodies{"drivers": "d2"})
			change(&d)
			p := snapshots.Publisher{Store: s}
			must.Fail(t, "another draft", must.Err(p.Publish(t.Context(), d)), snapshots.ErrMayNotFollow)
			if version, content := served(t, s); version != 1 || content["drivers"] != "d1" {
				t.Errorf("version %d with %q is current, want the first", version, content["drivers"])
			}
		})
	}
}

func TestInvalidDrafts(t *testing.T) {
	for name, change := range map[string]func(*snapshots.Draft){
		"no base":          func(d *snapshots.Draft) { d.Base = nil },
		"no variants":      func(d *snapshots.Draft) { d.Variants = nil },
		"a path twice":     func(d *snapshots.Draft) { d.Variants = append(d.Variants, d.Variants[0]) },
		"a path outside":   func(d *snapshots.Draft) { d.Variants = append(d.Variants, variant("../keys", "x")) },
		"no time":          func(d *snapshots.Draft) { d.BuiltAt = time.Time{} },
		"no kind":          func(d *snapshots.Draft) { d.Ledger.Kind = "" },
		"unknown season":   func(d *snapshots.Draft) { d.CurrentSeason = 1949 },
		"seasons unsorted": func(d *snapshots.Draft) { d.Seasons = []int{2024, 2023} },
	} {
		t.Run(name, func(t *testing.T) {
			s := strict(t)
			d := draftOf(loadBase(t, s), bodies{"drivers": "d1"})
			change(&d)
			p := snapshots.Publisher{Store: s}
			must.Fail(t, "it was published", must.Err(p.Publish(t.Context(), d)))
			for info := range s.List(t.Context(), "") {
				t.Errorf("it left %s behind", info.Key)
			}
		})
	}
}

func TestProgress(t *testing.T) {
	s := strict(t)
	var got []string
	p := snapshots.Publisher{Store: s, Workers: 4, Progress: func(phase string, done, total int) {
		got = append(got, fmt.Sprintf("%s %d/%d", phase, done, total))
	}}
	must.Get(p.Publish(t.Context(), draftOf(loadBase(t, s), bodies{"drivers": "d1", "calendar/2024": "c1", "calendar/2023": "c0"})))(t)
	want := []string{"upload 0/3", "upload 1/3", "upload 2/3", "upload 3/3", "check 0/3", "check 1/3", "check 2/3", "check 3/3", "swap 0/1", "swap 1/1"}
	must.Equal(t, "progress", want, got)
}

// Impossible numbers in the store do not hinder a publish.
func TestStrayNumbers(t *testing.T) {
	for _, stray := range []string{
		"versions/9223372036854775807.json", "manifests/9223372036854775807.json.gz", "versions/9007199254740992.json",
		"manifests/9007199254740992.json.gz", "versions/5000000.json", "manifests/5000000.json.gz", "versions/-5.json", "versions/007.json",
	} {
		t.Run(stray, func(t *testing.T) {
			s := strict(t)
			for range 2 {
				if _, err := s.Create(t.Context(), stray, []byte(`{"builder":"stray"}`)); err != nil && !errors.Is(err, blob.ErrConflict) {
					t.Fatal(err)
				}
				publish(t, s, bodies{"drivers": fmt.Sprint("d", loadBase(t, s).Pointer.Version)})
			}
			if version, content := served(t, s); version != 2 || content["drivers"] != "d1" {
				t.Errorf("version %d with %q is current, want 2 with d1", version, content["drivers"])
			}
			if r := rollback(t, s, 1); r.Version != 3 {
				t.Errorf("rolled back under number %d, want 3", r.Version)
			}
			must.Succeed(t, "list", must.Err(snapshots.List(t.Context(), s)))
		})
	}
}

// A claim a little above the pointer belongs to a running builder, which keeps its number.
func TestClaimsAboveAreRespected(t *testing.T) {
	s := strict(t)
	publish(t, s, bodies{"drivers": "d1"})
	must.Get(s.Create(t.Context(), "versions/900000.json", []byte(`{}`)))(t)
	if r := publish(t, s, bodies{"drivers": "d2"}); r.Version != 900001 {
		t.Errorf("published under %d, want 900001", r.Version)
	}
}

// A pointer with an impossible number is damaged, and an operator can roll back from it.
func TestStrayPointer(t *testing.T) {
	s := memblob.New()
	publish(t, s, bodies{"drivers": "d1"})
	publish(t, s, bodies{"drivers": "d2"})
	s.Corrupt(snapshots.PointerKey, []byte(`{"version":9223372036854775807,"manifest":"`+strings.Repeat("0", 64)+`","at":"2026-11-22T00:00:00Z"}`))
	must.Fail(t, "load", must.Err(snapshots.LoadBase(t.Context(), s, nil)), snapshots.ErrDamaged)
	if r := rollback(t, s, 1); r.Version != 3 {
		t.Errorf("rolled back under number %d, want 3", r.Version)
	}
}
