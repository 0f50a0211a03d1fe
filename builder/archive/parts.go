package archive

import (
	"bytes"
	_ "embed"
	"fmt"
	"io"
	"iter"
	"os"
	"reflect"
	"slices"
	"strconv"
	"sync"

	"github.com/go-json-experiment/json"
	"github.com/klauspost/compress/zstd"

	"gridcast/builder/season"
	"gridcast/snapshots/blob/chain"
	"gridcast/snapshots/blob/dirblob"
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

// Encode returns the archive in parts. It takes equal parts from base, which may be zero, because a change is one of a
// single season, and writing and compressing all takes seconds. It keeps times of laps and races to the millisecond, as
// exactly as any source. A finer time is an error.
func Encode(a *season.Archive, base Stored) (Stored, error) {
	facts := a.Facts()
	s := Stored{Archive: a, frames: map[string][]byte{}}
	head := header{Format: format, Version: Version, Seasons: len(facts.Seasons), Facts: facts}
	lines, err := json.Marshal(&head, spelling)
	if err != nil {
		return Stored{}, fmt.Errorf("encode archive: %w", err)
	}
	compress := compressor()
	s.add(headerPart, append(lines, '\n'), base, compress)
	for name, seasons := range seasonParts(facts.Seasons) {
		if p, ok := base.partOf(name, seasons); ok {
			s.parts, s.frames[p.SHA256] = append(s.parts, p), base.frames[p.SHA256]
			continue
		}
		var lines []byte
		for i := range seasons {
			line, err := json.Marshal(&seasons[i], spelling)
			if err != nil {
				return Stored{}, fmt.Errorf("encode archive: season %d: %w", seasons[i].Year, err)
			}
			lines = append(append(lines, line...), '\n')
		}
		s.add(name, lines, base, compress)
	}
	return s, s.name()
}

// add adds a part, with the frame that base has of it or a new one.
func (s *Stored) add(name string, lines []byte, base Stored, compress func(lines []byte) []byte) {
	p := part{name, chain.Hash(lines), int64(len(lines))}
	frame, ok := base.frames[p.SHA256]
	if !ok {
		frame = compress(lines)
	}
	s.parts, s.frames[p.SHA256] = append(s.parts, p), frame
}

// headerPart is the name of the first part.
const headerPart = "header"

// seasonParts yields the names of the parts after the header, and the seasons of each.
func seasonParts(seasons []season.Season) iter.Seq2[string, []season.Season] {
	return func(yield func(string, []season.Season) bool) {
		for len(seasons) > 0 {
			year, n := seasons[0].Year, 1
			name := strconv.Itoa(year)
			if decade := year / 10; decade < seasons[len(seasons)-1].Year/10 {
				name = strconv.Itoa(decade) + "0s"
				n = slices.IndexFunc(seasons, func(s season.Season) bool { return s.Year/10 != decade })
			}
			if !yield(name, seasons[:n]) {
				return
			}
			seasons = seasons[n:]
		}
	}
}

// name sets the list and the digest.
func (s *Stored) name() (err error) {
	s.list, err = json.Marshal(list{format, Version, s.parts})
	s.SHA256 = chain.Hash(s.list)
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
	for rest := file; len(rest) > 0 || contents == nil; {
		size, err := frameSize(rest)
		if err != nil {
			return Stored{}, err
		}
		contents, rest = append(contents, content{frame: rest[:size:size]}), rest[size:]
	}
	var err error
	if s.Archive, err = decode(contents); err != nil {
		return Stored{}, err
	}
	for _, c := range contents {
		s.parts, s.frames[c.SHA256] = append(s.parts, c.part), c.frame
	}
	return s, s.nameParts()
}

// nameParts names the parts of a file, which must be those that Encode makes of its seasons.
func (s *Stored) nameParts() error {
	names := []string{headerPart}
	for name := range seasonParts(s.Archive.Facts().Seasons) {
		names = append(names, name)
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
	for name, seasons := range seasonParts(s.Archive.Facts().Seasons) {
		if name == p.Name {
			return seasons
		}
	}
	return nil
}

// partOf returns the part of a name if it has these seasons. Rounds that are copies mostly share their rows, which then
// need no comparison.
func (s Stored) partOf(name string, seasons []season.Season) (part, bool) {
	for _, p := range s.parts {
		if p.Name == name {
			return p, reflect.DeepEqual(s.seasonsOf(p), seasons)
		}
	}
	return part{}, false
}

// join returns the archive of a list and its frames, and checks every part that base does not have.
func join(l list, frames map[string][]byte, base Stored) (Stored, error) {
	s := Stored{parts: l.Parts, frames: frames}
	if s.Bytes() == int64(len(embedded)) && bytes.Equal(s.File(), embedded) {
		return Embedded()
	}
	contents := make([]content, len(l.Parts))
	for i, p := range l.Parts {
		contents[i] = content{part: p, frame: frames[p.SHA256], seasons: base.seasonsOf(p)}
	}
	var err error
	s.Archive, err = decode(contents)
	return s, err
}

const (
	// window is how far back a frame may refer, and so the bytes that a reader holds of it.
	window = 8 << 20
	// written is how far back a new frame refers. An encoder allocates twice as much, and a larger window does not make
	// decades of seasons smaller.
	written = 512 << 10
)

// compressor returns a function that compresses a part. It makes its encoder once, when it is first called, because
// that takes about as long as compressing a season.
func compressor() func(lines []byte) []byte {
	encoder := sync.OnceValue(func() *zstd.Encoder {
		// One goroutine and a fixed level: the bytes depend on nothing else. The next level touches 60 MB of tables
		// to save one byte in twenty.
		z, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedBetterCompression),
			zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(written), zstd.WithEncoderCRC(true))
		if err != nil {
			panic("BUG: archive: " + err.Error())
		}
		return z
	})
	return func(lines []byte) []byte { return encoder().EncodeAll(lines, nil) }
}

// newDecoder returns a decoder of frames. It is safe for concurrent use.
func newDecoder() *zstd.Decoder {
	z, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(0), zstd.WithDecoderMaxWindow(window), zstd.WithDecoderMaxMemory(maxBytes))
	if err != nil {
		panic("BUG: archive: " + err.Error())
	}
	return z
}

// decompress returns the lines of a frame, in the buffer if they fit.
func decompress(z *zstd.Decoder, frame, buffer []byte) ([]byte, error) {
	plain, err := z.DecodeAll(frame, buffer[:0])
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

// The seasons from 2007 to the Hungarian Grand Prix of 2026, made by our importer from the
// release of F1DB that builder/source/sourcetest names, which is no part of the project, by:
// go test ./builder/archive -run EmbeddedIsImport -update, which needs the tool zstd.
//
//go:embed seasons.zst
var embedded []byte

var readEmbedded = sync.OnceValues(func() (Stored, error) {
	stored, err := read(embedded)
	if err != nil {
		return Stored{}, fmt.Errorf("embedded seasons: %w", err)
	}
	return stored, nil
})

// Embedded returns the seasons that gridcast comes with. They are decoded once.
func Embedded() (Stored, error) { return readEmbedded() }

// ReadFile reads an archive file.
func ReadFile(path string) (Stored, error) {
	file, err := os.ReadFile(path)
	if err != nil {
		return Stored{}, fmt.Errorf("read archive: %w", err)
	}
	stored, err := Read(file)
	if err != nil {
		return Stored{}, fmt.Errorf("%s: %w", path, err)
	}
	return stored, nil
}

// WriteFile writes an archive file. It replaces the file that was there in one step, so that after any failure
// path holds the old archive or the new one.
func WriteFile(path string, s Stored) error {
	if err := dirblob.WriteFile(path, s.File(), 0o644, os.Rename); err != nil {
		return fmt.Errorf("write archive %s: %w", path, err)
	}
	return nil
}
