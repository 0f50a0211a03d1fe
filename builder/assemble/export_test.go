package assemble

import (
	"fmt"
	"reflect"
	"slices"

	"gridcast/builder/season"
)

// Permissions gives access to each permission by its name.
var Permissions = map[string]func(*permissions) *bool{
	"applies":            func(p *permissions) *bool { return &p.applies },
	"addsRounds":         func(p *permissions) *bool { return &p.addsRounds },
	"namesNew":           func(p *permissions) *bool { return &p.namesNew },
	"namesAll":           func(p *permissions) *bool { return &p.namesAll },
	"movesHeldStart":     func(p *permissions) *bool { return &p.movesHeldStart },
	"wholeSeasons":       func(p *permissions) *bool { return &p.wholeSeasons },
	"comparesCalendars":  func(p *permissions) *bool { return &p.comparesCalendars },
	"contradictionsOnly": func(p *permissions) *bool { return &p.contradictionsOnly },
	"orderOnly":          func(p *permissions) *bool { return &p.orderOnly },
	"addsEngines":        func(p *permissions) *bool { return &p.addsEngines },
	"derivesEntries":     func(p *permissions) *bool { return &p.derivesEntries },
	"archiveNames":       func(p *permissions) *bool { return &p.archiveNames },
	"yields":             func(p *permissions) *bool { return &p.yields },
	"confirmable":        func(p *permissions) *bool { return &p.confirmable },
	"keepsRounds":        func(p *permissions) *bool { return &p.keepsRounds },
}

// PermissionCount is the number of permissions in the table.
var PermissionCount = reflect.TypeFor[permissions]().NumField()

// Diff returns the lines in which a block of two rounds differs.
var Diff = diff

// MergeStandings adds the rows of one competitor in the standings together.
var MergeStandings = mergeStandings

// Toggle gives a kind a permission, or takes it away.
func Toggle(kind Kind, permission string) {
	p := kinds[kind]
	given := Permissions[permission](&p)
	*given = !*given
	kinds[kind] = p
}

// Breaches returns the broken invariants of a round of a season with its sheets. before is the round in use.
func Breaches(f *season.Facts, s *season.Season, i int, before *season.Round, sheets []season.Sheet) (sentences, waits []string) {
	j := judgement{assembly: &assembly{Input: &Input{}, out: Output{Facts: *f}}, document: &Document{Facts: *f, Sheets: sheets}, season: s, ours: before, theirs: &s.Rounds[i]}
	w := j.weekend()
	w.round, w.began = s.Rounds[i], true
	held, waits := w.breaches()
	for b, refusals := range held {
		for _, refusal := range refusals {
			sentences = append(sentences, fmt.Sprintf("%s: %s: %s", b, refusal.Gate, refusal.Reason))
		}
	}
	slices.Sort(sentences)
	return sentences, waits
}

// InvariantNames returns the names of the invariants.
func InvariantNames() []Gate {
	var names []Gate
	for _, inv := range invariants {
		names = append(names, inv.name)
	}
	return names
}
