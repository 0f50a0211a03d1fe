package watch_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fsnotify/fsnotify"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"gridcast/deploy/must"
	"gridcast/snapshots/watch"
)

// never is an interval that no test waits for.
const never = time.Hour

func write(t *testing.T, path, text string) {
	t.Helper()
	must.Do(t, errors.Join(os.MkdirAll(filepath.Dir(path), 0o750), os.WriteFile(path, []byte(text), 0o600)))
}

func link(t *testing.T, target, path string) {
	t.Helper()
	must.Do(t, errors.Join(os.MkdirAll(filepath.Dir(path), 0o750), os.Symlink(target, path+".new"), os.Rename(path+".new", path)))
}

func rename(t *testing.T, from, to string) {
	t.Helper()
	must.Do(t, os.Rename(from, to))
}

// wakes waits until the watcher has woken its reader and the file has the text.
func wakes(t *testing.T, w *watch.Watcher, path, want string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for {
		if err := w.Wait(ctx, never); err != nil {
			t.Fatalf("no notice that %s holds %q: %v", path, want, err)
		}
		if text, err := os.ReadFile(path); err == nil && string(text) == want {
			return
		}
	}
}

// TestChanges replaces a file in the ways of editors, certbot and Kubernetes, twice each.
func TestChanges(t *testing.T) {
	for name, tt := range map[string]struct {
		begin  func(dir string)
		change func(dir, text string)
	}{
		"written in place": {nil, func(dir, text string) { write(t, filepath.Join(dir, "file"), text) }},
		"replaced": {nil, func(dir, text string) {
			write(t, filepath.Join(dir, "new"), text)
			rename(t, filepath.Join(dir, "new"), filepath.Join(dir, "file"))
		}},
		"removed and made": {nil, func(dir, text string) {
			must.Do(t, os.Remove(filepath.Join(dir, "file")))
			write(t, filepath.Join(dir, "file"), text)
		}},
		"Kubernetes' link to a folder": {
			func(dir string) {
				write(t, filepath.Join(dir, "..0", "file"), "begin")
				link(t, "..0", filepath.Join(dir, "..data"))
				link(t, "..data/file", filepath.Join(dir, "file"))
			},
			func(dir, text string) {
				write(t, filepath.Join(dir, ".."+text, "file"), text)
				link(t, ".."+text, filepath.Join(dir, "..data"))
			},
		},
		"certbot's link to a file": {
			func(dir string) {
				write(t, filepath.Join(dir, "archive", "0"), "begin")
				link(t, "archive/0", filepath.Join(dir, "file"))
			},
			func(dir, text string) {
				write(t, filepath.Join(dir, "archive", text), text)
				link(t, filepath.Join(dir, "archive", text), filepath.Join(dir, "file"))
			},
		},
		"the target of a link": {
			func(dir string) {
				write(t, filepath.Join(dir, "away", "target"), "begin")
				link(t, "away/target", filepath.Join(dir, "file"))
			},
			func(dir, text string) { write(t, filepath.Join(dir, "away", "target"), text) },
		},
		"a link within the path": {
			func(dir string) {
				write(t, filepath.Join(dir, "0", "file"), "begin")
				link(t, "0", filepath.Join(dir, "live"))
			},
			func(dir, text string) {
				write(t, filepath.Join(dir, text, "file"), text)
				link(t, text, filepath.Join(dir, "live"))
			},
		},
		"the folder": {
			func(dir string) { write(t, filepath.Join(dir, "live", "file"), "begin") },
			func(dir, text string) {
				write(t, filepath.Join(dir, text, "file"), text)
				rename(t, filepath.Join(dir, "live"), filepath.Join(dir, "old "+text))
				rename(t, filepath.Join(dir, text), filepath.Join(dir, "live"))
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "file")
			if tt.begin == nil {
				write(t, path, "begin")
			} else {
				tt.begin(dir)
			}
			if _, err := os.Stat(filepath.Join(dir, "live")); err == nil {
				path = filepath.Join(dir, "live", "file")
			}
			w := watch.New(nil, path)
			defer w.Close()
			for _, text := range []string{"first", "second"} {
				tt.change(dir, text)
				wakes(t, w, path, text)
			}
		})
	}
}

// TestMissingFolder makes the folder of a file after the watcher.
func TestMissingFolder(t *testing.T) {
	path := filepath.Join(t.TempDir(), "later", "file")
	w := watch.New(nil, path)
	defer w.Close()
	write(t, path, "here")
	wakes(t, w, path, "here")
	write(t, path, "again")
	wakes(t, w, path, "again")
}

// TestOtherFiles wake nobody.
func TestOtherFiles(t *testing.T) {
	dir := t.TempDir()
	w := watch.New(nil, filepath.Join(dir, "file"))
	defer w.Close()
	write(t, filepath.Join(dir, "other"), "text")
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	err := w.Wait(ctx, never)
	must.Hold(t, errors.Is(err, context.DeadlineExceeded), "got %v, want no notice", err)
}

// TestNoNotices: a watcher that cannot start, and one that loses notices, say so once and wake the reader.
func TestNoNotices(t *testing.T) {
	var log bytes.Buffer
	logger := slog.New(slog.NewTextHandler(&log, nil))
	count := func() float64 {
		n := 0.0
		for _, kind := range []string{"start", "lost"} {
			n += testutil.ToFloat64(watch.Faults(kind))
		}
		return n
	}
	before := count()
	path := filepath.Join(t.TempDir(), "file")
	write(t, path, "begin")
	lossy := watch.New(logger, path)
	defer lossy.Close()
	lossy.Fail(fsnotify.ErrEventOverflow)
	must.Succeed(t, "after a loss", lossy.Wait(t.Context(), never))
	watch.Sources(t, func() (*fsnotify.Watcher, error) { return nil, syscall.EMFILE })
	for range 3 {
		w := watch.New(logger, path)
		must.Succeed(t, "without notices", w.Wait(t.Context(), never))
		w.Close()
	}
	got := count() - before
	must.Hold(t, got == 2, "counted %v faults, want the loss and the failed start", got)
	text := log.String()
	must.Hold(t, strings.Count(text, "level=WARN") == 2, "want two warnings in\n%s", text)
	must.Show(t, "the log", text, filepath.Dir(path), syscall.EMFILE.Error(), fsnotify.ErrEventOverflow.Error())
}
