package ingest_test

import (
	"slices"
	"testing"
	"time"

	"gridcast/builder"
	"gridcast/builder/archive/archivetest"
)

// BenchmarkChangedTree measures the time from a poll to the published change: a request on loopback, two
// seasons read, judged and applied to the archive of all embedded seasons, and a version built. One
// operation is all commits from March to June 2026; run it with -benchtime 1x.
func BenchmarkChangedTree(b *testing.B) {
	begin, end := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC), time.Date(2026, 6, 14, 0, 0, 0, 0, time.UTC)
	base := archivetest.Stored(b, archivetest.Seasons(b, 0, 2025))
	for range b.N {
		b.StopTimer()
		s := newServiceOn(b, base, begin)
		s.step(b, begin)
		var taken, published []time.Duration
		for _, commit := range s.host.Commits {
			if !commit.At.After(begin) || commit.At.After(end) {
				continue
			}
			s.now = commit.At.Add(time.Minute)
			if _, _, err := s.host.Archive(s.now); err != nil { // a host has it packed before it is asked
				b.Fatal(err)
			}
			b.StartTimer()
			began := time.Now()
			report, err := s.ingest.Poll(b.Context(), s.now, false)
			if err != nil {
				b.Fatal(err)
			}
			asked := time.Since(began)
			if _, err := s.Build(b.Context(), builder.Request{At: s.now, Reason: "benchmark"}); err != nil {
				b.Fatal(err)
			}
			b.StopTimer()
			if report.Changed {
				taken, published = append(taken, asked), append(published, time.Since(began))
			}
		}
		slices.Sort(taken)
		slices.Sort(published)
		n := len(published)
		b.ReportMetric(float64(n), "changes")
		b.ReportMetric(taken[n/2].Seconds(), "s/taken")
		b.ReportMetric(published[n/2].Seconds(), "s/published")
		b.ReportMetric(published[n*9/10].Seconds(), "s/p90")
	}
}
