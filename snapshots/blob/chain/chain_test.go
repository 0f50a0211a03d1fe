package chain_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"sync"
	"testing"

	"gridcast/deploy/must"
	"gridcast/snapshots/blob"
	"gridcast/snapshots/blob/chain"
	"gridcast/snapshots/blob/faultblob"
	"gridcast/snapshots/blob/memblob"
)

// note is the content of the files in these tests.
type note struct {
	chain.Link
	Text string `json:"text"`
}

func encode(t *testing.T, head chain.Head, text string) []byte {
	t.Helper()
	return must.Get(chain.Encode(note{head.Next(), text}))(t)
}

func mustAppend(t *testing.T, c chain.Chain, head chain.Head, texts ...string) chain.Head {
	t.Helper()
	for _, text := range texts {
		next, won, err := c.Append(t.Context(), head, encode(t, head, text))
		must.Require(t, err == nil && won, "append %q after %d: got %t, %v", text, head.Seq, won, err)
		head = next
	}
	return head
}

// texts reads a whole chain anew.
func texts(t *testing.T, c chain.Chain) []string {
	t.Helper()
	files, rest, err := c.Load(t.Context())
	must.Require(t, err == nil && rest.Gap == nil && len(rest.Foreign) == 0, "load: got rest %+v, %v", rest, err)
	var head chain.Head
	var all []string
	for _, f := range files {
		if f.Err != nil {
			t.Fatal(f.Err)
		}
		next, damage := c.Follow(head, f.Data)
		if damage != nil {
			t.Fatal(damage)
		}
		var n note
		must.Do(t, chain.Decode(f.Data, &n))
		head, all = next, append(all, n.Text)
	}
	return all
}

func equal(t *testing.T, got, want []string) {
	t.Helper()
	must.Hold(t, fmt.Sprint(got) == fmt.Sprint(want), "got %q, want %q", got, want)
}

func TestAppendAndRead(t *testing.T) {
	c := chain.Chain{Store: memblob.New(memblob.Strict(t, func(string) bool { return true })), Prefix: "log/"}
	equal(t, texts(t, c), nil)
	head := mustAppend(t, c, chain.Head{}, "one", "two")
	equal(t, texts(t, c), []string{"one", "two"})
	mustAppend(t, c, head, "three <&>")
	files, err := c.After(t.Context(), head.Seq)
	must.Require(t, err == nil && len(files) == 1 && files[0].Seq == 3, "after %d: got %+v, %v", head.Seq, files, err)
	must.Equal(t, "first file", `{"seq":3,"previous":"`+head.Hash+`","text":"three <&>"}`, string(files[0].Data))
}

func TestOutcomeStaysUnknown(t *testing.T) {
	for name, fates := range map[string]map[faultblob.Op]faultblob.Fate{
		"never written":       {faultblob.Create: {Err: blob.ErrUnknown}},
		"cannot be read back": {faultblob.Create: {Err: blob.ErrUnknown, Applied: true}, faultblob.Get: {Err: errors.New("down")}},
	} {
		t.Run(name, func(t *testing.T) {
			store := faultblob.Wrap(memblob.New(), func(_ context.Context, call faultblob.Call) faultblob.Fate { return fates[call.Op] })
			c := chain.Chain{Store: store, Prefix: "log/"}
			head, won, err := c.Append(t.Context(), chain.Head{}, encode(t, chain.Head{}, "one"))
			must.Hold(t, errors.Is(err, blob.ErrUnknown) && !won && head == (chain.Head{}),
				"got %v, %t, %v; want ErrUnknown", head, won, err)
		})
	}
}

// The listing alone shows a missing number, or one far ahead of the last.
func TestGap(t *testing.T) {
	for name, tt := range map[string]struct {
		remove int64
		add    string
		whole  int
		gap    string
		beyond string
	}{
		"a file is missing":        {remove: 2, whole: 1, gap: "log/00000002.json", beyond: "log/00000003.json"},
		"the first is missing":     {remove: 1, whole: 0, gap: "log/00000001.json", beyond: "log/00000002.json"},
		"a stray number":           {add: "log/00000009.json", whole: 4, gap: "log/00000005.json", beyond: "log/00000009.json"},
		"the last number there is": {add: "log/99999999.json", whole: 4, gap: "log/00000005.json", beyond: "log/99999999.json"},
	} {
		t.Run(name, func(t *testing.T) {
			inner, reads := memblob.New(), 0
			c := chain.Chain{Store: inner, Prefix: "log/"}
			mustAppend(t, c, chain.Head{}, "one", "two", "three", "four")
			if tt.remove > 0 {
				must.Do(t, inner.Delete(t.Context(), c.Key(tt.remove)))
			}
			if tt.add != "" {
				must.Get(inner.Create(t.Context(), tt.add, []byte("{}")))(t)
			}
			var mu sync.Mutex
			c.Store = faultblob.Wrap(inner, func(context.Context, faultblob.Call) faultblob.Fate {
				mu.Lock()
				defer mu.Unlock()
				reads++
				return faultblob.Fate{}
			})
			files, rest := must.Get2(c.Load(t.Context()))(t)
			if len(files) != tt.whole || rest.Gap == nil || rest.Gap.Key != tt.gap || rest.Beyond != tt.beyond || !strings.HasSuffix(rest.Gap.Want, tt.beyond) {
				t.Errorf("got %d files, gap %v before %s; want %d, a gap at %s before %s", len(files), rest.Gap, rest.Beyond, tt.whole, tt.gap, tt.beyond)
			}
			if reads > tt.whole+2 { // the listing, the files, the look at the gap
				t.Errorf("%d calls to the store, want %d", reads, tt.whole+2)
			}
		})
	}
}

// hiding is a store whose listing misses some keys, like a listing during their writes.
type hiding struct {
	blob.Store
	keys []string
}

func (h hiding) List(ctx context.Context, prefix string) iter.Seq2[blob.Info, error] {
	return func(yield func(blob.Info, error) bool) {
		for info, err := range h.Store.List(ctx, prefix) {
			hidden := false
			for _, key := range h.keys {
				hidden = hidden || key == info.Key
			}
			if !hidden && !yield(info, err) {
				return
			}
		}
	}
}

func TestListingMayMissFiles(t *testing.T) {
	store := memblob.New()
	mustAppend(t, chain.Chain{Store: store, Prefix: "log/"}, chain.Head{}, "one", "two", "three", "four")
	for _, keys := range [][]string{{"log/00000004.json"}, {"log/00000002.json"}, {"log/00000001.json", "log/00000003.json"}} {
		equal(t, texts(t, chain.Chain{Store: hiding{store, keys}, Prefix: "log/"}), []string{"one", "two", "three", "four"})
	}
}

func TestForeignKeysAndUnreadableFiles(t *testing.T) {
	inner := memblob.New()
	c := chain.Chain{Store: inner, Prefix: "log/"}
	mustAppend(t, c, chain.Head{}, "one", "two")
	for _, key := range []string{"log/3.json", "log/000000004.json", "log/00000000.json", "log/100000000.json", "log/notes/1"} {
		must.Get(inner.Create(t.Context(), key, []byte("{}")))(t)
	}
	broken := errors.New("bad sector")
	c.Store = faultblob.Wrap(inner, func(_ context.Context, call faultblob.Call) faultblob.Fate {
		if call == (faultblob.Call{Op: faultblob.Get, Key: c.Key(1)}) {
			return faultblob.Fate{Err: broken}
		}
		return faultblob.Fate{}
	})
	files, rest := must.Get2(c.Load(t.Context()))(t)
	if len(files) != 2 || !errors.Is(files[0].Err, broken) || files[1].Err != nil || rest.Gap != nil {
		t.Errorf("got %+v, gap %v; want the first of two unreadable", files, rest.Gap)
	}
	equal(t, rest.Foreign, []string{"log/00000000.json", "log/000000004.json", "log/100000000.json", "log/3.json", "log/notes/1"})
	// Without the listing, or without the look behind the last file, nobody knows that the chain is whole.
	for _, fails := range []faultblob.Call{{Op: faultblob.List, Key: c.Prefix}, {Op: faultblob.Get, Key: c.Key(3)}} {
		c.Store = faultblob.Wrap(inner, func(_ context.Context, call faultblob.Call) (fate faultblob.Fate) {
			if call == fails {
				fate.Err = broken
			}
			return fate
		})
		_, _, err := c.Load(t.Context())
		must.Fail(t, fmt.Sprint(fails), err, broken)
		if j := (&chain.Journal[note]{Chain: c}); fails.Op == faultblob.Get {
			must.Fail(t, "refresh a journal", j.Refresh(t.Context()), broken)
		}
	}
}

func TestFollow(t *testing.T) {
	c := chain.Chain{Prefix: "log/"}
	head := chain.Head{Seq: 1, Hash: chain.Hash([]byte("one"))}
	for name, tt := range map[string]struct {
		data string
		want string // expected there; empty: it follows
	}{
		"the next":       {`{"seq":2,"previous":"` + head.Hash + `"}`, ""},
		"another number": {`{"seq":12,"previous":"` + head.Hash + `"}`, "sequence number 2, found 12"},
		"another link":   {`{"seq":2,"previous":"00"}`, "the hash"},
		"no link":        {`{"seq":2}`, "the hash"},
		"cut":            {`{"seq":2,`, "a JSON object"},
		"nothing":        {``, "a JSON object"},
	} {
		t.Run(name, func(t *testing.T) {
			next, damage := c.Follow(head, []byte(tt.data))
			switch {
			case tt.want == "" && (damage != nil || next != chain.Head{Seq: 2, Hash: chain.Hash([]byte(tt.data))}):
				t.Errorf("got %v, %v", next, damage)
			case tt.want != "" && (damage == nil || damage.Key != "log/00000002.json" || !strings.Contains(damage.Error(), tt.want)):
				t.Errorf("got %v, want damage: %s", damage, tt.want)
			}
		})
	}
}

func TestDecodeTakesOneFormOnly(t *testing.T) {
	good := `{"seq":1,"previous":"","text":"<a>"}`
	var n note
	if err := chain.Decode([]byte(good), &n); err != nil || n.Text != "<a>" {
		t.Fatalf("got %+v, %v", n, err)
	}
	for name, text := range map[string]string{
		"a newline":        good + "\n",
		"a space":          strings.Replace(good, ":", ": ", 1),
		"an escape":        strings.Replace(good, "<", `\u003c`, 1),
		"an unknown field": strings.Replace(good, "{", `{"by":1,`, 1),
		"a field twice":    strings.Replace(good, "{", `{"seq":1,`, 1),
		"another order":    `{"previous":"","seq":1,"text":"<a>"}`,
	} {
		must.Fail(t, name, chain.Decode([]byte(text), new(note)), chain.ErrForm)
	}
	must.Fail(t, "a value that is no JSON", must.Err(chain.Encode(func() {})))
	err := chain.Decode([]byte(strings.Replace(good, "1", "true", 1)), &n)
	must.Hold(t, err != nil && !errors.Is(err, chain.ErrForm), "a number that is none: got %v, want an error of its own", err)
}

func TestCheckText(t *testing.T) {
	for text, good := range map[string]bool{
		strings.Repeat("a", chain.MaxText): true, strings.Repeat("a", chain.MaxText+1): false, "Nürburgring – 2nd": true, "": true,
		"a\x1b[0m": false, "a\nb": false, "a\xff": false, "a\ufffd": false,
	} {
		err := chain.CheckText("reason", text)
		must.Hold(t, (err == nil) == good, "%.20q of %d bytes: got %v, want allowed %t", text, len(text), err, good)
	}
}

// TestPrintableShowsTheCut: a text that was cut ends with an ellipsis and has at most the bytes that are allowed.
func TestPrintableShowsTheCut(t *testing.T) {
	for _, test := range []struct {
		text string
		most int
		want string
	}{
		{"connection refused", 18, "connection refused"},
		{"connection refused", 17, "connection ref…"},
		{"köö\x1b", 6, "köö "},
		{"kööö", 6, "kö…"},
		{"a\nb", 3, "a b"},
	} {
		got := chain.Printable(test.text, test.most)
		must.Hold(t, got == test.want && len(got) <= test.most,
			"Printable(%q, %d) = %q of %d bytes, want %q", test.text, test.most, got, len(got), test.want)
	}
}
