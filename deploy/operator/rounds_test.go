package operator_test

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"gridcast/builder"
	"gridcast/builder/almanac"
	"gridcast/builder/archive"
	"gridcast/builder/archive/archivetest"
	"gridcast/builder/assemble"
	"gridcast/builder/ingest"
	"gridcast/builder/ledger"
	"gridcast/builder/predict"
	"gridcast/builder/season"
	"gridcast/builder/testseason"
	"gridcast/deploy/auditlog"
	"gridcast/deploy/golden"
	"gridcast/deploy/must"
	"gridcast/deploy/operator"
	"gridcast/schemas/catalog"
	"gridcast/snapshots/blob/faultblob"
)

// race is an operator with a ledger opened before Belgium 2024, whose pick is frozen, and a clock.
type race struct {
	*operator.Operator
	at time.Time
}

const (
	belgium = 2024014
	dutch   = 2024015 // four weeks later
)

var belgiumStart = time.Date(2024, 7, 28, 13, 0, 0, 0, time.UTC)

func belgianWeekend(t *testing.T) *race {
	t.Helper()
	w := &race{Operator: desk(t), at: belgiumStart.Add(-time.Hour)}
	s := testseason.New(t, testseason.Config{Weekend: testseason.Belgium, Opened: belgiumStart.AddDate(0, 0, -2), Store: w.Store})
	s.Settle(w.at)
	w.Ledger, w.Facts, w.Now = s.Ledger, s.Facts, func() time.Time { return w.at }
	return w
}

func (w *race) preview(t *testing.T, d operator.Action) operator.Preview {
	t.Helper()
	p, err := preview(t, w.Operator, d)
	must.Require(t, err == nil, "%#v: %v", d, err)
	return p
}

func TestPreviewOfARound(t *testing.T) {
	w := belgianWeekend(t)
	cancel := w.preview(t, operator.CancelRound{Key: belgium})
	golden.Sentence(t, "cancel a round", cancel.Effects)
	if cancel.Question == "" || !slices.Contains(cancel.Variants, "calendar/2024") || !slices.Contains(cancel.Variants, "next-race") || slices.Contains(cancel.Variants, "calendar/2023") {
		t.Errorf("cancel: got %+v, want a question, and only this season's variants", cancel)
	}
	got := logged(t, w.Operator)
	must.Hold(t, len(got) == 0 && !w.Ledger.Fold().At().After(w.at), "looking wrote %q", got)
	golden.Sentence(t, "move a round into the past", must.Err(preview(t, w.Operator, operator.MoveRound{Key: belgium, Start: belgiumStart.Add(-2 * time.Hour)})))
}

// A decision must be about the state of the round that the operator looked at.
func TestRoundChangedMeanwhile(t *testing.T) {
	w := belgianWeekend(t)
	seen := w.preview(t, operator.CancelRound{Key: belgium}).Seen
	done(t, w.Operator, operator.PostponeRound{Key: belgium}, operator.Request{Actor: "operator:ben", Reason: "fog"})
	must.Fail(t, "seen before the change", must.Err(w.Do(t.Context(), operator.CancelRound{Key: belgium}, operator.Request{Actor: "operator:anna", Reason: "fog", Seen: seen})), operator.ErrStale)
	// Another operator decides between Look and Apply, which load the facts again.
	seen = w.preview(t, operator.ReinstateRound{Key: belgium}).Seen
	load, looks := w.Facts, 0
	w.Facts = func(ctx context.Context) (archive.Stored, error) {
		if looks++; looks == 2 { // the preview of Do has looked
			other := *w.Operator
			other.Facts = load
			done(t, &other, operator.CancelRound{Key: belgium}, operator.Request{Actor: "operator:ben", Reason: "more fog"})
		}
		return load(ctx)
	}
	must.Fail(t, "in between", must.Err(w.Do(t.Context(), operator.ReinstateRound{Key: belgium}, operator.Request{Actor: "operator:anna", Reason: "sun", Seen: seen})), operator.ErrStale)
}

// A result entered before the race can be over is refused unless it is forced.
func TestEarlyResult(t *testing.T) {
	w := belgianWeekend(t)
	w.at = belgiumStart.Add(9 * time.Second)
	enter := operator.EnterResult{Key: belgium, Order: []string{"HAM", "PIA", "LEC"}}
	request := operator.Request{Actor: "operator:anna", Reason: "seen on television"}
	_, err := w.Do(t.Context(), enter, request)
	must.Fail(t, "9 s after lights out", err, operator.ErrRefused)
	golden.Sentence(t, "enter a result 9 s after lights out", err)
	request.Force = true
	answer := done(t, w.Operator, enter, request)
	rows := answer.Record.(*almanac.Round).Valid()
	must.Hold(t, answer.Unpublished != "" && len(rows) == 20 && rows[0].Points == 25 && rows[2].Points == 15 && rows[3].Position == 0 && rows[3].Points == 0,
		"forced: got %+v", rows)
	golden.Sentence(t, "enter a result twice", must.Err(w.Do(t.Context(), enter, request)))
	correct := operator.CorrectResult{Key: belgium, Classification: operator.Classification{Order: []string{"PIA", "HAM", "LEC"}}}
	if p := w.preview(t, correct); p.Refusal != "17 of 20 drivers have no place" || !slices.Contains(p.Effects, "The winner is Oscar Piastri; until now: Lewis Hamilton.") {
		t.Errorf("correct: got %+v", p)
	}
	for _, bad := range [][]string{{"HAM", "HAM"}, {"BEA"}, {"SEN"}} {
		golden.Sentence(t, "correct a result to "+strings.Join(bad, " "), must.Err(preview(t, w.Operator, operator.CorrectResult{Key: belgium, Classification: operator.Classification{Order: bad}})))
	}
}

// A correction by the source is of the sprint too, and a preview says so.
func TestCorrectionOfTheSprint(t *testing.T) {
	w := belgianWeekend(t)
	w.sprint(t, func([]season.Result) {})
	w.at = belgiumStart.Add(3 * time.Hour)
	done(t, w.Operator, operator.VerifyResult{Key: belgium}, operator.Request{Actor: "operator:anna"})
	seen := w.preview(t, operator.CorrectResult{Key: belgium, Classification: operator.Classification{Order: []string{"PIA", "HAM", "LEC"}}}).Seen

	w.sprint(t, func(rows []season.Result) {
		rows[0].Driver, rows[1].Driver = rows[1].Driver, rows[0].Driver
		rows[0].Team, rows[1].Team = rows[1].Team, rows[0].Team
	})
	correct := operator.CorrectResult{Key: belgium, Classification: operator.Classification{}}
	p := w.preview(t, correct)
	must.Hold(t, slices.Contains(p.Effects, "Places or points of the sprint change.") && p.Seen != seen,
		"preview of another sprint: got %+v", p)
	answer := done(t, w.Operator, correct, operator.Request{Actor: "operator:anna", Reason: "flagged", Seen: p.Seen})
	rows := answer.Record.(*almanac.Round).Sprint()
	must.Hold(t, len(rows) == 3 && rows[0].Driver == "oscar-piastri" && !answer.Record.(*almanac.Round).Differs(), "verified is the sprint %+v", rows)
}

// Stewards rule on the sprint alone: the race stays as it is.
func TestCorrectTheSprint(t *testing.T) {
	w := belgianWeekend(t)
	w.at = belgiumStart.Add(3 * time.Hour)
	ofSprint := operator.Classification{Sprint: true, Order: []string{"PIA", "LEC"}}
	refused := func(name string, c operator.Classification) {
		t.Helper()
		golden.Sentence(t, "correct a sprint, "+name, must.Err(preview(t, w.Operator, operator.CorrectResult{Key: belgium, Classification: c})))
	}
	refused("without one", ofSprint)
	w.sprint(t, func(rows []season.Result) {
		for i := range rows {
			rows[i].Points = float64(8 - i)
		}
	})
	before := done(t, w.Operator, operator.VerifyResult{Key: belgium}, operator.Request{Actor: "operator:anna"}).Record.(*almanac.Round)
	refused("stranger", operator.Classification{Sprint: true, Order: []string{"PIA", "VER"}})
	refused("document and flag", operator.Classification{Sprint: true, Document: []byte(`{"sprint": []}`)})
	refused("driver missing", operator.Classification{Document: []byte(`{"sprint": [{"driver": "PIA", "position": 1}]}`)})
	refused("empty document", operator.Classification{Document: []byte(`{}`)})

	for i, tt := range []struct {
		ruling operator.Classification
		want   string
	}{
		{ofSprint, "oscar-piastri 8, charles-leclerc 7, lewis-hamilton 0"},
		{operator.Classification{Sprint: true, Disqualify: []string{"PIA"}}, "charles-leclerc 8, lewis-hamilton 0, oscar-piastri 0"},
		{
			operator.Classification{Document: []byte(`{"sprint": [{"driver": "PIA", "position": 1, "points": 8}, {"driver": "HAM"}, {"driver": "LEC"}]}`)},
			"oscar-piastri 8, lewis-hamilton 0, charles-leclerc 0",
		},
		{operator.Classification{Sprint: true}, "lewis-hamilton 8, oscar-piastri 7, charles-leclerc 6"}, // as the source has it
	} {
		correct := operator.CorrectResult{Key: belgium, Classification: tt.ruling}
		p := w.preview(t, correct)
		must.Hold(t, slices.Contains(p.Effects, "Places or points of the sprint change."), "%d: preview %+v", i, p)
		r := done(t, w.Operator, correct, operator.Request{Actor: "operator:anna", Reason: "document 7", Force: true}).Record.(*almanac.Round)
		var got []string
		for _, row := range r.Sprint() {
			got = append(got, fmt.Sprintf("%s %g", row.Driver, row.Points))
		}
		if strings.Join(got, ", ") != tt.want || r.Result.Revision != i+2 {
			t.Errorf("%d: revision %d has the sprint %q, want %q", i, r.Result.Revision, got, tt.want)
		}
		diff := cmp.Diff(before.Valid(), r.Valid())
		must.Hold(t, diff == "", "%d: the race (-before +after)\n%s", i, diff)
	}
}

// sprint gives the facts a sprint in Belgium, of the first three of the race and edited.
func (w *race) sprint(t *testing.T, edit func([]season.Result)) {
	t.Helper()
	facts := archivetest.Seasons(t, 2007, 2026)
	year := slices.IndexFunc(facts.Seasons, func(s season.Season) bool { return s.Year == 2024 })
	r := &facts.Seasons[year].Rounds[belgium%catalog.KeysPerSeason-1]
	r.Sprint, r.SprintResults = true, slices.Clone(r.Results[:3])
	edit(r.SprintResults)
	a := must.Get(season.New(facts))(t)
	w.Facts = func(context.Context) (archive.Stored, error) { return archive.Stored{Archive: a}, nil }
}

// A verification takes three round trips to the store: read the ledger, write the audit log, write the
// ledger. The store takes a second of the bubble's time to answer each.
func TestVerifyTrips(t *testing.T) {
	w := belgianWeekend(t) // outside of the bubble: other tests share the decoder of archives
	w.at = belgiumStart.Add(24 * time.Hour)
	facts, err := w.Facts(t.Context())
	must.Do(t, err)
	synctest.Test(t, func(t *testing.T) {
		slow := faultblob.Wrap(w.Store, func(context.Context, faultblob.Call) faultblob.Fate {
			time.Sleep(time.Second)
			return faultblob.Fate{}
		})
		if w.Ledger, err = ledger.Load(t.Context(), slow, ledger.Simulated); err != nil {
			t.Fatal(err)
		}
		if w.Audit, err = auditlog.Load(t.Context(), slow); err != nil {
			t.Fatal(err)
		}
		w.Store, w.Facts = slow, func(context.Context) (archive.Stored, error) { return facts, nil }
		p := w.preview(t, operator.VerifyResult{Key: belgium})
		began := time.Now()
		answer := done(t, w.Operator, operator.VerifyResult{Key: belgium}, operator.Request{Seen: p.Seen})
		got := time.Since(began)
		must.Hold(t, got == 3*time.Second, "%d round trips, want 3", got/time.Second)
		must.Hold(t, answer.Record.(*almanac.Round).Result != nil && answer.Unpublished != "",
			"got %+v, want it verified and to be published", answer)
	})
}

// A refused entry names the version that clients keep.
func TestRefusedEntry(t *testing.T) {
	w := belgianWeekend(t)
	b := &builder.Builder{Store: w.Store, Ledger: w.Ledger, Facts: w.Facts, Policy: builder.Policy{Model: predict.GridFrequency()}, Name: "test", Log: slog.New(slog.DiscardHandler)}
	must.Get(b.Build(t.Context(), builder.Request{At: w.at}))(t)
	w.assembles(t)
	early := operator.EnterDrivers{Key: dutch, Block: assemble.Qualifying, Text: "VER NOR LEC"}
	_, err := w.Do(t.Context(), early, operator.Request{Actor: "operator:anna", Reason: "a rumour"})
	must.Fail(t, "the refusal", err, operator.ErrRefused)
	golden.Sentence(t, "enter qualifying before it is held", err)
}

// assembles lets the operator enter facts.
func (w *race) assembles(t *testing.T) {
	t.Helper()
	w.Ingest = &ingest.Ingest{Store: w.Store, Facts: archive.NewStore(w.Store), Ledger: w.Ledger, Log: slog.New(slog.DiscardHandler)}
	must.Do(t, w.Ingest.Load(t.Context()))
}

// The archive of a store for practice holds the whole season. A preview shows nothing that is later than its clock.
func TestPreviewShowsNoLaterFact(t *testing.T) {
	w := belgianWeekend(t)
	w.assembles(t)
	now := w.at
	for _, block := range []assemble.Block{assemble.Entries, assemble.Qualifying, assemble.Grid} {
		w.at = time.Date(2024, 8, 25, 12, 0, 0, 0, time.UTC) // qualifying is over
		coming, err := w.Template(t.Context(), dutch, block)
		w.at = now
		must.Do(t, err)
		for name, text := range map[string]string{"as suggested": coming, "typed": "VER NOR LEC PIA SAI HAM RUS PER ALO STR HUL MAG GAS OCO ALB SAR BOT ZHO RIC TSU"} {
			p := w.preview(t, operator.EnterDrivers{Key: dutch, Block: block, Text: text})
			golden.Sentence(t, fmt.Sprintf("preview of %s before they are known, %s", block, name), slices.Concat(p.Effects, p.Warnings))
		}
	}
	// A second entry is compared with the first.
	first := operator.EnterDrivers{Key: dutch, Block: assemble.Entries, Text: "VER NOR LEC"}
	must.Get(w.Do(t.Context(), first, operator.Request{Actor: "operator:anna", Reason: "practice", Force: true}))(t)
	first.Text = "VER NOR SAI"
	golden.Sentence(t, "preview of a second entry", w.preview(t, first).Effects)
	golden.Sentence(t, "preview of a release before the facts are known", w.preview(t, operator.ReleaseFacts{Key: dutch}).Effects)
}

// A name that acts on the screen of a reader is refused before it is stored.
func TestNamesThatActOnAReader(t *testing.T) {
	w := belgianWeekend(t)
	w.assembles(t)
	for _, action := range []operator.Action{
		operator.EnterDrivers{Key: dutch, Block: assemble.Entries, Text: "VER NOR LEC PIA\nNEW = Nina <b>Newby, GBR, rb, 41"},
		operator.EnterDrivers{Key: dutch, Block: assemble.Entries, Text: "VER NOR LEC PIA\nNEW = Nina \u202eNewby, GBR, rb, 41"},
		operator.EnterDrivers{Key: dutch, Block: assemble.Grid, Text: "VER NOR LEC PIA\nNEW = Nina \x1b[2JNewby, GBR, rb, 41"},
	} {
		_, err := w.Do(t.Context(), action, operator.Request{Actor: "operator:anna", Reason: "the organiser wrote", Force: true})
		golden.Sentence(t, fmt.Sprintf("a name that acts on a reader: %+q", action.(operator.EnterDrivers).Text[20:]), err)
	}
	hand, err := w.Ingest.Manual(t.Context())
	must.Hold(t, err == nil && len(hand.Entries) == 0, "stored are %+v, %v", hand, err)
}

// TestDecisionsAboutAChampionship: the preview shows the tables that change, and an action that somebody else was faster
// with is stale.
func TestDecisionsAboutAChampionship(t *testing.T) {
	w := belgianWeekend(t)
	team := operator.Competitor{Year: 2024, ID: "Mercedes", Constructors: true}
	deduct := operator.DeductPoints{Competitor: team, Points: 100}
	p := w.preview(t, deduct)
	golden.Sentence(t, "take points", append([]string{p.Title, p.Question}, p.Effects...))
	for _, variant := range []string{"standings/constructors/2024", "standings-progress/constructors/2024", "changes/2024"} {
		must.Hold(t, slices.Contains(p.Variants, variant), "%s is not among the changed variants %q", variant, p.Variants)
	}
	request := operator.Request{Actor: "operator:anna", Reason: "cost cap"}
	done(t, w.Operator, deduct, request)
	golden.Sentence(t, "points taken, in the audit log", logged(t, w.Operator))
	request.Seen = p.Seen
	must.Fail(t, "with the preview of before", must.Err(w.Do(t.Context(), operator.ExcludeCompetitor{Competitor: team}, request)), operator.ErrStale)
	golden.Sentence(t, "exclude a driver", w.preview(t, operator.ExcludeCompetitor{Competitor: operator.Competitor{Year: 2024, ID: "VER"}}).Effects)
	golden.Sentence(t, "enter a team anew", w.preview(t, operator.ExcludeCompetitor{Competitor: team, NewEntry: true, From: operator.From{From: belgium - 4}}).Effects)
	golden.Sentence(t, "restore a team", w.preview(t, operator.RestoreCompetitor{Competitor: team}).Effects)
	for name, action := range map[string]operator.Action{
		"a season without rounds":  operator.DeductPoints{Competitor: operator.Competitor{Year: 1949, ID: "VER"}, Points: 1},
		"a race to come":           operator.DeductPoints{Competitor: team, Points: 1, From: operator.From{From: dutch}},
		"a driver who enters anew": operator.ExcludeCompetitor{Competitor: operator.Competitor{Year: 2024, ID: "VER"}, NewEntry: true},
		"a decision not made":      operator.RestoreCompetitor{Competitor: team, Decision: 7},
	} {
		must.Fail(t, name, must.Err(preview(t, w.Operator, action)))
	}
}
