package ingest_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"gridcast/builder"
	"gridcast/builder/archive"
	"gridcast/builder/archive/archivetest"
	"gridcast/builder/ingest"
	"gridcast/builder/predict"
	"gridcast/builder/season"
	"gridcast/builder/source/codehosttest"
	"gridcast/builder/source/f1db"
	"gridcast/builder/source/media"
	"gridcast/builder/source/sourcetest"
	"gridcast/builder/testseason"
	"gridcast/deploy/must"
	"gridcast/snapshots"
)

// service is a builder and an ingest, without a person, at an instant that a test sets.
type service struct {
	*testseason.Season
	now    time.Time
	host   *codehosttest.Host
	ingest *ingest.Ingest
	last   *snapshots.Version
}

// base is the archive that tests begin with, made once: reading a release takes a second.
var base struct {
	once   sync.Once
	stored archive.Stored
	err    error
}

// newService starts from the season 2025, as a release has it.
func newService(t *testing.T, now time.Time) *service {
	t.Helper()
	release := sourcetest.Path(t, sourcetest.F1DB2026)
	base.once.Do(func() {
		var facts *season.Archive
		if facts, _, base.err = f1db.Import(release, f1db.Options{From: 2025, To: 2025}); base.err == nil {
			base.stored, base.err = archive.Encode(facts, archive.Stored{})
		}
	})
	if base.err != nil {
		t.Fatal(base.err)
	}
	return newServiceOn(t, base.stored, now)
}

// newServiceOn starts from an archive.
func newServiceOn(t testing.TB, stored archive.Stored, now time.Time) *service {
	t.Helper()
	s := &service{now: now}
	s.host = codehosttest.New(t, sourcetest.Path(t, sourcetest.F1DBHistory), func() time.Time { return s.now })
	repository := must.Get(f1db.NewRepository(s.host.URL, "gridcast-test (operator@example.org)", media.Default()))(t)
	s.begin(t, stored, ingest.Source{Upstream: repository})
	s.Policy.AutoReviseAfter = 2 * time.Hour
	return s
}

// begin opens the ledger on an archive. The service reads the sources.
func (s *service) begin(t testing.TB, stored archive.Stored, sources ...ingest.Source) {
	t.Helper()
	s.Season = testseason.New(t, testseason.Config{Stored: stored, Opened: s.now, Policy: builder.Policy{Model: predict.NewV2(predict.DefaultParams()), AutoVerifyAfter: 2 * time.Hour}})
	s.ingest = ingestOf(s.Season, sources...)
	s.Policy.Stability = s.ingest.Stability
}

// ingestOf returns an ingest beside a builder. A poll is due after a minute.
func ingestOf(s *testseason.Season, sources ...ingest.Source) *ingest.Ingest {
	return &ingest.Ingest{
		Store: s.Store, Facts: s.Archives, Ledger: s.Ledger, Log: s.Log, Sources: sources,
		Interval: func(time.Time) time.Duration { return time.Minute },
	}
}

// step asks the source and builds, at an instant.
func (s *service) step(t testing.TB, now time.Time) ingest.Outcome {
	t.Helper()
	s.now = now
	report := must.Get(s.ingest.Poll(t.Context(), now, false))(t)
	must.Succeed(t, fmt.Sprintf("at %s", now.Format(time.RFC3339)), must.Err(s.Build(t.Context(), builder.Request{At: now, Reason: "test"})))
	return report
}

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
			report := must.Get(s.ingest.Poll(b.Context(), s.now, false))(b)
			asked := time.Since(began)
			must.Get(s.Build(b.Context(), builder.Request{At: s.now, Reason: "benchmark"}))(b)
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
