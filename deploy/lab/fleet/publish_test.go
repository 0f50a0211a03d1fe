package fleet_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"text/tabwriter"
	"time"

	"gridcast/deploy/must"
	"gridcast/snapshots"
	"gridcast/snapshots/blob"
	"gridcast/snapshots/blob/dirblob"
	"gridcast/snapshots/blob/memblob"
	"gridcast/snapshots/blob/s3test"
)

// measureAll runs the measurements in full size: 10,000 variants, 100 publishes and a server.
const measureAll = "GRIDCAST_MEASURE"

func measuringAll() bool { return os.Getenv(measureAll) != "" }

// TestScale publishes ever larger versions, then one changed variant, and loads the result as
// an edge does. The second publish must write that variant alone.
func TestScale(t *testing.T) {
	sizes, backends := []int{10, 100}, []string{"memory", "directory"}
	if measuringAll() {
		sizes, backends = []int{10, 100, 1000, 10000}, append(backends, "versitygw")
	}
	var table strings.Builder
	w := tabwriter.NewWriter(&table, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "store\tvariants\tall: objects\tMB\tseconds\tone: objects\tkB\tmanifest kB\tseconds\tload seconds\tMB resident\t")
	for _, name := range backends {
		for _, size := range sizes {
			s := stores[name](t)
			all, one, manifest := scale(t, s, size)
			seconds, resident := load(t, s)
			fmt.Fprintf(w, "%s\t%d\t%d\t%.1f\t%.3f\t%d of %d\t%.1f\t%.0f\t%.3f\t%.3f\t%.1f\t\n", name, size,
				all.ObjectsWritten, float64(all.BytesWritten)/1e6, all.Seconds,
				one.ObjectsWritten, one.ObjectsWritten+one.ObjectsReused, float64(one.BytesWritten)/1e3, float64(manifest)/1e3, one.Seconds,
				seconds, float64(resident)/1e6)
		}
	}
	must.Do(t, w.Flush())
	t.Log("\n" + table.String())
}

func scale(t *testing.T, s blob.Store, size int) (all, one snapshots.Receipt, manifest int) {
	t.Helper()
	d := draftOf(loadBase(t, s))
	for i := range size {
		d.Variants = append(d.Variants, sized(i, "before"))
	}
	all = publish(t, s, d)
	base := loadBase(t, s)
	next := draftOf(base)
	next.Variants = append(next.Variants, sized(0, "after"))
	for _, e := range base.Manifest.Entries {
		if e.Path != next.Variants[0].Path() {
			next.Variants = append(next.Variants, snapshots.Reused(e))
		}
	}
	one = publish(t, s, next)
	if one.ObjectsWritten != 1 || one.ObjectsReused != size-1 {
		t.Errorf("one variant of %d changed: %d objects written, %d reused; want 1 and %d", size, one.ObjectsWritten, one.ObjectsReused, size-1)
	}
	o := must.Get(s.Get(t.Context(), snapshots.ManifestKey(one.Version), blob.MaxDocument))(t)
	return all, one, len(o.Data)
}

// load opens the current version, and reports the time and the memory that it took.
func load(t *testing.T, s blob.Store) (seconds float64, resident int64) {
	t.Helper()
	before := heap()
	start := time.Now()
	v := must.Get(snapshots.Open(t.Context(), s, nil))(t)
	seconds = time.Since(start).Seconds()
	resident = heap() - before
	must.Hold(t, len(v.Manifest.Entries) != 0, "the version is empty")
	return seconds, resident
}

func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// sized is a variant of about the size of a season's standings.
func sized(i int, text string) snapshots.Variant {
	var body bytes.Buffer
	for row := range 25 {
		fmt.Fprintf(&body, `{"position":%d,"driver":"D%02d","name":"Driver %d of %s %d","team":"Team %d","points":%d},`, row, row, row*i, text, i, row/2, (row*7919+i)%400)
	}
	return variant(fmt.Sprintf("standings/drivers/%d", i), body.String())
}

// TestTimeToEdge measures from the start of a publish, and of a rollback, to the delivery at
// an edge that polls at the usual rate.
func TestTimeToEdge(t *testing.T) {
	runs, backends := 4, []string{"directory"}
	if measuringAll() {
		runs, backends = 100, []string{"directory", "versitygw"}
	}
	for _, name := range backends {
		t.Run(name, func(t *testing.T) {
			s, delivered := stores[name](t), make(chan int64, 1000)
			next := func(i int) snapshots.Receipt {
				d := draftOf(loadBase(t, s))
				d.Variants, d.EndHold, d.BuiltAt = []snapshots.Variant{variant("drivers", fmt.Sprint("d", i))}, true, raceDay.Add(time.Hour)
				return publish(t, s, d)
			}
			next(0)
			ctx, cancel := context.WithCancel(t.Context())
			var following sync.WaitGroup
			defer following.Wait()
			defer cancel()
			following.Go(func() {
				_ = snapshots.Follow(ctx, snapshots.FollowConfig{Store: s, Deliver: func(v *snapshots.Version) error { delivered <- v.Pointer.Version; return nil }})
			})
			took := func(do func() snapshots.Receipt) time.Duration {
				began := time.Now()
				if want, got := do().Version, <-delivered; got != want {
					t.Fatalf("version %d was delivered, want %d", got, want)
				}
				return time.Since(began)
			}
			<-delivered
			var published, rolledBack []time.Duration
			for i := range runs {
				published = append(published, took(func() snapshots.Receipt { return next(i + 1) }))
				rolledBack = append(rolledBack, took(func() snapshots.Receipt {
					return must.Get((&snapshots.Publisher{Store: s}).Rollback(t.Context(), 1, "operator", "measured", raceDay.Add(time.Hour)))(t)
				}))
			}
			t.Logf("publish to edge: %s", quantiles(published))
			t.Logf("rollback to edge: %s", quantiles(rolledBack))
		})
	}
}

func quantiles(times []time.Duration) string {
	slices.Sort(times)
	at := func(share float64) time.Duration {
		return times[int(share*float64(len(times)-1)+0.5)].Round(10 * time.Microsecond)
	}
	return fmt.Sprintf("median %v, p99 %v, slowest %v of %d", at(0.5), at(0.99), times[len(times)-1].Round(10*time.Microsecond), len(times))
}

var raceDay = time.Date(2024, 11, 24, 6, 0, 0, 0, time.UTC)

// stores opens an empty store of each kind.
var stores = map[string]func(t *testing.T) blob.Store{
	"memory":    func(*testing.T) blob.Store { return memblob.New() },
	"directory": func(t *testing.T) blob.Store { return must.Get(dirblob.Open(t.TempDir()))(t) },
	"versitygw": func(t *testing.T) blob.Store { return s3test.Store(t, s3test.Versity(t).Config(t)) },
}

func loadBase(t *testing.T, s blob.Store) *snapshots.Base {
	t.Helper()
	return must.Get(snapshots.LoadBase(t.Context(), s, nil))(t)
}

// draftOf returns a draft without variants.
func draftOf(base *snapshots.Base) snapshots.Draft {
	return snapshots.Draft{Base: base, About: snapshots.About{
		Builder: "test", BuiltAt: raceDay, DueAt: raceDay.Add(time.Hour), CurrentSeason: 2024, Seasons: []int{2023, 2024},
		Ledger: snapshots.Ledger{Kind: "simulated", Seq: 3, Hash: snapshots.Digest([]byte("ledger"))},
	}}
}

// variant is a body as gzip, however small it is.
func variant(path, body string) snapshots.Variant {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = w.Write([]byte(body)) // never fails
	_ = w.Close()
	return snapshots.New(path, []byte(body), b.Bytes(), raceDay)
}

func publish(t *testing.T, s blob.Store, d snapshots.Draft) snapshots.Receipt {
	t.Helper()
	return must.Get((&snapshots.Publisher{Store: s}).Publish(t.Context(), d))(t)
}
