// Package f1db reads releases of F1DB (https://github.com/f1db/f1db, CC BY 4.0), the open data
// set of Formula One since 1950, into season values. Foreign names and types stop here.
//
// It reads a release's f1db-json-splitted.zip or the folder that it unpacks to. Keys and files
// that older releases lack count as unknown values. What the archive does not hold is
// reported, never dropped in silence.
package f1db

import (
	"errors"
	"fmt"

	"gridcast/builder/season"
	"gridcast/builder/source/media"
)

// Source is the attribution of everything imported.
const Source = "F1DB, CC BY 4.0"

// Options says what of a release to import.
type Options struct {
	From, To int         // seasons, inclusive; 0: from the first, to the last
	Media    media.Media // colours and portraits, which F1DB does not have
	MaxBytes int64       // most bytes to unpack and read; 0: DefaultMaxBytes

	// Progress is told the bytes that are read, while they are; may be nil.
	Progress func(phase string, done, total int)
}

// DefaultMaxBytes is several times what a release takes unpacked.
const DefaultMaxBytes = 512 << 20

// Import reads the release at path. The error names the file and the row at fault. Nothing is
// written anywhere.
func Import(path string, opts Options) (*season.Archive, Report, error) {
	if opts.MaxBytes == 0 {
		opts.MaxBytes = DefaultMaxBytes
	}
	archive, report, err := load(path, opts)
	if err != nil {
		return nil, Report{}, fmt.Errorf("import f1db from %s: %w", path, err)
	}
	return archive, report, nil
}

func load(path string, opts Options) (*season.Archive, Report, error) {
	files, err := open(path)
	if err != nil {
		return nil, Report{}, err
	}
	rel, err := read(files, opts)
	if err := errors.Join(err, files.Close()); err != nil {
		return nil, Report{}, err
	}
	return convert(rel, opts)
}
