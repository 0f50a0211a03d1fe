package snapshots_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/klauspost/compress/zstd"

	"gridcast/deploy/golden"
	"gridcast/deploy/must"
	"gridcast/snapshots"
	"gridcast/snapshots/backup"
	"gridcast/snapshots/blob"
	"gridcast/snapshots/blob/faultblob"
	"gridcast/snapshots/blob/memblob"
	"gridcast/snapshots/notes"
)

// TestOperations tells the stories of a publisher and an operator.
func TestOperations(t *testing.T) { tell(t, "testdata/operations.txt") }

// TestSignedVersions tells the stories of publishers and edges with keys, and of strangers who write to the store.
func TestSignedVersions(t *testing.T) { tell(t, "testdata/signed.txt") }

// TestBackups tells the stories of backups and restores.
func TestBackups(t *testing.T) { tell(t, "testdata/backups.txt") }

// tell takes the steps of a file in a bubble. Most steps show nothing.
func tell(t *testing.T, file string) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{t: t, began: time.Now()}
		w.anew()
		golden.Story(t, file, w.steps(), hashes, "HASH")
		w.anew()
	})
}

// hashes differ by the release of a compressor.
var hashes = regexp.MustCompile(`[0-9a-f]{64}`)

// world is a store with its publisher and its edges.
type world struct {
	t     *testing.T
	began time.Time

	store  *memblob.Store
	place  *memblob.Store // of the backup
	name   string         // of the store
	down   atomic.Value   // the prefix of the keys for which the store does not answer edges; "-": it answers all
	files  map[string]string
	signer *notes.Signers // of the publisher; nil: it has no key
	edges  map[string]*storyEdge

	repaired []string // by the last LoadBase of the publisher
}

// storyEdge is an edge with its disk.
type storyEdge struct {
	*edge
	config snapshots.FollowConfig
	bodies atomic.Int64 // reads of objects and deltas
}

func (w *world) steps() map[string]func(words []string) string {
	return map[string]func([]string) string{
		"new": func([]string) string { w.anew(); return "" },
		"wait": func(d []string) string {
			must.Advance(must.Get(time.ParseDuration(d[0]))(w.t))
			return ""
		},
		"fail": func(words []string) string { w.down.Store(strings.Join(words, "")); return "" },
		"mend": func([]string) string { w.down.Store("-"); return "" },
		"name": func(words []string) string { w.name = words[0]; return "" },
		"key":  w.key, "publish": w.publish, "release": w.release, "abandon": w.abandon, "rollback": w.rollback, "prune": w.prune,
		"verify": w.verify, "list": w.list, "keys": w.keys, "served": w.served, "pointer": w.pointer,
		"write": w.write, "flip": w.flip, "cut": w.cut, "delete": w.remove, "copy": w.copy, "append": w.append, "edit": w.edit,
		"point": w.point, "note": w.note, "forge": w.forge,
		"freshen": func([]string) string { return w.told("", w.publisher().Freshen(w.t.Context(), nil)) },
		"edge":    w.edge, "look": w.look, "cached": w.cached, "stop": w.stop, "raise": w.raise,
		"record": w.record, "backup": w.backup, "restore": w.restore, "spoil": w.spoil, "inplace": w.inplace, "places": func([]string) string { return strings.Join(keysOf(w.t, w.place), "\n") }, "zip": w.zip, "show": w.show,
	}
}

// now is the time of the story, which begins at the race.
func (w *world) now() time.Time { return raceDay.Add(time.Since(w.began)) }

// anew begins with another store.
func (w *world) anew() {
	for _, name := range slices.Sorted(maps.Keys(w.edges)) {
		w.stop([]string{name})
	}
	w.store, w.place, w.signer = memblob.New(memblob.Clock(w.now)), memblob.New(), nil
	w.name = "mem:"
	w.down.Store("-")
	w.files, w.edges = map[string]string{}, map[string]*storyEdge{}
}

func (w *world) publisher() *snapshots.Publisher {
	return &snapshots.Publisher{Store: w.store, Signers: w.signer}
}

// told is what a step shows: its result, or the name of its error.
func (w *world) told(result string, err error) string {
	if err == nil {
		return result
	}
	text := "refused: " + err.Error()
	for name, is := range map[string]error{ // their texts name keys of the moment
		"no signer": snapshots.ErrNoSigner, "new key": snapshots.ErrNewKey, "lower than signed": notes.ErrLower, "unsigned": snapshots.ErrUnsigned,
	} {
		if errors.Is(err, is) {
			text = "refused: " + name
		}
	}
	return text
}

// signers reads the keys with these names, as another process.
func (w *world) signers(names []string) *notes.Signers {
	var files []string
	for _, name := range names {
		if w.files[name] == "" {
			w.files[name] = filepath.Join(w.t.TempDir(), "version.key")
			must.Do(w.t, notes.MakeKey(w.files[name], origin))
		}
		files = append(files, w.files[name])
	}
	return must.Get(notes.ReadSigners(files...))(w.t)
}

// key NAME... [new] starts the publisher again, with these keys.
func (w *world) key(words []string) string {
	names := slices.DeleteFunc(slices.Clone(words), func(word string) bool { return word == "new" })
	if w.signer = w.signers(names); w.signer != nil {
		w.signer.New = len(names) < len(words)
	}
	return ""
}

// bodiesOf reads PATH=BODY of each word.
func bodiesOf(words []string) bodies {
	content := bodies{}
	for _, word := range words {
		path, body, _ := strings.Cut(word, "=")
		content[path] = body
	}
	return content
}

func (w *world) draft(p *snapshots.Publisher, words []string, release bool) (snapshots.Receipt, error) {
	base, err := p.LoadBase(w.t.Context(), nil)
	if err != nil {
		return snapshots.Receipt{}, err
	}
	w.repaired = base.Repaired
	d := draftOf(base, bodiesOf(words))
	d.BuiltAt, d.EndHold = w.now(), release
	if head := w.ledger(); head.Seq > 0 {
		d.Ledger = head
	}
	return p.Publish(w.t.Context(), d)
}

func (w *world) receipt(r snapshots.Receipt, err error) string {
	text := fmt.Sprintf("version %d: %d written, %d reused", r.Version, r.ObjectsWritten, r.ObjectsReused)
	if r.Unchanged {
		text = fmt.Sprintf("version %d, unchanged", r.Version)
	}
	lines := append([]string{w.told(text, err)}, w.repaired...)
	w.repaired = nil
	return strings.Join(lines, "\n")
}

// publish PATH=BODY... publishes a version with these documents.
func (w *world) publish(words []string) string {
	return w.receipt(w.draft(w.publisher(), words, false))
}

// release is publish, and ends a hold.
func (w *world) release(words []string) string { return w.receipt(w.draft(w.publisher(), words, true)) }

// abandon is publish by a process that dies after its first object.
func (w *world) abandon(words []string) string {
	var wrote atomic.Bool // folders are listed side by side
	dying := faultblob.Wrap(w.store, func(_ context.Context, call faultblob.Call) faultblob.Fate {
		if wrote.Load() {
			return faultblob.Fate{Err: faultblob.ErrKilled}
		}
		wrote.Store(call.Op == faultblob.Create && call.Key[0] == 'o')
		return faultblob.Fate{}
	})
	_, err := w.draft(&snapshots.Publisher{Store: dying, Workers: 1, Signers: w.signer}, words, false)
	must.Hold(w.t, errors.Is(err, faultblob.ErrKilled), "the builder was to be killed: %v", err)
	return ""
}

// rollback VERSION [REASON].
func (w *world) rollback(words []string) string {
	r, err := w.publisher().Rollback(w.t.Context(), number(w.t, words[0]), "operator", strings.Join(words[1:], " "), w.now())
	return w.receipt(r, err)
}

func number(t *testing.T, text string) int64 {
	t.Helper()
	return must.Get(strconv.ParseInt(text, 0, 64))(t)
}

// prune KEEP [dry] names the kept versions and the removed objects.
func (w *world) prune(words []string) string {
	got, err := snapshots.Prune(w.t.Context(), w.store, int(number(w.t, words[0])), w.now(), len(words) > 1)
	lines := []string{fmt.Sprintf("kept %d, removed %d bytes", got.Kept, got.Bytes)}
	for _, info := range got.Removed {
		lines = append(lines, info.Key)
	}
	return w.told(strings.Join(lines, "\n"), err)
}

// verify [VERSION].
func (w *world) verify(words []string) string {
	version := int64(0)
	if len(words) > 0 {
		version = number(w.t, words[0])
	}
	got, err := snapshots.Verify(w.t.Context(), w.store, version, nil)
	text := fmt.Sprintf("version %d: %d objects of %d bytes", got.Version, got.Objects, got.Bytes)
	faults := make([]string, 0, len(got.Faults))
	for _, fault := range got.Faults {
		faults = append(faults, "\n"+fault.Error())
	}
	slices.Sort(faults)
	return w.told(text+strings.Join(faults, ""), err)
}

func (w *world) list([]string) string {
	list, err := snapshots.List(w.t.Context(), w.store)
	lines := make([]string, 0, len(list))
	for _, s := range list {
		lines = append(lines, string(must.Get(json.Marshal(s))(w.t)))
	}
	return w.told(strings.Join(lines, "\n"), err)
}

// keys [PREFIX]...
func (w *world) keys(words []string) string {
	return strings.Join(keysOf(w.t, w.store, words...), "\n")
}

func (w *world) served([]string) string {
	v, err := snapshots.Open(w.t.Context(), w.store, nil)
	if err != nil {
		return w.told("", err)
	}
	return versionText(v)
}

func versionText(v *snapshots.Version) string {
	words := []string{fmt.Sprintf("version %d:", v.Pointer.Version)}
	content := contentOf(v)
	for _, path := range slices.Sorted(maps.Keys(content)) {
		words = append(words, path+"="+content[path])
	}
	return strings.Join(words, " ")
}

func (w *world) pointer([]string) string {
	base, err := snapshots.LoadBase(w.t.Context(), w.store, nil)
	if err != nil {
		return w.told("", err)
	}
	m := base.Manifest
	return fmt.Sprintf("version %d, held %t for %q, rolls back to %d, base %d, ledger %d, documents of %s",
		base.Pointer.Version, base.Pointer.Held, base.Pointer.Reason, m.RollbackOf, m.Base, m.Ledger.Seq, m.DocumentsAt().Format(time.TimeOnly))
}

// put makes or replaces an object.
func (w *world) put(key string, data []byte) {
	if _, err := w.store.Create(w.t.Context(), key, data); err != nil {
		w.store.Corrupt(key, data)
	}
}

// write KEY TEXT replaces an object, as anybody can who may write to the store.
func (w *world) write(words []string) string {
	w.put(words[0], []byte(strings.Join(words[1:], " ")))
	return ""
}

// zip KEY TEXT writes a frame of zstd.
func (w *world) zip(words []string) string {
	z := must.Get(zstd.NewWriter(nil))(w.t)
	w.put(words[0], z.EncodeAll([]byte(strings.Join(words[1:], " ")), nil))
	return ""
}

func (w *world) show(words []string) string {
	data := read(w.t, w.store, words[0])
	if strings.HasSuffix(words[0], ".zst") {
		data = must.Get(decoders[snapshots.ZST](data))(w.t)
	}
	return string(data)
}

func (w *world) flip(words []string) string { flip(w.t, w.store, words[0]); return "" }

// cut KEY N removes the last n bytes of an object.
func (w *world) cut(words []string) string {
	data := read(w.t, w.store, words[0])
	w.put(words[0], data[:len(data)-int(number(w.t, words[1]))])
	return ""
}

func (w *world) remove(words []string) string {
	return w.told("", w.store.Delete(w.t.Context(), words[0]))
}

func (w *world) copy(words []string) string {
	w.put(words[1], read(w.t, w.store, words[0]))
	return ""
}

// append KEY BYTES adds bytes to an object.
func (w *world) append(words []string) string {
	more := bytes.Repeat([]byte("a line\n"), int(number(w.t, words[1]))/7)
	w.put(words[0], append(bytes.Clone(read(w.t, w.store, words[0])), more...))
	return ""
}

// edit KEY OLD NEW replaces a text of an object, also of a packed one.
func (w *world) edit(words []string) string {
	w.put(words[0], edited(read(w.t, w.store, words[0]), words[1], words[2]))
	return ""
}

// point VERSION [unsigned] [to MANIFEST] moves the pointer, as anybody can who may write to the store. Each pointer is newer
// than the one before.
func (w *world) point(words []string) string {
	p := snapshots.Pointer{Version: number(w.t, words[0]), Signed: !slices.Contains(words, "unsigned"), At: w.now()}
	manifest := p.Version
	if i := slices.Index(words, "to"); i > 0 {
		manifest = number(w.t, words[i+1])
	}
	p.Manifest = snapshots.Digest(nil)
	if o, err := w.store.Get(w.t.Context(), snapshots.ManifestKey(manifest), 1<<20); err == nil {
		p.Manifest = snapshots.Digest(o.Data)
	}
	w.put(snapshots.PointerKey, must.Get(json.Marshal(p))(w.t))
	return ""
}

// note VERSION LEDGER KEY... signs a note about a manifest with any number of the ledger.
func (w *world) note(words []string) string {
	version := number(w.t, words[0])
	digest := snapshots.Digest(read(w.t, w.store, snapshots.ManifestKey(version)))
	w.put(snapshots.NoteKey(version), must.Get(w.signers(words[2:]).Sign(fmt.Sprintf("version %d", version), "manifest "+digest,
		fmt.Sprintf("ledger simulated %s %s", words[1], snapshots.Digest([]byte(`"ledger"`)))))(w.t))
	return ""
}

// forge VERSION puts a whole version with one document of a stranger into the store.
func (w *world) forge(words []string) string {
	thief := memblob.New()
	must.Get((&snapshots.Publisher{Store: thief}).Publish(w.t.Context(), draftOf(loadBase(w.t, thief), bodies{"drivers": "stolen"})))(w.t)
	w.put("objects/1/drivers.json.gz", read(w.t, thief, "objects/1/drivers.json.gz"))
	w.put(snapshots.ManifestKey(number(w.t, words[0])), edited(read(w.t, thief, snapshots.ManifestKey(1)), `"version":1,`, `"version":`+words[0]+`,`))
	return ""
}

// edge NAME [trusts KEY...] [pinned VERSION] [empty] starts an edge, again if it runs. It keeps its disk, but for an empty one.
func (w *world) edge(words []string) string {
	e := w.edges[words[0]]
	if e != nil {
		_ = e.edge.stop()
	}
	if e == nil || slices.Contains(words, "empty") {
		e = &storyEdge{config: snapshots.FollowConfig{Cache: memblob.New(), Ratchet: notes.NewRatchet(memblob.New(), "versions.json")}}
		w.edges[words[0]] = e
	}
	e.config.Store = named{faultblob.Wrap(w.store, func(_ context.Context, c faultblob.Call) faultblob.Fate {
		if strings.HasPrefix(c.Key, "objects/") || strings.HasPrefix(c.Key, "deltas/") {
			e.bodies.Add(1)
		}
		if down, _ := w.down.Load().(string); strings.HasPrefix(c.Key, down) {
			return faultblob.Fate{Err: errors.New("connection refused")}
		}
		return faultblob.Fate{}
	}), w.name}
	e.config.Pin, e.config.Trust = 0, notes.Trust{}
	var public []string
	for i, word := range words {
		switch {
		case word == "pinned":
			e.config.Pin = number(w.t, words[i+1])
		case i > 1 && word != "empty" && words[1] == "trusts" && words[i-1] != "pinned":
			public = append(public, w.signers([]string{word}).Public()...)
		}
	}
	if public != nil {
		e.config.Trust = must.Get(notes.NewTrust(public...))(w.t)
	}
	e.edge = followAs(w.t, e.config, nil)
	return w.look(words[:1])
}

// look NAME shows the version of an edge after a minute, why it refuses another one, and whether it has read bodies since the
// last look.
func (w *world) look(words []string) string {
	e := w.edges[words[0]]
	must.Advance(time.Minute)
	e.mu.Lock()
	defer e.mu.Unlock()
	text := "nothing"
	if n := len(e.versions); n > 0 {
		text = versionText(e.versions[n-1])
	}
	last := e.reports[len(e.reports)-1]
	for _, r := range e.reports {
		must.Hold(w.t, r.State != snapshots.Failed, "a fault of the program: %v", r.Err)
	}
	text += ", " + strings.TrimSuffix(string(last.State)+", "+strings.TrimPrefix(w.told("", last.Err), "refused: "), ", ")
	if e.bodies.Swap(0) > 0 {
		text += "; it read bodies"
	}
	return text
}

// cached NAME shows the newest version in the copy of an edge, and its objects.
func (w *world) cached(words []string) string {
	m, source, err := snapshots.LoadCached(w.t.Context(), w.edges[words[0]].config.Cache)
	return w.told(fmt.Sprintf("version %d of %s\n%s", m.Version, source, strings.Join(keysOf(w.t, w.edges[words[0]].config.Cache), "\n")), err)
}

func (w *world) stop(words []string) string {
	_ = w.edges[words[0]].edge.stop()
	delete(w.edges, words[0])
	return ""
}

// raise NAME NUMBER KEY raises the ratchet of an edge, which dies before it writes its copy.
func (w *world) raise(words []string) string {
	e := w.edges[words[0]]
	_ = e.edge.stop()
	n := must.Get(e.config.Trust.Open(read(w.t, w.store, snapshots.NoteKey(1))))(w.t)
	must.Do(w.t, e.config.Ratchet.Raise(w.t.Context(), n.Keys, notes.Mark{Number: number(w.t, words[1]), Content: "another"}))
	return ""
}

// ledger is the head of the ledger in the store.
func (w *world) ledger() (head snapshots.Ledger) {
	for _, key := range keysOf(w.t, w.store, "ledger/") {
		head.Kind, head.Seq, head.Hash = "simulated", head.Seq+1, snapshots.Digest(read(w.t, w.store, key))
	}
	return head
}

// record TEXT appends to the ledger.
func (w *world) record(words []string) string {
	n := w.ledger().Seq + 1
	w.put(fmt.Sprintf("ledger/%08d.json", n), fmt.Appendf(nil, `{"seq":%d,"kind":"simulated","text":%q}`, n, words))
	return ""
}

func (w *world) backup([]string) string {
	var reports []int
	info, err := backup.Make(w.t.Context(), w.store, w.place, raceDay, func(_ string, done, _ int) { reports = append(reports, done) })
	for i, done := range reports {
		must.Equal(w.t, "objects that are copied", i, done)
	}
	text := fmt.Sprintf("version %d of %d, ledger %d, copied %d of %d, %d bytes, %d reports", info.Version, info.Versions, info.Ledger.Seq, info.Copied, info.Objects, info.Bytes, len(reports))
	return w.told(strings.Join(append([]string{text}, info.Faults...), "\n"), err)
}

// inplace KEY TEXT puts an object into the place of the backup, or begins with another place.
func (w *world) inplace(words []string) string {
	if len(words) == 0 {
		w.place = memblob.New()
		return ""
	}
	must.Get(blob.Put(w.t.Context(), w.place, words[0], 1<<20, []byte(strings.Join(words[1:], " "))))(w.t)
	return ""
}

// spoil KEY damages an object of the backup.
func (w *world) spoil(words []string) string { w.place.Corrupt(words[0], []byte("dX")); return "" }

// restore [above VERSION] [since LEDGER | hash LEDGER] [lost] [damaged KEY...] restores the backup, into an empty store if the old one is lost.
func (w *world) restore(words []string) string {
	r := backup.Restoring{Store: w.store, Backup: w.place, Builder: "operator", Signers: w.signer, Own: map[string]func(context.Context) error{
		"own.json": func(context.Context) error { w.put("own.json", []byte("made anew")); return nil },
	}}
	for i, word := range words {
		switch word {
		case "above":
			r.Above = number(w.t, words[i+1])
		case "damaged":
			r.Damaged = words[i+1:]
		case "since":
			r.Since.Seq, r.Since.Hash = number(w.t, words[i+1]), ""
		case "hash":
			r.Since = snapshots.Ledger{Hash: snapshots.Digest(read(w.t, w.store, "ledger/0000000"+words[i+1]+".json"))}
		}
	}
	if slices.Contains(words, "lost") {
		for _, key := range keysOf(w.t, w.store) {
			must.Do(w.t, w.store.Delete(w.t.Context(), key))
		}
	}
	got, err := backup.Restore(w.t.Context(), r)
	lines := []string{fmt.Sprintf("%s, ledger %d", w.receipt(got.Receipt, nil), got.Ledger.Seq)}
	for _, of := range []struct {
		what string
		list []string
	}{{"kept", got.Kept}, {"older", got.Older}, {"lost", got.Lost}} {
		if len(of.list) > 0 {
			lines = append(lines, of.what+" "+strings.Join(of.list, "; "))
		}
	}
	return w.told(strings.Join(lines, "\n"), err)
}
