// Package archive keeps a season.Archive in one compact file: a zstd stream of JSON lines, the
// first a header with drivers, teams, engines, circuits and lineages, then one line per season.
// A person can read it with zstd -dc.
//
// Equal archives have equal bytes, and are named by their SHA-256. Embedded holds the seasons that gridcast comes
// with. They are facts of F1DB under CC BY 4.0: see the file ATTRIBUTION.
package archive

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/klauspost/compress/zstd"

	"gridcast/builder/season"
)

// Format and version of the file. Decode refuses every other.
const (
	format  = "gridcast-archive"
	version = 2
)

// magic is how a zstd stream begins.
const magic = "\x28\xb5\x2f\xfd"

// window is how far back the stream refers, and so the bytes that a reader holds of it.
const window = 8 << 20

// maxBytes is the limit of an unpacked file, many times the size of all seasons.
const maxBytes = 256 << 20

// Errors of Decode that callers can tell apart.
var (
	ErrNotArchive = errors.New("not a gridcast archive")
	ErrVersion    = errors.New("archive of another version")
	ErrDamaged    = errors.New("archive is damaged or cut off")
)

// Encode writes the archive. It keeps times of laps and races to the millisecond, as exactly as any source. A
// finer time is an error.
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
	lines := jsontext.NewEncoder(z) // ends each value with a line feed
	head := header{Format: format, Version: version, Seasons: len(facts.Seasons), Facts: facts}
	if err := json.MarshalEncode(lines, &head, spelling); err != nil {
		return err
	}
	for i := range facts.Seasons {
		if err := json.MarshalEncode(lines, &facts.Seasons[i], spelling); err != nil {
			return fmt.Errorf("season %d: %w", facts.Seasons[i].Year, err)
		}
	}
	return z.Close()
}

// Decode reads an archive to its end. The error wraps ErrNotArchive, ErrVersion or ErrDamaged, or names the
// facts that contradict each other.
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
	facts, seasons, err := readHeader(first)
	if err != nil {
		return nil, err
	}
	for i := range seasons {
		line, err := readLine(lines)
		if err != nil {
			return nil, fmt.Errorf("%w: season %d of %d: %w", ErrDamaged, i+1, seasons, err)
		}
		var s season.Season
		if err := json.Unmarshal(line, &s, spelling); err != nil {
			return nil, fmt.Errorf("%w: season %d of %d: %w", ErrDamaged, i+1, seasons, err)
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

// readLine returns the next line. A line without a line feed is cut off.
func readLine(r *bufio.Reader) ([]byte, error) {
	line, err := r.ReadBytes('\n')
	if errors.Is(err, io.EOF) {
		return nil, io.ErrUnexpectedEOF
	}
	return line, err
}

// header is the first line of the file.
type header struct {
	Format  string `json:"format"`
	Version int    `json:"version"`
	Seasons int    `json:"seasons"` // lines that follow
	season.Facts
}

// readHeader returns the facts of the first line and the number of seasons that follow. It reads format and
// version first, because another version may give the other members another meaning.
func readHeader(line []byte) (facts season.Facts, seasons int, err error) {
	var kind struct {
		Format  string `json:"format"`
		Version int    `json:"version"`
	}
	if err := json.Unmarshal(line, &kind); err != nil {
		return facts, 0, fmt.Errorf("%w: %w", ErrNotArchive, err)
	}
	if kind.Format != format {
		return facts, 0, fmt.Errorf("%w: format %q", ErrNotArchive, kind.Format)
	}
	if kind.Version != version {
		return facts, 0, fmt.Errorf("%w: version %d, want %d; import it again", ErrVersion, kind.Version, version)
	}
	var h header
	if err := json.Unmarshal(line, &h, spelling); err != nil {
		return facts, 0, fmt.Errorf("%w: header: %w", ErrDamaged, err)
	}
	return h.Facts, h.Seasons, nil
}

// spelling is the form of values in the file. Zero values are absent, durations are whole milliseconds, instants
// are in UTC, and an instant at midnight is a day.
var spelling = json.JoinOptions(
	json.OmitZeroStructFields(true),
	json.FormatNilSliceAsNull(true),
	json.Deterministic(true),
	json.WithMarshalers(json.JoinMarshalers(json.MarshalToFunc(writeDuration), json.MarshalToFunc(writeTime))),
	json.WithUnmarshalers(json.JoinUnmarshalers(json.UnmarshalFromFunc(readDuration), json.UnmarshalFromFunc(readTime))),
)

func writeDuration(e *jsontext.Encoder, d time.Duration) error {
	if d%time.Millisecond != 0 {
		return fmt.Errorf("time %s is not of whole milliseconds", d)
	}
	return e.WriteToken(jsontext.Int(d.Milliseconds()))
}

func readDuration(d *jsontext.Decoder, into *time.Duration) error {
	if kind := d.PeekKind(); kind != '0' {
		return fmt.Errorf("a time is a number of milliseconds, not of kind %s", kind)
	}
	token, err := d.ReadToken()
	if err != nil {
		return err
	}
	ms, err := token.Int()
	if err != nil {
		return err
	}
	if ms > math.MaxInt64/int64(time.Millisecond) || ms < math.MinInt64/int64(time.Millisecond) {
		return fmt.Errorf("%d milliseconds are too many", ms)
	}
	*into = time.Duration(ms) * time.Millisecond
	return nil
}

func writeTime(e *jsontext.Encoder, t time.Time) error {
	t = t.UTC()
	layout := time.RFC3339Nano
	if t.Equal(t.Truncate(24 * time.Hour)) {
		layout = time.DateOnly
	}
	return e.WriteToken(jsontext.String(t.Format(layout)))
}

func readTime(d *jsontext.Decoder, into *time.Time) error {
	var text string
	if err := json.UnmarshalDecode(d, &text); err != nil {
		return err
	}
	t, err := time.Parse(time.DateOnly, text)
	if len(text) != len(time.DateOnly) {
		t, err = time.Parse(time.RFC3339Nano, text)
	}
	*into = t.UTC()
	return err
}
