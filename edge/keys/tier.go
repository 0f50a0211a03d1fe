package keys

import (
	"errors"
	"fmt"
	"maps"
	"slices"
)

// Tiers says how many requests a minute a key of each tier has. It is configuration.
type Tiers map[string]int

// DefaultTiers returns the limits that hold where nothing else is configured.
func DefaultTiers() Tiers {
	return Tiers{"trial": 30, "standard": 120, "pro": 600, "sandbox": 30}
}

// Names returns the tiers in ascending order of name.
func (t Tiers) Names() []string { return slices.Sorted(maps.Keys(t)) }

// Validate reports every tier whose name is empty or whose limit is not from 1 to a thousand million.
func (t Tiers) Validate() error {
	if len(t) == 0 {
		return errors.New("no tiers")
	}
	var errs []error
	for _, name := range t.Names() {
		if name == "" {
			errs = append(errs, errors.New("tier without a name"))
		}
		if n := t[name]; n < 1 || n > 1e9 {
			errs = append(errs, fmt.Errorf("tier %q: %d requests a minute, want 1 to 1000000000", name, n))
		}
	}
	return errors.Join(errs...)
}
