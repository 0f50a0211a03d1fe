package builder_test

import (
	"testing"
	"time"

	"gridcast/builder"
	"gridcast/builder/archive"
	"gridcast/builder/archive/archivetest"
	"gridcast/builder/predict"
	"gridcast/builder/source/f1db"
	"gridcast/builder/source/sourcetest"
	"gridcast/builder/testseason"
	"gridcast/deploy/must"
	"gridcast/snapshots/blob"
	"gridcast/snapshots/blob/dirblob"
)

// worlds are the archives that the benchmarks build from: the embedded seasons, and all since 1950 where
// the test data is there.
func benchWorlds(b *testing.B, run func(*testing.B, archive.Stored)) {
	b.Helper()
	b.Run("embedded", func(b *testing.B) {
		a := archivetest.Embedded(b)
		run(b, archive.Stored{Archive: a, SHA256: sum})
	})
	b.Run("all", func(b *testing.B) {
		a, _ := must.Get2(f1db.Import(sourcetest.Path(b, sourcetest.F1DB2026), f1db.Options{}))(b)
		run(b, archive.Stored{Archive: a, SHA256: sum})
	})
}

func benchService(b *testing.B, store blob.Store, facts archive.Stored, opened time.Time) *builder.Builder {
	b.Helper()
	return testseason.New(b, testseason.Config{
		Archive: facts.Archive, Store: store, Opened: opened, Policy: builder.Policy{Model: predict.NewV2(predict.DefaultParams()), AutoVerifyAfter: time.Hour},
	}).Builder
}

// BenchmarkBuildFromNothing builds the first version of a folder. Right after a run, wait some minutes or set TMPDIR to a
// folder in another place: ext4 passes over the inodes of files that were removed lately, one by one, for each new file.
// That cost up to 2.5 s of processor time in the kernel for the 4,423 objects of all seasons.
func BenchmarkBuildFromNothing(b *testing.B) {
	benchWorlds(b, func(b *testing.B, facts archive.Stored) {
		for b.Loop() {
			b.StopTimer()
			store := must.Get(dirblob.Open(b.TempDir()))(b)
			s := benchService(b, store, facts, midSeason)
			b.StartTimer()
			outcome := must.Get(s.Build(b.Context(), builder.Request{At: midSeason}))(b)
			b.ReportMetric(float64(outcome.ObjectsWritten), "objects")
			b.ReportMetric(float64(outcome.BytesWritten), "bytes")
		}
	})
}

// BenchmarkBuildVerified builds the version that follows a verified result: Austria in 2024.
func BenchmarkBuildVerified(b *testing.B) {
	qualified, verified := time.Date(2024, 6, 29, 15, 0, 0, 0, time.UTC), time.Date(2024, 6, 30, 16, 0, 0, 0, time.UTC)
	benchWorlds(b, func(b *testing.B, facts archive.Stored) {
		for b.Loop() {
			b.StopTimer()
			store := must.Get(dirblob.Open(b.TempDir()))(b)
			s := benchService(b, store, facts, qualified.Add(-time.Hour))
			for _, at := range []time.Time{qualified, qualified.Add(22 * time.Hour)} {
				must.Get(s.Build(b.Context(), builder.Request{At: at}))(b)
			}
			must.Get(s.Derive(b.Context(), qualified))(b)
			before := sizeOf(b, store)
			b.StartTimer()
			outcome := must.Get(s.Build(b.Context(), builder.Request{At: verified}))(b)
			b.StopTimer()
			b.ReportMetric(float64(outcome.ObjectsWritten), "objects")
			b.ReportMetric(float64(outcome.BytesWritten), "bytes-of-bodies")
			b.ReportMetric(float64(sizeOf(b, store)-before), "bytes")
			b.StartTimer()
		}
	})
}

func sizeOf(b *testing.B, store blob.Store) (total int64) {
	b.Helper()
	for info, err := range store.List(b.Context(), "") {
		if err != nil {
			b.Fatal(err)
		}
		total += info.Size
	}
	return total
}
