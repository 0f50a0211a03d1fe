package chain_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"gridcast/deploy/golden"
	"gridcast/deploy/must"
	"gridcast/snapshots/blob"
	"gridcast/snapshots/blob/chain"
	"gridcast/snapshots/blob/memblob"
)

type memo struct {
	chain.Link
	Text string `json:"text"`
}

func memos(j *chain.Journal[memo]) (texts []string) {
	for _, n := range j.Entries {
		texts = append(texts, n.Text)
	}
	return texts
}

// TestJournal: two writers append to one chain; the second one refreshes and appends again.
func TestJournal(t *testing.T) {
	store := memblob.New()
	one := &chain.Journal[memo]{Chain: chain.Chain{Store: store, Prefix: "notes/"}}
	var folded []string
	two := &chain.Journal[memo]{Chain: one.Chain, Fold: func(n *memo) { folded = append(folded, n.Text) }}
	won, err := one.Append(t.Context(), memo{one.Head.Next(), "first"})
	must.Require(t, err == nil && won, "first: got %t, %v, want it appended", won, err)
	if won, err := two.Append(t.Context(), memo{two.Head.Next(), "late"}); err != nil || won {
		t.Fatalf("without a refresh: got %t, %v, want it lost", won, err)
	}
	must.Do(t, two.Refresh(t.Context()))
	if won, err := two.Append(t.Context(), memo{two.Head.Next(), "second"}); err != nil || !won {
		t.Fatalf("second: got %t, %v, want it appended", won, err)
	}
	must.Do(t, one.Refresh(t.Context()))
	want := []string{"first", "second"}
	must.Equal(t, "entries of the writers, and folded", [][]string{want, want, want}, [][]string{memos(one), memos(two), folded})
	must.Hold(t, one.Head == two.Head && one.Head.Seq == 2, "heads: got %v and %v, want the same second one", one.Head, two.Head)
}

// TestJournalDamage: an entry that names another predecessor, or is not in canonical form, is an error.
func TestJournalDamage(t *testing.T) {
	for name, test := range map[string]struct {
		file   string
		damage bool
	}{
		"another predecessor": {`{"seq":1,"previous":"ab","text":""}`, true},
		"another form":        {`{"seq":1,"previous":"","text":"", "more":1}`, false},
		"no JSON":             {`{`, true},
	} {
		store := memblob.New()
		must.Get(store.Create(t.Context(), "notes/00000001.json", []byte(test.file)))(t)
		j := &chain.Journal[memo]{Name: "notes", Chain: chain.Chain{Store: store, Prefix: "notes/"}}
		err := j.Refresh(t.Context())
		var damage *chain.DamageError
		if errors.As(err, &damage) != test.damage || !test.damage && !errors.Is(err, chain.ErrForm) || !strings.HasPrefix(err.Error(), "read the notes: ") || len(j.Entries) != 0 {
			t.Errorf("%s: got %v and %d entries, want an error and none", name, err, len(j.Entries))
		}
	}
}

// TestJournalTooLarge: the error of an entry that is too large to be read says so.
func TestJournalTooLarge(t *testing.T) {
	store := memblob.New()
	j := &chain.Journal[memo]{Name: "notes", Chain: chain.Chain{Store: store, Prefix: "notes/"}}
	must.Get(store.Create(t.Context(), j.Chain.Key(1), make([]byte, blob.MaxDocument+1)))(t)
	err := j.Refresh(t.Context())
	damage := (*chain.DamageError)(nil)
	must.Hold(t, errors.As(err, &damage), "got %v, want damage", err)
	golden.Sentence(t, "an entry that is too large", err)
}

// TestAppendTooLarge: nobody appends a file that nobody can read.
func TestAppendTooLarge(t *testing.T) {
	j := &chain.Journal[memo]{Chain: chain.Chain{Store: memblob.New(), Prefix: "notes/"}}
	won, err := j.Append(t.Context(), memo{j.Head.Next(), strings.Repeat("a", blob.MaxDocument)})
	must.Hold(t, err != nil && !won, "got %t, %v, want an error", won, err)
	for what, head := range map[string]chain.Head{"after the last number": {Seq: chain.Last}, "another predecessor": {Seq: 1, Hash: "ab"}} {
		_, won, err = j.Chain.Append(t.Context(), head, []byte(fmt.Sprintf(`{"seq":%d,"previous":""}`, head.Seq+1)))
		must.Hold(t, err != nil && !won, "%s: got %t, %v, want an error", what, won, err)
	}
	var unsupported *json.UnsupportedTypeError
	must.Hold(t, errors.As(must.Err((&chain.Journal[func()]{}).Append(t.Context(), nil)), &unsupported), "an entry that JSON cannot express is appended")
	files, err := j.Chain.After(t.Context(), 0)
	must.Hold(t, err == nil && len(files) == 0, "got %d files, %v, want none", len(files), err)
	// The longest file under the last number is a file like any other.
	last := chain.Head{Seq: chain.Last - 1}
	shell := must.Get(chain.Encode(memo{Link: last.Next()}))(t)
	longest := must.Get(chain.Encode(memo{last.Next(), strings.Repeat("a", blob.MaxDocument-len(shell))}))(t)
	_, won, err = j.Chain.Append(t.Context(), last, longest)
	must.Hold(t, err == nil && won, "the longest: got %t, %v, want it appended", won, err)
	files, err = j.Chain.After(t.Context(), last.Seq)
	must.Hold(t, err == nil && len(files) == 1 && len(files[0].Data) == blob.MaxDocument, "the last: got %d files, %v, want one", len(files), err)
}
