package snapshots

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"gridcast/snapshots/blob"
)

// backupKey is the store key of the BackupInfo in a backup.
const backupKey = "backup.json"

// Copy is the phase of a backup or a restore in which objects are copied.
const Copy = "copy"

// maxCopied is the largest object that is copied without a manifest that states its size, in
// bytes: keys, archives, what sources sent.
const maxCopied = maxObject

// BackupInfo says what a backup holds.
type BackupInfo struct {
	At       time.Time `json:"at"`      // real time at which it was begun
	Version  int64     `json:"version"` // current then; 0: none was readable
	Versions int       `json:"versions"`
	Ledger   Ledger    `json:"ledger"` // head of the ledger in the backup; zero: there is none
	Objects  int       `json:"objects"`
	Copied   int       `json:"copied"` // of them, written by this run; the others were there
	Bytes    int64     `json:"bytes"`  // written by this run
	Faults   []string  `json:"faults,omitzero"`
}

// Backup copies everything that store holds to another: the published versions that are left,
// ledger, audit log, keys, archives, settings and whatever else, except claims and probes. It
// may run while others publish. What it copies is one state: the pointer and the documents are
// read first, and what they refer to was there before them; in the backup they are written
// last. So a backup that breaks off leaves the one before it as it was, and one that is run
// again into the same place copies only what is new. In the same way a backup is a store: an
// edge can serve from it.
//
// What is damaged or missing in store is a fault of the result and keeps nothing else from
// being copied; a good copy in the backup stays. now is real time.
func Backup(ctx context.Context, store, to blob.Store, now time.Time, progress Progress) (BackupInfo, error) {
	b := &backup{from: store, to: to, progress: progress, info: BackupInfo{At: now.UTC()}}
	if err := b.run(ctx); err != nil {
		return b.info, fmt.Errorf("back up %s to %s: %w", store, to, err)
	}
	return b.info, nil
}

type backup struct {
	from, to blob.Store
	progress Progress

	mu   sync.Mutex // guards info while objects are copied
	info BackupInfo
}

func (b *backup) run(ctx context.Context) error {
	if err := b.begin(ctx); err != nil {
		return err
	}
	h, err := loadHistory(ctx, b.from)
	switch {
	case errors.Is(err, ErrNone):
		h = &history{}
	case err != nil:
		return err
	case h.damage != nil:
		b.fault(h.damage)
	}
	// What can be replaced is read before what it refers to is listed.
	documents := map[string][]byte{}
	for info, err := range b.from.List(ctx, "") {
		if err != nil {
			return err
		}
		if Immutable(info.Key) || info.Key == PointerKey || info.Key == backupKey || strings.HasPrefix(info.Key, blob.ProbeFolder) {
			continue
		}
		o, err := b.from.Get(ctx, info.Key, maxCopied)
		if errors.Is(err, blob.ErrNotFound) {
			continue // removed meanwhile
		}
		if err != nil {
			return err
		}
		documents[info.Key] = o.Data
	}
	if h.pointer.Version > 0 && len(h.versions) > 0 && h.versions[0] == h.pointer.Version {
		if documents[PointerKey], err = json.Marshal(h.pointer); err != nil {
			return err
		}
		b.info.Version = h.pointer.Version
	}
	b.info.Versions = len(h.versions)

	var copies []copied
	seen := map[string]bool{}
	for _, version := range h.versions {
		m := h.manifests[version]
		for object := range m.all() {
			if !seen[object.key] {
				seen[object.key] = true
				copies = append(copies, copied{object, true})
			}
		}
		copies = append(copies, copied{storedObject{key: ManifestKey(version), size: maxManifest}, false})
	}
	records, err := b.records(ctx)
	if err != nil {
		return err
	}
	copies = append(copies, records...)
	b.info.Objects = len(copies) + len(documents)
	if err := b.copyAll(ctx, copies, len(documents)); err != nil {
		return err
	}
	if b.info.Ledger, err = ledgerHead(ctx, b.to); err != nil {
		return err
	}
	if m, ok := h.manifests[b.info.Version]; ok {
		if err := checkHead(ctx, b.to, m.Ledger); err != nil {
			b.fault(fmt.Errorf("version %d: %w", b.info.Version, err))
		}
	}
	// Until here, what was in the backup before is complete and current there.
	keys := slices.DeleteFunc(slices.Sorted(maps.Keys(documents)), func(key string) bool { return key == PointerKey })
	if _, ok := documents[PointerKey]; ok {
		keys = append(keys, PointerKey) // last of all
	}
	for _, key := range keys {
		if err := b.write(ctx, key, documents[key]); err != nil {
			return err
		}
	}
	info, err := json.MarshalIndent(b.info, "", "  ")
	if err != nil {
		return err
	}
	_, err = put(ctx, b.to, backupKey, info)
	return err
}

// begin refuses a place that holds something else than an earlier backup of the same store, and
// marks an empty one.
func (b *backup) begin(ctx context.Context) error {
	_, err := b.to.Get(ctx, backupKey, blob.MaxDocument)
	if !errors.Is(err, blob.ErrNotFound) {
		if err != nil {
			return err
		}
		theirs, err := b.to.Get(ctx, ledgerKey(1), maxCopied)
		if errors.Is(err, blob.ErrNotFound) {
			return nil
		}
		if err != nil {
			return err
		}
		ours, err := b.from.Get(ctx, ledgerKey(1), maxCopied)
		if err == nil && !bytes.Equal(ours.Data, theirs.Data) {
			return fmt.Errorf("%w: choose another place for the backup", ErrOtherRecord)
		}
		return nil
	}
	for info, err := range b.to.List(ctx, "") {
		if err != nil {
			return err
		}
		return fmt.Errorf("there is %s and no %s: a backup goes to an empty place or to where one is", info.Key, backupKey)
	}
	_, err = blob.Claim(ctx, b.to, backupKey, []byte(`{"at":"0001-01-01T00:00:00Z"}`))
	return err
}

// copied is an object to be copied. Its hash and size are known, or size is only a limit.
type copied struct {
	storedObject

	known bool
}

// records lists what is written once and belongs to no version: ledger, audit log, archives.
// A listing may miss files of a numbered log that are just being written; those below one that
// it has are there.
func (b *backup) records(ctx context.Context) ([]copied, error) {
	var found []copied
	last := map[string]int64{}
	seen := map[string]bool{}
	for info, err := range b.from.List(ctx, "") {
		if err != nil {
			return nil, err
		}
		if !Immutable(info.Key) || hasAnyPrefix(info.Key, claimFolder, manifestFolder, objectFolder, bulkFolder) {
			continue
		}
		seen[info.Key] = true
		found = append(found, copied{storedObject{key: info.Key, size: maxCopied}, false})
		if folder, seq, ok := numbered(info.Key); ok {
			last[folder] = max(last[folder], seq)
		}
	}
	for folder, end := range last {
		if end > int64(len(seen))+maxGap {
			b.fault(fmt.Errorf("%s%08d.json: %w: no such number was ever reached", folder, end, ErrDamaged))
			continue
		}
		for seq := int64(1); seq < end; seq++ {
			if key := fmt.Sprintf("%s%08d.json", folder, seq); !seen[key] {
				found = append(found, copied{storedObject{key: key, size: maxCopied}, false})
			}
		}
	}
	return found, nil
}

var numberedFile = regexp.MustCompile(`^(.*/)([0-9]{8})\.json$`)

// numbered splits the key of a file of a numbered log, such as ledger/00000012.json.
func numbered(key string) (folder string, seq int64, ok bool) {
	m := numberedFile.FindStringSubmatch(key)
	if m == nil {
		return "", 0, false
	}
	seq, err := strconv.ParseInt(m[2], 10, 64)
	return m[1], seq, err == nil
}

func hasAnyPrefix(key string, prefixes ...string) bool {
	return slices.ContainsFunc(prefixes, func(prefix string) bool { return strings.HasPrefix(key, prefix) })
}

// copyAll copies objects, several at once.
func (b *backup) copyAll(ctx context.Context, objects []copied, rest int) error {
	done := 0
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(defaultWorkers)
	for _, object := range objects {
		if groupCtx.Err() != nil {
			break
		}
		group.Go(func() error {
			err := b.copy(groupCtx, object)
			if errors.Is(err, ErrDamaged) || errors.Is(err, blob.ErrNotFound) || errors.Is(err, blob.ErrTooLarge) {
				b.fault(err)
				err = nil
			}
			b.mu.Lock()
			defer b.mu.Unlock()
			done++
			if err == nil {
				b.progress.Tell(Copy, done, len(objects)+rest)
			}
			return err
		})
	}
	return group.Wait()
}

// copy makes the backup hold an object, unless it does. An object whose hash is not known is
// named for its content or by its place in a chain, which says later whether it is right.
func (b *backup) copy(ctx context.Context, object copied) error {
	if object.known {
		if _, err := readChecked(ctx, b.to, object.storedObject); err == nil {
			return nil
		}
		data, err := readChecked(ctx, b.from, object.storedObject)
		if err != nil {
			return err
		}
		return b.write(ctx, object.key, data)
	}
	o, err := b.from.Get(ctx, object.key, object.size)
	if err != nil {
		return fmt.Errorf("read %s: %w", object.key, err)
	}
	if there, err := b.to.Get(ctx, object.key, object.size); err == nil && !bytes.Equal(there.Data, o.Data) {
		return fmt.Errorf("%s: %w: the store and the backup hold different bytes, and it is written only once; the backup's stay", object.key, ErrDamaged)
	}
	return b.write(ctx, object.key, o.Data)
}

func (b *backup) write(ctx context.Context, key string, data []byte) error {
	wrote, err := put(ctx, b.to, key, data)
	if wrote {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.info.Copied++
		b.info.Bytes += int64(len(data))
	}
	return err
}

func (b *backup) fault(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.info.Faults = append(b.info.Faults, err.Error())
}

// put makes key hold data, whatever it held before, and says whether it had to write.
func put(ctx context.Context, store blob.Store, key string, data []byte) (wrote bool, err error) {
	for {
		_, err := store.Create(ctx, key, data)
		if err == nil {
			return true, nil
		}
		if !errors.Is(err, blob.ErrConflict) && !errors.Is(err, blob.ErrUnknown) {
			return false, err
		}
		o, err := store.Get(ctx, key, maxCopied)
		switch {
		case errors.Is(err, blob.ErrNotFound):
			continue
		case err != nil:
			return false, err
		case bytes.Equal(o.Data, data):
			return false, nil
		}
		_, err = store.Swap(ctx, key, o.Tag, data)
		if err == nil {
			return true, nil
		}
		if !errors.Is(err, blob.ErrConflict) && !errors.Is(err, blob.ErrUnknown) || ctx.Err() != nil {
			return false, err
		}
	}
}

// ledgerFolder and ledgerKey are where the ledger lies; what its files say is its own business.
const ledgerFolder = "ledger/"

func ledgerKey(seq int64) string { return fmt.Sprintf("%s%08d.json", ledgerFolder, seq) }

// ledgerHead returns the last file of the ledger in a store; zero if there is none.
func ledgerHead(ctx context.Context, store blob.Store) (Ledger, error) {
	var head Ledger
	for info, err := range store.List(ctx, ledgerFolder) {
		if err != nil {
			return Ledger{}, err
		}
		if _, seq, ok := numbered(info.Key); ok {
			head.Seq = max(head.Seq, seq)
		}
	}
	if head.Seq == 0 {
		return Ledger{}, nil
	}
	o, err := store.Get(ctx, ledgerKey(head.Seq), maxCopied)
	if err != nil {
		return Ledger{}, err
	}
	head.Hash = Digest(o.Data)
	var file struct {
		Kind string `json:"kind"`
	}
	if json.Unmarshal(o.Data, &file) == nil {
		head.Kind = file.Kind
	}
	return head, nil
}

// checkHead says whether the ledger in a store has the file that somebody noted as its head.
func checkHead(ctx context.Context, store blob.Store, noted Ledger) error {
	if noted.Seq == 0 && noted.Hash != "" {
		for info, err := range store.List(ctx, ledgerFolder) {
			if err != nil {
				return err
			}
			o, err := store.Get(ctx, info.Key, maxCopied)
			if err != nil {
				return err
			}
			if Digest(o.Data) == noted.Hash {
				return nil
			}
		}
		return fmt.Errorf("no ledger file has the hash %s that was noted: %w", noted.Hash, blob.ErrNotFound)
	}
	if noted.Seq == 0 {
		return nil
	}
	o, err := store.Get(ctx, ledgerKey(noted.Seq), maxCopied)
	if err != nil {
		return fmt.Errorf("ledger file %d: %w", noted.Seq, err)
	}
	if got := Digest(o.Data); noted.Hash != "" && got != noted.Hash {
		return fmt.Errorf("ledger file %d: %w: its hash is %s, %s was noted", noted.Seq, ErrDamaged, got, noted.Hash)
	}
	return nil
}

var (
	// ErrNotLost says that the store lacks nothing that the backup has.
	ErrNotLost = errors.New("the store is not lost")
	// ErrOtherRecord says that the store holds another ledger or audit log than the backup.
	ErrOtherRecord = errors.New("the store holds another record than the backup")
)

// Restoring says what is to be restored.
type Restoring struct {
	Backup  blob.Store // made by Backup
	Builder string     // who restores: host and process, for people
	Above   int64      // the highest version that any edge has served, as edges report it; 0: not known

	// Since is a head of the ledger that somebody noted before the loss, such as the one in
	// the manifest that an edge serves. Its Kind does not matter, and a Seq of 0 stands for any:
	// a hash alone is looked for in every file. Zero: none.
	Since Ledger
}

// Restored says what a restore did, and what is lost for good.
type Restored struct {
	Receipt

	Backup BackupInfo `json:"backup"`
	Ledger Ledger     `json:"ledger"` // head of the ledger in the store now
	Kept   []string   `json:"kept"`   // documents that the store had itself, and that were left as they are

	// Older are documents that are now as they were when the backup was made: what was changed
	// since, such as a key that was revoked, is not in them.
	Older []string `json:"older"`

	Lost []string `json:"lost"` // sentences; empty: nothing that is known of
}

// Restore puts a backup into a store that is empty or has lost its current version, and
// publishes the backup's version under a number above all that there were: the backup's, every
// claim that is left in the store, and Above. Edges refuse a lower number than the one they
// serve, so with the right Above they all serve the restored version by themselves.
//
// What the store still has is not replaced unless it is damaged: a longer ledger, newer keys
// (an older list would give revoked keys back). If it serves a whole version, only what else it
// lacks is restored, such as files of its ledger, and nothing is published. Nothing is written
// if it lacks nothing (ErrNotLost), if its ledger or audit log is not the one that the backup is a part of
// (ErrOtherRecord), or if the backup is damaged. A restore that breaks off can be run again.
func (p *Publisher) Restore(ctx context.Context, r Restoring) (Restored, error) {
	start := time.Now()
	restored, err := p.restore(ctx, r)
	restored.Seconds = time.Since(start).Seconds()
	if err != nil {
		return restored, fmt.Errorf("restore %s from %s: %w", p.Store, r.Backup, err)
	}
	return restored, nil
}

func (p *Publisher) restore(ctx context.Context, r Restoring) (Restored, error) {
	result := Restored{Kept: []string{}, Older: []string{}, Lost: []string{}}
	o, err := r.Backup.Get(ctx, backupKey, blob.MaxDocument)
	if err != nil {
		return result, fmt.Errorf("it is no complete backup: %w", err)
	}
	if err := json.Unmarshal(o.Data, &result.Backup); err != nil {
		return result, fmt.Errorf("%s: %w: %w", backupKey, ErrDamaged, err)
	}
	pointer, _, err := LoadPointer(ctx, r.Backup)
	if err != nil {
		return result, err
	}
	m, _, err := loadManifest(ctx, pointer.Version, pointer.Manifest, stored{}, r.Backup)
	if err != nil {
		return result, err
	}
	if r.Above < 0 || r.Above > pointer.Version+maxGap {
		return result, fmt.Errorf("version %d cannot have been served: the backup is of version %d", r.Above, pointer.Version)
	}
	found, err := verify(ctx, r.Backup, m, workers(p.Workers), p.Progress)
	if err != nil {
		return result, err
	}
	if len(found.Faults) > 0 {
		return result, fmt.Errorf("version %d of the backup: %w", m.Version, errors.Join(found.Faults...))
	}

	// Is the store lost, and is it this one's store?
	lost, tag, err := LoadPointer(ctx, p.Store)
	whole := false // what the store serves: then only what else it lacks is restored
	switch {
	case err == nil:
		there, err := Verify(ctx, p.Store, 0, nil)
		whole = err == nil && len(there.Faults) == 0
		if err != nil && !errors.Is(err, ErrDamaged) && !errors.Is(err, blob.ErrNotFound) {
			return result, err
		}
	case !errors.Is(err, ErrNone) && !errors.Is(err, ErrDamaged):
		return result, err
	}
	var missing []string
	for info, err := range r.Backup.List(ctx, "") {
		if err != nil {
			return result, err
		}
		if info.Key == PointerKey || info.Key == backupKey || whole && hasAnyPrefix(info.Key, manifestFolder, objectFolder, bulkFolder) {
			continue
		}
		write, err := p.mayRestore(ctx, r.Backup, info.Key, &result)
		if err != nil {
			return result, err
		}
		if write {
			missing = append(missing, info.Key)
		}
		if write && !Immutable(info.Key) {
			result.Older = append(result.Older, info.Key)
		}
	}

	if whole && len(missing) == 0 {
		return result, fmt.Errorf("%w: version %d is whole, and what it shows can be rolled back", ErrNotLost, lost.Version)
	}

	// From here on the store is written to, in an order that leaves it lost until the end.
	if err := p.copyBack(ctx, r.Backup, missing); err != nil {
		return result, err
	}
	if result.Ledger, err = ledgerHead(ctx, p.Store); err != nil {
		return result, err
	}
	if result.Ledger.Seq < r.Since.Seq {
		result.Lost = append(result.Lost, fmt.Sprintf("ledger files %d to %d: picks frozen, results verified and rounds moved in them",
			result.Ledger.Seq+1, r.Since.Seq))
	} else if err := checkHead(ctx, p.Store, r.Since); err != nil {
		result.Lost = append(result.Lost, fmt.Sprintf("the record that was noted: %v", err))
	}
	if whole {
		result.Receipt = Receipt{Version: lost.Version, ObjectsWritten: len(missing), Unchanged: true}
		return result, nil
	}
	if r.Above > pointer.Version {
		result.Lost = append(result.Lost, fmt.Sprintf("versions %d to %d", pointer.Version+1, r.Above))
	}

	// If we crash before the swap, the next restore finds all of this done and claims anew.
	version, err := p.claim(ctx, max(pointer.Version, lost.Version, r.Above), r.Builder)
	if err != nil {
		return result, err
	}
	m.Base, m.BaseManifest, m.Version = m.Version, pointer.Manifest, version
	m.Builder, m.Reason = r.Builder, fmt.Sprintf("restored from the backup of %s", result.Backup.At.Format(time.RFC3339))
	next, _, err := p.putManifest(ctx, m)
	if err != nil {
		return result, err
	}
	next.Held, next.Reason = pointer.Held, pointer.Reason
	if _, err := p.swap(ctx, tag, lost.Version, next); err != nil {
		return result, err
	}
	result.Receipt = Receipt{Version: version, Variants: len(m.Entries), ObjectsWritten: len(missing)}
	return result, nil
}

// mayRestore says whether an object of the backup is to be written into the store.
func (p *Publisher) mayRestore(ctx context.Context, backup blob.Store, key string, result *Restored) (bool, error) {
	there, err := p.Store.Get(ctx, key, maxCopied)
	switch {
	case errors.Is(err, blob.ErrNotFound), errors.Is(err, blob.ErrTooLarge):
		return true, nil
	case err != nil:
		return false, err
	}
	o, err := backup.Get(ctx, key, maxCopied)
	switch {
	case err != nil:
		return false, err
	case bytes.Equal(there.Data, o.Data):
		return false, nil
	case hasAnyPrefix(key, manifestFolder, objectFolder):
		return true, nil // damaged there: these are written once, and the backup's are checked
	case strings.HasSuffix(key, Digest(o.Data)):
		return true, nil // damaged there: it is named for its content
	case Immutable(key):
		return false, fmt.Errorf("%w: %s differs; restore into an empty store if this one is worth nothing", ErrOtherRecord, key)
	case len(there.Data) == 0, json.Valid(o.Data) && !json.Valid(there.Data):
		return true, nil
	}
	result.Kept = append(result.Kept, key)
	return false, nil
}

// copyBack writes objects of the backup into the store.
func (p *Publisher) copyBack(ctx context.Context, backup blob.Store, keys []string) error {
	var mu sync.Mutex // guards done
	done := 0
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(workers(p.Workers))
	for _, key := range keys {
		if groupCtx.Err() != nil {
			break
		}
		group.Go(func() error {
			o, err := backup.Get(groupCtx, key, maxCopied)
			if err == nil {
				_, err = put(groupCtx, p.Store, key, o.Data)
			}
			if err != nil {
				return err
			}
			mu.Lock()
			defer mu.Unlock()
			done++
			p.Progress.Tell(Copy, done, len(keys))
			return nil
		})
	}
	return group.Wait()
}
