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
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"gridcast/edge/resident"
	"gridcast/snapshots"
	"gridcast/snapshots/blob/dirblob"
	"gridcast/snapshots/retry"
)

// Downloads makes the files of seasons from the documents of a version. Edges make them, because they are a function
// of these documents: the store would grow twice as fast with them.
type Downloads interface {
	// Sources names the input of each file, by year. Equal inputs have equal names and give equal files.
	Sources(v *snapshots.Version) (map[int]string, error)
	// Make makes the file of a season.
	Make(v *snapshots.Version, year int) ([]byte, error)
}

// downloads keeps the files of the seasons on disk and serves them from there, so that no file
// is in memory as a whole. The name of a file has the hashes of its input and of its content, so that a later version
// and the next start need not make it again. The edge sends the earlier file of a season until the next one is made,
// some seconds after the latest version.
//
// Without Config.CacheDir downloads uses a temporary folder of the system, and removes it at the
// end. If it can write to neither, the edge answers downloads with 503 and serves the rest.
type downloads struct {
	maker  Downloads // nil: there are none
	folder string    // of the configuration; empty: a temporary one
	log    *slog.Logger
	served func() *resident.Set
	wake   chan struct{} // buffered, of size one
	quiet  time.Duration // without another version, before files are made
	slots  *slots        // of both worlds

	// The goroutine of run alone uses these: the served version, and the instant since which the edge serves it.
	set   *resident.Set
	since time.Time

	mu      sync.Mutex                 // guards the following
	dir     string                     // empty: there is none (yet)
	files   map[int]*resident.Download // by year: files that were whole when they were read last
	sources map[int]string             // by year: the inputs of the files of the served version
}

var (
	errBusy    = errors.New("too many downloads at once")
	errNotHere = errors.New("not on disk")
)

// quietBeforeDownloads is usually enough for the version with derived documents that follows a result: the files are
// then made once for both. Readers get the earlier file meanwhile, and without one a 503 with a longer Retry-After.
const quietBeforeDownloads = 3 * time.Second

func (d *downloads) look() {
	select {
	case d.wake <- struct{}{}:
	default: // run is about to look
	}
}

// run makes the missing files of the served version, until ctx ends.
func (d *downloads) run(ctx context.Context) error {
	var logged string
	backoff := retry.Rule{First: 5 * time.Second, Longest: time.Minute}
	for failures := 0; ; {
		var retry <-chan time.Time
		if err := d.sync(ctx); err != nil && ctx.Err() == nil {
			if logged != err.Error() {
				logged = err.Error()
				d.log.Warn("downloads are missing and will be made again", "err", err)
			}
			failures++
			retry = time.After(backoff.Pause(failures))
		} else {
			logged, failures = "", 0
		}
		select {
		case <-d.wake:
		case <-retry:
		case <-ctx.Done():
			d.close()
			return nil
		}
	}
}

// close removes a temporary folder.
func (d *downloads) close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.dir == "" || d.folder != "" {
		return
	}
	if err := os.RemoveAll(d.dir); err != nil {
		d.log.Warn("a temporary folder stays", "err", err)
	}
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
	var err error
	if d.dir, err = os.MkdirTemp("", "gridcast-downloads-"); err != nil {
		return "", fmt.Errorf("folder of downloads, as there is no --cache-dir: %w", err)
	}
	return d.dir, nil
}

// settled waits until the edge has served the same version for the quiet time. It returns false if another wake comes
// first, which it leaves for run.
func (d *downloads) settled(ctx context.Context) bool {
	wait := time.Until(d.since.Add(d.quiet))
	if wait <= 0 {
		return true
	}
	select {
	case <-time.After(wait):
		return true
	case <-d.wake:
		d.look()
	case <-ctx.Done():
	}
	return false
}

// sync makes the folder hold the files of the served version: existing ones at once, then in a quiet moment the others,
// the newest season first, one file in memory at a time. It removes files that are no longer wanted; a client that is
// reading one has it open. It stops when another version is served, which wakes run.
func (d *downloads) sync(ctx context.Context) error {
	set := d.served()
	if set == nil || d.maker == nil {
		return nil
	}
	if set != d.set {
		d.set, d.since = set, time.Now()
	}
	dir, err := d.place()
	if err != nil {
		return err
	}
	sources, err := d.maker.Sources(set.Version())
	if err != nil {
		return err
	}
	d.mu.Lock()
	d.sources = sources
	d.mu.Unlock()
	var missing []int
	for _, year := range slices.Backward(slices.Sorted(maps.Keys(sources))) {
		if file, ok := d.found(dir, year, sources[year]); ok {
			d.put(year, set.Download(file))
		} else {
			missing = append(missing, year)
		}
	}
	if len(missing) > 0 && !d.settled(ctx) {
		return ctx.Err()
	}
	var faults []error
	for _, year := range missing {
		file, err := d.makeFile(dir, set.Version(), year, sources[year])
		if err == nil {
			d.put(year, set.Download(file))
		} else {
			faults = append(faults, err)
		}
		if ctx.Err() != nil || d.served() != set {
			return ctx.Err()
		}
	}
	keep := map[string]bool{}
	for year := range sources {
		if file := d.of(year); file != nil {
			keep[nameOf(file.File)] = true
		}
	}
	d.mu.Lock()
	maps.DeleteFunc(d.files, func(year int, _ *resident.Download) bool { return sources[year] == "" })
	d.mu.Unlock()
	entries, err := os.ReadDir(dir)
	faults = append(faults, err)
	for _, e := range entries {
		if name := e.Name(); !keep[name] && strings.HasSuffix(name, ".zip") || strings.HasPrefix(name, dirblob.NewFile) {
			faults = append(faults, os.Remove(filepath.Join(dir, name)))
		}
	}
	return errors.Join(faults...)
}

func nameOf(f resident.File) string { return f.Source + "-" + f.SHA256 + ".zip" }

// of returns the download of a season, nil if the edge has none yet.
func (d *downloads) of(year int) *resident.Download {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.files[year]
}

// put sets the download of a season; nil: it is gone.
func (d *downloads) put(year int, download *resident.Download) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.files[year] = download; download == nil {
		delete(d.files, year)
	}
}

func (d *downloads) status() []DownloadStatus {
	d.mu.Lock()
	defer d.mu.Unlock()
	all := make([]DownloadStatus, 0, len(d.files))
	for _, year := range slices.Sorted(maps.Keys(d.files)) {
		f := d.files[year].File
		all = append(all, DownloadStatus{year, f.SHA256, f.Size, f.Source == d.sources[year]})
	}
	return all
}

// found returns the existing file of an input if that is whole, as after a restart.
func (d *downloads) found(dir string, year int, source string) (resident.File, bool) {
	if had := d.of(year); had != nil && had.File.Source == source {
		return had.File, true
	}
	entries, _ := os.ReadDir(dir) // sync reports a folder that cannot be read
	for _, e := range entries {
		of, sum, _ := strings.Cut(strings.TrimSuffix(e.Name(), ".zip"), "-")
		info, err := e.Info()
		if err != nil || of != source {
			continue
		}
		file := resident.File{Year: year, Source: source, SHA256: sum, Size: info.Size()}
		if f, err := openWhole(filepath.Join(dir, e.Name()), file); err == nil {
			_ = f.Close() // it was only read
			return file, true
		}
	}
	return resident.File{}, false
}

func (d *downloads) makeFile(dir string, v *snapshots.Version, year int, source string) (resident.File, error) {
	data, err := d.maker.Make(v, year)
	if err != nil {
		return resident.File{}, err
	}
	file := resident.File{Year: year, Source: source, SHA256: snapshots.Digest(data), Size: int64(len(data))}
	return file, dirblob.WriteFile(filepath.Join(dir, nameOf(file)), data, 0o600, os.Rename)
}

// openWhole opens a file, reads all of it and checks its hash, so that no byte of a damaged file
// is sent.
func openWhole(path string, file resident.File) (*os.File, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	h := sha256.New()
	n, err := io.Copy(h, io.LimitReader(f, file.Size+1))
	if err == nil && (n != file.Size || hex.EncodeToString(h.Sum(nil)) != file.SHA256) {
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
func (d *downloads) open(f resident.File, to recipient) (*openFile, error) {
	sent := &openFile{size: int(f.Size), to: to, slots: d.slots, began: time.Now()}
	if !d.slots.take(sent) {
		return nil, errBusy
	}
	dir, err := d.place()
	if err == nil {
		if sent.file, err = openWhole(filepath.Join(dir, nameOf(f)), f); err == nil {
			return sent, nil
		}
	}
	d.slots.release(sent)
	if errors.Is(err, snapshots.ErrDamaged) || errors.Is(err, fs.ErrNotExist) {
		d.log.Warn("a download is gone from the disk and will be made again", "year", f.Year, "err", err)
		d.put(f.Year, nil)
		d.look()
	} else {
		d.log.Warn("a download cannot be read", "year", f.Year, "err", err)
	}
	return nil, errNotHere
}
