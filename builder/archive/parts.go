package archive

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	stdjson "encoding/json"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strconv"

	"github.com/go-json-experiment/json"
	"github.com/klauspost/compress/zstd"
	"golang.org/x/sync/errgroup"

	"gridcast/builder/season"
)

// Stored is an archive and its form in a store. It is immutable; the zero Stored is no archive.
type Stored struct {
	Archive *season.Archive
	SHA256  string // the digest, lower-case hex

	list   []byte // of the parts, as JSON
	parts  []part
	frames map[string][]byte // the zstd frame of each part, by its hash
}

// part is an element of the list.
type part struct {
	Name   string `json:"name"`   // header, 1950s or 2026
	SHA256 string `json:"sha256"` // of the lines, lower-case hex
	Size   int64  `json:"size"`   // of the lines, in bytes
}

// list is the file of a store that the digest names.
type list struct {
	Format  string `json:"format"`
	Version int    `json:"version"`
	Parts   []part `json:"parts"`
}

// File returns the archive as a file.
func (s Stored) File() []byte {
	var file []byte
	for _, p := range s.parts {
		file = append(file, s.frames[p.SHA256]...)
	}
	return file
}

// Bytes returns the size of the archive as a file.
func (s Stored) Bytes() int64 {
	size := 0
	for _, p := range s.parts {
		size += len(s.frames[p.SHA256])
	}
	return int64(size)
}

// Pack returns the archive in parts. It takes the frames of equal parts from base, which may be zero, because
// compressing a season takes longer than everything else. It keeps times of laps and races to the millisecond, as
// exactly as any source. A finer time is an error.
func Pack(a *season.Archive, base Stored) (Stored, error) {
	facts := a.Facts()
	s := Stored{Archive: a, frames: map[string][]byte{}}
	head := header{Format: format, Version: version, Seasons: len(facts.Seasons), Facts: facts}
	lines, err := json.Marshal(&head, spelling)
	if err != nil {
		return Stored{}, fmt.Errorf("pack archive: %w", err)
	}
	name := "header"
	end := func() error {
		p := part{name, digest(lines), int64(len(lines))}
		frame, ok := base.frames[p.SHA256]
		if !ok {
			if frame, err = compress(lines); err != nil {
				return fmt.Errorf("pack archive: %s: %w", name, err)
			}
		}
		s.parts, s.frames[p.SHA256], lines = append(s.parts, p), frame, nil
		return nil
	}
	lines = append(lines, '\n')
	for i := range facts.Seasons {
		year := &facts.Seasons[i]
		if next := partOf(year.Year, facts.Seasons[len(facts.Seasons)-1].Year); next != name {
			if err := end(); err != nil {
				return Stored{}, err
			}
			name = next
		}
		line, err := json.Marshal(year, spelling)
		if err != nil {
			return Stored{}, fmt.Errorf("pack archive: season %d: %w", year.Year, err)
		}
		lines = append(append(lines, line...), '\n')
	}
	if err := end(); err != nil {
		return Stored{}, err
	}
	return s, s.name()
}

// partOf returns the name of the part for a season, given the last season.
func partOf(year, last int) string {
	if year/10 < last/10 {
		return strconv.Itoa(year/10) + "0s"
	}
	return strconv.Itoa(year)
}

// name sets the list and the digest.
func (s *Stored) name() (err error) {
	s.list, err = stdjson.Marshal(list{format, version, s.parts})
	s.SHA256 = digest(s.list)
	return err
}

// Read reads an archive file to its end. The error wraps ErrNotArchive, ErrVersion or ErrDamaged, or names the
// facts that contradict each other.
func Read(file []byte) (Stored, error) {
	if bytes.Equal(file, embedded) {
		return Embedded()
	}
	s, err := read(file)
	if err != nil {
		return Stored{}, fmt.Errorf("decode archive: %w", err)
	}
	return s, nil
}

func read(file []byte) (Stored, error) {
	if len(file) > MaxFile {
		return Stored{}, fmt.Errorf("%w: more than %d bytes", ErrDamaged, int64(MaxFile))
	}
	s := Stored{frames: map[string][]byte{}}
	var contents []content
	for rest := file; len(rest) > 0 || s.parts == nil; {
		size, err := frameSize(rest)
		if err != nil {
			return Stored{}, err
		}
		plain, err := decompress(rest[:size])
		if err != nil {
			return Stored{}, err
		}
		p := part{SHA256: digest(plain), Size: int64(len(plain))}
		s.parts, s.frames[p.SHA256] = append(s.parts, p), rest[:size:size]
		contents, rest = append(contents, content{lines: plain}), rest[size:]
	}
	var err error
	if s.Archive, err = decode(contents); err != nil {
		return Stored{}, err
	}
	return s, s.nameParts()
}

// nameParts names the parts of a file, which must be those that Pack makes of its seasons.
func (s *Stored) nameParts() error {
	names := []string{"header"}
	seasons := s.Archive.Facts().Seasons
	for i := range seasons {
		if name := partOf(seasons[i].Year, seasons[len(seasons)-1].Year); name != names[len(names)-1] {
			names = append(names, name)
		}
	}
	if len(names) != len(s.parts) {
		return fmt.Errorf("%w: %d parts, want %d", ErrDamaged, len(s.parts), len(names))
	}
	for i := range s.parts {
		s.parts[i].Name = names[i]
	}
	return s.name()
}

// seasonsOf returns the seasons of a part, none if s does not have the part or it is the header.
func (s Stored) seasonsOf(p part) []season.Season {
	if !slices.Contains(s.parts, p) {
		return nil
	}
	all := s.Archive.Facts().Seasons
	return slices.DeleteFunc(slices.Clone(all), func(y season.Season) bool { return partOf(y.Year, all[len(all)-1].Year) != p.Name })
}

// unpack returns the archive of a list and its frames, and checks every part that base does not have.
func unpack(l list, frames map[string][]byte, base Stored) (Stored, error) {
	s := Stored{parts: l.Parts, frames: frames}
	if bytes.Equal(s.File(), embedded) {
		return Embedded()
	}
	contents := make([]content, len(l.Parts))
	var group errgroup.Group
	group.SetLimit(runtime.GOMAXPROCS(0))
	for i, p := range l.Parts {
		if contents[i].seasons = base.seasonsOf(p); len(contents[i].seasons) > 0 {
			continue
		}
		group.Go(func() error {
			plain, err := decompress(frames[p.SHA256])
			if err != nil {
				return fmt.Errorf("part %s: %w", p.Name, err)
			}
			if got := digest(plain); got != p.SHA256 {
				return fmt.Errorf("part %s: %w: its lines have the sum %s, the list says %s", p.Name, ErrDamaged, got, p.SHA256)
			}
			contents[i].lines = plain
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return Stored{}, err
	}
	var err error
	s.Archive, err = decode(contents)
	return s, err
}

// window is how far back a frame refers, and so the bytes that a reader holds of it.
const window = 8 << 20

func compress(lines []byte) ([]byte, error) {
	// One goroutine and a fixed level: the bytes depend on nothing else.
	z, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedBestCompression),
		zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(window), zstd.WithEncoderCRC(true))
	if err != nil {
		return nil, err
	}
	return z.EncodeAll(lines, nil), z.Close()
}

func decompress(frame []byte) ([]byte, error) {
	z, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(window), zstd.WithDecoderMaxMemory(maxBytes))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	defer z.Close()
	plain, err := z.DecodeAll(frame, nil)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	return plain, nil
}

// frameSize returns the size of the first zstd frame, of RFC 8878: a header, blocks with a header of three bytes
// each, and a checksum of four.
func frameSize(data []byte) (int, error) {
	var h zstd.Header
	if err := h.Decode(data); err != nil || h.Skippable {
		return 0, fmt.Errorf("%w: no zstd stream", ErrNotArchive)
	}
	for size := h.HeaderSize; size+3 <= len(data); {
		block := int(data[size]) | int(data[size+1])<<8 | int(data[size+2])<<16
		content := block >> 3
		if block>>1&3 == 1 { // one byte, repeated
			content = 1
		}
		size += 3 + content
		if block&1 == 0 {
			continue
		}
		if h.HasCheckSum {
			size += 4
		}
		if size > len(data) {
			break
		}
		return size, nil
	}
	return 0, fmt.Errorf("%w: %w", ErrDamaged, io.ErrUnexpectedEOF)
}

func digest(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}
