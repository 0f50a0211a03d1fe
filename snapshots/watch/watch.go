// Package watch wakes a reader when files may have changed. The file system's notices come from fsnotify. Where they
// fail, the watcher says so in the log and in a metric, and wakes the reader each second.
package watch

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/fsnotify/fsnotify"
	"github.com/prometheus/client_golang/prometheus"
)

// Poll is the interval of looks without notices.
const Poll = time.Second

// maxLinks is the number of symbolic links after which a path counts as a loop, as in Linux.
const maxLinks = 40

// Watcher waits for changes of files. It belongs to one goroutine.
//
// It watches folders and not files, because a watch on a file ends when another file takes its name. For a path with
// symbolic links it watches the folder of each link, too: Kubernetes and certbot replace links.
type Watcher struct {
	// Settle is how long no further notice may come before Wait returns: a pair of files changes one after the other.
	Settle time.Duration

	log    *slog.Logger
	paths  []string
	names  map[string]bool   // paths whose change concerns the reader: files, links and folders
	source *fsnotify.Watcher // nil: none could be made
	errors <-chan error
	deaf   bool // some folder is without notices
}

// New returns a watcher of the paths, which need not exist. It logs faults; nil: it only counts them. Read the files
// after New, not before. Call Close.
func New(log *slog.Logger, paths ...string) *Watcher {
	w := &Watcher{log: log}
	for _, path := range paths {
		if absolute, err := filepath.Abs(path); err == nil { // it fails without a working directory
			path = absolute
		}
		w.paths = append(w.paths, path)
	}
	source, err := newSource()
	w.note(faultStart, filepath.Dir(w.paths[0]), err)
	if err == nil {
		w.source, w.errors = source, source.Errors
	}
	w.arm()
	return w
}

// newSource is replaced by tests.
var newSource = fsnotify.NewWatcher

// Close ends the notices.
func (w *Watcher) Close() {
	if w.source != nil {
		_ = w.source.Close()
	}
}

// Wait returns nil when it is time to read the files again: after a notice, and at the latest after the interval,
// because some network file systems give no notices. It returns the cause if ctx ends.
func (w *Watcher) Wait(ctx context.Context, interval time.Duration) error {
	if w.deaf {
		interval = min(interval, Poll)
	}
	tick := time.NewTimer(interval)
	defer tick.Stop()
	defer w.arm() // before the caller reads
	var events <-chan fsnotify.Event
	if w.source != nil {
		events = w.source.Events
	}
	for {
		select {
		case event := <-events:
			switch {
			case !w.names[event.Name]:
			case w.Settle == 0:
				return nil
			default:
				tick.Reset(w.Settle)
			}
		case err := <-w.errors: // such as an overflow: notices are lost
			w.note(faultLost, filepath.Dir(w.paths[0]), err)
			w.note(faultLost, filepath.Dir(w.paths[0]), nil)
			return nil
		case <-tick.C:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// Refuse records that the files cannot be used as they are now; nil: they can. A fault is logged and counted once.
func (w *Watcher) Refuse(err error) { w.note(faultRefused, w.paths[0], err) }

// arm asks for notices about the paths as they lead now.
func (w *Watcher) arm() {
	w.names, w.deaf = map[string]bool{}, w.source == nil
	folders := make([]string, 0, len(w.paths))
	for _, path := range w.paths {
		folders = append(folders, w.trace(path)...)
	}
	if w.source == nil {
		return
	}
	for _, old := range w.source.WatchList() {
		if !slices.Contains(folders, old) {
			_ = w.source.Remove(old) // it may be gone
		}
	}
	for _, folder := range folders {
		err := w.source.Add(folder)
		w.deaf = w.deaf || err != nil
		if errors.Is(err, fs.ErrNotExist) { // looks find out when it is made
			err = nil
		}
		w.note(faultStart, folder, err)
	}
}

// trace follows a path through its links. It adds to names, and returns the folders of the links and of the file.
func (w *Watcher) trace(path string) (folders []string) {
	done, rest := "/", strings.Split(strings.TrimPrefix(filepath.Clean(path), "/"), "/")
	for links := 0; len(rest) > 0; {
		at := filepath.Join(done, rest[0])
		rest = rest[1:]
		target, err := os.Readlink(at)
		if err == nil && links < maxLinks {
			links++
			w.names[at], folders = true, append(folders, done)
			if !filepath.IsAbs(target) {
				target = filepath.Join(done, target)
			}
			done, rest = "/", append(strings.Split(strings.TrimPrefix(filepath.Clean(target), "/"), "/"), rest...)
			continue
		}
		if len(rest) == 0 {
			w.names[at], w.names[done] = true, true
			folders = append(folders, done)
		}
		done = at
	}
	return folders
}

// The kinds of faults.
const (
	faultStart = "start" // a folder cannot be watched
	faultLost  = "lost"  // notices were lost

	faultRefused = "refused" // changed files cannot be used
)

var faults = func() *prometheus.CounterVec {
	v := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "gridcast_watch_faults_total",
		Help: "Folders that cannot be watched and are read each second instead (start), losses of notices (lost), and changed files that cannot be used (refused).",
	}, []string{"kind"})
	for kind := range meaning {
		v.WithLabelValues(kind)
	}
	return v
}()

var meaning = map[string]string{
	faultStart: "a folder cannot be watched, its files are read each second instead: see sysctl fs.inotify",
	faultLost:  "notices of changed files were lost, the files are read again: see sysctl fs.inotify.max_queued_events",

	faultRefused: "a changed file cannot be used, its last good content stays in use",
}

// Collector returns the metric of all watchers of this process.
func Collector() prometheus.Collector { return faults }

var (
	mu     sync.Mutex
	faulty = map[string]bool{} // by kind and path: watchers come and go, and a fault is said once
)

// note records a fault of a folder or file, or its end.
func (w *Watcher) note(kind, path string, err error) {
	mu.Lock()
	defer mu.Unlock()
	before, key := faulty[kind+path], kind+path
	if err == nil {
		delete(faulty, key)
		return
	}
	faulty[key] = true
	if before {
		return
	}
	faults.WithLabelValues(kind).Inc()
	if w.log != nil {
		w.log.Warn(meaning[kind], "path", path, "err", err)
	}
}
