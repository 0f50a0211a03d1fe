package dirblob

import (
	"os"
	"time"
)

// SetPatience sets the longest wait for the lock.
func (s *Store) SetPatience(d time.Duration) { s.timeout = d }

// Writing reports whether a writer of this process has the turn to take the lock.
func (s *Store) Writing() bool { return len(s.writing) > 0 }

// SyncAll syncs the file system of a file, if a release of Linux is reliable.
var SyncAll, Reliable = syncAll, reliable

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
