package operator_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"gridcast/builder"
	"gridcast/builder/almanac"
	"gridcast/builder/archive"
	"gridcast/builder/archive/archivetest"
	"gridcast/builder/assemble"
	"gridcast/builder/ingest"
	"gridcast/builder/season"
	"gridcast/builder/settings"
	"gridcast/deploy/auditlog"
	"gridcast/deploy/golden"
	"gridcast/deploy/must"
	"gridcast/deploy/operator"
	"gridcast/edge/keys"
	"gridcast/snapshots/blob"
	"gridcast/snapshots/blob/memblob"
	"gridcast/snapshots/notes"
)

// desk is an operator on an empty store.
func desk(t *testing.T) *operator.Operator {
	t.Helper()
	store := memblob.New()
	log := must.Get(auditlog.Load(t.Context(), store))(t)
	return &operator.Operator{Store: store, Audit: log, Tiers: keys.DefaultTiers(), Name: "test", Now: time.Now}
}

// logged lists what the audit log has, as "actor|action|subject|reason".
func logged(t *testing.T, o *operator.Operator) []string {
	t.Helper()
	log := must.Get(auditlog.Load(t.Context(), o.Store))(t)
	var lines []string
	for _, e := range log.Entries() {
		lines = append(lines, strings.Join([]string{e.Actor, string(e.Action), e.Subject, e.Reason}, "|"))
	}
	return lines
}

func done(t *testing.T, o *operator.Operator, d operator.Action, request operator.Request) operator.Answer {
	t.Helper()
	if request.Actor == "" {
		request.Actor = "operator:anna"
	}
	done, err := o.Do(t.Context(), d, request)
	must.Require(t, err == nil, "%#v: %v", d, err)
	return done
}

// preview plans and explains an action.
func preview(t *testing.T, o *operator.Operator, a operator.Action) (operator.Preview, error) {
	t.Helper()
	plan, err := o.Look(t.Context(), a, operator.Request{Actor: "operator:anna", Reason: "to look at it"})
	if err != nil {
		return operator.Preview{}, err
	}
	plan.Explain()
	return plan.Preview, nil
}

func key(t *testing.T, o *operator.Operator, id string) *keys.StoredKey {
	t.Helper()
	doc, _ := must.Get2(keys.Load(t.Context(), o.Store))(t)
	return must.Get(doc.Find(id))(t)
}

// TestPruneKeys removes a key that was revoked long ago, and leaves a newer one.
func TestPruneKeys(t *testing.T) {
	o := desk(t)
	removed := done(t, o, operator.CreateKey{Client: "Old", Tier: "pro"}, operator.Request{}).Record.(keys.StoredKey)
	young := done(t, o, operator.CreateKey{Client: "Young", Tier: "pro"}, operator.Request{}).Record.(keys.StoredKey).ID
	done(t, o, operator.RevokeKey{ID: young}, operator.Request{})
	prune := operator.PruneKeys{OlderThan: operator.Span(30 * 24 * time.Hour)}
	if p, err := preview(t, o, prune); err != nil || p.Question != "" {
		t.Errorf("nothing is old enough: got %+v, %v, want no question", p, err)
	}
	done(t, o, prune, operator.Request{})
	must.Do(t, keys.Update(t.Context(), o.Store, func(d *keys.List) error {
		k, err := d.Find(removed.ID)
		if err == nil {
			k.Revoked = time.Now().AddDate(0, -2, 0)
		}
		return err
	}))
	p := must.Get(preview(t, o, prune))(t)
	golden.Sentence(t, "prune keys", append([]string{p.Question}, p.Effects...), removed.Prefix, "PREFIX")
	done(t, o, prune, operator.Request{Reason: "a clean-up"})
	doc, _, err := keys.Load(t.Context(), o.Store)
	must.Hold(t, err == nil && len(doc.Keys) == 1 && doc.Keys[0].ID == young, "left: %+v, %v, want %s", doc.Keys, err, young)
	log := logged(t, o)
	got := log[len(log)-1]
	must.Hold(t, strings.HasPrefix(got, "operator:anna|prune_keys|refused before ") && strings.HasSuffix(got, "|a clean-up"), "audit log: %q", log)
}

// TestRotateAgain: a rotated key has a warning at the next rotation. Its successor has none, neither at once nor if it expires
// before the old key.
func TestRotateAgain(t *testing.T) {
	for _, later := range []time.Duration{0, time.Minute} {
		synctest.Test(t, func(t *testing.T) {
			o := desk(t)
			warnings := func(id string) int { return len(must.Get(preview(t, o, operator.RotateKey{ID: id}))(t).Warnings) }
			old := done(t, o, operator.CreateKey{Client: "A", Tier: "pro"}, operator.Request{}).Record.(keys.StoredKey).ID
			time.Sleep(later)
			next := done(t, o, operator.RotateKey{ID: old, Grace: operator.Span(48 * time.Hour)}, operator.Request{}).Record.(keys.StoredKey).ID
			must.Equal(t, "warnings of the old key and of its successor", [2]int{1, 0}, [2]int{warnings(old), warnings(next)})
			if later > 0 {
				done(t, o, operator.ExpireKey{ID: next, Until: operator.Expiry{Time: time.Now().Add(time.Hour)}}, operator.Request{})
				must.Equal(t, "warnings of a successor that expires first", 0, warnings(next))
			}
		})
	}
}

// TestSignedListIsTheOneShown: a key that somebody adds after the preview is not vouched for.
func TestSignedListIsTheOneShown(t *testing.T) {
	o := desk(t)
	done(t, o, operator.CreateKey{Client: "Example Media", Tier: "pro"}, operator.Request{})
	file := filepath.Join(t.TempDir(), "keys.key")
	must.Do(t, notes.MakeKey(file, "example.com/gridcast/keys"))
	signer := must.Get(notes.ReadSigners(file))(t)
	o.SignKeys = signer
	plan, err := o.Look(t.Context(), operator.SignList{}, operator.Request{Actor: "operator:anna"})
	must.Require(t, err == nil && len(plan.Effects) == 2, "got %+v, %v; want a line and one key", plan, err)
	must.Do(t, keys.Update(t.Context(), o.Store, func(list *keys.List) error {
		_, _, err := list.Create(keys.Request{Name: "Intruder", Tier: "pro"}, time.Now())
		return err
	}))
	must.Fail(t, "the list has another key", must.Err(plan.Apply(t.Context())), operator.ErrStale)
	done(t, o, operator.SignList{}, operator.Request{Reason: "both are ours"})
	if list, _, err := keys.Load(t.Context(), o.Store); err != nil || list.SignedBy(signer.Trust()) != nil {
		t.Errorf("got %+v, %v; want a signed list", list, err)
	}
}

// TestSpan reads durations, and refuses one that a Duration cannot hold instead of another one in its place.
func TestSpan(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"90m": 90 * time.Minute, "30d": 30 * 24 * time.Hour, "2w": 14 * 24 * time.Hour, "106751d": 106751 * 24 * time.Hour,
		"213600d": 0, "106752d": 0, "40000w": 0, "1.5d": 0, "d": 0, "9": 0,
	} {
		var got operator.Span
		if err := got.UnmarshalText([]byte(text)); time.Duration(got) != want || (err == nil) != (want != 0) {
			t.Errorf("%q: got %s, %v; want %s, or an error in place of 0s", text, time.Duration(got), err, want)
		}
	}
}

// TestCodes reads drivers in order, and refuses a text that names none: without codes a correction takes the source's.
func TestCodes(t *testing.T) {
	for text, want := range map[string]operator.Codes{
		"VER,NOR": {"VER", "NOR"}, "1. VER\n2. max-verstappen +5.2s # late": {"VER", "max-verstappen"}, "": nil,
		"# VER\n# NOR\n": nil, "4,81,16": nil,
	} {
		var got operator.Codes
		if err := got.UnmarshalText([]byte(text)); !slices.Equal(got, want) || (err == nil) != (len(want) > 0 || text == "") {
			t.Errorf("%q: got %q, %v; want %q, or an error in place of no driver", text, got, err, want)
		}
	}
}

// TestPenaltyOfAForm: seconds that no duration can hold are refused.
func TestPenaltyOfAForm(t *testing.T) {
	for seconds, want := range map[string]time.Duration{"5": 5 * time.Second, "2.5": 2500 * time.Millisecond, "0": 0, "-5": 0, "inf": 0, "1e300": 0} {
		var c operator.Classification
		err := c.ReadForm(func(name string) string { return map[string]string{"penalised": "NOR", "penalty": seconds}[name] })
		must.Hold(t, c.TimePenalty["NOR"] == want && (err == nil) == (want != 0),
			"%q: got %v, %v; want %s, or an error in place of 0s", seconds, c.TimePenalty, err, want)
	}
}

// TestCarWithoutNumber: 0 is the number of no car, although it stands in entries whose number is unknown.
func TestCarWithoutNumber(t *testing.T) {
	r := &almanac.Round{Facts: &season.Round{Entries: []season.Entry{{Driver: "new-driver"}, {Driver: "lando-norris", Number: 4}}}}
	driver, err := operator.FindCar(r, "4")
	must.Hold(t, err == nil && driver == "lando-norris", "car 4: got %q, %v; want lando-norris", driver, err)
	if driver, err := operator.FindCar(r, "0"); err == nil {
		t.Errorf("car 0: got %q, want an error", driver)
	}
}

// impatient is a store whose reads end with their context.
type impatient struct{ blob.Store }

func (s impatient) Get(ctx context.Context, key string, limit int64) (blob.Object, error) {
	if ctx.Err() != nil {
		return blob.Object{}, ctx.Err()
	}
	return s.Store.Get(ctx, key, limit)
}

// TestTokenAfterAGivenUpRequest: the first request of a process is given up by its browser, and the next one signs in.
func TestTokenAfterAGivenUpRequest(t *testing.T) {
	o := desk(t)
	token := done(t, o, operator.AddOperator{Name: "ben", Role: operator.Operate}, operator.Request{}).Secret
	tokens := &operator.Tokens{Store: impatient{o.Store}}
	ended, end := context.WithCancel(t.Context())
	end()
	tokens.Find(ended, token)
	p, ok := tokens.Find(t.Context(), token)
	must.Hold(t, ok && p.Name == "ben", "got %+v, %t; want ben", p, ok)
}

// slow is a store that answers no read, and says so after five seconds.
type slow struct{ blob.Store }

func (slow) Get(context.Context, string, int64) (blob.Object, error) {
	time.Sleep(5 * time.Second)
	return blob.Object{}, errors.New("no answer")
}

// TestTokensInAnOutage: the requests that wait while a store does not answer share one read.
func TestTokensInAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tokens, began := &operator.Tokens{Store: slow{}}, time.Now()
		for range 3 {
			tokens.Find(t.Context(), "token")
		}
		must.Equal(t, "the time of three requests", 5*time.Second, time.Since(began))
	})
}

// An action that ends or replaces something asks a question, and fails if its target changed since the
// preview.
func TestActionsAskAndAreGuarded(t *testing.T) {
	o := desk(t)
	id := done(t, o, operator.CreateKey{Client: "A", Tier: "pro"}, operator.Request{}).Record.(keys.StoredKey).ID
	revoke := operator.RevokeKey{ID: id}
	seen, err := preview(t, o, revoke)
	must.Require(t, err == nil && seen.Question != "" && len(seen.Effects) != 0, "got %+v, %v; want a question and what it does", seen, err)
	done(t, o, operator.SetOrigins{ID: id, Origins: []string{"https://example.org"}}, operator.Request{Actor: "operator:ben"})
	must.Fail(t, "after somebody else changed it", must.Err(o.Do(t.Context(), revoke, operator.Request{Actor: "operator:anna", Seen: seen.Seen})), operator.ErrStale)
	must.Hold(t, key(t, o, id).Active(time.Now()), "it was revoked all the same")
}

func TestWhatIsRefusedBeforeItIsLogged(t *testing.T) {
	o := desk(t)
	for name, tt := range map[string]struct {
		action  operator.Action
		request operator.Request
	}{
		"a tier that nobody has":        {operator.CreateKey{Client: "A", Tier: "gold"}, operator.Request{}},
		"nobody":                        {operator.CreateKey{Tier: "pro"}, operator.Request{}},
		"a name that rings":             {operator.CreateKey{Client: "A\a", Tier: "pro"}, operator.Request{}},
		"a reason that clears the page": {operator.CreateKey{Client: "A", Tier: "pro"}, operator.Request{Reason: "\x1b[2J"}},
		"a reason of broken UTF-8":      {operator.CreateKey{Client: "A", Tier: "pro"}, operator.Request{Reason: "\xff"}},
		"an origin no browser sends":    {operator.CreateKey{Client: "A", Tier: "pro", Origins: []string{"example.org"}}, operator.Request{}},
		"an expiry in the past":         {operator.CreateKey{Client: "A", Tier: "pro", Expires: operator.Expiry{Time: time.Unix(1, 0)}}, operator.Request{}},
		"a key that is not there":       {operator.RevokeKey{ID: "nothere"}, operator.Request{}},
		"no reason to rebuild":          {operator.Rebuild{}, operator.Request{}},
	} {
		tt.request.Actor = "operator:anna"
		golden.Sentence(t, "refused: "+name, must.Err(o.Do(t.Context(), tt.action, tt.request)))
	}
	got := logged(t, o)
	must.Hold(t, len(got) == 0, "audit log: got %q, want nothing", got)
}

func TestFailureOfAnActionIsLogged(t *testing.T) {
	o := desk(t)
	o.Build = func(context.Context, builder.Request) (builder.Outcome, error) {
		got := logged(t, o)
		must.Hold(t, len(got) == 1, "while it is done the log has %q, want its announcement", got)
		return builder.Outcome{}, errors.New("the disk is full")
	}
	must.Fail(t, "got no error", must.Err(o.Do(t.Context(), operator.Rebuild{}, operator.Request{Actor: "operator:anna", Reason: "try"})))
	want := []string{"operator:anna|rebuild||try", "operator:anna|failed||the disk is full"}
	got := logged(t, o)
	must.Hold(t, slices.Equal(got, want), "audit log: got %q, want %q", got, want)
}

// changed returns the embedded seasons after a change of the latest one.
func changed(t *testing.T, change func(*season.Facts)) archive.Stored {
	t.Helper()
	facts := archivetest.Seasons(t, 2007, 2026)
	change(&facts)
	return archivetest.Stored(t, facts)
}

// emptied removes all facts after the grid from the last rounds that were held.
func emptied(rounds int) func(*season.Facts) {
	return func(f *season.Facts) {
		last := &f.Seasons[len(f.Seasons)-1]
		held := 0
		for held < len(last.Rounds) && last.Rounds[held].Finished() {
			held++
		}
		for i := held - rounds; i < held; i++ {
			r := &last.Rounds[i]
			r.Results, r.FastestLaps, r.PitStops, r.DriverStandings, r.TeamStandings = nil, nil, nil, nil, nil
		}
	}
}

func TestImportThatLosesResults(t *testing.T) {
	must.Long(t, "builds the embedded seasons")
	o := desk(t)
	whole, older := changed(t, func(*season.Facts) {}), changed(t, emptied(2))
	if p, err := preview(t, o, operator.ImportArchive{Archive: older}); err != nil || p.Question != "" {
		t.Errorf("the first archive: got %+v, %v; want no question", p, err)
	}
	done(t, o, operator.ImportArchive{Archive: older, Origin: "older"}, operator.Request{})

	p, err := preview(t, o, operator.ImportArchive{Archive: whole})
	must.Hold(t, err == nil && p.Question == "" && p.Refusal == "", "results are added: got %+v, %v; want no question", p, err)
	golden.Sentence(t, "import an archive with more results", p.Effects)
	answer := done(t, o, operator.ImportArchive{Archive: whole, Origin: "whole"}, operator.Request{})
	must.Hold(t, answer.Unpublished != "", "got %+v, want it to ask for a build", answer)

	_, err = o.Do(t.Context(), operator.ImportArchive{Archive: older, Origin: "older"}, operator.Request{Actor: "operator:anna"})
	must.Hold(t, errors.Is(err, operator.ErrRefused), "results are lost: got %v, want it refused", err)
	golden.Sentence(t, "import an archive with fewer results", err)
	list, err := archive.NewStore(o.Store).List(t.Context())
	must.Require(t, err == nil && len(list) == 2 && list[0].InUse == (list[0].SHA256 == whole.SHA256), "archives: got %+v, %v", list, err)
	done(t, o, operator.UseArchive{SHA256: older.SHA256[:12]}, operator.Request{Force: true, Reason: "wrong release"})
	if inUse, err := archive.NewStore(o.Store).Load(t.Context()); err != nil || inUse.SHA256 != older.SHA256 {
		t.Errorf("in use: %.12s, %v; want the older one", inUse.SHA256, err)
	}
	must.Fail(t, "an archive that is not there", must.Err(o.Do(t.Context(), operator.UseArchive{SHA256: "zz"}, operator.Request{Actor: "operator:anna"})))
	if got := logged(t, o); len(got) != 3 || !strings.HasPrefix(got[2], fmt.Sprintf("operator:anna|put_archive|%s|wrong release", older.SHA256[:12])) {
		t.Errorf("audit log: got %q, want three imports", got)
	}
}

// TestReasons: an action that changes facts or the record requires a reason.
func TestReasons(t *testing.T) {
	for _, d := range []operator.Action{
		operator.EnterDrivers{Block: assemble.Grid},
		operator.ReleaseFacts{},
		operator.ImportCalendar{},
		operator.MergeIdentities{},
		operator.AcceptChange{},
		operator.Rollback{},
		operator.Rebuild{},
		operator.ReleasePublishing{},
	} {
		must.Fail(t, fmt.Sprintf("%T without a reason", d), operator.Complete(d, operator.Request{Actor: "anna"}), operator.ErrNoReason)
	}
}

// TestSettings: a change asks a question, is applied once and is logged; a change without effect is refused.
func TestSettings(t *testing.T) {
	o := desk(t)
	model, wrong, hours := "r2", "crystal-ball", 2*time.Hour
	golden.Sentence(t, "settings: unknown model", must.Err(preview(t, o, operator.ChangeSettings{Model: &wrong})))
	moment := 500 * time.Millisecond
	if p, err := preview(t, o, operator.ChangeSettings{AutoVerifyAfter: &moment}); err == nil {
		t.Errorf("half a second: got %q, want it refused, because the settings have whole seconds and 0 is never", p.Effects)
	}
	change := operator.ChangeSettings{Model: &model, AutoVerifyAfter: &hours}
	p, err := preview(t, o, change)
	must.Hold(t, err == nil && p.Question != "" && len(p.Effects) == 2, "got %+v, %v; want a question, and an effect of each", p, err)
	golden.Sentence(t, "settings: effects", p.Effects)
	done(t, o, change, operator.Request{Reason: "a trial"})
	before := len(o.Audit.Entries())
	again := done(t, o, change, operator.Request{})
	must.Hold(t, strings.HasPrefix(again.Text, "Nothing to change") && len(o.Audit.Entries()) == before, "the same again: got %q, want that nothing changes or is logged", again.Text)
	portraits := season.Headshots{Template: "https://images.example/{driver}.png", Drivers: []season.DriverID{"ann", "bob"}}
	done(t, o, operator.ChangeSettings{Headshots: &portraits}, operator.Request{})
	if settings, err := settings.Load(t.Context(), o.Store); err != nil || settings.Model != "r2" || *settings.AutoVerifySeconds != 7200 || len(settings.Headshots.Drivers) != 2 {
		t.Errorf("got %+v, %v; want all that was said", settings, err)
	}
	done(t, o, operator.ChangeSettings{Headshots: &season.Headshots{}}, operator.Request{Reason: "not ours"})
	settings, err := settings.Load(t.Context(), o.Store)
	must.Hold(t, err == nil && settings.Headshots != nil && settings.Headshots.Template == "",
		"got %+v, %v; want it said that there are no portraits", settings, err)
	got := operator.SettingsOf(settings)
	must.Hold(t, got[0].Value == "r2" && got[1].Value == "after 2h0m0s" && got[3].Value == "none", "in words: %+v", got)
	want := []string{
		"operator:anna|change_settings|model r2, auto_verify_after 2h0m0s|a trial",
		"operator:anna|change_settings|headshots of 2 drivers|",
		"operator:anna|change_settings|headshots none|not ours",
	}
	if got := logged(t, o); !slices.Equal(got, want) {
		t.Errorf("audit log: got %q, want %q", got, want)
	}
}

func TestUnanswered(t *testing.T) {
	never, answered := ingest.PollState{Source: "f1db", LastPoll: ingest.LastPoll{Polled: time.Now()}}, ingest.PollState{Source: "jolpica", LastPoll: ingest.LastPoll{Answered: time.Now()}}
	for _, test := range []struct {
		states []ingest.PollState
		want   bool
	}{
		{nil, false}, {[]ingest.PollState{never}, true}, {[]ingest.PollState{never, answered}, false},
	} {
		got := operator.Unanswered(test.states)
		must.Hold(t, got == test.want, "%+v: got %v", test.states, got)
	}
}
