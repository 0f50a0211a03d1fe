package blob

import (
	"context"
	"errors"
	"iter"
	"strings"
	"time"
)

// placed is a view of a store. See Placed.
type placed struct {
	inner Store
	place func(key string) string
}

var (
	_ Clock   = (*placed)(nil)
	_ Grouper = (*placed)(nil)
	_ Syncer  = (*placed)(nil)
)

// Under returns the objects of a store below a folder, such as "sandbox/". Their keys in the view lack it.
func Under(s Store, folder string) Store {
	return Placed(s, func(string) string { return folder })
}

// Placed returns a view of a store. The object of a key in the view lies below the folder that place names for the key. A
// folder ends with a slash, or is empty. All keys that begin with the prefix of a listing must have one folder, that of the
// prefix.
func Placed(s Store, place func(key string) string) Store { return &placed{s, place} }

func (p *placed) key(key string) string { return p.place(key) + key }

func (p *placed) Get(ctx context.Context, key string, limit int64) (Object, error) {
	return p.inner.Get(ctx, p.key(key), limit)
}

func (p *placed) Create(ctx context.Context, key string, data []byte) (Tag, error) {
	return p.inner.Create(ctx, p.key(key), data)
}

func (p *placed) Swap(ctx context.Context, key string, old Tag, data []byte) (Tag, error) {
	return p.inner.Swap(ctx, p.key(key), old, data)
}

func (p *placed) List(ctx context.Context, prefix string) iter.Seq2[Info, error] {
	folder := p.place(prefix)
	return func(yield func(Info, error) bool) {
		for info, err := range p.inner.List(ctx, folder+prefix) {
			info.Key = strings.TrimPrefix(info.Key, folder)
			if !yield(info, err) {
				return
			}
		}
	}
}

func (p *placed) Delete(ctx context.Context, key string) error {
	return p.inner.Delete(ctx, p.key(key))
}

func (p *placed) Watch(ctx context.Context, key string, seen Tag, limit int64) (Object, error) {
	return p.inner.Watch(ctx, p.key(key), seen, limit)
}

func (p *placed) String() string { return p.inner.String() + ", below " + p.place("") }

// StoreTime implements Clock if the inner store does.
func (p *placed) StoreTime(ctx context.Context) (time.Time, time.Duration, error) {
	if clock, ok := p.inner.(Clock); ok {
		return clock.StoreTime(ctx)
	}
	return time.Time{}, 0, errors.ErrUnsupported
}

// Writers implements Grouper. It returns 0 if the inner store does not.
func (p *placed) Writers() int {
	if group, ok := p.inner.(Grouper); ok {
		return group.Writers()
	}
	return 0
}

// Sync implements Syncer if the inner store does.
func (p *placed) Sync(ctx context.Context, key string) error {
	return confirm(ctx, p.inner, p.key(key))
}
