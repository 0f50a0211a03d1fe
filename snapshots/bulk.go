package snapshots

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"gridcast/snapshots/blob"
)

// Bulk is the download of a season: a file made of the documents that a version has published. It
// comes with a version after that one, so that no publish waits for it.
type Bulk struct {
	Year   int    `json:"year"`
	Object string `json:"object"` // store key
	SHA256 string `json:"sha256"` // lower-case hex
	Size   int64  `json:"size"`   // bytes
	Source string `json:"source"` // what it was made of, as its maker says it: while that is the same, nobody makes it again
}

// maxBulk is the most that a download may have, in bytes. That of a season has some hundred thousand.
const maxBulk = 64 << 20

func bulkKey(version int64, year int) string {
	return fmt.Sprintf("%s%d/%d.zip", bulkFolder, version, year)
}

func (b Bulk) object() Object { return Object{b.Object, b.SHA256, b.Size} }

func (b Bulk) check() error {
	switch err := blob.CheckKey(b.Object); {
	case err != nil:
		return err
	case !strings.HasPrefix(b.Object, bulkFolder):
		return fmt.Errorf("%s is not in %s", b.Object, bulkFolder)
	case len(b.SHA256) != 2*hashSize || strings.Trim(b.SHA256, "0123456789abcdef") != "":
		return fmt.Errorf("%q is no hash", b.SHA256)
	case b.Size < 0 || b.Size > maxBulk:
		return fmt.Errorf("size %d, want 0 to %d bytes", b.Size, int64(maxBulk))
	}
	return nil
}

// Fetch reads the download and checks it against its hash. All of it is in memory then.
func (b Bulk) Fetch(ctx context.Context, store blob.Store) ([]byte, error) {
	return b.object().Read(ctx, store)
}

// Download is a download of a draft: new bytes, or one that the base has. Make it with NewDownload or
// KeptDownload.
type Download struct {
	Bulk

	data []byte
}

// KeptDownload is one that the base has.
func KeptDownload(b Bulk) Download { return Download{Bulk: b} }

// NewDownload is one with new bytes, which must not change until they are published.
func NewDownload(year int, data []byte, source string) Download {
	return Download{Bulk: Bulk{Year: year, SHA256: Digest(data), Size: int64(len(data)), Source: source}, data: data}
}

// bulk returns the downloads of the draft's manifest under a claimed number.
func (d *Draft) bulk(version int64) []Bulk {
	if d.Bulk == nil {
		return slices.DeleteFunc(slices.Clone(d.Base.Manifest.Bulk), func(b Bulk) bool { return !slices.Contains(d.Seasons, b.Year) })
	}
	all := make([]Bulk, len(d.Bulk))
	for i, download := range d.Bulk {
		if all[i] = download.Bulk; all[i].Object == "" {
			all[i].Object = bulkKey(version, all[i].Year)
		}
	}
	return all
}

// PublishBulk publishes what the base has under a new number, with other downloads. A new one with the
// bytes of the base's is that one. The errors, and what the receipt says of nothing to publish, are
// those of Publish.
func (p *Publisher) PublishBulk(ctx context.Context, base *Base, builder string, bulk []Download) (Receipt, error) {
	start := time.Now()
	m := &base.Manifest
	d := Draft{
		Base: base, Builder: builder, BuiltAt: m.BuiltAt, DueAt: m.DueAt, CurrentSeason: m.CurrentSeason, Seasons: m.Seasons,
		Archive: m.Archive, Settings: m.Settings, Release: m.Release, Ledger: m.Ledger, Derived: m.Derived, Missing: m.Missing, Refused: m.Refused, Expected: m.Expected, State: m.State,
		Bulk: slices.Clone(bulk),
	}
	var years []string
	for i, download := range d.Bulk {
		same := slices.IndexFunc(m.Bulk, func(b Bulk) bool { return b.Year == download.Year && b.SHA256 == download.SHA256 })
		if download.Object == "" && same >= 0 {
			d.Bulk[i].Object = m.Bulk[same].Object
		} else if download.Object == "" {
			years = append(years, strconv.Itoa(download.Year))
		}
	}
	d.Reason = "downloads"
	if 0 < len(years) && len(years) < 5 {
		d.Reason += " of " + strings.Join(years, ", ")
	}
	for _, e := range m.Entries {
		d.Variants = append(d.Variants, Reused(e))
	}
	receipt, err := p.Publish(ctx, d)
	receipt.Seconds = time.Since(start).Seconds()
	return receipt, err
}
