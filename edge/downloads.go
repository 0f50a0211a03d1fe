package edge

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"gridcast/snapshots"
	"gridcast/snapshots/blob"
)

// downloads keeps the files of the seasons on disk and serves them from there, so that no file
// is in memory as a whole. A file lies under its hash, so that versions share it,
// and so that it is there when the store is not.
//
// Without Config.CacheDir downloads uses a temporary folder of the system, and removes it at the
// end. If it can write to neither, the edge answers downloads with 503 and serves the rest.
type downloads struct {
	store  blob.Store
	folder string // of the configuration; empty: a temporary one
	log    *slog.Logger
	wanted func() []snapshots.Bulk // of the version served
	wake   chan struct{}           // buffered, of size one
	slots  slots

	mu    sync.Mutex      // guards dir and ready
	dir   string          // empty: there is none (yet)
	ready map[string]bool // hashes of files that are known to be whole
}

var (
	errBusy    = errors.New("too many downloads at once")
	errNotHere = errors.New("not on disk")
)

func (d *downloads) look() {
	select {
	case d.wake <- struct{}{}:
	default: // run is about to fetch
	}
}

// run fetches the missing files of the served version, until ctx ends.
func (d *downloads) run(ctx context.Context) error {
	var logged string
	backoff := blob.Backoff{First: 5 * time.Second, Longest: time.Minute}
	for failures := 0; ; {
		var retry <-chan time.Time
		if err := d.sync(ctx); err != nil && ctx.Err() == nil {
			if logged != err.Error() {
				logged = err.Error()
				d.log.Warn("downloads are missing and will be fetched again", "err", err)
			}
			failures++
			retry = time.After(backoff.Jittered(failures))
		} else {
			logged, failures = "", 0
		}
		select {
		case <-d.wake:
		case <-retry:
		case <-ctx.Done():
			return d.close()
		}
	}
}

// close removes a temporary folder.
func (d *downloads) close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.dir == "" || d.folder != "" {
		return nil
	}
	if err := os.RemoveAll(d.dir); err != nil {
		d.log.Warn("a temporary folder stays", "err", err)
	}
	return nil
}

// place returns the folder, and makes it on first use.
func (d *downloads) place() (string, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.dir != "" {
		return d.dir, nil
	}
	if d.folder != "" {
		if err := os.MkdirAll(d.folder, 0o700); err != nil {
			return "", fmt.Errorf("folder of downloads: %w", err)
		}
		d.dir = d.folder
		return d.dir, nil
	}
	dir, err := os.MkdirTemp("", "gridcast-downloads-")
	if err != nil {
		return "", fmt.Errorf("folder of downloads, as there is no --cache-dir: %w", err)
	}
	d.dir = dir
	return dir, nil
}

// sync makes the folder hold the wanted files: the newest season first, one file in memory at a time.
// It removes files that are no longer wanted; a client that is reading one has it open.
func (d *downloads) sync(ctx context.Context) error {
	wanted := d.wanted()
	if len(wanted) == 0 {
		return nil
	}
	dir, err := d.place()
	if err != nil {
		return err
	}
	var faults []error
	keep := map[string]bool{}
	for _, b := range slices.Backward(wanted) {
		keep[fileOf(b)] = true
		if d.has(b) {
			continue
		}
		if err := d.fetch(ctx, dir, b); err != nil {
			faults = append(faults, fmt.Errorf("download of %d: %w", b.Year, err))
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	entries, err := os.ReadDir(dir)
	faults = append(faults, err)
	for _, e := range entries {
		if name := e.Name(); !keep[name] && strings.HasSuffix(name, ".zip") || strings.HasPrefix(name, "new-") {
			d.forget(name)
			faults = append(faults, os.Remove(filepath.Join(dir, name)))
		}
	}
	return errors.Join(faults...)
}

func fileOf(b snapshots.Bulk) string { return b.SHA256 + ".zip" }

func (d *downloads) has(b snapshots.Bulk) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.ready[fileOf(b)]
}

func (d *downloads) forget(name string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.ready, name)
}

// fetch keeps the existing file if it is whole, as after a restart, and otherwise reads it from the store.
func (d *downloads) fetch(ctx context.Context, dir string, b snapshots.Bulk) error {
	path := filepath.Join(dir, fileOf(b))
	if f, err := openWhole(path, b); err == nil {
		_ = f.Close() // it was only read
	} else {
		data, err := b.Fetch(ctx, d.store)
		if err != nil {
			return err
		}
		if err := replace(dir, path, data); err != nil {
			return err
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.ready == nil {
		d.ready = map[string]bool{}
	}
	d.ready[fileOf(b)] = true
	return nil
}

// replace makes the file under path hold data, whole or not at all.
func replace(dir, path string, data []byte) error {
	f, err := os.CreateTemp(dir, "new-")
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}

// openWhole opens a file, reads all of it and checks its hash, so that no byte of a damaged file
// is sent.
func openWhole(path string, b snapshots.Bulk) (*os.File, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	h := sha256.New()
	n, err := io.Copy(h, io.LimitReader(f, b.Size+1))
	if err == nil && (n != b.Size || hex.EncodeToString(h.Sum(nil)) != b.SHA256) {
		err = fmt.Errorf("%s: %w on disk", path, snapshots.ErrDamaged)
	}
	if err == nil {
		_, err = f.Seek(0, io.SeekStart)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// open returns a file to be sent to a client. The caller must close it. The error is errBusy or errNotHere.
func (d *downloads) open(b snapshots.Bulk, to recipient) (*openFile, error) {
	if !d.has(b) {
		return nil, errNotHere
	}
	sent := &openFile{size: int(b.Size), to: to, slots: &d.slots, began: time.Now()}
	if !d.slots.take(sent) {
		return nil, errBusy
	}
	dir, err := d.place()
	if err == nil {
		if sent.file, err = openWhole(filepath.Join(dir, fileOf(b)), b); err == nil {
			return sent, nil
		}
	}
	d.slots.release(sent)
	if errors.Is(err, snapshots.ErrDamaged) || errors.Is(err, fs.ErrNotExist) {
		d.log.Warn("a download is gone from the disk and will be fetched again", "year", b.Year, "err", err)
		d.forget(fileOf(b))
		d.look()
	} else {
		d.log.Warn("a download cannot be read", "year", b.Year, "err", err)
	}
	return nil, errNotHere
}
