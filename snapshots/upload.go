package snapshots

import (
	"context"
	"fmt"
	"sync"

	"golang.org/x/sync/errgroup"

	"gridcast/snapshots/blob"
)

// upload stores the new bytes of the variants under the claimed version, then reads all of
// them back and compares.
func (p *Publisher) upload(ctx context.Context, version int64, variants []Variant) error {
	var objects []newObject
	for _, v := range variants {
		if v.reused {
			continue
		}
		key := ObjectKey(version, v.Path())
		objects = append(objects, newObject{key, v.entry.SHA256, v.identity})
		for _, coding := range Codings {
			if data, ok := v.encodings[coding]; ok {
				objects = append(objects, newObject{EncodedKey(key, coding), v.entry.Encodings[coding].SHA256, data})
			}
		}
	}
	if err := p.each(ctx, Upload, objects, func(ctx context.Context, o newObject) error {
		return p.put(ctx, o.key, o.data)
	}); err != nil {
		return err
	}
	return p.each(ctx, Check, objects, func(ctx context.Context, o newObject) error {
		_, err := readChecked(ctx, p.Store, storedObject{o.key, o.sha256, int64(len(o.data))})
		return err
	})
}

// newObject is an object to be written.
type newObject struct {
	key    string
	sha256 string
	data   []byte
}

// each runs do for every object, several at once, and reports progress. It stops at the
// first error.
func (p *Publisher) each(ctx context.Context, stage Stage, objects []newObject, do func(context.Context, newObject) error) error {
	var mu sync.Mutex
	progress := Progress{Stage: stage, Total: len(objects)}
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(workers(p.Workers))
	for _, object := range objects {
		if groupCtx.Err() != nil {
			break
		}
		group.Go(func() error {
			if err := do(groupCtx, object); err != nil {
				return fmt.Errorf("%s: %w", stage, err)
			}
			mu.Lock()
			defer mu.Unlock()
			progress.Done++
			progress.Bytes += int64(len(object.data))
			if p.Progress != nil {
				p.Progress(progress)
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	return context.Cause(ctx)
}

// put creates an object whose key nobody else may write.
func (p *Publisher) put(ctx context.Context, key string, data []byte) error {
	switch mine, err := blob.Claim(ctx, p.Store, key, data); {
	case err != nil:
		return err
	case !mine:
		return fmt.Errorf("object %s: %w: another one is there already", key, ErrDamaged)
	}
	return nil
}

func workers(configured int) int {
	if configured > 0 {
		return configured
	}
	return defaultWorkers
}
