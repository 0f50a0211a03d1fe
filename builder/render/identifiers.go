package render

import (
	"cmp"
	_ "embed"
	"errors"
	"maps"
	"slices"
	"sync"

	"gridcast/builder/almanac"
	"gridcast/builder/season"
	"gridcast/builder/source"
	"gridcast/builder/source/jolpica"
	"gridcast/schemas/catalog"
	"gridcast/schemas/wire"
)

//go:embed openf1.txt
var openF1Text string

// openF1Names returns the names of OpenF1, which gridcast translates but never asks. It reads them once.
var openF1Names = sync.OnceValues(func() (source.Equivalents, error) {
	return source.ReadEquivalents("builder/render/openf1.txt", openF1Text)
})

// foreignKinds are the names of the kinds of things in the tables of equivalents.
var foreignKinds = map[string]string{
	catalog.DriversType: "driver", catalog.ConstructorsType: "team", catalog.CircuitsType: "circuit", catalog.GrandsPrixType: "grand_prix",
}

// identifiers lists the things of a kind in all seasons, with the names that the sources have for them.
func identifiers(a *almanac.Almanac, kind string) ([]wire.Identity, error) {
	things, facts := map[string]*wire.Identity{}, a.Facts() // by F1DB's identifier
	add := func(id, name string) { things[id] = &wire.Identity{ID: id, Name: name, F1DB: id} }
	switch kind {
	case catalog.DriversType:
		for id, d := range facts.Drivers {
			add(string(id), d.Name)
		}
		nameDrivers(a, things)
	case catalog.ConstructorsType:
		for id, t := range facts.Teams {
			add(string(id), t.Name)
		}
	case catalog.CircuitsType:
		for id, c := range facts.Circuits {
			add(string(id), c.Name)
		}
	case catalog.GrandsPrixType:
		for i := range facts.Seasons {
			for j := range facts.Seasons[i].Rounds {
				add(string(facts.Seasons[i].Rounds[j].GrandPrix), facts.Seasons[i].Rounds[j].Name)
			}
		}
	}
	theirs, err := jolpica.Names()
	others, err2 := openF1Names()
	if err := errors.Join(err, err2); err != nil {
		return nil, err
	}
	atJolpica, atOpenF1 := theirs.Foreign(foreignKinds[kind]), others.Foreign(foreignKinds[kind])
	all := make([]wire.Identity, 0, len(things))
	for id, thing := range things {
		thing.Jolpica, thing.OpenF1 = atJolpica[id], atOpenF1[id]
		all = append(all, *thing)
	}
	slices.SortFunc(all, func(x, y wire.Identity) int { return cmp.Compare(x.ID, y.ID) })
	return all, nil
}

// nameDrivers adds lasting identifiers, aliases and codes.
func nameDrivers(a *almanac.Almanac, drivers map[string]*wire.Identity) {
	for id, d := range drivers {
		d.ID = a.Lasting(season.DriverID(id))
	}
	aliases := a.Aliases()
	for _, alias := range slices.Sorted(maps.Keys(aliases)) {
		if d := drivers[string(aliases[alias])]; d != nil && d.ID != string(alias) {
			d.Aliases = append(d.Aliases, string(alias))
		}
	}
	for _, y := range a.Years {
		for id, code := range subtotalOf(a, y).codes {
			d := drivers[string(id)]
			if d == nil {
				continue
			}
			if n := len(d.Codes); n > 0 && d.Codes[n-1].Code == code {
				d.Codes[n-1].To = y.Year
				continue
			}
			d.Codes = append(d.Codes, wire.SeasonCode{Code: code, From: y.Year, To: y.Year})
		}
	}
}
