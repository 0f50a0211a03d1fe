// Package derive makes the documents that take long computations: forecasts, title odds and the track record. A version
// never waits for them: it keeps the earlier ones until they are in the store.
package derive

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"strings"
	"time"

	"gridcast/builder/almanac"
	"gridcast/builder/archive"
	"gridcast/builder/ledger"
	"gridcast/builder/live"
	"gridcast/builder/predict"
	"gridcast/builder/predict/title"
	"gridcast/builder/season"
	"gridcast/builder/source"
	"gridcast/schemas/catalog"
	"gridcast/schemas/wire"
	"gridcast/snapshots"
	"gridcast/snapshots/blob"
	"gridcast/snapshots/blob/lock"
)

// Reason is the reason of a version that only adds documents derived from an earlier one.
const Reason = "forecast, title odds and track record"

// format changes with every release that derives other data from the same facts.
const format = "derived-4"

// Data is the data of the derived variants, by path.
type Data map[string]json.RawMessage

// File is the content of an object below snapshots.DerivedFolder. From.Key makes its key.
type File struct {
	snapshots.Derivation

	Data   Data   `json:"data"`
	Shared string `json:"shared"` // key of an object with more memos; snapshots.SharedMemos reads it
	Memos  memos  `json:"parts"`
}

// memos are the results of long computations, by the digest of their inputs. Derive computes a memo
// only if no earlier file has one with the same inputs.
type memos map[string]memo

// memo is one of the results.
type memo struct {
	Hindsight *hindsight `json:"hindsight,omitzero"`
	Odds      title.Odds `json:"odds,omitzero"`
	Live      []livePick `json:"live,omitzero"`
}

// maxMemos is the number of memos that a builder remembers: decades of races under many archives.
const maxMemos = 20_000

// Memory holds the memos that one process has derived or read. It is safe for concurrent use.
//
// Cache, by the digest of each memo's inputs, and by the key of a file, which is a digest too: deriving after a race takes
// .9 s of processor time, and 6.5 s without earlier memos.
type Memory struct {
	mu        lock.Lock // guards the other fields
	key       string    // in the store, of file
	file      File      // made or read last
	model     *predict.Ranked
	memos     memos  // made or read before
	shared    memos  // content of sharedKey
	sharedKey string // in the store; empty: not looked for yet
}

// remember adds memos that were made, or read from the store. The caller holds m.mu.
func (m *Memory) remember(p memos) {
	if m.memos == nil || len(m.memos) > maxMemos {
		m.memos = memos{}
	}
	maps.Copy(m.memos, p)
}

// Deriver makes and reads the derived documents of a store. It is safe for concurrent use. Several processes may derive
// at once, because they make the same bytes.
type Deriver struct {
	Store    blob.Store
	Observed *live.Log // of the races, for the scores of live picks
	Log      *slog.Logger
	Memory   *Memory
}

// From names the inputs of derived documents. In one release of the program, equal inputs give equal documents.
type From struct {
	At     time.Time // race time
	Facts  archive.Stored
	Ledger *ledger.Fold
	Model  predict.Model

	TitleRuns int // simulations of the title odds; zero: those of published odds, [title.DefaultConfig]
}

// Derive makes the derived documents of inputs, unless the store has them, and reports whether it made them.
func (d *Deriver) Derive(ctx context.Context, from From) (bool, error) {
	a := almanac.Join(from.Facts.Archive.AsOf(from.At), from.Ledger)
	key := from.Key(a)
	_, made, readErr := d.Read(ctx, key)
	damaged := errors.Is(readErr, snapshots.ErrDamaged)
	if made || readErr != nil && !damaged {
		return false, readErr
	}
	d.Memory.mu.Lock()
	if d.Memory.sharedKey == "" {
		d.rememberLatest(ctx)
	}
	d.Memory.mu.Unlock()
	file, err := d.Make(ctx, from, a)
	if err == nil {
		err = d.share(ctx, &file)
	}
	if err != nil {
		return false, err
	}
	packed, err := source.Encode(file)
	if err != nil {
		return false, err
	}
	// Two files with this key differ at most in the ledger's head and made_at, so the first one stays.
	if damaged {
		_, err = blob.Put(ctx, d.Store, key, snapshots.MaxDerived, packed)
	} else {
		_, err = blob.Claim(ctx, d.Store, key, packed)
	}
	return err == nil, err
}

// Make makes the derived documents of inputs and their almanac. It computes no memo that the memory has.
func (d *Deriver) Make(ctx context.Context, from From, a *almanac.Almanac) (File, error) {
	name, newModel := predict.V2, predict.NewV2
	if from.Model.Name() == predict.R2 {
		name, newModel = predict.R2, predict.NewR2
	}
	memory := d.Memory
	memory.mu.Lock()
	if memory.model == nil || memory.model.Name() != name {
		memory.model = newModel(predict.DefaultParams())
	}
	view := almanac.Entered(from.Facts.Archive.AsOf(from.At), from.Ledger)
	w := &work{
		archive: from.Facts.Archive, ledger: from.Ledger, view: view, almanac: a,
		model: memory.model, digests: predict.NewDigester(view), known: maps.Clone(memory.memos), used: memos{}, observed: d.Observed, runs: cmp.Or(from.TitleRuns, title.DefaultConfig().Runs),
	}
	memory.mu.Unlock()
	file := File{Data: Data{}, Memos: w.used, Derivation: snapshots.Derivation{
		Archive: from.Facts.SHA256, Ledger: Head(from.Ledger), Model: from.Model.Name(), MadeAt: from.At.UTC(),
	}}
	if err := errors.Join(w.forecasts(ctx, from.Model, file.Data), w.trackRecord(ctx, file.Data), w.titleOdds(ctx, file.Data)); err != nil {
		return File{}, err
	}
	memory.mu.Lock()
	defer memory.mu.Unlock()
	memory.remember(w.used)
	d.Log.Debug("derived", "parts", len(w.used), "made_anew", w.anew)
	return file, nil
}

// share takes the memos out of a file that an object in the store has. It writes another object once a file would
// repeat an eighth of them, because most memos are of races long ago.
func (d *Deriver) share(ctx context.Context, file *File) error {
	memory := d.Memory
	memory.mu.Lock()
	defer memory.mu.Unlock()
	more := maps.Clone(file.Memos)
	maps.DeleteFunc(more, func(sum string, _ memo) bool { _, ok := memory.shared[sum]; return ok })
	if 8*len(more) > len(memory.shared) {
		packed, err := source.Encode(file.Memos)
		if err != nil {
			return err
		}
		key := snapshots.SharedFolder + source.Sum(packed) + ".zst"
		if _, err := blob.Put(ctx, d.Store, key, snapshots.MaxDerived, packed); err != nil {
			return err
		}
		memory.sharedKey, memory.shared, more = key, file.Memos, memos{}
	}
	file.Shared, file.Memos = memory.sharedKey, more
	return nil
}

// Head is the head of a ledger as versions name it.
func Head(s *ledger.Fold) snapshots.Ledger {
	return snapshots.Ledger{Kind: string(s.Kind()), Seq: s.Head().Seq, Hash: s.Head().Hash}
}

// Key is the store key of the derived documents. It is a digest of everything that they depend
// on: the archive, the model, the revision of each verified result, the races that have ended, and the
// state of knowledge about the rounds that are still to come.
func (f From) Key(a *almanac.Almanac) string {
	h := sha256.New()
	h.Write(fmt.Appendln(nil, format, f.Facts.SHA256, f.Model.Name(), a.Current))
	if f.TitleRuns != 0 { // never of published odds
		h.Write(fmt.Appendln(nil, "runs", f.TitleRuns))
	}
	for _, y := range a.Years {
		if y.Year >= a.Current { // before a season's first qualifying it has no codes, and its odds cannot be published
			h.Write(fmt.Appendln(nil, y.Year, len(y.Codes())))
		}
		for _, d := range y.Decisions() {
			if d.EventID != "" { // the archive has the others
				h.Write(fmt.Appendln(nil, y.Year, d.EventID))
			}
		}
		for _, r := range y.Rounds {
			revision := 0
			if r.Result != nil {
				revision = 1 + r.Result.Revision
			}
			ended := r.Facts.Finished() && !a.At.Before(r.End())
			h.Write(fmt.Appendln(nil, r.Session, revision, r.Off(), r.Pick != nil && r.Result != nil, ended))
			if r.Result != nil && !r.Facts.Finished() { // see almanac.Entered
				h.Write(fmt.Appendln(nil, "entered"))
			}
		}
	}
	for _, r := range a.Coming() {
		h.Write(fmt.Appendln(nil, r.Session, foreknown(r, a.At)))
	}
	return snapshots.DerivedFolder + hex.EncodeToString(h.Sum(nil)) + ".zst"
}

// Read reads the file of a key. found is false if the store has none yet.
func (d *Deriver) Read(ctx context.Context, key string) (file File, found bool, err error) {
	d.Memory.mu.Lock()
	defer d.Memory.mu.Unlock()
	if d.Memory.key == key { // the object never changes
		return d.Memory.file, true, nil
	}
	file, err = d.read(ctx, key)
	if errors.Is(err, blob.ErrNotFound) {
		return file, false, nil
	}
	if err != nil {
		return file, false, err
	}
	d.Memory.key, d.Memory.file = key, file
	return file, true, nil
}

// read reads a file and remembers its memos. The caller holds the memory's lock.
func (d *Deriver) read(ctx context.Context, key string) (file File, err error) {
	if err = d.unpack(ctx, key, &file); err == nil {
		d.Memory.remember(file.Memos)
	}
	return file, err
}

func (d *Deriver) unpack(ctx context.Context, key string, into any) error {
	object, err := d.Store.Get(ctx, key, snapshots.MaxDerived)
	if errors.Is(err, blob.ErrTooLarge) {
		err = fmt.Errorf("%w: %w", snapshots.ErrDamaged, err)
	}
	if err != nil {
		return fmt.Errorf("read derived documents: %w", err)
	}
	if err := source.Decode(object.Data, into); err != nil {
		return fmt.Errorf("read derived documents: %s: %w: %w", key, snapshots.ErrDamaged, err)
	}
	return nil
}

// rememberLatest reads the memos of the latest file in the store, which another process may have written.
// If it cannot read them, they are computed again. The caller holds the memory's lock.
func (d *Deriver) rememberLatest(ctx context.Context) {
	var latest blob.Info
	for info, err := range d.Store.List(ctx, snapshots.DerivedFolder) {
		if err != nil {
			d.Log.Warn("derived documents cannot be listed; all of them are computed again", "err", err)
			return
		}
		if !strings.HasPrefix(info.Key, snapshots.SharedFolder) && info.Modified.After(latest.Modified) {
			latest = info
		}
	}
	if latest.Key == "" {
		return
	}
	file, err := d.read(ctx, latest.Key)
	var shared memos
	if err == nil && file.Shared != "" { // empty before the first race of a store
		err = d.unpack(ctx, file.Shared, &shared)
	}
	if err != nil {
		d.Log.Warn("derived documents cannot be read; all of them are computed again", "err", err)
		return
	}
	d.Memory.remember(shared)
	d.Memory.sharedKey, d.Memory.shared = file.Shared, shared
}

// work is the making of one file, from verified results.
type work struct {
	archive *season.Archive
	view    *season.View
	almanac *almanac.Almanac
	model   *predict.Ranked
	digests *predict.Digester
	known   memos // made before
	used    memos
	anew    int // how many of used are new

	observed *live.Log
	ledger   *ledger.Fold
	runs     int // of the title odds
}

// memo returns a known memo, or makes it. It adds the memo to used.
func (w *work) memo(sum string, make func() (memo, error)) (memo, error) {
	made, ok := w.known[sum]
	if !ok {
		var err error
		if made, err = make(); err != nil {
			return memo{}, err
		}
		w.anew++
	}
	w.used[sum] = made
	return made, nil
}

// sum is the digest of everything that a memo depends on: the model's inputs for a round, and the values in also.
func (w *work) sum(v *season.View, year int, round season.GrandPrixID, also ...any) (string, error) {
	inputs, err := w.digests.Sum(w.model, v, year, round)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(fmt.Appendf(inputs[:], "%s %v", format, also))
	return hex.EncodeToString(sum[:16]), nil
}

func put(data Data, v catalog.Variant, body any) error {
	text, err := wire.Marshal(body)
	data[v.Path()] = text
	return err
}
