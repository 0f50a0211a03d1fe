package builder_test

import (
	"context"
	"testing"
	"time"

	"gridcast/builder"
	"gridcast/builder/archive"
	"gridcast/builder/archive/archivetest"
	"gridcast/builder/ledger"
	"gridcast/builder/predict"
	"gridcast/builder/proof"
	"gridcast/builder/season"
	"gridcast/builder/testseason"
	"gridcast/deploy/golden"
	"gridcast/deploy/must"
	"gridcast/snapshots/blob"
	"gridcast/snapshots/blob/blobtest"
	"gridcast/snapshots/blob/memblob"
)

// service is a builder on the shortened seasons, with a store in memory.
func service(t *testing.T, opened time.Time, policy builder.Policy) *builder.Builder {
	t.Helper()
	return serviceOf(t, testseason.Short(t, testseason.Austria), opened, policy)
}

// serviceOf is service on other seasons.
func serviceOf(t *testing.T, stored archive.Stored, opened time.Time, policy builder.Policy) *builder.Builder {
	t.Helper()
	return testseason.New(t, testseason.Config{Stored: stored, Opened: opened, Policy: policy}).Builder
}

func build(t *testing.T, b *builder.Builder, at time.Time) builder.Outcome {
	t.Helper()
	return must.Get(b.Build(t.Context(), builder.Request{At: at}))(t)
}

var midSeason = time.Date(2024, time.July, 1, 12, 0, 0, 0, time.UTC)

func policy() builder.Policy {
	return builder.Policy{Model: predict.GridFrequency(), AutoVerifyAfter: time.Hour}
}

// clone returns a store with the objects of another.
func clone(t *testing.T, s blob.Store) *memblob.Store {
	t.Helper()
	c := memblob.New()
	blobtest.Copy(t, c, s)
	return c
}

func mustAudit(t *testing.T, store blob.Store) proof.Audit {
	t.Helper()
	return must.Get(proof.AuditStore(t.Context(), store))(t)
}

// blamed is the first fault of an audit as text.
func blamed(a proof.Audit) string {
	if a.Green() {
		return "nothing"
	}
	return a.Faults[0].String()
}

// TestClockAhead: a builder with a clock ahead of the store's publishes nothing, also without an event to append. So it
// keeps no other builder from publishing.
func TestClockAhead(t *testing.T) {
	now := midSeason
	store := memblob.New(memblob.Clock(func() time.Time { return now }))
	b := testseason.New(t, testseason.Config{Stored: testseason.Short(t, testseason.Austria), Opened: midSeason, Kind: ledger.Real, Store: store, Policy: builder.Policy{Model: predict.GridFrequency()}}).Builder
	build(t, b, midSeason)
	wrong := midSeason.Add(40 * time.Minute) // since before the process started, so its own steady clock agrees
	b.Ledger.UseClock(func(context.Context) (time.Time, time.Duration, error) { return wrong, 0, nil })
	_, err := b.Build(t.Context(), builder.Request{At: wrong})
	must.Fail(t, "a build by a clock that is ahead", err, ledger.ErrClock)
	now = midSeason.Add(10 * time.Minute)
	build(t, b, now)
}

// TestBuildOfEarlier builds at an instant at which the ledger had no keys yet.
func TestBuildOfEarlier(t *testing.T) {
	b := service(t, midSeason.Add(-time.Hour), policy())
	build(t, b, midSeason)
	golden.Sentence(t, "a build of earlier", must.Err(b.Build(t.Context(), builder.Request{At: midSeason.Add(-time.Minute)})))
}

func TestReplayGivesARecord(t *testing.T) {
	must.Long(t, "replays a season")
	from := season.BeginsAt(2023)
	b := serviceOf(t, archivetest.Stored(t, archivetest.Seasons(t, 2023, 2024)), from, policy())
	facts := must.Get(b.Facts(t.Context()))(t)
	must.Do(t, b.Policy.Replay(t.Context(), b.Ledger, facts, time.Date(2024, 12, 31, 0, 0, 0, 0, time.UTC), nil))
	picks, results := 0, 0
	for s := range b.Ledger.Fold().Records() {
		if s.Pick != nil {
			picks++
			if !s.Pick.FrozenAt.Before(s.Pick.Start) {
				t.Errorf("session %d: frozen at %s, lights out at %s", s.Key, s.Pick.FrozenAt, s.Pick.Start)
			}
		}
		if s.Result() != nil {
			results++
		}
	}
	if picks != 46 || results != 46 { // 22 rounds in 2023, 24 in 2024
		t.Errorf("replayed %d picks and %d results, want 46 of each", picks, results)
	}
}

func TestReplayRefusesARealLedger(t *testing.T) {
	l := must.Get(ledger.Open(t.Context(), memblob.New(), ledger.Real, midSeason, "test", ""))(t)
	a := archivetest.Embedded(t)
	must.Fail(t, "a real ledger was replayed into", policy().Replay(context.Background(), l, archive.Stored{Archive: a}, midSeason.AddDate(1, 0, 0), nil))
	head := l.Head().Seq
	must.Hold(t, head == 1, "the ledger has %d files, want only the one that opened it", head)
}
