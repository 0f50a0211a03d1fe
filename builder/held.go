package builder

import (
	"slices"
	"time"

	"gridcast/builder/ledger"
	"gridcast/builder/season"
)

// held returns the view without the races that by the ledger have not been held: of rounds that
// are postponed or cancelled, or start later than the source says. A source that is up to date
// has nothing to say of them; an archive of the past has, when it is replayed with other
// decisions, and nobody may predict from that or verify it.
func held(v *season.View, s *ledger.State) *season.View {
	known := *v
	known.Seasons = slices.Clone(v.Seasons)
	for i := range known.Seasons {
		year := &known.Seasons[i]
		unheld := func(r season.Round) bool {
			said, _ := session(s, year.Year, &r)
			return r.Finished() && (said.Override.Status != ledger.AsPlanned || v.At.Before(ended(&r, &said)))
		}
		if !slices.ContainsFunc(year.Rounds, unheld) {
			continue
		}
		year.Rounds = slices.Clone(year.Rounds)
		for j := range year.Rounds {
			if r := &year.Rounds[j]; unheld(*r) {
				r.Results, r.FastestLaps, r.PitStops, r.DriverStandings, r.TeamStandings = nil, nil, nil, nil, nil
			}
		}
	}
	return &known
}

// ended is when the race of a round ends: it lasts as long as the source says, from the start
// that is valid.
func ended(r *season.Round, said *ledger.Session) time.Time {
	return said.Start(r.StartsAt()).Add(r.ResultKnownAt().Sub(r.StartsAt()))
}
