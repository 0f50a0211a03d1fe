// Package backup copies a whole store to another place, and restores a store that was lost from the copy.
//
// A backup is itself a store: it holds published versions, ledger, audit log, keys, archives and settings
// under the same keys, and an edge can serve from it. It lacks claims on version numbers, which mean nothing
// elsewhere. backup.json describes it.
package backup

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"gridcast/snapshots"
	"gridcast/snapshots/blob"
	"gridcast/snapshots/blob/chain"
)

// infoKey is the store key of the Info in a backup.
const infoKey = "backup.json"

// Copy is the phase of a backup or a restore in which objects are copied.
const Copy = "copy"

// maxCopied is the size limit of an object whose size no manifest states, in bytes: keys, archives and the
// documents of sources.
const maxCopied = 256 << 20

// workers is the number of objects that are copied at once.
const workers = 32

// Info describes a backup.
type Info struct {
	At       time.Time        `json:"at"`      // real time at which the backup began
	Version  int64            `json:"version"` // of its pointer: current at that time, or earlier if the store's was damaged; 0: none was readable
	Versions int              `json:"versions"`
	Ledger   snapshots.Ledger `json:"ledger"` // head of the ledger in the backup; zero: it has no ledger
	Objects  int              `json:"objects"`
	Copied   int              `json:"copied"` // of Objects, written by this run; the others were there before
	Bytes    int64            `json:"bytes"`  // written by this run
	Faults   []string         `json:"faults,omitzero"`
}

// Make copies everything that store holds to another place, except claims and probes. Others may publish
// meanwhile. now is real time.
//
// The copy is one state of the store. Make reads the pointer and the documents first, because everything that
// they refer to was written before them, and writes them last. A run that breaks off therefore leaves the
// earlier backup as it was, and a later run to the same place copies only new objects.
//
// A damaged or missing object is a fault in the Info. Make goes on with the other objects, and a good copy
// in the backup stays. If the current version lacks an object there, the backup keeps its earlier version.
func Make(ctx context.Context, store, to blob.Store, now time.Time, progress snapshots.Progress) (Info, error) {
	r := &run{from: store, to: to, progress: progress, info: Info{At: now.UTC()}, lacks: map[string]bool{}}
	if err := r.run(ctx); err != nil {
		return r.info, fmt.Errorf("back up %s to %s: %w", store, to, err)
	}
	return r.info, nil
}

// run is one run of Make.
type run struct {
	from, to blob.Store
	progress snapshots.Progress

	mu     sync.Mutex // guards the rest while objects are copied
	info   Info
	copied int             // objects that are done
	lacks  map[string]bool // keys of objects that the backup lacks or has with other bytes
}

func (r *run) run(ctx context.Context) error {
	if err := r.checkPlace(ctx); err != nil {
		return err
	}
	// Read all that can be replaced before listing the objects that it refers to.
	history, err := snapshots.LoadHistory(ctx, r.from)
	switch {
	case errors.Is(err, snapshots.ErrNone):
		history = &snapshots.History{}
	case err != nil:
		return err
	case history.Damage != nil:
		r.fault(history.Damage)
	}
	documents, err := r.documents(ctx)
	if err != nil {
		return err
	}
	if len(history.Versions) > 0 && history.Versions[0] == history.Pointer.Version {
		documents[snapshots.PointerKey], _ = json.Marshal(history.Pointer) // it was JSON
		r.info.Version = history.Pointer.Version
	}
	r.info.Versions = len(history.Versions)

	objects := objectsOf(history)
	// The listing may lack files of a log that are being written.
	records, unlisted, damage, err := listRecords(ctx, r.from)
	if err != nil {
		return err
	}
	for _, err := range damage {
		r.fault(err)
	}
	if note := snapshots.NoteKey(history.Pointer.Version); history.Pointer.Signed && !slices.Contains(records, note) {
		unlisted = append(unlisted, note) // nobody could restore the version without it
	}
	for _, key := range slices.Sorted(slices.Values(slices.Concat(records, unlisted))) {
		objects = append(objects, unknown(key))
	}
	r.info.Objects = len(objects) + len(documents)
	if err := r.copyAll(ctx, objects); err != nil {
		return err
	}
	if r.info.Ledger, err = ledgerHead(ctx, r.to); err != nil {
		return err
	}
	m := history.Manifests[r.info.Version] // zero: the store has no version
	if err := checkHead(ctx, r.to, m.Ledger); err != nil {
		r.fault(fmt.Errorf("version %d: %w", r.info.Version, err))
	}
	if err := r.keepWhole(ctx, m, documents); err != nil {
		return err
	}
	// If we crash before here, the earlier backup is complete and current.
	return r.writeDocuments(ctx, documents)
}

// keepWhole leaves the pointer of an earlier backup in place if this one lacks an object of the current version m, because
// nobody could restore such a version.
func (r *run) keepWhole(ctx context.Context, m snapshots.Manifest, documents map[string][]byte) error {
	current := r.info.Version
	lacks := r.lacks[snapshots.ManifestKey(current)] || r.lacks[snapshots.NoteKey(current)]
	for _, o := range m.Objects() {
		lacks = lacks || r.lacks[o.Key]
	}
	if !lacks {
		return nil
	}
	earlier, _, err := snapshots.LoadPointer(ctx, r.to)
	if errors.Is(err, snapshots.ErrNone) || errors.Is(err, snapshots.ErrDamaged) || earlier.Version == current {
		return nil // there is no better version
	}
	if err != nil {
		return err
	}
	delete(documents, snapshots.PointerKey)
	r.info.Version = earlier.Version
	r.fault(fmt.Errorf("version %d: %w: a restore will serve version %d of the earlier backup", current, snapshots.ErrDamaged, earlier.Version))
	return nil
}

// checkPlace accepts an earlier backup of the same store, and an empty place, which it marks. It refuses
// any other place, and the backup of a ledger for a store without one.
func (r *run) checkPlace(ctx context.Context) error {
	_, err := r.to.Get(ctx, infoKey, blob.MaxDocument)
	switch {
	case errors.Is(err, blob.ErrNotFound):
		return r.markEmpty(ctx)
	case err != nil:
		return err
	}
	theirs, err := r.to.Get(ctx, ledger.Key(1), maxCopied)
	if errors.Is(err, blob.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	ours, err := r.read(ctx, unknown(ledger.Key(1)), theirs.Data)
	switch {
	case errors.Is(err, blob.ErrNotFound):
		for _, err := range r.from.List(ctx, ledger.Prefix) {
			return err // a ledger without its first file is damaged, which the Info says
		}
		return fmt.Errorf("%w: the store has no ledger: mount its disk, or bring the store back with gridcast store restore", ErrOtherRecord)
	case err == nil && !bytes.Equal(ours, theirs.Data):
		return fmt.Errorf("%w: choose another place for the backup", ErrOtherRecord)
	}
	return err
}

// markEmpty claims an empty place for backups.
func (r *run) markEmpty(ctx context.Context) error {
	for info, err := range r.to.List(ctx, "") {
		if err != nil {
			return err
		}
		return fmt.Errorf("there is %s and no %s: a backup goes to an empty place or to an earlier backup", info.Key, infoKey)
	}
	_, err := blob.Claim(ctx, r.to, infoKey, []byte(`{"at":"0001-01-01T00:00:00Z"}`))
	return err
}

// documents reads every object that can be replaced, except the pointer.
func (r *run) documents(ctx context.Context) (map[string][]byte, error) {
	documents := map[string][]byte{}
	for info, err := range r.from.List(ctx, "") {
		if err != nil {
			return nil, err
		}
		if snapshots.Immutable(info.Key) || info.Key == snapshots.PointerKey || info.Key == infoKey || info.Key == snapshots.FreshKey ||
			strings.HasPrefix(info.Key, blob.ProbeFolder) || strings.HasPrefix(info.Key, snapshots.SandboxFolder) { // the sandbox makes its world again
			continue
		}
		o, err := r.from.Get(ctx, info.Key, maxCopied)
		if errors.Is(err, blob.ErrNotFound) {
			continue // removed meanwhile
		}
		if err != nil {
			return nil, err
		}
		documents[info.Key] = o.Data
	}
	return documents, nil
}

// writeDocuments writes the documents, the pointer after all others, and then the Info.
func (r *run) writeDocuments(ctx context.Context, documents map[string][]byte) error {
	pointer, published := documents[snapshots.PointerKey]
	delete(documents, snapshots.PointerKey)
	for _, key := range slices.Sorted(maps.Keys(documents)) {
		if err := r.write(ctx, key, documents[key]); err != nil {
			return err
		}
	}
	if published {
		if err := r.write(ctx, snapshots.PointerKey, pointer); err != nil {
			return err
		}
	}
	info, err := json.MarshalIndent(r.info, "", "  ")
	if err != nil {
		return err
	}
	_, err = blob.Put(ctx, r.to, infoKey, maxCopied, info)
	return err
}

// fault notes a fault. Hold mu while objects are copied.
func (r *run) fault(err error) { r.info.Faults = append(r.info.Faults, err.Error()) }

// objectsOf lists the objects and the manifests of all versions.
func objectsOf(history *snapshots.History) []snapshots.Object {
	var objects []snapshots.Object
	listed := map[string]bool{}
	for _, version := range history.Versions {
		m := history.Manifests[version]
		for _, o := range m.Objects() {
			if !listed[o.Key] {
				listed[o.Key] = true
				objects = append(objects, o)
			}
		}
		objects = append(objects, unknown(snapshots.ManifestKey(version)))
	}
	return objects
}

// unknown returns an object without a hash. Its size is a limit.
func unknown(key string) snapshots.Object {
	return snapshots.Object{Key: key, Size: maxCopied}
}

// placeInLog returns the folder of a numbered log, and the number in it of the file with a key. It is false for another key.
func placeInLog(key string) (folder string, seq int64, ok bool) {
	folder, _ = path.Split(key)
	seq, ok = chain.Chain{Prefix: folder}.Number(key)
	return folder, seq, ok
}

// listRecords lists the objects of the stores together that are written once and that no manifest names: ledger, audit log,
// archives and notes about versions. unlisted are the files of numbered logs that have a higher number listed. damage names
// each file with a number that no log reaches.
func listRecords(ctx context.Context, stores ...blob.Store) (keys, unlisted []string, damage []error, err error) {
	last := map[string]int64{}
	listed := map[string]bool{}
	for _, store := range stores {
		for info, err := range store.List(ctx, "") {
			if err != nil {
				return nil, nil, nil, err
			}
			if !snapshots.Immutable(info.Key) || snapshots.OfVersion(info.Key) && !snapshots.IsNote(info.Key) {
				continue
			}
			listed[info.Key] = true
			if folder, seq, ok := placeInLog(info.Key); ok {
				last[folder] = max(last[folder], seq)
			}
		}
	}
	for _, folder := range slices.Sorted(maps.Keys(last)) {
		end, files := last[folder], chain.Chain{Prefix: folder}
		if end > int64(len(listed))+snapshots.MaxGap {
			damage = append(damage, fmt.Errorf("%s: %w: no log is that long", files.Key(end), snapshots.ErrDamaged))
			continue
		}
		for seq := int64(1); seq < end; seq++ {
			if key := files.Key(seq); !listed[key] {
				unlisted = append(unlisted, key)
			}
		}
	}
	return slices.Sorted(maps.Keys(listed)), unlisted, damage, nil
}

// copyAll copies objects, several at once, but the files of a log one after another. So a run that breaks off leaves no
// gap in a log, with which nobody could restore the earlier backup.
func (r *run) copyAll(ctx context.Context, objects []snapshots.Object) error {
	var lists [][]snapshots.Object
	logs := map[string]int{} // by folder: the place of a log in lists
	for _, o := range objects {
		folder, _, ofLog := placeInLog(o.Key)
		if i, ok := logs[folder]; ok && ofLog {
			lists[i] = append(lists[i], o)
			continue
		}
		if ofLog {
			logs[folder] = len(lists)
		}
		lists = append(lists, []snapshots.Object{o})
	}
	r.progress.Report(Copy, 0, r.info.Objects)
	return snapshots.Each(ctx, Copy, lists, workers, nil, func(ctx context.Context, list []snapshots.Object) error {
		for _, o := range list {
			err := r.copy(ctx, o)
			if err != nil && !errors.Is(err, snapshots.ErrDamaged) && !errors.Is(err, blob.ErrNotFound) && !errors.Is(err, blob.ErrTooLarge) {
				return err
			}
			r.done(o, err)
		}
		return nil
	})
}

// done counts an object. The fault says why the backup lacks it; nil: it does not.
func (r *run) done(o snapshots.Object, fault error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if fault != nil {
		r.fault(fault)
		r.lacks[o.Key] = true
	}
	r.copied++
	r.progress.Report(Copy, r.copied, r.info.Objects)
}

// copy copies an object unless the backup has it. An object without a known hash is named for its content or
// is part of a chain, so that a later reader can check it.
func (r *run) copy(ctx context.Context, o snapshots.Object) error {
	if o.SHA256 != "" {
		if _, err := o.Read(ctx, r.to); err == nil {
			return nil
		}
		data, err := o.Read(ctx, r.from)
		if err != nil {
			return err
		}
		return r.write(ctx, o.Key, data)
	}
	theirs, _ := r.to.Get(ctx, o.Key, o.Size) // no data with an error
	ours, err := r.read(ctx, o, theirs.Data)
	if err != nil {
		return fmt.Errorf("read %s: %w", o.Key, err)
	}
	if theirs.Data != nil && !bytes.Equal(theirs.Data, ours) {
		return fmt.Errorf("%s: %w: the store and the backup hold different bytes, and it is written only once; the backup's stay", o.Key, snapshots.ErrDamaged)
	}
	return r.write(ctx, o.Key, ours)
}

// mostReads is the number of reads after which an object without a hash is damaged, because no two gave the same bytes.
const mostReads = 6

// read reads an object without a hash until it gives bytes that it gave before, or those of the backup. A copy stays for
// ever, and a log with a gap cannot be used, so one bad read must neither be copied nor leave the object out. Half of a log
// file never counts.
func (r *run) read(ctx context.Context, o snapshots.Object, theirs []byte) ([]byte, error) {
	_, _, ofLog := placeInLog(o.Key)
	seen := [][]byte{theirs}
	for range mostReads {
		object, err := r.from.Get(ctx, o.Key, o.Size)
		if err != nil {
			return nil, err
		}
		same := func(data []byte) bool { return data != nil && bytes.Equal(data, object.Data) }
		if slices.ContainsFunc(seen, same) {
			return object.Data, nil
		}
		if !ofLog || json.Valid(object.Data) {
			seen = append(seen, object.Data)
		}
	}
	return nil, fmt.Errorf("%w: no two of %d reads gave the same whole bytes", snapshots.ErrDamaged, mostReads)
}

func (r *run) write(ctx context.Context, key string, data []byte) error {
	wrote, err := blob.Put(ctx, r.to, key, maxCopied, data)
	if wrote {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.info.Copied++
		r.info.Bytes += int64(len(data))
	}
	return err
}

// ledger names the files of the ledger. Their content is the business of another package.
var ledger = chain.Chain{Prefix: "ledger/"}

// ledgerHead returns the last file of the ledger in a store; zero if there is none.
func ledgerHead(ctx context.Context, store blob.Store) (snapshots.Ledger, error) {
	var head snapshots.Ledger
	for info, err := range store.List(ctx, ledger.Prefix) {
		if err != nil {
			return snapshots.Ledger{}, err
		}
		if seq, ok := ledger.Number(info.Key); ok {
			head.Seq = max(head.Seq, seq)
		}
	}
	if head.Seq == 0 {
		return snapshots.Ledger{}, nil
	}
	o, err := store.Get(ctx, ledger.Key(head.Seq), maxCopied)
	if err != nil {
		return snapshots.Ledger{}, err
	}
	head.Hash = snapshots.Digest(o.Data)
	var file struct {
		Kind string `json:"kind"`
	}
	_ = json.Unmarshal(o.Data, &file) // a damaged file has no kind
	head.Kind = file.Kind
	return head, nil
}

// checkHead returns an error unless the ledger in a store has the noted file. A noted hash without a number
// may be the hash of any file.
func checkHead(ctx context.Context, store blob.Store, noted snapshots.Ledger) error {
	switch {
	case noted.Seq == 0 && noted.Hash == "":
		return nil
	case noted.Seq == 0:
		return findHash(ctx, store, noted.Hash)
	}
	o, err := store.Get(ctx, ledger.Key(noted.Seq), maxCopied)
	if err != nil {
		return fmt.Errorf("ledger file %d: %w", noted.Seq, err)
	}
	if got := snapshots.Digest(o.Data); noted.Hash != "" && got != noted.Hash {
		return fmt.Errorf("ledger file %d: %w: its hash is %s, %s was noted", noted.Seq, snapshots.ErrDamaged, got, noted.Hash)
	}
	return nil
}

// findHash returns an error unless a file of the ledger has the hash.
func findHash(ctx context.Context, store blob.Store, hash string) error {
	for info, err := range store.List(ctx, ledger.Prefix) {
		if err != nil {
			return err
		}
		o, err := store.Get(ctx, info.Key, maxCopied)
		if err != nil {
			return err
		}
		if snapshots.Digest(o.Data) == hash {
			return nil
		}
	}
	return fmt.Errorf("no ledger file has the hash %s that was noted: %w", hash, blob.ErrNotFound)
}
