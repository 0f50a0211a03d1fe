// Package checktest checks whole versions in tests.
package checktest

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"gridcast/builder/check"
	"gridcast/schemas/catalog"
)

// Bodies checks all documents of a version, by path. Those in trusted are not checked against their schema.
func Bodies(k catalog.Known, bodies map[string][]byte, trusted func(path string) bool) check.Faults {
	seasons := map[int]map[string][]byte{}
	for _, year := range append([]int{0}, k.Seasons...) {
		seasons[year] = map[string][]byte{}
	}
	for path, body := range bodies {
		v, err := catalog.ParsePath(path)
		year := v.Season()
		if derived := v.Endpoint.Derived(); err != nil || derived || seasons[year] == nil {
			year = 0
		}
		seasons[year][path] = body
	}
	others := seasons[0]
	delete(seasons, 0)
	verdicts := make([]check.Season, 0, len(seasons))
	for _, year := range slices.Sorted(maps.Keys(seasons)) {
		verdicts = append(verdicts, check.Read(year, seasons[year], trusted))
	}
	return check.Version(k, verdicts, others, trusted)
}

// Err returns all faults as one error, in the order of the paths, or nil.
func Err(f check.Faults) error {
	errs := make([]error, 0, len(f))
	for _, path := range slices.Sorted(maps.Keys(f)) {
		errs = append(errs, fmt.Errorf("%s: %w", path, f[path]))
	}
	return errors.Join(errs...)
}
