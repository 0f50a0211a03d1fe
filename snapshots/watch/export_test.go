package watch

import (
	"testing"

	"github.com/fsnotify/fsnotify"
	"github.com/prometheus/client_golang/prometheus"
)

// Sources replaces the maker of notices for a test.
func Sources(t *testing.T, make func() (*fsnotify.Watcher, error)) {
	t.Helper()
	before := newSource
	newSource = make
	t.Cleanup(func() { newSource = before })
}

// Fail gives the watcher a fault as the file system does.
func (w *Watcher) Fail(err error) {
	faults := make(chan error, 1)
	faults <- err
	w.errors = faults
}

// Faults returns the counter of a kind of faults.
func Faults(kind string) prometheus.Counter { return faults.WithLabelValues(kind) }
