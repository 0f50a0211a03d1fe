package builder_test

import (
	"fmt"
	"testing"

	"gridcast/builder/ledger"
	"gridcast/builder/season"
	"gridcast/deploy/must"
	"gridcast/schemas/catalog"
)

// The catalog tells the season of a session key from the key alone, so that every key the ledger
// can give has to lie within its season.
func TestKeysLieInTheirSeason(t *testing.T) {
	const year = 2031
	full := season.Season{Year: year}
	for n := 1; n < catalog.KeysPerSeason; n++ {
		full.Rounds = append(full.Rounds, season.Round{Number: n, GrandPrix: season.GrandPrixID(fmt.Sprintf("gp-%d", n))})
	}
	keys := must.Get(ledger.AssignKeys(&ledger.Fold{}, []season.Season{full}))(t)
	must.Require(t, len(keys) == len(full.Rounds), "%d rounds got %d keys", len(full.Rounds), len(keys))
	for _, k := range keys {
		got := k.Session / catalog.KeysPerSeason
		must.Require(t, got == year, "key %d of %d is of the season %d for the catalog", k.Session, year, got)
	}
	full.Rounds = append(full.Rounds, season.Round{Number: catalog.KeysPerSeason, GrandPrix: "one-too-many"})
	if keys, err := ledger.AssignKeys(&ledger.Fold{}, []season.Season{full}); err == nil {
		t.Errorf("round %d of a season got key %d, which the catalog takes for another season's",
			catalog.KeysPerSeason, keys[len(keys)-1].Session)
	}
}
