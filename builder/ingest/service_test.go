package ingest_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"gridcast/builder"
	"gridcast/builder/almanac"
	"gridcast/builder/archive"
	"gridcast/builder/ingest"
	"gridcast/builder/ledger"
	"gridcast/builder/predict"
	"gridcast/builder/season"
	"gridcast/builder/source/codehost"
	"gridcast/builder/source/f1db"
	"gridcast/builder/source/media"
	"gridcast/builder/source/sourcetest"
	"gridcast/snapshots/blob/dirblob"
)

// service is a builder and an ingest on a directory, without a person, at an instant that a test
// sets.
type service struct {
	now     time.Time
	host    *codehost.Host
	builder *builder.Builder
	ingest  *ingest.Ingest
	facts   *builder.FactsStore
	ledger  *ledger.Ledger
}

// newService starts from the seasons of a release up to a year.
func newService(t *testing.T, release string, upTo int, now time.Time) *service {
	t.Helper()
	s := &service{now: now}
	s.host = codehost.New(t, sourcetest.Path(t, sourcetest.F1DBHistory), func() time.Time { return s.now })
	base, _, err := f1db.Import(sourcetest.Path(t, release), f1db.Options{From: upTo - 8, To: upTo})
	if err != nil {
		t.Fatal(err)
	}
	var file bytes.Buffer
	if err := archive.Encode(&file, base); err != nil {
		t.Fatal(err)
	}
	store, err := dirblob.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	s.facts = builder.NewFactsStore(store)
	inUse, err := s.facts.Put(t.Context(), file.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	if s.ledger, err = ledger.Open(t.Context(), store, ledger.Simulated, now, "builder", inUse.SHA256); err != nil {
		t.Fatal(err)
	}
	if err := s.facts.Vouch(t.Context(), s.ledger); err != nil {
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
			Model: predict.NewV2(predict.DefaultParams()), Stood: s.ingest.Stood,
			AutoVerifyAfter: 2 * time.Hour, AutoReviseAfter: 2 * time.Hour,
		},
	}
	return s
}

// step asks the source and builds, at an instant.
func (s *service) step(t *testing.T, now time.Time) ingest.Report {
	t.Helper()
	s.now = now
	report, err := s.ingest.Run(t.Context(), now, false)
	if err != nil {
		t.Fatalf("at %s: %v", now.Format(time.RFC3339), err)
	}
	if _, err := s.builder.Build(t.Context(), builder.Request{At: now, Reason: "test"}); err != nil {
		t.Errorf("at %s: %v", now.Format(time.RFC3339), err)
	}
	return report
}

// TestSeason2026 runs the first half of 2026 as it happened: commits of F1DB's repository, each
// served by a code host from its own instant on, and nobody who looks after anything.
func TestSeason2026(t *testing.T) {
	if testing.Short() {
		t.Skip("runs half a season")
	}
	begin, end := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(2026, 6, 15, 12, 0, 0, 0, time.UTC)
	s := newService(t, sourcetest.F1DB2026, 2025, begin)
	// The clock steps from instant to instant at which something is due: a commit, and about each
	// start the last moment for a pick, lights out, and when the result may verify itself.
	instants := s.host.Instants()
	last, _, err := f1db.Import(sourcetest.Path(t, sourcetest.F1DB2026), f1db.Options{From: 2026})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range last.Facts().Seasons[0].Rounds {
		start := r.StartsAt()
		instants = append(instants, start.Add(-almanac.LastFreeze), start, start.Add(5*time.Hour), start.Add(26*time.Hour))
	}
	instants = append(instants, end)
	slices.SortFunc(instants, time.Time.Compare)
	for _, at := range instants {
		if at.Before(begin) || at.After(end) {
			continue
		}
		for source, fault := range s.step(t, at).Faults {
			t.Errorf("at %s: %s: %v", at.Format(time.RFC3339), source, fault)
		}
	}

	state := s.ledger.State()
	facts, err := s.facts.Load(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	known := facts.Archive.Facts()
	races := known.Seasons[len(known.Seasons)-1]
	if races.Year != 2026 || len(races.Rounds) != 24 {
		t.Fatalf("the last season is %d with %d rounds, want 2026 with the 24 that were planned", races.Year, len(races.Rounds))
	}
	held := 0
	for _, r := range races.Rounds {
		key, ok := state.Key(2026, r.GrandPrix)
		if !ok {
			t.Fatalf("%s has no session key", r.Name)
		}
		said, _ := state.Record(key)
		if len(r.Results) == 0 {
			continue
		}
		held++
		switch {
		case said.Pick == nil:
			t.Errorf("%s: no pick was frozen", r.Name)
		case !said.Pick.FrozenAt.Before(said.Start(r.StartsAt())):
			t.Errorf("%s: the pick was frozen at %s, lights out were at %s", r.Name, said.Pick.FrozenAt, said.Start(r.StartsAt()))
		case said.Result() == nil:
			t.Errorf("%s: no result was verified", r.Name)
		default:
			if want := map[season.GrandPrixID]int{"monaco": 2}[r.GrandPrix]; len(said.Revisions) != max(1, want) {
				t.Errorf("%s: %d revisions, want %d", r.Name, len(said.Revisions), max(1, want))
			}
			t.Logf("%-30s picked %s at %s, %s won, revision %d", r.Name, said.Pick.P1, said.Pick.FrozenAt.Format("2 Jan 15:04"),
				said.Result().Winner(), said.Result().Revision)
		}
	}
	if held != 7 {
		t.Errorf("%d rounds were held, want 7", held)
	}
	// Two rounds were called off in March. The source deleted them and renumbered the rest; here
	// they are postponed, keep their keys, and nothing else moved.
	for gp, want := range map[season.GrandPrixID]ledger.Status{"bahrain": ledger.Postponed, "saudi-arabia": ledger.Postponed, "miami": ledger.AsPlanned} {
		key, _ := state.Key(2026, gp)
		if said, _ := state.Record(key); said.Override.Status != want {
			t.Errorf("%s is %q, want %q", gp, said.Override.Status, want)
		}
	}
	// Miami was brought forward by three hours, eight hours ahead: the ledger says so, by whom.
	key, _ := state.Key(2026, "miami")
	said, _ := state.Record(key)
	if got, want := said.Override.Start, time.Date(2026, 5, 3, 17, 0, 0, 0, time.UTC); !got.Equal(want) {
		t.Errorf("Miami starts at %s, want %s", got, want)
	}
	if got, want := said.Override.Changes[0].Actor, "source:f1db@e8ddecfd7e56"; len(got) != len(want) {
		t.Errorf("Miami was moved by %s, want an actor such as %s", got, want)
	}
	// Every classification is as the source says at last.
	for _, want := range last.Facts().Seasons[0].Rounds {
		if want.Number > 7 {
			continue
		}
		for _, got := range races.Rounds {
			if got.GrandPrix == want.GrandPrix {
				if diff := cmp.Diff(positions(want.Results), positions(got.Results)); diff != "" {
					t.Errorf("%s (-the release of August +what came by itself):\n%s", want.Name, diff)
				}
			}
		}
	}
	// Nothing is asked twice for nothing: an archive is sent once a change.
	if requests, archives := s.host.Served(); archives > len(s.host.Commits) {
		t.Errorf("%d requests took %d archives for %d commits", requests, archives, len(s.host.Commits))
	}
	// The facts log knows where each block came from.
	log, err := ingest.LoadLog(t.Context(), s.ingest.Store)
	if err != nil {
		t.Fatal(err)
	}
	if origin, ok := log.Origin(2026, "miami", "start"); !ok || origin.Source != "f1db" || !origin.At.Equal(time.Date(2026, 5, 3, 8, 49, 2, 0, time.UTC)) {
		t.Errorf("the start of Miami came from %+v, want f1db on 3 May, 08:49:02", origin)
	}
}

func positions(rows []season.Result) []string {
	lines := make([]string, len(rows))
	for i, r := range rows {
		lines[i] = fmt.Sprintf("%d %s %s %g", r.Position, r.Outcome, r.Driver, r.Points)
	}
	return lines
}
