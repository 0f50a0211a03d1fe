package dirblob

import (
	"os"
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
func (s *Store) SetPatience(d time.Duration) { s.timeout = d }

// MinGroup is the number of writers that wait for the disk together.
const MinGroup = minGroup

// SetDisk replaces the sync of one file and that of the file system.
func (s *Store) SetDisk(one, all func(*os.File) error) { s.disk.syncOne, s.disk.syncAll = one, all }

// SyncFile waits for the disk as a write does.
func (s *Store) SyncFile(f *os.File) error { return s.disk.sync(f) }

// Waiting returns the number of writers that wait for their turn.
func (s *Store) Waiting() int {
	s.disk.mu.Lock()
	defer s.disk.mu.Unlock()
	if s.disk.next == nil {
		return 0
	}
	return s.disk.next.size
}
