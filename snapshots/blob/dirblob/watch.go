package dirblob

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/fsnotify/fsnotify"

	"gridcast/snapshots/blob"
)

// Watch implements blob.Store. It is woken by the file system and looks each second besides,
// since notifications are missing on some file systems and can overflow on all. The bytes are
// read at the first look and when the file is another one, so that waiting costs the same
// whatever the size of the object.
func (s *Store) Watch(ctx context.Context, key string, seen blob.Tag) (blob.Object, error) {
	path, err := s.path(ctx, key)
	if err != nil {
		return blob.Object{}, fmt.Errorf("watch: %w", err)
	}
	notices := watchFolder(filepath.Dir(path))
	defer notices.close()
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	file := watched{path: path}
	defer file.close()
	for {
		o, err := file.read()
		switch {
		case errors.Is(err, errUnchanged):
		case err == nil && o.Tag != seen:
			return o, nil
		case errors.Is(err, blob.ErrNotFound) && seen == "":
		case err != nil:
			return blob.Object{}, fmt.Errorf("watch %s: %w", key, err)
		}
		if err := notices.wait(ctx, path, tick.C); err != nil {
			return blob.Object{}, fmt.Errorf("watch %s: %w", key, err)
		}
	}
}

// notices are the file system's reports about one folder. The folder is watched and not the
// file, because a watch on a file dies when the file is replaced.
type notices struct {
	watcher *fsnotify.Watcher // nil where the file system or the system's limits refuse
	events  <-chan fsnotify.Event
	errors  <-chan error
}

func watchFolder(folder string) *notices {
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		return &notices{}
	}
	if err := watcher.Add(folder); err != nil { // for one, the folder is not there yet
		_ = watcher.Close()
		return &notices{}
	}
	return &notices{watcher: watcher, events: watcher.Events, errors: watcher.Errors}
}

// wait returns nil when it is time to look at path again.
func (n *notices) wait(ctx context.Context, path string, tick <-chan time.Time) error {
	for {
		select {
		case event := <-n.events:
			if event.Name == path {
				return nil
			}
		case <-n.errors: //nolint:errcheck // such as an overflow: events are lost, so look
			return nil
		case <-tick:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func (n *notices) close() {
	if n.watcher != nil {
		_ = n.watcher.Close()
	}
}
