package dirblob

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"gridcast/snapshots/blob"
)

// List implements blob.Store.
func (s *Store) List(ctx context.Context, prefix string) iter.Seq2[blob.Info, error] {
	return func(yield func(blob.Info, error) bool) {
		err := blob.CheckPrefix(prefix)
		if err == nil {
			w := walk{ctx: ctx, root: s.root, prefix: prefix, yield: yield}
			err = w.folder("")
		}
		if err != nil && !errors.Is(err, fs.SkipAll) {
			yield(blob.Info{}, fmt.Errorf("list %s: %w", prefix, err))
		}
	}
}

// walk yields objects in key order.
type walk struct {
	ctx    context.Context
	root   string
	prefix string
	yield  func(blob.Info, error) bool
}

// folder yields the objects whose key begins with base, which is empty or ends in a slash.
// It returns fs.SkipAll when the caller stops.
func (w *walk) folder(base string) error {
	if err := context.Cause(w.ctx); err != nil {
		return err
	}
	children, err := os.ReadDir(filepath.Join(w.root, filepath.FromSlash(base)))
	if errors.Is(err, fs.ErrNotExist) && base != "" {
		return nil // removed while we walked
	}
	if err != nil {
		return err
	}
	// Keys sort by bytes of the whole key: the folder "a" sorts as "a/", after "a-b".
	slices.SortFunc(children, func(a, b fs.DirEntry) int { return strings.Compare(sortName(a), sortName(b)) })
	for _, child := range children {
		if err := w.child(base, child); err != nil {
			return err
		}
	}
	return nil
}

func (w *walk) child(base string, child fs.DirEntry) error {
	key := base + sortName(child)
	switch {
	case strings.HasPrefix(child.Name(), "@"):
		return nil
	case child.IsDir():
		if strings.HasPrefix(key, w.prefix) || strings.HasPrefix(w.prefix, key) {
			return w.folder(key)
		}
		return nil
	case !strings.HasPrefix(key, w.prefix):
		return nil
	}
	info, err := child.Info()
	if errors.Is(err, fs.ErrNotExist) {
		return nil // removed while we walked
	}
	if err != nil {
		return err
	}
	if !w.yield(blob.Info{Key: key, Size: info.Size(), Modified: info.ModTime()}, nil) {
		return fs.SkipAll
	}
	return nil
}

func sortName(entry fs.DirEntry) string {
	if entry.IsDir() {
		return entry.Name() + "/"
	}
	return entry.Name()
}
