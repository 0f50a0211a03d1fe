package dirblob

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"path/filepath"
	"slices"
	"strings"

	"gridcast/snapshots/blob"
)

// List implements blob.Store.
func (s *Store) List(ctx context.Context, prefix string) iter.Seq2[blob.Info, error] {
	return func(yield func(blob.Info, error) bool) {
		found, err := s.list(ctx, prefix)
		for _, info := range found {
			if !yield(info, nil) {
				return
			}
		}
		if err != nil {
			yield(blob.Info{}, fmt.Errorf("list %s: %w", prefix, err))
		}
	}
}

// list returns the objects in the order of their keys, which is not that of folders: "a-b" comes before "a/b".
func (s *Store) list(ctx context.Context, prefix string) (found []blob.Info, err error) {
	if err := blob.CheckPrefix(prefix); err != nil {
		return nil, err
	}
	root := s.root + string(filepath.Separator) // the root may be a link
	err = filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		key := filepath.ToSlash(strings.TrimPrefix(path, root))
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case errors.Is(err, fs.ErrNotExist) && key != "":
			return nil // removed while we walked
		case err != nil:
			return err
		case key == "": // the root
			return nil
		case entry.IsDir() && (strings.HasPrefix(entry.Name(), "@") || !strings.HasPrefix(key+"/", prefix) && !strings.HasPrefix(prefix, key+"/")):
			return fs.SkipDir
		case entry.IsDir(), strings.HasPrefix(entry.Name(), "@"), !strings.HasPrefix(key, prefix):
			return nil
		}
		info, err := entry.Info()
		if errors.Is(err, fs.ErrNotExist) {
			return nil // removed while we walked
		}
		if err == nil {
			found = append(found, blob.Info{Key: key, Size: info.Size(), Modified: info.ModTime()})
		}
		return err
	})
	if err == nil && len(found) == 0 {
		err = s.orGone(nil)
	}
	slices.SortFunc(found, func(a, b blob.Info) int { return strings.Compare(a.Key, b.Key) })
	return found, err
}
