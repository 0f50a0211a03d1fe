package almanac

import (
	"crypto/sha256"
	"encoding/json"
	"slices"

	"gridcast/builder/ledger"
	"gridcast/builder/season"
)

// Digest identifies within one process everything that the documents of a season are made from:
//
//   - the facts that the view shows of the season and of those before it: see season.View.Digests;
//   - the session keys, picks, results and decisions that the ledger records for its rounds;
//   - the drivers, teams and engines in those records, which the facts may lack;
//   - the names that drivers had before;
//   - the decisions about the championships;
//   - whether the archive vouches for a result, and whether the source differs from it;
//   - the state of each round.
//
// The instant and the head of the ledger do not count. One program renders seasons with
// equal digests to equal documents.
type Digest [sha256.Size]byte

// Digests returns the digest of each season of a.Years, by year.
func (a *Almanac) Digests() map[int]Digest { return a.digests() }

func (a *Almanac) makeDigests() map[int]Digest {
	digests := map[int]Digest{}
	facts := map[int]season.Digest{}
	for i, d := range a.view.Digests() {
		facts[a.view.Seasons[i].Year] = d
	}
	for _, y := range a.Years {
		digests[y.Year] = y.digest(facts[y.Year])
	}
	return digests
}

func (y *Year) digest(facts season.Digest) Digest {
	h := sha256.New()
	write := json.NewEncoder(h).Encode
	err := write(facts)
	if err == nil && len(y.Rounds) > 0 {
		err = write([]any{y.Rounds[0].state.Aliases(), y.Rounds[0].state.AllChampionship(y.Year)})
	}
	for _, r := range y.Rounds {
		inputs := struct {
			Session int64
			Vouched bool
			Differs bool
			State   State
			Record  ledger.RoundRecord
			Drivers []season.Driver
			Teams   []season.Team
			Engines []season.Engine
		}{Session: r.Session, Vouched: r.vouchable(), Differs: r.Differs(), State: r.State, Record: r.Record}
		if !r.Vouched() { // a vouched result is part of the facts, and its round has no other record
			for _, id := range append(spokenOf(r), r.foreseen()...) {
				inputs.Drivers = append(inputs.Drivers, r.view.Driver(id))
			}
		}
		for _, v := range r.Record.Revisions {
			for _, row := range slices.Concat(v.Rows, v.Sprint) {
				inputs.Teams = append(inputs.Teams, r.view.Team(row.Team))
				inputs.Engines = append(inputs.Engines, r.view.Engines[row.Engine])
			}
		}
		if err == nil {
			err = write(inputs)
		}
	}
	if err != nil {
		panic("BUG: the inputs of a season cannot be written as JSON: " + err.Error())
	}
	return Digest(h.Sum(nil))
}
