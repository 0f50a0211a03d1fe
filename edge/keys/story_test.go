package keys_test

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"gridcast/deploy/golden"
	"gridcast/deploy/must"
	"gridcast/edge/keys"
	"gridcast/edge/limit"
	"gridcast/snapshots/blob/faultblob"
	"gridcast/snapshots/blob/memblob"
	"gridcast/snapshots/notes"
)

// TestLists tells the stories of an operator's list of keys, and of edges that follow it.
func TestLists(t *testing.T) { tell(t, "testdata/lists.txt") }

// TestSignedLists tells the stories of signed lists, and of strangers who write to the store.
func TestSignedLists(t *testing.T) { tell(t, "testdata/signed.txt") }

// ids differ by run, or with the time of a step.
var ids = regexp.MustCompile(`[0-9a-f]{12,64}|/[^ :]*/0[0-9]{2}|9466[0-9]{5}`)

// tell takes the steps of a file in a bubble. Most steps show nothing.
func tell(t *testing.T, file string) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{t: t}
		w.anew()
		golden.Story(t, file, w.steps(), ids, "ID")
		w.anew()
	})
}

// world is the store with the list of keys, the operator who changes it, and edges that follow it.
type world struct {
	t *testing.T

	store   *memblob.Store
	seen    *memblob.Store // what edges see of it
	held    bool           // edges see no change
	name    string         // of the store
	down    *atomic.Bool   // it does not answer edges
	signers map[string]*notes.Signers
	by      *notes.Signers    // signs changes; nil: nobody
	secrets map[string]string // keys by client
	records map[string]string // their IDs
	saved   map[string][]byte // lists
	word    string            // of the publisher about the list
	edges   map[string]*storyEdge
}

type storyEdge struct {
	*keys.Follower
	stop   func()
	folder string
	log    bytes.Buffer
}

func (w *world) steps() map[string]func(words []string) string {
	return map[string]func([]string) string{
		"new": func([]string) string { w.anew(); return "" },
		"add": w.add, "revoke": w.revoke, "rotate": w.rotate, "vouch": w.vouch, "list": w.list, "save": w.save, "restore": w.restore,
		"sign": func(names []string) string { w.by = w.signer(names); return "" },
		"hold": func([]string) string { w.held = true; return "" },
		"pass": func([]string) string { w.held = false; w.pass(); return "" },
		"fail": func([]string) string { w.down.Store(true); return "" },
		"mend": func([]string) string { w.down.Store(false); return "" },
		"name": func(words []string) string { w.name = words[0]; return "" },
		"wait": func(words []string) string { must.Advance(must.Get(time.ParseDuration(words[0]))(w.t)); return "" },
		"put":  w.putSaved, "text": w.text, "file": w.file, "cut": w.cut, "pad": w.pad, "splice": w.splice, "forge": w.forge, "delete": w.remove,
		"word": w.freshWord, "tell": w.tellEdge, "edge": w.edge, "look": w.look, "block": w.block, "flip": w.flip, "lose": w.lose, "jam": w.jam,
		"forget": func([]string) string { w.word = ""; return "" }, "logged": w.logged,
	}
}

func (w *world) anew() {
	for _, e := range w.edges {
		e.stop()
	}
	*w = world{
		t: w.t, store: memblob.New(), seen: memblob.New(), name: "mem:", down: new(atomic.Bool), signers: map[string]*notes.Signers{}, secrets: map[string]string{},
		records: map[string]string{}, saved: map[string][]byte{}, edges: map[string]*storyEdge{},
	}
}

// signer is the key with a name; nil without one.
func (w *world) signer(names []string) *notes.Signers {
	if len(names) == 0 {
		return nil
	}
	if w.signers[names[0]] == nil {
		w.signers[names[0]] = signingKey(w.t)
	}
	return w.signers[names[0]]
}

// update changes the list as the operator.
func (w *world) update(edit func(*keys.List) error) string {
	if by := w.by; by != nil {
		edit = signed(by, edit)
	}
	if err := keys.Update(w.t.Context(), w.store, edit); err != nil {
		return "refused: " + err.Error()
	}
	w.pass()
	return ""
}

// pass lets edges see the list.
func (w *world) pass() {
	if !w.held {
		write(w.t, w.seen, read(w.t, w.store))
	}
}

// put replaces the list, as anybody can who may write to the store.
func (w *world) put(data []byte) {
	write(w.t, w.store, data)
	w.pass()
}

// add CLIENT[:TIER]... creates a key for each.
func (w *world) add(clients []string) string {
	var shown []string
	for _, client := range clients {
		client, tier, _ := strings.Cut(client, ":")
		shown = append(shown, w.update(func(d *keys.List) error {
			record, key, err := d.Create(keys.Request{Name: client, Tier: cmp.Or(tier, "pro"), Origins: []string{"https://example.org"}}, time.Now())
			w.secrets[client], w.records[client] = key, record.ID
			return err
		}))
	}
	return strings.Join(shown, "")
}

// revoke CLIENT.
func (w *world) revoke(words []string) string {
	return w.update(func(d *keys.List) error { return must.Err(d.Revoke(w.records[words[0]], time.Now())) })
}

// rotate CLIENT OVERLAP NEW gives a client another key.
func (w *world) rotate(words []string) string {
	return w.update(func(d *keys.List) error {
		record, key, err := d.Rotate(w.records[words[0]], must.Get(time.ParseDuration(words[1]))(w.t), time.Now())
		w.secrets[words[2]], w.records[words[2]] = key, record.ID
		return err
	})
}

// vouch KEY signs the list as it is.
func (w *world) vouch(words []string) string {
	w.by = nil
	shown := w.update(func(d *keys.List) error { return d.Sign(w.signer(words), true) })
	w.by = w.signer(words)
	return shown
}

// list shows the stored list.
func (w *world) list([]string) string {
	d, _, err := keys.Load(w.t.Context(), w.store)
	if err != nil {
		return "refused: " + err.Error()
	}
	lines := []string{fmt.Sprintf("serial number %d", d.Serial)}
	for _, k := range d.Keys {
		line := fmt.Sprintf("%s %s %v", k.Name, k.Tier, k.Origins)
		if !k.Expires.IsZero() {
			line += " expires " + k.Expires.Format(time.RFC3339)
		}
		if !k.Revoked.IsZero() {
			line += " revoked " + k.Revoked.Format(time.RFC3339)
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

// save NAME keeps the bytes of the list.
func (w *world) save(words []string) string { w.saved[words[0]] = read(w.t, w.store); return "" }

// putSaved NAME [seen] writes a saved list, for edges alone if it says so.
func (w *world) putSaved(words []string) string {
	if len(words) > 1 {
		write(w.t, w.seen, w.saved[words[0]])
	} else {
		w.put(w.saved[words[0]])
	}
	return ""
}

// restore NAME EDGE restores a saved list above the number of an edge.
func (w *world) restore(words []string) string {
	list := must.Get(keys.Decode(w.saved[words[0]]))(w.t)
	must.Do(w.t, keys.Restore(w.t.Context(), w.store, list, w.edges[words[1]].Table().Serial(), w.by))
	w.pass()
	return ""
}

func (w *world) text(words []string) string { w.put([]byte(strings.Join(words, " "))); return "" }

// file PATH writes a file as the list.
func (w *world) file(words []string) string {
	w.put(must.Get(os.ReadFile(words[0]))(w.t))
	return ""
}

// cut BYTES removes the end of the list.
func (w *world) cut(words []string) string {
	data := read(w.t, w.store)
	w.put(data[:len(data)-must.Get(strconv.Atoi(words[0]))(w.t)])
	return ""
}

// pad BYTES makes the note longer.
func (w *world) pad(words []string) string {
	list, _, _ := bytes.Cut(read(w.t, w.store), []byte(`","note":`))
	w.put(slices.Concat(list, []byte(`","note":"`), bytes.Repeat([]byte("x"), must.Get(strconv.Atoi(words[0]))(w.t)), []byte("\"}\n")))
	return ""
}

// splice LIST NOTE MARK writes the beginning of a saved list up to a mark, and the end of another one.
func (w *world) splice(words []string) string {
	mark := []byte(words[2])
	head, _, _ := bytes.Cut(w.saved[words[0]], mark)
	_, tail, _ := bytes.Cut(w.saved[words[1]], mark)
	w.put(slices.Concat(head, mark, tail))
	return ""
}

// forge CLIENT SERIAL [KEY] writes the list with another key of the stranger's, under a serial number; = is that
// of the list, +1 the next one, and most the highest that changes can reach.
func (w *world) forge(words []string) string {
	list := must.Get(keys.Decode(read(w.t, w.store)))(w.t)
	serial := list.Serial
	list.Signature = nil
	if by := w.signer(words[2:]); by != nil {
		must.Do(w.t, list.Sign(by, true))
	}
	_, key, err := list.Create(keys.Request{Name: words[0], Tier: "pro"}, time.Now())
	must.Do(w.t, err)
	w.secrets[words[0]] = key
	switch words[1] {
	case "=":
	case "+1":
		serial++
	case "most":
		serial = time.Now().Unix() + keys.MaxChanges
	default:
		serial = must.Get(strconv.ParseInt(words[1], 10, 64))(w.t)
	}
	list.Serial = serial
	w.put(must.Get(list.Encode())(w.t))
	return ""
}

func (w *world) remove([]string) string {
	must.Do(w.t, w.store.Delete(w.t.Context(), keys.Object))
	must.Do(w.t, w.seen.Delete(w.t.Context(), keys.Object))
	return ""
}

// freshWord [KEY] has a publisher that trusts the key say which list is current.
func (w *world) freshWord(words []string) string {
	trust := notes.Trust{}
	if by := w.signer(words); by != nil {
		trust = by.Trust()
	}
	text, err := keys.FreshText(w.store, trust)(w.t.Context(), w.word)
	switch {
	case err != nil:
		return "refused: " + err.Error()
	case text == w.word:
		return "the same word"
	}
	w.saved["before"], w.word = []byte(w.word), text
	return "another word"
}

// tellEdge EDGE [before] gives an edge the word, or the word before.
func (w *world) tellEdge(words []string) string {
	text := w.word
	if len(words) > 1 {
		text = string(w.saved["before"])
	}
	w.edges[words[0]].Freshen(w.t.Context(), text)
	return w.look(words[:1])
}

// edge NAME [trusts KEY...] [fresh] [empty] starts an edge, again if it runs. It keeps its disk, but for an empty one. It asks for
// the word if it is to.
func (w *world) edge(words []string) string {
	e := w.edges[words[0]]
	if e != nil {
		e.stop()
	}
	if e == nil || slices.Contains(words, "empty") {
		e = &storyEdge{folder: w.t.TempDir()}
		w.edges[words[0]] = e
	}
	w.start(e, words[1:])
	return w.look(words[:1])
}

func (w *world) start(e *storyEdge, words []string) {
	var public []string
	for _, word := range words {
		if word != "trusts" && word != "fresh" && word != "empty" {
			public = append(public, w.signer([]string{word}).Public()...)
		}
	}
	cfg := keys.FollowerConfig{
		Store: named{faultblob.Wrap(w.seen, func(context.Context, faultblob.Call) (fate faultblob.Fate) {
			if w.down.Load() {
				fate.Err = errors.New("connection refused")
			}
			return fate
		}), w.name},
		CacheDir: e.folder, Tiers: keys.DefaultTiers(), Limits: limit.Memory{}, Log: slog.New(slog.NewTextHandler(&e.log, nil)),
	}
	if public != nil {
		cfg.Trust = must.Get(notes.NewTrust(public...))(w.t)
	}
	if slices.Contains(words, "fresh") {
		cfg.Fresh = func(context.Context) string { return w.word }
	}
	e.Follower = keys.NewFollower(cfg)
	e.stop = running(w.t.Context(), w.t, e.Follower)
}

// look EDGE shows after a minute the clients whose keys the edge accepts, and its health.
func (w *world) look(words []string) string {
	settle()
	e := w.edges[words[0]]
	if e.Table() == nil {
		return strings.TrimSuffix("no table; "+e.Health().Problem, "; ")
	}
	accepted := []string{"accepts"}
	for _, client := range slices.Sorted(maps.Keys(w.secrets)) {
		if hash, _ := keys.Sum([]byte(w.secrets[client])); e.Table().Lookup(hash, time.Now()) != nil {
			accepted = append(accepted, client)
		}
	}
	h, shown := e.Health(), []string{strings.Join(accepted, " ")}
	for _, part := range []struct {
		name string
		is   bool
	}{{"copied", h.Copied}, {"behind", h.Behind != ""}, {"stale", h.Stale(time.Now())}} {
		if part.is {
			shown = append(shown, part.name)
		}
	}
	return strings.TrimSuffix(strings.Join(shown, ", ")+"; "+h.Problem, "; ")
}

// block EDGE FOLDER puts a file in the place of a folder of an edge that does not run.
func (w *world) block(words []string) string {
	e := &storyEdge{folder: w.t.TempDir(), stop: func() {}}
	w.edges[words[0]] = e
	must.Do(w.t, os.WriteFile(filepath.Join(e.folder, words[1]), nil, 0o600))
	return ""
}

// flip EDGE changes a bit of the copy of an edge.
func (w *world) flip(words []string) string {
	path := filepath.Join(w.edges[words[0]].folder, "keys", "keys.json")
	data := must.Get(os.ReadFile(path))(w.t)
	data[len(data)/2] ^= 1
	must.Do(w.t, os.WriteFile(path, data, 0o600))
	return ""
}

// jam EDGE FILE puts a folder in the place of a file of the copy of an edge.
func (w *world) jam(words []string) string {
	path := filepath.Join(w.edges[words[0]].folder, "keys", words[1])
	must.Do(w.t, os.Remove(path))
	must.Do(w.t, os.MkdirAll(filepath.Join(path, "full"), 0o700))
	return ""
}

// lose EDGE removes the list from the copy of an edge.
func (w *world) lose(words []string) string {
	must.Do(w.t, os.Remove(filepath.Join(w.edges[words[0]].folder, "keys", "keys.json")))
	return ""
}

// logged EDGE shows the warnings and errors of an edge since the last look at them.
func (w *world) logged(words []string) string {
	var lines []string
	for line := range strings.Lines(w.edges[words[0]].log.String()) {
		if _, text, ok := strings.Cut(line, "level="); ok && !strings.HasPrefix(text, "INFO") {
			lines = append(lines, strings.TrimSpace(text))
		}
	}
	w.edges[words[0]].log.Reset()
	return strings.Join(lines, "\n")
}
