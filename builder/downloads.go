package builder

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"gridcast/builder/bulk"
	"gridcast/builder/check"
	"gridcast/schemas/catalog"
	"gridcast/schemas/wire"
	"gridcast/snapshots"
)

// Downloads are downloads of seasons that are ready to be published. MakeDownloads makes them.
type Downloads struct{ made []snapshots.Download }

// Len returns how many there are.
func (d Downloads) Len() int { return len(d.made) }

// MakeDownloads makes the download of each season whose published documents have changed since its last
// download. It reads these documents from the store and takes some milliseconds of one processor for each
// season. Builds do not wait for it: versions keep the earlier downloads until PublishDownloads. A
// download that fails its check is left out and named in the error. The others are returned.
func (b *Builder) MakeDownloads(ctx context.Context) (Downloads, error) {
	base, err := b.loadBase(ctx)
	if err != nil {
		return Downloads{}, fmt.Errorf("make downloads: %w", err)
	}
	seasons, err := seasonsToDownload(base)
	if err != nil {
		return Downloads{}, fmt.Errorf("make downloads: %w", err)
	}
	var d Downloads
	var faults []error
	for _, s := range seasons {
		source := s.Source(hashesOf(base, s))
		if published, ok := downloadOf(base, s.Year); ok && published.Source == source {
			continue
		}
		documents := map[string][]byte{}
		for _, path := range s.Paths() {
			entry, ok := base.Entry(path)
			if !ok {
				continue // it comes with a later version
			}
			if documents[path], err = base.Body(ctx, entry); err != nil {
				return d, fmt.Errorf("make downloads: %w", err)
			}
		}
		data, err := s.Zip(documents)
		if err == nil {
			err = check.Bulk(data, s.Named(documents), s.Keys())
		}
		if err != nil {
			faults = append(faults, fmt.Errorf("download of %d refused, readers get the earlier one: %w", s.Year, err))
			continue
		}
		d.made = append(d.made, snapshots.NewDownload(s.Year, data, source))
	}
	return d, errors.Join(faults...)
}

// PublishDownloads publishes the current version under a new number, with the downloads of d. It leaves
// out a download if the documents of its season have changed meanwhile. The error wraps snapshots.ErrHeld
// if publishing is held.
func (b *Builder) PublishDownloads(ctx context.Context, d Downloads) (snapshots.Receipt, error) {
	for range maxRebases {
		receipt, err := b.publishDownloads(ctx, d)
		if !errors.Is(err, snapshots.ErrBaseChanged) {
			return receipt, err
		}
	}
	return snapshots.Receipt{}, fmt.Errorf("publish downloads: other builders published %d versions meanwhile", maxRebases)
}

func (b *Builder) publishDownloads(ctx context.Context, d Downloads) (snapshots.Receipt, error) {
	base, err := b.loadBase(ctx)
	if err != nil {
		return snapshots.Receipt{}, fmt.Errorf("publish downloads: %w", err)
	}
	seasons, err := seasonsToDownload(base)
	if err != nil {
		return snapshots.Receipt{}, fmt.Errorf("publish downloads: %w", err)
	}
	all := []snapshots.Download{}
	for _, s := range seasons {
		source := s.Source(hashesOf(base, s))
		i := slices.IndexFunc(d.made, func(m snapshots.Download) bool { return m.Year == s.Year && m.Source == source })
		if i >= 0 {
			all = append(all, d.made[i])
		} else if published, ok := downloadOf(base, s.Year); ok {
			all = append(all, snapshots.KeptDownload(published))
		}
	}
	receipt, err := b.publisher(nil).PublishBulk(ctx, base, b.Name, all)
	if receipt.Base != nil {
		b.latest.Store(receipt.Base)
	}
	return receipt, err
}

// seasonsToDownload lists the seasons of a version, with the rounds that rest on borrowed facts. It fails
// if the version describes borrowed facts in an unknown form.
func seasonsToDownload(base *snapshots.Base) ([]bulk.Season, error) {
	var state wire.FactsState
	if base.Manifest.State != nil {
		if err := json.Unmarshal(base.Manifest.State, &state); err != nil {
			return nil, fmt.Errorf("sources of version %d: %w", base.Pointer.Version, err)
		}
	}
	seasons := make([]bulk.Season, len(base.Manifest.Seasons))
	for i, year := range base.Manifest.Seasons {
		seasons[i].Year = year
		for _, fact := range state.NonCommercial {
			if int(fact.SessionKey/catalog.KeysPerSeason) == year {
				seasons[i].Without = append(seasons[i].Without, bulk.Borrowed{SessionKey: fact.SessionKey, GPName: fact.GPName})
			}
		}
		slices.SortFunc(seasons[i].Without, func(a, b bulk.Borrowed) int { return int(a.SessionKey - b.SessionKey) })
		seasons[i].Without = slices.Compact(seasons[i].Without) // several parts of a round
	}
	for _, entry := range base.Manifest.Entries { // by ascending path, and so by session key
		if v, err := catalog.ParsePath(entry.Path); err == nil && v.Endpoint == catalog.Sessions && v.SessionKey > 0 {
			if i, ok := slices.BinarySearch(base.Manifest.Seasons, v.Season()); ok {
				seasons[i].Sessions = append(seasons[i].Sessions, v.SessionKey)
			}
		}
	}
	return seasons, nil
}

func hashesOf(base *snapshots.Base, s bulk.Season) map[string]string {
	hashes := map[string]string{}
	for _, path := range s.Paths() {
		if entry, ok := base.Entry(path); ok {
			hashes[path] = entry.SHA256
		}
	}
	return hashes
}

func downloadOf(base *snapshots.Base, year int) (snapshots.Bulk, bool) {
	for _, b := range base.Manifest.Bulk {
		if b.Year == year {
			return b, true
		}
	}
	return snapshots.Bulk{}, false
}
