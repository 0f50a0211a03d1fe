package snapshots_test

import (
	"bytes"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	"gridcast/deploy/must"
	"gridcast/snapshots"
	"gridcast/snapshots/blob"
	"gridcast/snapshots/blob/s3test"
)

// measureAll runs the measurements in full size: 10,000 variants, 100 publishes and a server.
const measureAll = "GRIDCAST_MEASURE"

func measuringAll() bool { return os.Getenv(measureAll) != "" }

// TestScale publishes ever larger versions, then one changed variant, and loads the result as
// an edge does. The second publish must write that variant alone.
func TestScale(t *testing.T) {
	sizes := []int{10, 100}
	backends := []string{"memory", "directory"}
	if measuringAll() {
		sizes = []int{10, 100, 1000, 10000}
		backends = append(backends, "versitygw")
	}
	var table strings.Builder
	w := tabwriter.NewWriter(&table, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "store\tvariants\tall: objects\tMB\tseconds\tone: objects\tkB\tmanifest kB\tseconds\tload seconds\tMB resident\t")
	for _, name := range backends {
		for _, size := range sizes {
			s := openers(t)[name](t)()
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
	d := draftOf(loadBase(t, s), nil)
	for i := range size {
		d.Variants = append(d.Variants, sized(i, "before"))
	}
	p := snapshots.Publisher{Store: s}
	all = must.Get(p.Publish(t.Context(), d))(t)
	base := loadBase(t, s)
	next := draftOf(base, nil)
	next.Variants = append(next.Variants, sized(0, "after"))
	for _, e := range base.Manifest.Entries {
		if e.Path != next.Variants[0].Path() {
			next.Variants = append(next.Variants, snapshots.Reused(e))
		}
	}
	one = must.Get(p.Publish(t.Context(), next))(t)
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
	checkWhole(t, v)
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
			s := usualPolling(t, name)
			publish(t, s, bodies{"drivers": "d0"})
			f := followReal(t, s, nil)
			f.wantVersion(t, 1, bodies{"drivers": "d0"})
			published, rolledBack := make([]time.Duration, 0, runs), make([]time.Duration, 0, runs)
			for i := range runs {
				content := bodies{"drivers": fmt.Sprintf("d%d", i+1)}
				start := time.Now()
				r := release(t, s, content)
				f.wantVersion(t, r.Version, content)
				published = append(published, time.Since(start))

				start = time.Now()
				r = rollback(t, s, 1)
				f.wantVersion(t, r.Version, bodies{"drivers": "d0"})
				rolledBack = append(rolledBack, time.Since(start))
			}
			t.Logf("publish to edge: %s", quantiles(published))
			t.Logf("rollback to edge: %s", quantiles(rolledBack))
		})
	}
}

func usualPolling(t *testing.T, name string) blob.Store {
	t.Helper()
	if name == "directory" {
		return directory(t)
	}
	return s3test.Store(t, s3test.Versity(t).Config(t))
}

// release publishes, whether the pointer is held by a rollback or not.
func release(t *testing.T, s blob.Store, content bodies) snapshots.Receipt {
	t.Helper()
	d := draftOf(loadBase(t, s), content)
	d.EndHold, d.BuiltAt = true, raceDay.Add(time.Hour)
	p := snapshots.Publisher{Store: s}
	return must.Get(p.Publish(t.Context(), d))(t)
}

func quantiles(times []time.Duration) string {
	slices.Sort(times)
	at := func(share float64) time.Duration {
		return times[int(share*float64(len(times)-1)+0.5)].Round(10 * time.Microsecond)
	}
	return fmt.Sprintf("median %v, p99 %v, slowest %v of %d", at(0.5), at(0.99), times[len(times)-1].Round(10*time.Microsecond), len(times))
}
