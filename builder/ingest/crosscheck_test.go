package ingest_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"gridcast/builder"
	"gridcast/builder/archive"
	"gridcast/builder/assemble"
	"gridcast/builder/ingest"
	"gridcast/builder/ledger"
	"gridcast/builder/predict"
	"gridcast/builder/season"
	"gridcast/builder/source"
	"gridcast/builder/source/jolpica"
	"gridcast/builder/source/openf1"
	"gridcast/builder/source/sourcetest"
	"gridcast/snapshots/blob/dirblob"
)

// austria is lights out of the Austrian Grand Prix of 2024; qualifying ended 22 hours before.
var austria = time.Date(2024, 6, 30, 13, 0, 0, 0, time.UTC)

const austriaKey = 2024011

// beforeAustria are the embedded seasons as they were known on the Saturday before qualifying: of
// Austria and the rounds after it there is the calendar alone.
func beforeAustria(t *testing.T) []byte {
	t.Helper()
	all, err := archive.Embedded()
	if err != nil {
		t.Fatal(err)
	}
	facts := all.Facts()
	facts.Seasons = slices.DeleteFunc(slices.Clone(facts.Seasons), func(s season.Season) bool { return s.Year < 2021 || s.Year > 2024 })
	last := &facts.Seasons[len(facts.Seasons)-1]
	last.Rounds = slices.Clone(last.Rounds)
	for i := range last.Rounds {
		if r := &last.Rounds[i]; !r.StartsAt().Before(austria) {
			*r = season.Round{
				Number: r.Number, GrandPrix: r.GrandPrix, Name: r.Name, Circuit: r.Circuit, Street: r.Street, CourseKm: r.CourseKm,
				ScheduledLaps: r.ScheduledLaps, Date: r.Date, Start: r.Start, Sprint: r.Sprint, Sessions: r.Sessions,
			}
		}
	}
	cut, err := season.New(facts)
	if err != nil {
		t.Fatal(err)
	}
	var file bytes.Buffer
	if err := archive.Encode(&file, cut); err != nil {
		t.Fatal(err)
	}
	return file.Bytes()
}

// inAustria is a service without a person whose facts come from Jolpica and OpenF1.
func inAustria(t *testing.T, sources ...ingest.Source) *service {
	t.Helper()
	s := &service{now: austria.Add(-24 * time.Hour)}
	store, err := dirblob.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	s.facts = builder.NewFactsStore(store)
	inUse, err := s.facts.Put(t.Context(), beforeAustria(t))
	if err != nil {
		t.Fatal(err)
	}
	if s.ledger, err = ledger.Open(t.Context(), store, ledger.Simulated, s.now, "builder", inUse.SHA256); err != nil {
		t.Fatal(err)
	}
	if err := s.facts.Vouch(t.Context(), s.ledger); err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.DiscardHandler)
	s.ingest = &ingest.Ingest{
		Store: store, Facts: s.facts, Ledger: s.ledger, Log: log, Sources: sources,
		Interval: func(time.Time) time.Duration { return time.Minute },
	}
	s.builder = &builder.Builder{
		Store: store, Ledger: s.ledger, Facts: s.facts.Load, Name: "test", Log: log,
		Policy: builder.Policy{Model: predict.NewV2(predict.DefaultParams()), Stood: s.ingest.Stood, AutoVerifyAfter: 2 * time.Hour},
	}
	return s
}

func fromJolpica(t *testing.T, accepted bool) (ingest.Source, *sourcetest.Replay) {
	t.Helper()
	api := sourcetest.Jolpica(t)
	return crossCheck(t, jolpica.New, api, accepted), api
}

func fromOpenF1(t *testing.T, accepted bool) (ingest.Source, *sourcetest.Replay) {
	t.Helper()
	api := sourcetest.OpenF1(t)
	// The drivers of a race are recorded, those of its qualifying are not.
	api.Alias("/v1/drivers?session_key=9541", "/v1/drivers?session_key=9550")
	return crossCheck(t, openf1.New, api, accepted), api
}

func crossCheck(t *testing.T, open func(string, string) (source.Upstream, error), api *sourcetest.Replay, accepted bool) ingest.Source {
	t.Helper()
	return ingest.Source{Upstream: sourcetest.Open(t, open, api), CheckOnly: !accepted}
}

// TestGridOfOpenF1: the grid that only OpenF1 has before the start is what a pick is made on, if its
// terms are accepted; else it is withheld, and said.
func TestGridOfOpenF1(t *testing.T) {
	if testing.Short() {
		t.Skip("short: takes eight seconds")
	}
	for _, test := range []struct {
		accepted bool
		basis    ledger.Basis
		withheld int
	}{{true, ledger.OnGrid, 0}, {false, ledger.OnForm, 1}} {
		t.Run(fmt.Sprintf("terms accepted %t", test.accepted), func(t *testing.T) {
			source, api := fromOpenF1(t, test.accepted)
			s := inAustria(t, source)
			s.step(t, s.now)
			for _, before := range []time.Duration{18 * time.Hour, 5 * time.Minute} {
				for name, fault := range s.step(t, austria.Add(-before)).Faults {
					t.Errorf("%s: %v", name, fault)
				}
			}
			said, _ := s.ledger.State().Record(austriaKey)
			if said.Pick == nil || said.Pick.Basis != test.basis {
				t.Fatalf("the pick is %+v, want one on %s", said.Pick, test.basis)
			}
			state, err := ingest.LoadState(t.Context(), s.ingest.Store, "openf1")
			if err != nil {
				t.Fatal(err)
			}
			if len(state.Withheld) != test.withheld {
				t.Errorf("%d changes are withheld, want %d: %+v", len(state.Withheld), test.withheld, state.Withheld)
			}
			if test.withheld > 0 && (state.Withheld[0].Block != assemble.Grid || state.Withheld[0].Refused[0].Gate != assemble.TermsGate) {
				t.Errorf("withheld is %+v, want the grid by its terms", state.Withheld[0])
			}
			if n := len(api.Requests()); n > 36 {
				t.Errorf("asked %d times", n)
			}
		})
	}
}

// TestDisagreementHoldsVerification: a result on which sources disagree does not verify itself, and
// who disagrees about whom is known by driver; when they agree it does.
func TestDisagreementHoldsVerification(t *testing.T) {
	if testing.Short() {
		t.Skip("short: takes five seconds")
	}
	first, _ := fromJolpica(t, true)
	second, api := fromOpenF1(t, false)
	// A penalty that the one has and the other has not: second and third change places.
	api.Rewrite(func(target, body string) string {
		if !strings.Contains(target, "session_result?session_key=9550") {
			return body
		}
		return strings.NewReplacer(`"driver_number":81`, `"driver_number":55`, `"driver_number":55`, `"driver_number":81`).Replace(body)
	})
	s := inAustria(t, first, second)
	s.step(t, s.now)
	for _, after := range []time.Duration{4 * time.Hour, 7 * time.Hour, 30 * time.Hour} {
		for name, fault := range s.step(t, austria.Add(after)).Faults {
			t.Errorf("%s: %v", name, fault)
		}
	}
	if said, _ := s.ledger.State().Record(austriaKey); said.Result() != nil {
		t.Errorf("the result verified itself against a source that has it otherwise: %+v", said.Result())
	}
	state, err := ingest.LoadState(t.Context(), s.ingest.Store, "openf1")
	if err != nil {
		t.Fatal(err)
	}
	want := []assemble.Line{
		{About: "carlos-sainz-jr", Was: "P3, 15 points", Is: "P2, 18 points"},
		{About: "oscar-piastri", Was: "P2, 18 points", Is: "P3, 15 points"},
	}
	var got []assemble.Line
	for _, c := range state.Disputed {
		if c.GrandPrix == "austria" && c.Block == assemble.Result {
			got = c.Lines
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("disagreements about Austria (-want +got):\n%s", diff)
	}

	api.Rewrite(nil)
	s.step(t, austria.Add(31*time.Hour))
	if said, _ := s.ledger.State().Record(austriaKey); said.Result() == nil {
		t.Error("the sources agree, and the result is not verified")
	}
}

// TestCrossChecksThatFail: with one source down and the other refusing, what was said last stays and
// nothing else changes; both are asked again later, the one that refuses on the slow clock.
func TestCrossChecksThatFail(t *testing.T) {
	if testing.Short() {
		t.Skip("short: takes some seconds")
	}
	first, jolpicaAPI := fromJolpica(t, true)
	second, openF1API := fromOpenF1(t, false)
	s := inAustria(t, first, second)
	s.step(t, austria.Add(4*time.Hour))
	before, err := s.facts.Load(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	jolpicaAPI.Instead(sourcetest.Answer(504, "text/html", "<html>504 Gateway Time-out</html>"))
	openF1API.Instead(sourcetest.Answer(401, "application/json", `{"detail":"Session in progress, access is restricted to authenticated users."}`))
	now := austria.Add(5 * time.Hour)
	report := s.step(t, now)
	if len(report.Faults) != 2 {
		t.Errorf("faults %v, want one of each source", report.Faults)
	}
	after, err := s.facts.Load(t.Context())
	if err != nil || after.SHA256 != before.SHA256 {
		t.Errorf("the archive went from %.12s to %.12s, error %v", before.SHA256, after.SHA256, err)
	}
	for name, want := range map[string]time.Duration{"jolpica": 30 * time.Second, "openf1": 30 * time.Minute} {
		state, err := ingest.LoadState(t.Context(), s.ingest.Store, name)
		if err != nil {
			t.Fatal(err)
		}
		if got := state.Next.Sub(now); got != want {
			t.Errorf("%s is asked again after %s, want %s: %s", name, got, want, state.Reason)
		}
	}
}
