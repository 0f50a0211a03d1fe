package builder

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
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
)

// DerivedReason is the reason of a version that only adds documents derived from an earlier one.
const DerivedReason = "forecast, title odds and track record"

// derivedFormat changes with every release that derives other data from the same facts.
const derivedFormat = "derived-4"

// derivedData is the data of the variants that Derive makes, by path.
type derivedData map[string]json.RawMessage

// derivedFile is the content of an object below snapshots.DerivedFolder. derivedKey makes its key.
type derivedFile struct {
	snapshots.Derivation

	Data   derivedData `json:"data"`
	Shared string      `json:"shared"` // key of an object with more parts; snapshots.SharedPart reads it
	Parts  parts       `json:"parts"`
}

// parts are the results of long computations, by the digest of their inputs. Derive computes a part
// only if no earlier file has one with the same inputs.
type parts map[string]part

// part is one of the results.
type part struct {
	Hindsight *hindsight `json:"hindsight,omitzero"`
	Odds      title.Odds `json:"odds,omitzero"`
	Live      []livePick `json:"live,omitzero"`
}

// maxParts is the number of parts that a builder remembers: decades of races under many archives.
const maxParts = 20_000

// remember adds parts that were made, or read from the store. The caller holds b.deriving.
func (b *Builder) remember(p parts) {
	if known := b.deriving.parts; known == nil || len(known) > maxParts {
		b.deriving.parts = parts{}
	}
	maps.Copy(b.deriving.parts, p)
}

// Derive makes the forecasts, the title odds and the track record of the version that Build publishes at an
// instant, unless the store has them. It first notes in the ledger the forecasts that are due. It returns true if a
// build would now publish other documents. The first call takes some seconds of one processor, a later one only the
// time for changed inputs. Builds never wait for Derive: versions keep the earlier derived documents until it has run.
// Several processes may call it at once, because they make the same bytes.
func (b *Builder) Derive(ctx context.Context, at time.Time) (bool, error) {
	facts, err := b.Facts(ctx)
	if err != nil {
		return false, fmt.Errorf("derive: %w", err)
	}
	fresh, err := b.Ledger.Refresh(ctx)
	if err != nil {
		return false, fmt.Errorf("derive: %w", err)
	}
	rules := b.Rules(ctx)
	if rules.Unread { // the forecasts would be those of another model
		return false, nil
	}
	model := rules.Model
	if err := noteForecasts(ctx, fresh, model, facts, at); err != nil {
		b.Log.Error("the ledger has no forecast of this step of the week, so the track record will lack it; the next version tries again", "err", err)
	}
	in := Inputs{At: at, Facts: facts, Ledger: b.Ledger.Current(at), Model: model}
	a := almanac.Join(facts.Archive.AsOf(at), in.Ledger)
	key := derivedKey(in.Model, facts, a)
	_, made, readErr := b.derived(ctx, key)
	damaged := errors.Is(readErr, snapshots.ErrDamaged)
	if made || readErr != nil && !damaged {
		return false, readErr
	}
	b.deriving.Lock()
	if b.deriving.sharedKey == "" {
		b.rememberLatest(ctx)
	}
	b.deriving.Unlock()
	file, err := b.derive(ctx, in, a)
	if err == nil {
		err = b.share(ctx, &file)
	}
	if err != nil {
		return false, fmt.Errorf("derive: %w", err)
	}
	packed, err := source.Pack(file)
	if err != nil {
		return false, fmt.Errorf("derive: %w", err)
	}
	// Two files with this key differ at most in the ledger's head and made_at, so the first one stays.
	if damaged {
		_, err = blob.Put(ctx, b.Store, key, snapshots.MaxDerived, packed)
	} else {
		_, err = blob.Claim(ctx, b.Store, key, packed)
	}
	if err != nil {
		return false, fmt.Errorf("derive: %w", err)
	}
	return true, nil
}

// derive makes the derived data of inputs and their almanac. It computes no part that this builder remembers.
func (b *Builder) derive(ctx context.Context, in Inputs, a *almanac.Almanac) (derivedFile, error) {
	name, newModel := predict.V2, predict.NewV2
	if in.Model.Name() == predict.R2 {
		name, newModel = predict.R2, predict.NewR2
	}
	memory := &b.deriving
	memory.Lock()
	if memory.model == nil || memory.model.Name() != name {
		memory.model = newModel(predict.DefaultParams())
	}
	if memory.archive != in.Facts.Archive {
		memory.archive, memory.inputs = in.Facts.Archive, predict.NewInputs()
	}
	d := &deriver{
		archive: in.Facts.Archive, ledger: in.Ledger, view: almanac.Entered(in.Facts.Archive.AsOf(in.At), in.Ledger), almanac: a, model: memory.model, inputs: memory.inputs,
		known: maps.Clone(memory.parts), used: parts{}, observed: b.Observed(),
	}
	memory.Unlock()
	file := derivedFile{Data: derivedData{}, Parts: d.used, Derivation: snapshots.Derivation{
		Archive: in.Facts.SHA256, Ledger: headOf(in.Ledger), Model: in.Model.Name(), MadeAt: in.At.UTC(),
	}}
	if err := errors.Join(d.forecasts(ctx, in.Ledger, in.Model, file.Data), d.trackRecord(ctx, file.Data), d.titleOdds(ctx, file.Data)); err != nil {
		return derivedFile{}, err
	}
	memory.Lock()
	defer memory.Unlock()
	b.remember(d.used)
	b.Log.Debug("derived", "parts", len(d.used), "made_anew", d.anew)
	return file, nil
}

// share takes the parts out of a file that an object in the store has. It writes another object once a file would
// repeat an eighth of them, because most parts are of races long ago.
func (b *Builder) share(ctx context.Context, file *derivedFile) error {
	b.deriving.Lock()
	defer b.deriving.Unlock()
	memory := &b.deriving
	more := maps.Clone(file.Parts)
	maps.DeleteFunc(more, func(sum string, _ part) bool { _, ok := memory.shared[sum]; return ok })
	if 8*len(more) > len(memory.shared) {
		packed, err := source.Pack(file.Parts)
		if err != nil {
			return err
		}
		key := snapshots.SharedFolder + source.Sum(packed) + ".zst"
		if _, err := blob.Put(ctx, b.Store, key, snapshots.MaxDerived, packed); err != nil {
			return err
		}
		memory.sharedKey, memory.shared, more = key, file.Parts, parts{}
	}
	file.Shared, file.Parts = memory.sharedKey, more
	return nil
}

// headOf is the head of a ledger as versions name it.
func headOf(s *ledger.Fold) snapshots.Ledger {
	return snapshots.Ledger{Kind: string(s.Kind()), Seq: s.Head().Seq, Hash: s.Head().Hash}
}

// derivedKey is the store key of the derived documents. It is a digest of everything that they depend
// on: the archive, the model, the revision of each verified result, the races that have ended, and the
// state of knowledge about the rounds that are still to come.
func derivedKey(model predict.Model, facts archive.Stored, a *almanac.Almanac) string {
	h := sha256.New()
	h.Write(fmt.Appendln(nil, derivedFormat, facts.SHA256, model.Name(), a.Current))
	for i := range a.Years {
		y := &a.Years[i]
		if y.Year >= a.Current { // before a season's first qualifying it has no codes, and its odds cannot be published
			h.Write(fmt.Appendln(nil, y.Year, len(y.Codes())))
		}
		for _, d := range y.Decisions() {
			if d.EventID != "" { // the archive has the others
				h.Write(fmt.Appendln(nil, y.Year, d.EventID))
			}
		}
		for j := range y.Rounds {
			r := &y.Rounds[j]
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

// derived reads the file of a key. made is false if the store has none yet.
func (b *Builder) derived(ctx context.Context, key string) (file derivedFile, made bool, err error) {
	b.deriving.Lock()
	defer b.deriving.Unlock()
	if b.deriving.key == key { // the object never changes
		return b.deriving.file, true, nil
	}
	file, err = b.readDerived(ctx, key)
	if errors.Is(err, blob.ErrNotFound) {
		return file, false, nil
	}
	if err != nil {
		return file, false, err
	}
	b.deriving.key, b.deriving.file = key, file
	return file, true, nil
}

// readDerived reads a file and remembers its parts. The caller holds b.deriving.
func (b *Builder) readDerived(ctx context.Context, key string) (file derivedFile, err error) {
	if err = b.unpackDerived(ctx, key, &file); err == nil {
		b.remember(file.Parts)
	}
	return file, err
}

func (b *Builder) unpackDerived(ctx context.Context, key string, into any) error {
	object, err := b.Store.Get(ctx, key, snapshots.MaxDerived)
	if errors.Is(err, blob.ErrTooLarge) {
		err = fmt.Errorf("%w: %w", snapshots.ErrDamaged, err)
	}
	if err != nil {
		return fmt.Errorf("read derived documents: %w", err)
	}
	if err := source.Unpack(object.Data, into); err != nil {
		return fmt.Errorf("read derived documents: %s: %w: %w", key, snapshots.ErrDamaged, err)
	}
	return nil
}

// deriver makes derived data from verified results.
type deriver struct {
	archive *season.Archive
	view    *season.View
	almanac *almanac.Almanac
	model   *predict.Ranked
	inputs  *predict.Inputs
	known   parts // made before
	used    parts
	anew    int // how many of used are new

	observed *live.Log
	ledger   *ledger.Fold
}

// rememberLatest reads the parts of the latest file in the store, which another process may have written.
// If it cannot read them, they are computed again. The caller holds b.deriving.
func (b *Builder) rememberLatest(ctx context.Context) {
	var latest blob.Info
	for info, err := range b.Store.List(ctx, snapshots.DerivedFolder) {
		if err != nil {
			b.Log.Warn("derived documents cannot be listed; all of them are computed again", "err", err)
			return
		}
		if !strings.HasPrefix(info.Key, snapshots.SharedFolder) && info.Modified.After(latest.Modified) {
			latest = info
		}
	}
	if latest.Key == "" {
		return
	}
	file, err := b.readDerived(ctx, latest.Key)
	var shared parts
	if err == nil {
		err = b.unpackDerived(ctx, file.Shared, &shared)
	}
	if err != nil {
		b.Log.Warn("derived documents cannot be read; all of them are computed again", "err", err)
		return
	}
	b.remember(shared)
	b.deriving.sharedKey, b.deriving.shared = file.Shared, shared
}

// part returns a known part, or makes it. It adds the part to used.
func (d *deriver) part(sum string, make func() (part, error)) (part, error) {
	made, ok := d.known[sum]
	if !ok {
		var err error
		if made, err = make(); err != nil {
			return part{}, err
		}
		d.anew++
	}
	d.used[sum] = made
	return made, nil
}

// sum is the digest of everything that a part depends on: the model's inputs for a round, and the values in also.
func (d *deriver) sum(v *season.View, year int, round season.GrandPrixID, also ...any) (string, error) {
	inputs, err := d.inputs.Sum(d.model, v, year, round)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(fmt.Appendf(inputs[:], "%s %v", derivedFormat, also))
	return hex.EncodeToString(sum[:16]), nil
}

func put(data derivedData, v catalog.Variant, body any) error {
	text, err := wire.Marshal(body)
	data[v.Path()] = text
	return err
}
