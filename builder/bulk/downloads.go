package bulk

import (
	"encoding/json"
	"fmt"
	"slices"

	"gridcast/builder/check"
	"gridcast/schemas/catalog"
	"gridcast/schemas/wire"
	"gridcast/snapshots"
)

// Downloads makes the downloads of seasons for an edge. A version does not store them, because they are a function of
// its documents and twice as large.
type Downloads struct{}

// Sources names the input of the download of each season of a version. Equal inputs have equal names.
func (Downloads) Sources(v *snapshots.Version) (map[int]string, error) {
	seasons, err := seasonsToDownload(v)
	if err != nil {
		return nil, err
	}
	sources := make(map[int]string, len(seasons))
	for _, s := range seasons {
		hashes := map[string]string{}
		for _, path := range s.Paths() {
			if body, ok := v.Body(path); ok {
				hashes[path] = body.Entry.SHA256
			}
		}
		sources[s.Year] = s.Source(hashes)
	}
	return sources, nil
}

// Make makes the download of a season and checks it. It takes some milliseconds of one processor.
func (Downloads) Make(v *snapshots.Version, year int) ([]byte, error) {
	seasons, err := seasonsToDownload(v)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(seasons, func(s Season) bool { return s.Year == year })
	if i < 0 {
		return nil, fmt.Errorf("version %d has no season %d", v.Pointer.Version, year)
	}
	documents := map[string][]byte{}
	for _, path := range seasons[i].Paths() {
		if body, ok := v.Body(path); ok {
			documents[path] = body.Plain()
		}
	}
	data, err := seasons[i].Zip(documents)
	if err == nil {
		err = check.Bulk(data, seasons[i].Named(documents), seasons[i].Keys())
	}
	if err != nil {
		return nil, fmt.Errorf("download of %d refused, readers get the earlier one: %w", year, err)
	}
	return data, nil
}

// seasonsToDownload lists the seasons of a version, with the rounds that rest on borrowed facts. It fails
// if the version describes borrowed facts in an unknown form.
func seasonsToDownload(v *snapshots.Version) ([]Season, error) {
	m := &v.Manifest
	var state wire.FactsState
	if m.State != nil {
		if err := json.Unmarshal(m.State, &state); err != nil {
			return nil, fmt.Errorf("sources of version %d: %w", m.Version, err)
		}
	}
	seasons := make([]Season, len(m.Seasons))
	for i, year := range m.Seasons {
		seasons[i].Year, seasons[i].Rounds = year, map[catalog.Name][]int64{}
		for _, fact := range state.NonCommercial {
			if int(fact.SessionKey/catalog.KeysPerSeason) == year {
				seasons[i].Without = append(seasons[i].Without, Borrowed{SessionKey: fact.SessionKey, GPName: fact.GPName})
			}
		}
		slices.SortFunc(seasons[i].Without, func(a, b Borrowed) int { return int(a.SessionKey - b.SessionKey) })
		seasons[i].Without = slices.Compact(seasons[i].Without) // several parts of a round
	}
	for _, entry := range m.Entries { // by ascending path, and so by session key
		variant, err := catalog.ParsePath(entry.Path)
		if byRound := variant.Endpoint == catalog.Sessions || variant.Endpoint == catalog.ForecastHistory; err != nil || !byRound || variant.SessionKey <= 0 {
			continue
		}
		if i, ok := slices.BinarySearch(m.Seasons, variant.Season()); ok {
			seasons[i].Rounds[variant.Endpoint] = append(seasons[i].Rounds[variant.Endpoint], variant.SessionKey)
		}
	}
	return seasons, nil
}
