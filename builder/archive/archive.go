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
	"errors"
	"fmt"
	"io"
	"math"
	"reflect"
	"runtime"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"golang.org/x/sync/errgroup"

	"gridcast/builder/season"
)

// Format and version of list and lines. Read refuses every other.
const (
	format  = "gridcast-archive"
	version = 3
)

// maxBytes is the limit of an unpacked file, many times the size of all seasons.
const maxBytes = 256 << 20

// Errors of Read that callers can tell apart.
var (
	ErrNotArchive = errors.New("not a gridcast archive")
	ErrVersion    = errors.New("archive of another version")
	ErrDamaged    = errors.New("archive is damaged or cut off")
)

// content is a part as lines, or as the seasons that were decoded from them earlier.
type content struct {
	lines   []byte
	seasons []season.Season
}

// decode returns the archive of all parts. It reads seasons side by side, because that takes longer than everything
// else.
func decode(parts []content) (*season.Archive, error) {
	type line struct {
		text  []byte
		known *season.Season
	}
	var lines []line
	for _, part := range parts {
		for i := range part.seasons {
			lines = append(lines, line{known: &part.seasons[i]})
		}
		for text := range bytes.Lines(part.lines) {
			if text[len(text)-1] != '\n' {
				text = nil // cut off
			}
			lines = append(lines, line{text: text})
		}
	}
	if len(lines) == 0 || lines[0].text == nil {
		return nil, fmt.Errorf("%w: header: %w", ErrDamaged, io.ErrUnexpectedEOF)
	}
	facts, seasons, err := readHeader(lines[0].text)
	if err != nil {
		return nil, err
	}
	lines = lines[1:]
	if len(lines) < seasons {
		return nil, fmt.Errorf("%w: season %d of %d: %w", ErrDamaged, len(lines)+1, seasons, io.ErrUnexpectedEOF)
	}
	if len(lines) > seasons {
		return nil, fmt.Errorf("%w: more after the last season", ErrDamaged)
	}
	facts.Seasons = make([]season.Season, seasons)
	read := planOf(reflect.TypeFor[season.Season]())
	var group errgroup.Group
	group.SetLimit(runtime.GOMAXPROCS(0))
	for i, line := range lines {
		if line.known != nil {
			facts.Seasons[i] = *line.known
			continue
		}
		group.Go(func() error {
			if err := readSeason(read, line.text, &facts.Seasons[i]); err != nil {
				return fmt.Errorf("%w: season %d of %d: %w", ErrDamaged, i+1, seasons, err)
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	return season.New(facts)
}

// header is the first line.
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
