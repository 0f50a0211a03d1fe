package snapshots

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"gridcast/snapshots/blob"
)

// ErrNewKey means that none of a publisher's keys has signed the current version.
var ErrNewKey = errors.New("no key of --sign has signed it, so edges that trust its key would stand still; name that key with --sign FILE. " +
	"If a new key is meant: gridcast build --new-key --sign FILE. If a stranger has made it current: gridcast snapshots rollback VERSION --reason WHY")

// LoadBase is the base for the next draft of this publisher. Unlike the function LoadBase it heals. It replaces a
// pointer that is damaged. If documents are lost, it returns a base without them and with a Damage. The next Publish
// then writes them again under a new version.
//
// With Signers their notes decide, because anybody who writes the bucket can write a pointer. The base is a version
// that one of the keys has signed. The error wraps ErrNewKey if the current version has the signature of another key,
// or if none of the keys has signed any version. With Signers.New the base is then the current version without
// its documents, which may be anybody's.
//
// previous may be nil. It is an earlier base of this publisher, of which LoadBase reads nothing again.
func (p *Publisher) LoadBase(ctx context.Context, previous *Base) (*Base, error) {
	pointer, tag, lost := LoadPointer(ctx, p.Store)
	known, foreign, above := stored{}, false, false
	switch {
	case lost != nil && !errors.Is(lost, ErrNone) && !errors.Is(lost, ErrDamaged):
		return nil, lost
	case lost == nil && previous != nil && previous.Damage == nil && pointer.equal(previous.Pointer) && tag == previous.tag &&
		(p.Signers == nil || pointer.Version >= p.Signers.Highest()):
		return previous, nil
	case p.Signers == nil && errors.Is(lost, ErrNone):
		return &Base{store: p.Store}, nil
	case previous != nil:
		known = previous.stored
	}
	if p.Signers != nil {
		own, err := p.counted(ctx, pointer, lost)
		foreign = p.Signers.New && errors.Is(err, ErrNewKey)
		switch {
		case foreign:
		case err != nil:
			return nil, err
		case own.Version == 0:
			return &Base{store: p.Store}, nil
		case lost != nil:
			pointer = own
		case own.Version != pointer.Version || own.Manifest != pointer.Manifest:
			lost = fmt.Errorf("pointer %s: %w: it names version %d, and the keys of --sign have signed version %d last", PointerKey, ErrDamaged, pointer.Version, own.Version)
			above = pointer.Version > own.Version
			pointer = own
		}
	}
	if (p.Signers == nil || foreign) && pointer.Version > MaxGap {
		reached, err := p.reached(ctx)
		if err != nil {
			return nil, err
		}
		if reached < pointer.Version {
			lost = fmt.Errorf("pointer %s: %w: no builder has reached version %d, which it names", PointerKey, ErrDamaged, pointer.Version)
			pointer = Pointer{}
		}
	}
	base, err := p.salvage(ctx, pointer, tag, known)
	if err != nil {
		return nil, err
	}
	if lost != nil && !base.Empty() {
		if base.Pointer.Held = base.Manifest.RollbackOf != 0; base.Pointer.Held { // no build ends the hold of an operator
			base.Pointer.Reason = base.Manifest.Reason
		}
	}
	switch {
	case foreign:
		m := &base.Manifest
		base.Manifest = Manifest{Version: m.Version, About: About{BuiltAt: m.BuiltAt, CurrentSeason: m.CurrentSeason, Seasons: m.Seasons, Ledger: m.Ledger}}
	case above && !base.Pointer.Held: // edges without trusted keys have it, and refuse a lower one: Publish makes a higher one
		base.Damage = errors.Join(lost, base.Damage)
	case lost != nil && base.Damage == nil && !base.Empty():
		base.Pointer.At = p.now()
		if base.tag, err = p.swap(ctx, tag, base.Pointer.Version, base.Pointer); err != nil {
			return nil, fmt.Errorf("replace the damaged pointer: %w", err)
		}
		base.Repaired = append(base.Repaired, lost.Error())
	default:
		base.Damage = errors.Join(lost, base.Damage)
	}
	if p.Signers != nil && !foreign {
		p.Signers.Advance(base.Pointer.Version)
	}
	return base, nil
}

// reached returns the highest number of a manifest that builders can have reached; 0 if there is none.
func (p *Publisher) reached(ctx context.Context) (int64, error) {
	all, err := numbers(ctx, p.Store, manifestFolder)
	if len(all) == 0 {
		return 0, err
	}
	return last(all, all[0]), nil
}

// counted returns the pointer if a key of the publisher has signed its version, under a number that follows those the
// keys have signed before. Otherwise it returns a pointer to the highest version that they have signed, zero if the
// store is empty. It returns that with ErrNewKey if another key may be the right one. lost is the error of reading the
// pointer.
func (p *Publisher) counted(ctx context.Context, pointer Pointer, lost error) (Pointer, error) {
	highest := p.Signers.Highest()
	var note []byte
	var err error
	if lost == nil {
		if note, err = readNote(ctx, p.Store, NoteKey(pointer.Version)); err != nil {
			return Pointer{}, err
		}
		if _, err := OpenNote(p.Signers.Trust(), note, pointer, Ledger{}); err == nil && highest <= pointer.Version && pointer.Version-highest <= MaxGap {
			return pointer, nil
		}
	}
	own, err := p.highestSigned(ctx)
	above := pointer.Version - own.Version
	switch {
	case err != nil:
		return Pointer{}, err
	case own.Version == 0 && errors.Is(lost, ErrNone):
		return Pointer{}, nil
	case own.Version == 0, 0 < above && above <= MaxGap && p.Signers.Trust().Unknown(note):
		return own, fmt.Errorf("version %d is current: %w", pointer.Version, ErrNewKey)
	}
	return own, nil
}

// highestSigned returns a pointer to the highest version that a key of the publisher has signed; zero if there is none.
// A number more than MaxGap above the lower ones is the work of a thief, because no builder has reached it.
func (p *Publisher) highestSigned(ctx context.Context) (Pointer, error) {
	all, err := numbers(ctx, p.Store, noteFolder)
	for len(all) > 0 && err == nil {
		end, _ := slices.BinarySearch(all, last(all, all[0])+1)
		for _, version := range slices.Backward(all[:end]) {
			if own, err := p.signed(ctx, version); err != nil || own.Version > 0 {
				return own, err
			}
		}
		all = all[end:]
	}
	if err == nil { // the note may be damaged; another one names the version too
		var fresh Fresh
		if fresh, err = ReadFresh(ctx, p.Store, p.Signers.Trust()); err == nil && fresh.Pointer.Version <= MaxGap {
			fresh.Pointer.Signed = true
			return fresh.Pointer, nil
		} else if errors.Is(err, ErrUnsigned) {
			err = nil
		}
	}
	return Pointer{}, err
}

// mostReads is the number of reads after which a note without a signature of the publisher is another's, not a bad read.
const mostReads = 4

// signed returns a pointer to a version by its note; zero if no key of the publisher has signed the note. It reads such a
// note mostReads times, because a damaged read must not make an older version the highest.
func (p *Publisher) signed(ctx context.Context, version int64) (Pointer, error) {
	for range mostReads {
		data, err := readNote(ctx, p.Store, NoteKey(version))
		if err != nil {
			return Pointer{}, err
		}
		if own, _, err := ReadNote(p.Signers.Trust(), data); err == nil && own.Version == version {
			return own, nil
		}
	}
	return Pointer{}, nil // another key, or nobody, has signed it
}

// salvage returns the base that a pointer names, or for a zero pointer the highest version. If its manifest is lost,
// salvage returns the highest readable version below it with a Damage, without the entries whose part is lost. With
// Signers they must have signed it.
func (p *Publisher) salvage(ctx context.Context, pointer Pointer, tag blob.Tag, known stored) (*Base, error) {
	store := &Base{store: p.Store}
	if pointer.Version == 0 {
		reached, err := p.reached(ctx)
		if err != nil {
			return nil, err
		}
		pointer.Version = reached
	}
	base, lost := store.next(ctx, pointer, tag, known)
	if lost == nil || !beyondRepair(lost) {
		return base, lost
	}
	known.tolerant = true
	all, err := numbers(ctx, p.Store, manifestFolder)
	if err != nil {
		return nil, err
	}
	for _, version := range slices.Backward(all) {
		at := Pointer{Version: version, Held: pointer.Held, Reason: pointer.Reason}
		if version == pointer.Version {
			at = pointer
		}
		if p.Signers != nil && !p.Signers.New {
			own, err := p.signed(ctx, version)
			if err != nil {
				return nil, err
			}
			at.Manifest, at.Signed = own.Manifest, true
		}
		if version > pointer.Version || at.Signed && at.Manifest == "" {
			continue
		}
		base, err := store.next(ctx, at, tag, known)
		if err == nil {
			base.Damage = lost
		}
		if err == nil || !beyondRepair(err) {
			return base, err
		}
	}
	return &Base{Damage: lost, tag: tag, store: p.Store}, nil
}

// beyondRepair reports whether an error says that bytes are lost, not that the store does not answer.
func beyondRepair(err error) bool {
	return errors.Is(err, ErrDamaged) || errors.Is(err, blob.ErrNotFound)
}

// Heal reads the files of the base for whose key chosen is true, all if it is nil, and compares their hashes. It writes
// a damaged one again if its bytes are in memory or in a delta; Repaired names it. It returns b if nothing else is
// damaged, else a base without the other damaged files and with a Damage, so that the next Publish makes them anew.
func (b *Base) Heal(ctx context.Context, chosen func(key string) bool, progress Progress) (*Base, error) {
	var files []Object
	for key, data := range b.stored.files {
		files = append(files, Object{key, Digest(data), int64(len(data))})
	}
	if b.note != nil {
		files = append(files, Object{NoteKey(b.Pointer.Version), Digest(b.note), int64(len(b.note))})
	}
	files = slices.DeleteFunc(append(files, b.Manifest.Objects()[len(b.Manifest.Parts):]...), func(o Object) bool { return chosen != nil && !chosen(o.Key) })
	slices.SortFunc(files, func(x, y Object) int { return cmp.Compare(x.Key, y.Key) })
	var mu sync.Mutex // guards lost
	lost := map[string]error{}
	err := Each(ctx, Check, slices.Compact(files), defaultWorkers, progress, func(ctx context.Context, o Object) error {
		_, err := o.Read(ctx, b.store)
		if err == nil || !beyondRepair(err) {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		lost[o.Key] = err
		return nil
	})
	if err != nil || len(lost) == 0 {
		return b, err
	}
	healed := *b
	known := maps.Clone(b.stored.files)
	known[NoteKey(b.Pointer.Version)] = b.note
	for _, d := range b.Manifest.Deltas {
		data, _ := d.object().Read(ctx, b.store) // nil if it is damaged, too
		maps.Copy(known, decodeDelta(d.Version, data))
	}
	for _, o := range files {
		if lost[o.Key] == nil || Digest(known[o.Key]) != o.SHA256 {
			continue
		}
		if _, err := blob.Put(ctx, b.store, o.Key, maxObject, known[o.Key]); err != nil {
			return b, fmt.Errorf("write %s again: %w", o.Key, err)
		}
		healed.Repaired = append(healed.Repaired, lost[o.Key].Error())
		delete(lost, o.Key)
	}
	for _, key := range slices.Sorted(maps.Keys(lost)) {
		healed.Damage = errors.Join(healed.Damage, lost[key])
	}
	m := &healed.Manifest
	m.Entries = slices.DeleteFunc(slices.Clone(m.Entries), func(e ManifestEntry) bool { return lost[e.Object] != nil })
	m.Deltas = slices.DeleteFunc(slices.Clone(m.Deltas), func(d Delta) bool { return lost[d.object().Key] != nil })
	return &healed, nil
}
