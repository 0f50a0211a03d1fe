package dirblob

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
)

// minGroup is the number of writers from which they wait for the disk together. Fewer writers sync their own files,
// because a sync of the file system also waits for the writes of other programs.
const minGroup = 8

// disk makes files durable. Writers that come while others wait form a group. One sync of the whole file system then
// serves the group, because it costs hardly more than the sync of one file.
type disk struct {
	syncOne func(*os.File) error // syncs a file or a folder
	syncAll func(*os.File) error // syncs the file system of a file, or returns errors.ErrUnsupported
	turn    sync.Mutex           // held by the leader of the group that waits for the disk
	mu      sync.Mutex           // guards next and its size
	next    *group               // nil: nobody waits for a turn
}

// group is some writers, the first of which leads it.
type group struct {
	size  int
	ended chan struct{} // closed when err is set
	err   error         // errors.ErrUnsupported: each writer syncs its own file
}

// sync waits until everything that was written to f before is on disk. f may be a folder.
func (d *disk) sync(f *os.File) error {
	d.mu.Lock()
	leads := d.next == nil
	if leads {
		d.next = &group{ended: make(chan struct{})}
	}
	g := d.next
	g.size++
	d.mu.Unlock()
	if leads {
		d.turn.Lock() // more writers join meanwhile
		defer d.turn.Unlock()
		d.mu.Lock()
		d.next = nil
		d.mu.Unlock()
		g.err = errors.ErrUnsupported
		if g.size >= minGroup {
			g.err = d.syncAll(f)
		}
		close(g.ended)
	}
	<-g.ended
	if errors.Is(g.err, errors.ErrUnsupported) {
		return d.syncOne(f)
	}
	return g.err
}

// reliable reports whether a release of Linux tells of a failed write when it syncs a file system: from 5.8 on.
func reliable(release string) bool {
	var major, minor int
	_, _ = fmt.Sscanf(release, "%d.%d", &major, &minor)
	return major > 5 || major == 5 && minor >= 8
}

// NewFile begins the name of a file that WriteFile has not put in its place yet. A killed process leaves it behind.
const NewFile = ".new-"

// WriteFile writes a file that is in no store, whole or not at all: it writes another file beside it. The data of that one
// reaches the disk before place gives it the name. With os.Rename as place the file is replaced, with os.Link an existing one is an
// error.
func WriteFile(path string, data []byte, mode fs.FileMode, place func(from, to string) error) error {
	f, err := os.CreateTemp(filepath.Dir(path), NewFile)
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(f.Name()) }() // after a rename there is nothing to remove
	_, err = f.Write(data)
	if err := errors.Join(err, f.Chmod(mode), f.Sync(), f.Close()); err != nil {
		return err
	}
	return place(f.Name(), path)
}
