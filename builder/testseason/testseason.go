// Package testseason gives tests a season in one call: a store with real rounds, their ledger and a builder, up to a
// state of a race weekend. A Season is for one goroutine, like its test.
package testseason

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"gridcast/builder"
	"gridcast/builder/almanac"
	"gridcast/builder/archive"
	"gridcast/builder/archive/archivetest"
	"gridcast/builder/ledger"
	"gridcast/builder/predict"
	"gridcast/builder/season"
	"gridcast/schemas"
	"gridcast/schemas/catalog"
	"gridcast/schemas/wire"
	"gridcast/snapshots"
	"gridcast/snapshots/blob"
	"gridcast/snapshots/blob/memblob"
)

// Weekend is a race weekend of 2024.
type Weekend struct {
	Key       int64
	GrandPrix season.GrandPrixID
	Opened    time.Time // a time for the ledger to begin
	Qualified time.Time // the grid is known
	Start     time.Time
}

// Over is an instant after the race.
func (w Weekend) Over() time.Time { return w.Start.Add(3 * time.Hour) }

// The weekends that tests are about: Russell won in Austria. In Belgium he won on the road and was disqualified.
var (
	Austria = Weekend{2024011, "austria", utc(6, 25, 13), utc(6, 29, 15), utc(6, 30, 13)}
	Belgium = Weekend{2024014, "belgium", utc(7, 1, 0), utc(7, 27, 15), utc(7, 28, 13)}
)

func utc(month time.Month, day, hour int) time.Time {
	return time.Date(2024, month, day, hour, 0, 0, 0, time.UTC)
}

// State is a stage of a weekend.
type State int

// The states follow one another.
const (
	Opened    State = iota // the ledger is open and has nothing else
	Scheduled              // every round has its key; qualifying is to come
	Frozen                 // the pick is frozen
	Awaiting               // the race is over, and its result waits for an operator
	Verified               // an operator verified the result
	Revised                // an operator exchanged the first two of the verified result
)

// Config describes a season. Each zero field has a default.
type Config struct {
	Weekend Weekend         // Austria by default
	Stored  archive.Stored  // the seasons in use; Short of a given weekend by default, else the embedded ones
	Archive *season.Archive // the seasons in place of Stored, without a file in the store
	Opened  time.Time       // the beginning of the ledger; that of the weekend by default
	Until   State
	Kind    ledger.Kind    // ledger.Simulated by default
	Store   blob.Store     // in memory by default
	Policy  builder.Policy // with predict.GridFrequency by default
}

// Season is a builder with its store, its ledger and the archive in use.
type Season struct {
	*builder.Builder
	Archives *archive.Store
	Stored   archive.Stored
	Weekend  Weekend
	t        testing.TB
}

// New returns a season up to the state of its weekend.
func New(t testing.TB, c Config) *Season {
	t.Helper()
	given := c.Weekend.Key != 0
	if !given {
		c.Weekend = Austria
	}
	if c.Opened.IsZero() {
		c.Opened = c.Weekend.Opened
	}
	if c.Store == nil {
		c.Store = memblob.New()
	}
	if c.Policy.Model == nil {
		c.Policy.Model = predict.GridFrequency()
	}
	s := &Season{Archives: archive.NewStore(c.Store), Weekend: c.Weekend, t: t}
	facts := s.Archives.Load
	switch {
	case c.Archive != nil:
		s.Stored = archive.Stored{Archive: c.Archive, SHA256: strings.Repeat("5a", 32)}
		facts = func(context.Context) (archive.Stored, error) { return s.Stored, nil }
	case c.Stored.Archive != nil:
		s.Use(c.Stored)
	case given:
		s.Use(Short(t, c.Weekend))
	default:
		s.Use(archivetest.StoredEmbedded(t))
	}
	l, err := ledger.Open(t.Context(), c.Store, cmp.Or(c.Kind, ledger.Simulated), c.Opened, "test", s.Stored.SHA256)
	if err != nil {
		t.Fatal(err)
	}
	l.Vouch(s.Stored.Archive.AsOf(c.Opened)) // as archive.Store.Vouch
	// A fiftieth of the simulations of published odds: each version simulates both titles anew.
	s.Builder = &builder.Builder{Store: c.Store, Ledger: l, Facts: facts, Policy: c.Policy, Name: "test", Log: slog.New(slog.DiscardHandler), TitleRuns: 200}
	for state, advance := range []func(){
		Scheduled: func() { s.Append(c.Opened, s.assignKeys) },
		Frozen:    func() { s.Settle(c.Weekend.Qualified) },
		Awaiting:  func() { s.Settle(c.Weekend.Over()) },
		Verified:  func() { s.Decide(c.Weekend.Over(), c.Weekend.Key, (*almanac.Round).Verify) },
		Revised:   func() { s.Decide(c.Weekend.Over().Add(time.Hour), c.Weekend.Key, Exchange) },
	} {
		if advance != nil && State(state) <= c.Until {
			advance()
		}
	}
	return s
}

func (s *Season) assignKeys(f *ledger.Fold) ([]ledger.Event, error) {
	keys, err := ledger.AssignKeys(f, s.Stored.Archive.Facts().Seasons)
	if len(keys) == 0 {
		return nil, err
	}
	return []ledger.Event{{Type: ledger.KeysAssigned, Keys: keys}}, err
}

// Exchange corrects a result: the first two have changed places.
func Exchange(r *almanac.Round) ([]ledger.Event, error) {
	rows := slices.Clone(r.Valid())
	rows[0].Driver, rows[1].Driver = rows[1].Driver, rows[0].Driver
	return r.Correct(rows, nil, "a plank")
}

var short struct {
	sync.Mutex
	stored map[int64]archive.Stored // by the key of the weekend
}

// Short returns the archive of ShortFacts, which all tests of a process share.
func Short(t testing.TB, w Weekend) archive.Stored {
	t.Helper()
	short.Lock()
	defer short.Unlock()
	if _, ok := short.stored[w.Key]; !ok {
		if short.stored == nil {
			short.stored = map[int64]archive.Stored{}
		}
		short.stored[w.Key] = archivetest.Stored(t, ShortFacts(t, w))
	}
	return short.stored[w.Key]
}

// ShortFacts returns the embedded seasons 2023 and 2024, as if 2023 had ten rounds and 2024 ended one round after the
// weekend. A build takes the same steps with a twentieth of the work, and the title odds are quickly drawn.
func ShortFacts(t testing.TB, w Weekend) season.Facts {
	t.Helper()
	facts := archivetest.Seasons(t, 2023, 2024)
	facts.Seasons[0].Rounds, facts.Seasons[1].Rounds = facts.Seasons[0].Rounds[:10], facts.Seasons[1].Rounds[:w.Key%1000+1]
	return facts
}

// Use puts an archive in use.
func (s *Season) Use(stored archive.Stored) {
	s.t.Helper()
	if err := s.Archives.Put(s.t.Context(), stored); err != nil {
		s.t.Fatal(err)
	}
	s.Stored = stored
}

// Fresh refreshes a ledger.
func Fresh(t testing.TB, l *ledger.Ledger) ledger.Fresh {
	t.Helper()
	fresh, err := l.Refresh(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return fresh
}

// Append appends the events of decide by the actor test.
func (s *Season) Append(at time.Time, decide func(*ledger.Fold) ([]ledger.Event, error)) {
	s.t.Helper()
	if _, err := Fresh(s.t, s.Ledger).Append(s.t.Context(), at, "test", decide); err != nil {
		s.t.Fatal(err)
	}
}

// Settle appends the due events.
func (s *Season) Settle(at time.Time) []ledger.Event {
	s.t.Helper()
	events, err := s.Policy.Settle(s.t.Context(), Fresh(s.t, s.Ledger), s.Stored, at)
	if err != nil {
		s.t.Fatalf("settle at %s: %v", at, err)
	}
	return events
}

// Publish settles and builds.
func (s *Season) Publish(at time.Time) builder.Outcome {
	s.t.Helper()
	outcome, err := s.Build(s.t.Context(), builder.Request{At: at})
	if err != nil {
		s.t.Fatalf("build at %s: %v", at, err)
	}
	return outcome
}

// Almanac returns the almanac of archive and ledger at an instant.
func (s *Season) Almanac(at time.Time) *almanac.Almanac {
	return almanac.Join(s.Stored.Archive.AsOf(at), s.Ledger.AsOf(at))
}

// Round returns a race at an instant.
func (s *Season) Round(at time.Time, key int64) *almanac.Round {
	s.t.Helper()
	r, err := s.Almanac(at).Round(key)
	if err != nil {
		s.t.Fatal(err)
	}
	return r
}

// Try decides on a race as operator:test.
func (s *Season) Try(at time.Time, key int64, decide func(*almanac.Round) ([]ledger.Event, error)) error {
	s.t.Helper()
	_, err := almanac.Decider{Ledger: Fresh(s.t, s.Ledger), View: s.Stored.Archive.AsOf(at), Actor: "operator:test"}.Decide(s.t.Context(), key, decide)
	return err
}

// Decide is Try; a refusal ends the test.
func (s *Season) Decide(at time.Time, key int64, decide func(*almanac.Round) ([]ledger.Event, error)) {
	s.t.Helper()
	if err := s.Try(at, key, decide); err != nil {
		s.t.Fatalf("decide on %d at %s: %v", key, at, err)
	}
}

// Derive makes the derived documents, and ends the test unless there is something to make exactly when want says so.
func Derive(t testing.TB, b *builder.Builder, at time.Time, want bool) {
	t.Helper()
	if made, err := b.Derive(t.Context(), at); err != nil || made != want {
		t.Fatalf("derive at %s: got %t, %v; want %t", at, made, err, want)
	}
}

// Served returns the data of a variant of the current version; ok is false if it has none.
func Served[T any](t testing.TB, store blob.Store, v catalog.Variant) (data T, ok bool) {
	t.Helper()
	base, err := snapshots.LoadBase(t.Context(), store, nil)
	if err != nil {
		t.Fatal(err)
	}
	entry, ok := base.Entry(v.Path())
	if !ok {
		return data, false
	}
	var content any
	body, err := base.Body(t.Context(), entry)
	if err == nil {
		content, err = schemas.Decode(v, body)
	}
	if err != nil {
		t.Fatalf("%s: %v", v.Path(), err)
	}
	return content.(wire.Success[T]).Data, true //nolint:forcetypeassert // as Decode documents it
}

// Objects returns every object of a folder of a store by key.
func Objects(t testing.TB, store blob.Store, folder string) map[string]string {
	t.Helper()
	all := map[string]string{}
	for info, err := range store.List(t.Context(), folder) {
		var o blob.Object
		if err == nil {
			o, err = store.Get(t.Context(), info.Key, blob.MaxDocument)
		}
		if err != nil {
			t.Fatal(err)
		}
		all[info.Key] = string(o.Data)
	}
	return all
}
