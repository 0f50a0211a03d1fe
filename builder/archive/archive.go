// Package archive keeps a season.Archive in one compact file: a zstd stream of JSON lines, the
// first a header with drivers, teams, engines, circuits and lineages, then one line per season.
// A person can read it with zstd -dc.
//
// The same archive gives the same bytes, whose SHA-256 names it. Embedded holds the seasons
// that gridcast comes with: facts of F1DB, CC BY 4.0, as the file ATTRIBUTION says.
package archive

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/zstd"

	"gridcast/builder/season"
)

// Format and version of the file. A reader refuses every other version.
const (
	format  = "gridcast-archive"
	version = 1
)

// magic is how a zstd stream begins.
const magic = "\x28\xb5\x2f\xfd"

// window is how far back the stream refers: what a reader must hold of it.
const window = 8 << 20

// maxBytes is the most that is unpacked of a file, many times what all seasons take.
const maxBytes = 256 << 20

// Errors of Decode that callers can tell apart.
var (
	ErrNotArchive = errors.New("not a gridcast archive")
	ErrVersion    = errors.New("archive of another version")
	ErrDamaged    = errors.New("archive is damaged or cut off")
)

// Encode writes the archive. Times of laps and races are kept to the millisecond, which is as
// exact as any source; a finer one is an error.
func Encode(w io.Writer, a *season.Archive) error {
	if err := encode(w, a.Facts()); err != nil {
		return fmt.Errorf("encode archive: %w", err)
	}
	return nil
}

func encode(w io.Writer, facts season.Facts) error {
	// One goroutine and a fixed level: the bytes depend on nothing else.
	z, err := zstd.NewWriter(w, zstd.WithEncoderLevel(zstd.SpeedBestCompression),
		zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(window), zstd.WithEncoderCRC(true))
	if err != nil {
		return err
	}
	lines := json.NewEncoder(z)
	lines.SetEscapeHTML(false)
	if err := lines.Encode(newHeader(facts)); err != nil {
		return err
	}
	for i := range facts.Seasons {
		line, err := newSeasonLine(&facts.Seasons[i])
		if err != nil {
			return fmt.Errorf("season %d: %w", facts.Seasons[i].Year, err)
		}
		if err := lines.Encode(line); err != nil {
			return fmt.Errorf("season %d: %w", facts.Seasons[i].Year, err)
		}
	}
	return z.Close()
}

// Decode reads an archive to its end. The error wraps ErrNotArchive, ErrVersion or ErrDamaged,
// or says which facts do not hold together.
func Decode(r io.Reader) (*season.Archive, error) {
	a, err := decode(r)
	if err != nil {
		return nil, fmt.Errorf("decode archive: %w", err)
	}
	return a, nil
}

func decode(r io.Reader) (*season.Archive, error) {
	packed := bufio.NewReader(r)
	if start, _ := packed.Peek(len(magic)); string(start) != magic {
		return nil, fmt.Errorf("%w: no zstd stream", ErrNotArchive)
	}
	z, err := zstd.NewReader(packed, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(window))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	defer z.Close()
	lines := bufio.NewReaderSize(io.LimitReader(z, maxBytes), 1<<16)
	first, err := readLine(lines)
	if err != nil {
		return nil, fmt.Errorf("%w: header: %w", ErrDamaged, err)
	}
	head, err := readHeader(first)
	if err != nil {
		return nil, err
	}
	facts := head.facts()
	for i := range head.Seasons {
		raw, err := readLine(lines)
		if err != nil {
			return nil, fmt.Errorf("%w: season %d of %d: %w", ErrDamaged, i+1, head.Seasons, err)
		}
		var line seasonLine
		if err := json.Unmarshal(raw, &line); err != nil {
			return nil, fmt.Errorf("%w: season %d of %d: %w", ErrDamaged, i+1, head.Seasons, err)
		}
		s, err := line.season()
		if err != nil {
			return nil, fmt.Errorf("%w: season %d: %w", ErrDamaged, line.Year, err)
		}
		facts.Seasons = append(facts.Seasons, s)
	}
	// Reading to the end checks the sum of the stream too.
	switch _, err := lines.ReadByte(); {
	case err == nil:
		return nil, fmt.Errorf("%w: more after the last season", ErrDamaged)
	case !errors.Is(err, io.EOF):
		return nil, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	return season.New(facts)
}

// readLine returns the next line; without its end it is cut off.
func readLine(r *bufio.Reader) ([]byte, error) {
	line, err := r.ReadBytes('\n')
	if errors.Is(err, io.EOF) {
		return nil, io.ErrUnexpectedEOF
	}
	return line, err
}
