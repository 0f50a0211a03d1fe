package proof_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"gridcast/builder/almanac"
	"gridcast/builder/ledger"
	"gridcast/builder/proof"
	"gridcast/builder/testseason"
	"gridcast/deploy/golden"
	"gridcast/deploy/must"
	"gridcast/snapshots"
	"gridcast/snapshots/blob"
	"gridcast/snapshots/blob/dirblob"
	"gridcast/snapshots/blob/faultblob"
)

var hashes = regexp.MustCompile(`[0-9a-f]{64}`)

// blamed is the first fault of an audit as text, without hashes.
func blamed(t *testing.T, store blob.Store) string {
	t.Helper()
	if a := must.Get(proof.AuditStore(t.Context(), store))(t); !a.Green() {
		return hashes.ReplaceAllString(a.Faults[0].String(), "HASH")
	}
	return "nothing"
}

// onDisk is a weekend with a frozen pick and three versions, in a folder that a hand can reach into.
func onDisk(t *testing.T) (*testseason.Season, string) {
	t.Helper()
	dir := t.TempDir()
	w := testseason.New(t, testseason.Config{Store: must.Get(dirblob.Open(dir))(t), Stored: testseason.Short(t, testseason.Austria)})
	w.Publish(w.Weekend.Qualified)
	w.Publish(w.Weekend.Over())
	w.Decide(w.Weekend.Over(), w.Weekend.Key, (*almanac.Round).Verify)
	w.Publish(w.Weekend.Over())
	return w, dir
}

func TestAuditOfAWholeStore(t *testing.T) {
	must.Long(t, "builds the embedded seasons")
	w, _ := onDisk(t)
	audit := must.Get(proof.AuditStore(t.Context(), w.Store))(t)
	if !audit.Green() || audit.Versions != 3 || audit.Current != 3 {
		t.Errorf("audit: blames %s, looked at %d versions, serves %d; want nothing, 3, 3", blamed(t, w.Store), audit.Versions, audit.Current)
	}
	if audit.Served != 2 { // in the list of the year and in that of the session
		t.Errorf("compared %d picks, want 2", audit.Served)
	}

	// Bodies are read side by side: the first read ends only when a second one has begun.
	var reads atomic.Int32
	second := make(chan struct{})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	paired := faultblob.Wrap(w.Store, func(ctx context.Context, call faultblob.Call) faultblob.Fate {
		if !strings.HasPrefix(call.Key, "objects/") {
			return faultblob.Fate{}
		}
		if reads.Add(1) == 2 {
			close(second)
		}
		select {
		case <-second:
			return faultblob.Fate{}
		case <-ctx.Done():
			return faultblob.Fate{Err: ctx.Err()}
		}
	})
	if audit, err := proof.AuditStore(ctx, paired); err != nil || audit.Served != 2 {
		t.Errorf("side by side %d picks were compared, want 2: %v", audit.Served, err)
	}
}

func TestAuditSeesWhatWasCutOff(t *testing.T) {
	must.Long(t, "builds the embedded seasons")
	w, dir := onDisk(t)
	must.Do(t, os.Remove(filepath.Join(dir, ledger.Key(w.Ledger.Head().Seq))))
	golden.Sentence(t, "the last file is gone", blamed(t, w.Store))
}

func TestAuditSeesAnotherLedger(t *testing.T) {
	must.Long(t, "builds the embedded seasons")
	w, dir := onDisk(t)
	other, _ := onDisk(t)
	for seq := int64(1); seq <= w.Ledger.Head().Seq; seq++ {
		o := must.Get(other.Store.Get(t.Context(), ledger.Key(seq), blob.MaxDocument))(t)
		must.Do(t, os.WriteFile(filepath.Join(dir, ledger.Key(seq)), o.Data, 0o600))
	}
	golden.Sentence(t, "another ledger", blamed(t, w.Store))
}

// A version with a pick that nobody froze, published by the rules of snapshots.
func TestAuditSeesAForgedPick(t *testing.T) {
	must.Long(t, "builds the embedded seasons")
	for what, path := range map[string]string{"of the year": "predictions/2024", "of the session": "predictions/session/2024011"} {
		t.Run(what, func(t *testing.T) {
			w, _ := onDisk(t)
			base := must.Get(snapshots.LoadBase(t.Context(), w.Store, nil))(t)
			m := base.Manifest
			draft := snapshots.Draft{Base: base, About: m.About}
			for _, e := range m.Entries {
				if e.Path != path {
					draft.Variants = append(draft.Variants, snapshots.Reused(e))
					continue
				}
				body := must.Get(base.Body(t.Context(), e))(t)
				forged := bytes.Replace(body, []byte(`"winner":"VER"`), []byte(`"winner":"RUS"`), 1)
				if bytes.Equal(forged, body) {
					t.Fatal("there is nothing to forge")
				}
				draft.Variants = append(draft.Variants, snapshots.New(path, forged, nil, m.BuiltAt))
			}
			must.Get((&snapshots.Publisher{Store: w.Store}).Publish(t.Context(), draft))(t)
			golden.Sentence(t, "a forged pick "+what, blamed(t, w.Store))
		})
	}
}
