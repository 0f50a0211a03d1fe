package archive

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"gridcast/builder/season"
)

// header is the first line of the file.
type header struct {
	Format   string    `json:"format"`
	Version  int       `json:"version"`
	Source   string    `json:"source"`
	Seasons  int       `json:"seasons"` // lines that follow
	Drivers  []driver  `json:"drivers"`
	Teams    []team    `json:"teams"`
	Engines  []engine  `json:"engines"`
	Circuits []circuit `json:"circuits"`
	Lineages [][]link  `json:"lineages,omitempty"`
}

type (
	driver struct {
		ID           season.DriverID `json:"id"`
		Name         string          `json:"name"`
		FirstName    string          `json:"first_name"`
		LastName     string          `json:"last_name"`
		Abbreviation string          `json:"abbreviation"`
		Country      string          `json:"country"`
		HeadshotURL  string          `json:"headshot_url,omitempty"`
	}
	team struct {
		ID      season.TeamID `json:"id"`
		Name    string        `json:"name"`
		Country string        `json:"country"`
	}
	engine struct {
		ID   season.EngineID `json:"id"`
		Name string          `json:"name"`
	}
	circuit struct {
		ID       season.CircuitID `json:"id"`
		Name     string           `json:"name"`
		Locality string           `json:"locality"`
		Country  string           `json:"country"`
	}
	link struct {
		Team season.TeamID `json:"team"`
		From int           `json:"from"`
		To   int           `json:"to,omitempty"`
	}
)

func newHeader(f season.Facts) header {
	h := header{Format: format, Version: version, Source: f.Source, Seasons: len(f.Seasons)}
	for _, d := range byID(f.Drivers) {
		h.Drivers = append(h.Drivers, driver(d))
	}
	for _, t := range byID(f.Teams) {
		h.Teams = append(h.Teams, team(t))
	}
	for _, e := range byID(f.Engines) {
		h.Engines = append(h.Engines, engine(e))
	}
	for _, c := range byID(f.Circuits) {
		h.Circuits = append(h.Circuits, circuit(c))
	}
	for _, l := range f.Lineages {
		var links []link
		for _, k := range l.Links {
			links = append(links, link(k))
		}
		h.Lineages = append(h.Lineages, links)
	}
	return h
}

// byID returns the values of a map in order of their keys.
func byID[K cmp.Ordered, V any](m map[K]V) []V {
	list := make([]V, 0, len(m))
	for _, key := range slices.Sorted(maps.Keys(m)) {
		list = append(list, m[key])
	}
	return list
}

// readHeader reads format and version before the rest, of which a version not known here may
// mean something else.
func readHeader(line []byte) (header, error) {
	var is struct {
		Format  string `json:"format"`
		Version int    `json:"version"`
	}
	if err := json.Unmarshal(line, &is); err != nil {
		return header{}, fmt.Errorf("%w: %w", ErrNotArchive, err)
	}
	if is.Format != format {
		return header{}, fmt.Errorf("%w: format %q", ErrNotArchive, is.Format)
	}
	if is.Version != version {
		return header{}, fmt.Errorf("%w: version %d, want %d; import it again", ErrVersion, is.Version, version)
	}
	var h header
	if err := json.Unmarshal(line, &h); err != nil {
		return header{}, fmt.Errorf("%w: header: %w", ErrDamaged, err)
	}
	return h, nil
}

// facts returns the header's part of the facts: all but the seasons.
func (h *header) facts() season.Facts {
	f := season.Facts{
		Source:   h.Source,
		Drivers:  make(map[season.DriverID]season.Driver, len(h.Drivers)),
		Teams:    make(map[season.TeamID]season.Team, len(h.Teams)),
		Engines:  make(map[season.EngineID]season.Engine, len(h.Engines)),
		Circuits: make(map[season.CircuitID]season.Circuit, len(h.Circuits)),
	}
	for _, d := range h.Drivers {
		f.Drivers[d.ID] = season.Driver(d)
	}
	for _, t := range h.Teams {
		f.Teams[t.ID] = season.Team(t)
	}
	for _, e := range h.Engines {
		f.Engines[e.ID] = season.Engine(e)
	}
	for _, c := range h.Circuits {
		f.Circuits[c.ID] = season.Circuit(c)
	}
	for _, links := range h.Lineages {
		var l season.Lineage
		for _, k := range links {
			l.Links = append(l.Links, season.Link(k))
		}
		f.Lineages = append(f.Lineages, l)
	}
	return f
}
