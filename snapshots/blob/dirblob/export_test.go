package dirblob

import "gridcast/snapshots/blob"

var ErrUnchanged = errUnchanged

// Watched makes the looks of a Watch one by one.
type Watched struct{ watched }

// NewWatched returns what a Watch of the file begins with.
func NewWatched(path string) *Watched { return &Watched{watched{path: path, limit: blob.MaxDocument}} }

// Look reads the file if it is another one.
func (w *Watched) Look() (blob.Object, error) { return w.read() }

// Close is what the end of a Watch does.
func (w *Watched) Close() { w.close() }
