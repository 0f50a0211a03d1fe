package backup

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/klauspost/compress/zstd"

	"gridcast/snapshots"
	"gridcast/snapshots/blob"
	"gridcast/snapshots/notes"
)

var (
	// ErrNotLost means that the store has everything that the backup has.
	ErrNotLost = errors.New("the store is not lost")
	// ErrOtherRecord means that the store holds another ledger or audit log than the backup.
	ErrOtherRecord = errors.New("the store holds another record than the backup")
	// ErrGap means that neither the store nor the backup has a file in the middle of a log.
	ErrGap = errors.New("a log has a gap")
)

// Restoring describes a restore.
type Restoring struct {
	Store    blob.Store         // the lost store
	Backup   blob.Store         // made by Make
	Signers  *notes.Signers     // the version key; nil: the restored version is not signed
	Builder  string             // host and process that restore, for people
	Progress snapshots.Progress // may be nil

	// Damaged are the keys of documents that can be replaced and that their readers cannot read. The backup's replace them.
	Damaged []string

	// Own has a function for each object that Restore does not copy. Restore calls it if the store needs the object. It makes
	// the object in one write, so that Restore calls it again after a restore that broke off before.
	Own map[string]func(context.Context) error

	// Above is the highest version that any edge has served, as the edges report it; 0: not known.
	Above int64

	// Since is a head of the ledger that was noted before the loss, such as the head in the manifest that
	// an edge serves. Its Kind does not matter. A hash without a Seq may be that of any file. Zero: none.
	Since snapshots.Ledger
}

// Restored describes the outcome of a restore and the losses.
type Restored struct {
	snapshots.Receipt

	Backup Info             `json:"backup"`
	Ledger snapshots.Ledger `json:"ledger"` // head of the ledger in the store now
	Kept   []string         `json:"kept"`   // documents of the store that were left alone

	// Older are documents that were replaced by those of the backup. They lack later changes, such as the
	// revocation of a key.
	Older []string `json:"older"`

	Lost []string `json:"lost"` // sentences; empty: no loss is known
}

// Restore copies a backup into a store that is empty or has lost its current version. It publishes the
// backup's version under a number above three others: the number in the backup, every claim that is left in
// the store, and Above. Edges refuse a lower number than the one they serve. With the right Above all of
// them serve the restored version without further action.
//
// Restore replaces nothing in the store that is whole, such as a longer ledger or newer keys, because an
// older list of keys would accept revoked ones. If the store serves a whole version, Restore copies only
// the other objects that it misses, such as files of its ledger, and publishes nothing.
//
// Restore writes nothing if the store misses nothing (ErrNotLost), if its ledger or audit log differs from
// the backup's (ErrOtherRecord), if the backup is damaged, or if a log would have a gap (ErrGap). A restore that breaks off can be run again.
func Restore(ctx context.Context, r Restoring) (Restored, error) {
	start := time.Now()
	restored, err := r.run(ctx)
	restored.Seconds = time.Since(start).Seconds()
	if err != nil {
		return restored, fmt.Errorf("restore %s from %s: %w", r.Store, r.Backup, err)
	}
	return restored, nil
}

func (r *Restoring) run(ctx context.Context) (Restored, error) {
	result := Restored{Kept: []string{}, Older: []string{}, Lost: []string{}}
	pointer, m, err := r.open(ctx, &result)
	if err != nil {
		return result, err
	}
	served, tag, whole, err := r.served(ctx)
	if err != nil {
		return result, err
	}
	missing, err := r.missing(ctx, whole, &result)
	if err != nil {
		return result, err
	}
	if err := r.checkLogs(ctx); err != nil {
		return result, err
	}
	if whole && len(missing) == 0 {
		return result, fmt.Errorf("%w: version %d is whole; to undo its content, roll back", ErrNotLost, served.Version)
	}

	// Restore writes from here on. The store counts as lost until the swap of the pointer. The first missing file of a log
	// comes last: if Restore breaks off, the log has a gap, and no scheduler begins with a part of it.
	rest, firsts := apart(missing)
	copyOne := func(ctx context.Context, key string) error {
		if r.Own[key] != nil {
			return nil
		}
		o, err := r.Backup.Get(ctx, key, maxCopied)
		if err == nil {
			_, err = blob.Put(ctx, r.Store, key, maxCopied, o.Data)
		}
		return err
	}
	if err := snapshots.Each(ctx, Copy, rest, workers, r.Progress, copyOne); err != nil {
		return result, err
	}
	if err := snapshots.Each(ctx, Copy, firsts, workers, nil, copyOne); err != nil {
		return result, err
	}
	for _, key := range missing {
		if restore, ok := r.Own[key]; ok {
			if err := restore(ctx); err != nil {
				return result, err
			}
		}
	}
	if result.Ledger, err = ledgerHead(ctx, r.Store); err != nil {
		return result, err
	}
	if result.Ledger.Seq < r.Since.Seq {
		result.Lost = append(result.Lost, fmt.Sprintf("ledger files %d to %d: picks frozen, results verified and rounds moved in them",
			result.Ledger.Seq+1, r.Since.Seq))
	} else if err := checkHead(ctx, r.Store, r.Since); err != nil {
		result.Lost = append(result.Lost, fmt.Sprintf("the record that was noted: %v", err))
	}
	if len(result.Lost) > 0 && r.Signers != nil {
		result.Lost = append(result.Lost, "the end of the public log: it must not fork, so schedulers need a version key of a new origin (gridcast signing new FILE)")
	}
	if whole {
		result.Receipt = snapshots.Receipt{Version: served.Version, ObjectsWritten: len(missing), Unchanged: true}
		return result, nil
	}
	if r.Above > pointer.Version {
		result.Lost = append(result.Lost, fmt.Sprintf("versions %d to %d", pointer.Version+1, r.Above))
	}

	// If we crash before the swap, the next restore finds the objects there and claims another number.
	m.Base, m.BaseManifest = pointer.Version, pointer.Manifest
	m.Builder, m.Reason = r.Builder, fmt.Sprintf("restored from the backup of %s", result.Backup.At.Format(time.RFC3339))
	above := max(pointer.Version, r.Above)
	if served.Version <= pointer.Version+snapshots.MaxGap { // a stranger has written a higher one
		above = max(above, served.Version)
	}
	publisher := snapshots.Publisher{Store: r.Store, Progress: r.Progress, Signers: r.Signers}
	version, err := publisher.Republish(ctx, m, above, tag, pointer.Held, pointer.Reason)
	if err != nil {
		return result, err
	}
	result.Receipt = snapshots.Receipt{Version: version, Variants: len(m.Entries), ObjectsWritten: len(missing)}
	return result, nil
}

// open reads the pointer and the manifest of the backup, and verifies its current version.
func (r *Restoring) open(ctx context.Context, result *Restored) (pointer snapshots.Pointer, m snapshots.Manifest, err error) {
	o, err := r.Backup.Get(ctx, infoKey, blob.MaxDocument)
	if err != nil {
		return pointer, m, fmt.Errorf("it is no complete backup: %w", err)
	}
	if err := json.Unmarshal(o.Data, &result.Backup); err != nil {
		return pointer, m, fmt.Errorf("%s: %w: %w", infoKey, snapshots.ErrDamaged, err)
	}
	if pointer, _, err = snapshots.LoadPointer(ctx, r.Backup); err != nil {
		return pointer, m, err
	}
	if m, err = snapshots.LoadManifest(ctx, r.Backup, 0); err != nil {
		return pointer, m, err
	}
	if pointer.Signed && r.Signers == nil {
		return pointer, m, snapshots.ErrNoSigner
	}
	if r.Signers != nil && !r.Signers.New && snapshots.CheckNote(ctx, r.Backup, m.Version, r.Signers.Trust()) != nil {
		return pointer, m, fmt.Errorf("version %d of the backup: %w", m.Version, snapshots.ErrNewKey)
	}
	if r.Above < 0 || r.Above > pointer.Version+snapshots.MaxGap {
		return pointer, m, fmt.Errorf("version %d cannot have been served: the backup is of version %d", r.Above, pointer.Version)
	}
	checked, err := snapshots.Verify(ctx, r.Backup, 0, r.Progress)
	if err == nil && len(checked.Faults) > 0 {
		err = fmt.Errorf("version %d of the backup: %w", m.Version, errors.Join(checked.Faults...))
	}
	return pointer, m, err
}

// served reads the pointer of the store, which may be damaged or missing, and reports whether its version
// is whole. The tag is that of the pointer.
func (r *Restoring) served(ctx context.Context) (pointer snapshots.Pointer, tag blob.Tag, whole bool, err error) {
	pointer, tag, err = snapshots.LoadPointer(ctx, r.Store)
	if errors.Is(err, snapshots.ErrNone) || errors.Is(err, snapshots.ErrDamaged) {
		return pointer, tag, false, nil
	}
	if err != nil {
		return pointer, tag, false, err
	}
	checked, err := snapshots.Verify(ctx, r.Store, 0, nil)
	if errors.Is(err, snapshots.ErrDamaged) || errors.Is(err, blob.ErrNotFound) {
		return pointer, tag, false, nil
	}
	return pointer, tag, err == nil && len(checked.Faults) == 0, err
}

// missing lists the objects of the backup that the store needs. If its version is whole, it needs none of
// another version. It never needs the copy of a document, which could put the backup's in the place of one that Own makes.
func (r *Restoring) missing(ctx context.Context, whole bool, result *Restored) ([]string, error) {
	var missing []string
	for info, err := range r.Backup.List(ctx, "") {
		if err != nil {
			return nil, err
		}
		if info.Key == snapshots.PointerKey || info.Key == infoKey || strings.HasPrefix(info.Key, blob.CopyOf("")) || whole && snapshots.OfVersion(info.Key) {
			continue
		}
		write, err := r.mayWrite(ctx, info.Key, result)
		if err != nil {
			return nil, err
		}
		if write {
			missing = append(missing, info.Key)
		}
		if write && !snapshots.Immutable(info.Key) {
			result.Older = append(result.Older, info.Key)
		}
	}
	return missing, nil
}

// apart divides sorted keys into the first file of each log, and all others.
func apart(keys []string) (rest, firsts []string) {
	begun := map[string]bool{}
	for _, key := range keys {
		if folder, _, ofLog := placeInLog(key); ofLog && !begun[folder] {
			begun[folder], firsts = true, append(firsts, key)
		} else {
			rest = append(rest, key)
		}
	}
	return rest, firsts
}

// checkLogs returns an error if a log would have a gap after the restore, because no reader accepts such a log.
func (r *Restoring) checkLogs(ctx context.Context) error {
	_, gap, damage, err := listRecords(ctx, r.Backup, r.Store)
	if err != nil || len(gap) == 0 {
		return errors.Join(append(damage, err)...)
	}
	return fmt.Errorf("%w: neither the backup nor the store has %s: copy it from another backup into this one; without it, end the log there: remove the files of %s with higher numbers from the backup and the store",
		ErrGap, gap[0], path.Dir(gap[0]))
}

// mayWrite reports whether Restore writes an object of the backup into the store.
func (r *Restoring) mayWrite(ctx context.Context, key string, result *Restored) (bool, error) {
	ours, err := r.Store.Get(ctx, key, maxCopied)
	switch {
	case errors.Is(err, blob.ErrNotFound), errors.Is(err, blob.ErrTooLarge):
		return true, nil
	case err != nil:
		return false, err
	}
	theirs, err := r.Backup.Get(ctx, key, maxCopied)
	switch {
	case err != nil:
		return false, err
	case bytes.Equal(ours.Data, theirs.Data):
		return false, nil
	case slices.Contains(r.Damaged, key):
		return true, nil
	case snapshots.OfVersion(key):
		return true, nil // written once, and verified in the backup: the store's is damaged
	case namedForContent(key, theirs.Data):
		return true, nil // the store's is damaged, or compressed by another release
	case snapshots.Immutable(key):
		return false, fmt.Errorf("%w: %s differs; restore into an empty store if this one has no value", ErrOtherRecord, key)
	case len(ours.Data) == 0, json.Valid(theirs.Data) && !json.Valid(ours.Data):
		return true, nil
	}
	result.Kept = append(result.Kept, key)
	return false, nil
}

// namedForContent reports whether the last element of key is the hash of data, or of the content that data has
// as zstd if the key ends in .zst.
func namedForContent(key string, data []byte) bool {
	name, packed := strings.CutSuffix(key, ".zst")
	if packed {
		z, _ := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxCopied)) // the options are valid
		defer z.Close()
		var err error
		if data, err = z.DecodeAll(data, nil); err != nil {
			return false
		}
	}
	return strings.HasSuffix(name, snapshots.Digest(data))
}
