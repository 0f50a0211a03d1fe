package dirblob

import (
	"time"

	"gridcast/snapshots/blob"
)

var ErrUnchanged = errUnchanged

// Watched makes the polls of a Watch one by one.
type Watched struct{ watched }

// NewWatched returns the initial state of a Watch of the file.
func NewWatched(path string) *Watched { return &Watched{watched{path: path, limit: blob.MaxDocument}} }

// Look reads the file if it is another one.
func (w *Watched) Look() (blob.Object, error) { return w.read() }

// Close does the work at the end of a Watch.
func (w *Watched) Close() { w.close() }

// SetPatience sets the longest wait for the lock.
func (s *Store) SetPatience(d time.Duration) { s.patience = d }
