package backup

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path"

	"gridcast/snapshots"
	"gridcast/snapshots/blob"
	"gridcast/snapshots/blob/chain"
)

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

// unknown returns an object without a hash, whose size is a limit.
func unknown(key string) snapshots.Object {
	return snapshots.Object{Key: key, Size: maxCopied}
}

// records lists the objects that are written once and that no manifest names: ledger, audit log, archives and
// notes about versions. The listing of a store may lack files of a numbered log that are being written. A
// file with a lower number than a listed one exists, so records adds it.
func (r *run) records(ctx context.Context) ([]snapshots.Object, error) {
	var objects []snapshots.Object
	last := map[string]int64{}
	listed := map[string]bool{}
	for info, err := range r.from.List(ctx, "") {
		if err != nil {
			return nil, err
		}
		if !snapshots.Immutable(info.Key) || snapshots.OfVersion(info.Key) && !snapshots.IsNote(info.Key) {
			continue
		}
		listed[info.Key] = true
		objects = append(objects, unknown(info.Key))
		folder, _ := path.Split(info.Key)
		if seq, ok := (chain.Chain{Prefix: folder}).Number(info.Key); ok {
			last[folder] = max(last[folder], seq)
		}
	}
	for folder, end := range last {
		files := chain.Chain{Prefix: folder}
		if end > int64(len(listed))+snapshots.MaxGap {
			r.fault(fmt.Errorf("%s: %w: no log is that long", files.Key(end), snapshots.ErrDamaged))
			continue
		}
		for seq := int64(1); seq < end; seq++ {
			if key := files.Key(seq); !listed[key] {
				objects = append(objects, unknown(key))
			}
		}
	}
	return objects, nil
}

// copyAll copies objects, several at once. rest is the number of objects that are written after them.
func (r *run) copyAll(ctx context.Context, objects []snapshots.Object, rest int) error {
	progress := func(phase string, done, total int) { r.progress.Report(phase, done, total+rest) }
	return snapshots.Each(ctx, Copy, objects, workers, progress, func(ctx context.Context, o snapshots.Object) error {
		err := r.copy(ctx, o)
		if errors.Is(err, snapshots.ErrDamaged) || errors.Is(err, blob.ErrNotFound) || errors.Is(err, blob.ErrTooLarge) {
			r.fault(err)
			return nil
		}
		return err
	})
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
	ours, err := r.from.Get(ctx, o.Key, o.Size)
	if err != nil {
		return fmt.Errorf("read %s: %w", o.Key, err)
	}
	if theirs, err := r.to.Get(ctx, o.Key, o.Size); err == nil && !bytes.Equal(theirs.Data, ours.Data) {
		return fmt.Errorf("%s: %w: the store and the backup hold different bytes, and it is written only once; the backup's stay", o.Key, snapshots.ErrDamaged)
	}
	return r.write(ctx, o.Key, ours.Data)
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
