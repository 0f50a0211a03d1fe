// Package archive keeps a season.Archive in parts: the header with drivers, teams, engines, circuits and
// lineages, one part for each decade that is over, and one for each later season. A part is lines of JSON, one for
// each season. A corrected result therefore replaces one small part.
//
// An archive is named by its digest: the SHA-256 of the list of its parts, which holds the SHA-256 of the lines of
// each. Equal facts have equal digests. A store keeps the list and every part once. An archive file holds the
// parts, each as a zstd frame, so that a person can read it with zstd -dc. Embedded holds the seasons that gridcast
// comes with. They are facts of F1DB under CC BY 4.0: see the file ATTRIBUTION.
package archive

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/klauspost/compress/zstd"
	"golang.org/x/sync/errgroup"

	"gridcast/builder/season"
	"gridcast/snapshots/blob/chain"
)

// Format and version of list and lines. Read refuses every other.
const (
	format  = "gridcast-archive"
	Version = 3
)

// maxBytes is the limit of an unpacked file, many times the size of all seasons.
const maxBytes = 256 << 20

// Errors of Read that callers can tell apart.
var (
	ErrNotArchive = errors.New("not a gridcast archive")
	ErrVersion    = errors.New("archive of another version")
	ErrDamaged    = errors.New("archive is damaged or cut off")
)

// content is a part: its frame, or the seasons that were decoded from it earlier.
type content struct {
	part
	frame   []byte
	seasons []season.Season
	fault   error // of the season after these
}

// decode returns the archive of all parts. It reads parts side by side, because that takes longer than everything else,
// and from the last to the first: the largest of them come early then, so that buffers grow once and all cores end together.
func decode(parts []content) (*season.Archive, error) {
	var head header
	frames := newDecoder()
	defer frames.Close()
	buffers := sync.Pool{New: func() any { return new([]byte) }}
	var group errgroup.Group
	group.SetLimit(runtime.GOMAXPROCS(0))
	for i := range slices.Backward(parts) {
		group.Go(func() error {
			c, lines, first := &parts[i], buffers.Get().(*[]byte), (*header)(nil) //nolint:forcetypeassert // made above
			defer buffers.Put(lines)
			if i == 0 {
				first = &head
			}
			if err := c.read(frames, lines, first); err != nil {
				return fmt.Errorf("part %s: %w", cmp.Or(c.Name, strconv.Itoa(i+1)), err)
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	facts := head.Facts
	for _, c := range parts {
		if facts.Seasons = append(facts.Seasons, c.seasons...); c.fault != nil {
			return nil, fmt.Errorf("%w: season %d of %d: %w", ErrDamaged, len(facts.Seasons)+1, head.Seasons, c.fault)
		}
	}
	if n := len(facts.Seasons); n < head.Seasons {
		return nil, fmt.Errorf("%w: season %d of %d: %w", ErrDamaged, n+1, head.Seasons, io.ErrUnexpectedEOF)
	} else if n > head.Seasons {
		return nil, fmt.Errorf("%w: more after the last season", ErrDamaged)
	}
	return season.New(facts)
}

// read checks and reads the lines of a part that is not decoded yet. The first line is the header if head is given. The
// lines are unpacked into buffer, which grows with them.
func (c *content) read(frames *zstd.Decoder, buffer *[]byte, head *header) (err error) {
	if len(c.seasons) > 0 {
		return nil
	}
	lines, err := decompress(frames, c.frame, *buffer)
	if err != nil {
		return err
	}
	*buffer = lines
	switch sum := chain.Hash(lines); c.SHA256 {
	case sum:
	case "":
		c.part = part{SHA256: sum, Size: int64(len(lines))}
	default:
		return fmt.Errorf("%w: its lines have the sum %s, the list says %s", ErrDamaged, sum, c.SHA256)
	}
	if head != nil {
		line, rest, whole := bytes.Cut(lines, []byte("\n"))
		if !whole {
			return fmt.Errorf("%w: header: %w", ErrDamaged, io.ErrUnexpectedEOF)
		}
		if *head, err = readHeader(line); err != nil {
			return err
		}
		lines = rest
	}
	for line := range bytes.Lines(lines) {
		var s season.Season
		if line[len(line)-1] != '\n' {
			c.fault = io.ErrUnexpectedEOF
			break
		}
		if c.fault = json.Unmarshal(line, &s, spelling); c.fault != nil {
			break
		}
		c.seasons = append(c.seasons, s)
	}
	return nil
}

// header is the first line.
type header struct {
	Format  string `json:"format"`
	Version int    `json:"version"`
	Seasons int    `json:"seasons"` // lines that follow
	season.Facts
}

// readHeader reads the first line. It reads format and version first, because another version may give the other members
// another meaning.
func readHeader(line []byte) (h header, err error) {
	var kind struct {
		Format  string `json:"format"`
		Version int    `json:"version"`
	}
	if err := json.Unmarshal(line, &kind); err != nil {
		return h, fmt.Errorf("%w: %w", ErrNotArchive, err)
	}
	if kind.Format != format {
		return h, fmt.Errorf("%w: format %q", ErrNotArchive, kind.Format)
	}
	if kind.Version != Version {
		return h, fmt.Errorf("%w: version %d, want %d; import it again", ErrVersion, kind.Version, Version)
	}
	if err := json.Unmarshal(line, &h, spelling); err != nil {
		return h, fmt.Errorf("%w: header: %w", ErrDamaged, err)
	}
	return h, nil
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
