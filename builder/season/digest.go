package season

import (
	"crypto/sha256"
	"encoding/json"
	"time"
)

// Digest is the SHA-256 of facts.
type Digest [sha256.Size]byte

// Digests returns a digest for each season of the view, in order. It covers everything that the view
// shows of that season and of all seasons before it, with the drivers, teams, engines and circuits
// in their rows. Earlier seasons count because driver codes depend on them.
//
// The archive computes the digest of a whole season once. A season that the view shows in part is
// computed again for each call.
func (v *View) Digests() []Digest {
	digests := make([]Digest, len(v.Seasons))
	_ = sideBySide(len(digests), func(i int) error {
		digests[i] = v.digest(i)
		return nil
	})
	for i := 1; i < len(digests); i++ {
		digests[i] = sha256.Sum256(append(digests[i-1][:], digests[i][:]...))
	}
	return digests
}

// digest covers the i-th season of the view alone.
func (v *View) digest(i int) Digest {
	shown := &v.Seasons[i]
	if a := v.archive; a != nil && i < len(a.facts.Seasons) && !v.At.Before(a.index.complete[i]) {
		// A copy of a view may have changed rounds. Then it has another slice of them.
		if all := a.facts.Seasons[i].Rounds; len(all) > 0 && len(shown.Rounds) == len(all) && &shown.Rounds[0] == &all[0] {
			return a.index.digests[i]()
		}
	}
	return shown.digest(&v.Facts)
}

// digest covers the season and the rows of the tables that it refers to.
func (s *Season) digest(tables *Facts) Digest {
	named := s.firstSeen()
	text, err := json.Marshal(struct { // maps are written in the order of their keys
		Season   *Season
		Drivers  map[DriverID]Driver
		Teams    map[TeamID]Team
		Engines  map[EngineID]Engine
		Circuits map[CircuitID]Circuit
	}{s, rowsOf(tables.Drivers, named.drivers), rowsOf(tables.Teams, named.teams), rowsOf(tables.Engines, named.engines), rowsOf(tables.Circuits, named.circuits)})
	if err != nil {
		panic("BUG: facts cannot be written as JSON: " + err.Error())
	}
	return sha256.Sum256(text)
}

func rowsOf[K comparable, V any](table map[K]V, named map[K]time.Time) map[K]V {
	rows := make(map[K]V, len(named))
	for key := range named {
		if row, ok := table[key]; ok {
			rows[key] = row
		}
	}
	return rows
}
