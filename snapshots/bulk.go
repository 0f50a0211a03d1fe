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

// BulkReason begins the reason of a version that only adds downloads.
const BulkReason = "downloads"

// Bulk is the download of a season: a file made from the documents of a published version. A later
// version publishes it, so that no publish waits for it.
type Bulk struct {
	Year   int    `json:"year"`
	Object string `json:"object"` // store key
	SHA256 string `json:"sha256"` // lower-case hex
	Size   int64  `json:"size"`   // bytes
	Source string `json:"source"` // identifies the documents that it was made from, in the words of its maker
}

// maxBulk limits the size of a download, in bytes. That of a season has some hundred thousand.
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

// Download is a download of a draft: new bytes, or one of the base. Make it with NewDownload or
// KeptDownload.
type Download struct {
	Bulk

	data []byte
}

// KeptDownload is a download of the base.
func KeptDownload(b Bulk) Download { return Download{Bulk: b} }

// NewDownload is a download with new bytes. They must not change until they are published.
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

// PublishBulk publishes the content of the base under a new number, with other downloads. A new download
// with the same bytes as one of the base is that one. Errors and receipt are those of Publish.
func (p *Publisher) PublishBulk(ctx context.Context, base *Base, builder string, bulk []Download) (Receipt, error) {
	start := time.Now()
	m := &base.Manifest
	d := Draft{
		Base: base, Builder: builder, BuiltAt: m.BuiltAt, Instant: m.Instant, DueAt: m.DueAt, CurrentSeason: m.CurrentSeason, Seasons: m.Seasons,
		Archive: m.Archive, Settings: m.Settings, Release: m.Release, Ledger: m.Ledger, Live: m.Live, Derived: m.Derived, DerivedFrom: m.DerivedFrom, Missing: m.Missing, Refused: m.Refused, Expected: m.Expected, State: m.State,
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
	d.Reason = BulkReason
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
