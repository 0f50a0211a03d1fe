package ingest_test

import (
	"log/slog"
	"sync"
	"testing"
	"time"

	"gridcast/builder"
	"gridcast/builder/archive"
	"gridcast/builder/archive/archivetest"
	"gridcast/builder/ingest"
	"gridcast/builder/ledger"
	"gridcast/builder/predict"
	"gridcast/builder/season"
	"gridcast/builder/source/codehosttest"
	"gridcast/builder/source/f1db"
	"gridcast/builder/source/media"
	"gridcast/builder/source/sourcetest"
	"gridcast/snapshots"
	"gridcast/snapshots/blob/memblob"
)

// service is a builder and an ingest on a directory, without a person, at an instant that a test
// sets.
type service struct {
	now     time.Time
	host    *codehosttest.Host
	builder *builder.Builder
	ingest  *ingest.Ingest
	facts   *archive.Store
	ledger  *ledger.Ledger
	last    *snapshots.Version
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
			base.stored, base.err = archive.Pack(facts, archive.Stored{})
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
	store := memblob.New()
	s.facts = archive.NewStore(store)
	inUse := archivetest.Put(t, s.facts, stored)
	l, err := ledger.Open(t.Context(), store, ledger.Simulated, now, "builder", inUse.SHA256)
	if err != nil {
		t.Fatal(err)
	}
	s.ledger = l
	if err := builder.Vouch(t.Context(), s.ledger, s.facts); err != nil {
		t.Fatal(err)
	}
	repository, err := f1db.NewRepository(s.host.URL, "gridcast-test (operator@example.org)", media.Default())
	if err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.DiscardHandler)
	s.ingest = &ingest.Ingest{
		Store: store, Facts: s.facts, Ledger: s.ledger, Log: log,
		Sources:  []ingest.Source{{Upstream: repository}},
		Interval: func(time.Time) time.Duration { return time.Minute },
	}
	s.builder = &builder.Builder{
		Store: store, Ledger: s.ledger, Facts: s.facts.Load, Name: "test", Log: log,
		Policy: builder.Policy{
			Model: predict.NewV2(predict.DefaultParams()), Stability: s.ingest.Stability,
			AutoVerifyAfter: 2 * time.Hour, AutoReviseAfter: 2 * time.Hour,
		},
	}
	return s
}

// step asks the source and builds, at an instant.
func (s *service) step(t testing.TB, now time.Time) ingest.Outcome {
	t.Helper()
	s.now = now
	report, err := s.ingest.Poll(t.Context(), now, false)
	if err != nil {
		t.Fatalf("at %s: %v", now.Format(time.RFC3339), err)
	}
	if _, err := s.builder.Build(t.Context(), builder.Request{At: now, Reason: "test"}); err != nil {
		t.Errorf("at %s: %v", now.Format(time.RFC3339), err)
	}
	return report
}
