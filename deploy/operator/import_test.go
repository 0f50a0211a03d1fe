package operator_test

import (
	"path/filepath"
	"testing"
	"time"

	"gridcast/builder"
	"gridcast/builder/archive"
	"gridcast/builder/archive/archivetest"
	"gridcast/builder/ledger"
	"gridcast/builder/source/f1db"
	"gridcast/builder/testseason"
	"gridcast/deploy/golden"
	"gridcast/deploy/must"
	"gridcast/deploy/operator"
)

// begun is a desk on a store whose ledger was opened at an instant, on an archive.
func begun(t *testing.T, opened time.Time, stored archive.Stored) *operator.Operator {
	t.Helper()
	o := desk(t)
	s := testseason.New(t, testseason.Config{Stored: stored, Kind: ledger.Real, Opened: opened, Store: o.Store})
	o.Ledger, o.Facts, o.Now = s.Ledger, s.Facts, func() time.Time { return opened.Add(time.Hour) }
	return o
}

// waits counts the rounds with a result that waits for an operator.
func waits(t *testing.T, o *operator.Operator) (waiting int) {
	t.Helper()
	a := must.Get(o.Almanac(t.Context()))(t)
	for _, r := range a.Waiting() {
		if r.Source() != nil {
			waiting++
		}
	}
	return waiting
}

// A store has begun with two seasons. Every result of the seasons before them comes with an import, and none waits.
func TestImportOfHistory(t *testing.T) {
	opened := time.Date(2026, 3, 20, 12, 0, 0, 0, time.UTC)
	recent, whole := archivetest.Stored(t, archivetest.Seasons(t, 2025, 2026)), archivetest.Stored(t, archivetest.Seasons(t, 2023, 2026))
	o := begun(t, opened, recent)
	n := waits(t, o)
	must.Require(t, n == 0, "before the import %d results wait", n)
	p := must.Get(preview(t, o, operator.ImportArchive{Archive: whole}))(t)
	golden.Sentence(t, "import history into a store that has begun", p.Warnings)
	answer := done(t, o, operator.ImportArchive{Archive: whole, Origin: "whole"}, operator.Request{Reason: "history"})
	if n := waits(t, o); n != 0 {
		t.Errorf("after the import %d results wait, want none", n)
	}
	files := o.Ledger.Files()
	events := files[len(files)-1].Events
	vouched := events[len(events)-1]
	if vouched.Type != ledger.ResultsVouched || vouched.Archive != whole.SHA256 || len(vouched.Rounds) != 22+24 || vouched.Actor != "operator:anna" || vouched.Reason != "history" {
		t.Errorf("got the event %s of %d rounds by %s, want all of 2023 and 2024 vouched for", vouched.Type, len(vouched.Rounds), vouched.Actor)
	}
	must.Hold(t, answer.Unpublished != "", "want a build")

	seq := o.Ledger.Head().Seq
	done(t, o, operator.ImportArchive{Archive: whole, Origin: "whole"}, operator.Request{})
	must.Hold(t, o.Ledger.Head().Seq == seq, "the same import again: want nothing more in the ledger")
}

// An archive that is put in use without an import vouches for nothing, and says so before. An import of the same
// archive later vouches for the results that wait.
func TestUseOfAnArchiveWithHistory(t *testing.T) {
	opened := time.Date(2026, 3, 20, 12, 0, 0, 0, time.UTC)
	recent, whole := archivetest.Stored(t, archivetest.Seasons(t, 2025, 2026)), archivetest.Stored(t, archivetest.Seasons(t, 2023, 2026))
	o := begun(t, opened, recent)
	facts := archive.NewStore(o.Store)
	for _, stored := range []archive.Stored{whole, recent} { // the last one is in use
		archivetest.Put(t, facts, stored)
	}
	use := operator.UseArchive{SHA256: whole.SHA256[:12]}
	p := must.Get(preview(t, o, use))(t)
	golden.Sentence(t, "use an archive with more history", p.Warnings)
	done(t, o, use, operator.Request{Reason: "history"})
	fresh := must.Get(o.Ledger.Refresh(t.Context()))(t)
	inUse := must.Get(facts.Load(t.Context()))(t)
	must.Get((builder.Policy{}).Settle(t.Context(), fresh, inUse, o.Now()))(t)
	n := waits(t, o)
	must.Require(t, n == 22+24, "%d results wait, want all of 2023 and 2024", n)
	done(t, o, operator.ImportArchive{Archive: whole, Origin: "whole"}, operator.Request{})
	if n := waits(t, o); n != 0 {
		t.Errorf("after an import of the archive in use %d results wait, want none", n)
	}
}

// TestImportOfAllSeasons imports an F1DB release, with all seasons since 1950, into a store that has begun.
func TestImportOfAllSeasons(t *testing.T) {
	releases, _ := filepath.Glob(filepath.FromSlash("../../../shared/data/f1db/*splitted*.zip"))
	if len(releases) == 0 || testing.Short() {
		t.Skip("there is no F1DB release at ../shared/data/f1db, or the test is short")
	}
	a, _ := must.Get2(f1db.Import(releases[0], f1db.Options{}))(t)
	history := archivetest.Stored(t, a.Facts())
	o := begun(t, time.Date(2026, 10, 1, 12, 0, 0, 0, time.UTC), archivetest.Stored(t, archivetest.Seasons(t, 2007, 2026)))
	before := waits(t, o)
	golden.Sentence(t, "import all seasons into a store that has begun", must.Get(preview(t, o, operator.ImportArchive{Archive: history}))(t).Warnings)
	done(t, o, operator.ImportArchive{Archive: history, Origin: "release"}, operator.Request{})
	a2 := must.Get(o.Almanac(t.Context()))(t)
	for _, r := range a2.Waiting() {
		if r.Source() != nil && r.Year < 2026 {
			t.Fatalf("%d waits (%d waited before)", r.Session, before)
		}
	}
}
