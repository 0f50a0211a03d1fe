package predict

import (
	"crypto/sha256"
	"encoding/json"
	"reflect"
	"slices"
	"sync"

	"gridcast/builder/season"
)

// memory is the processed history of a view. For the races of another view it keeps the steps of the
// longest common beginning and processes the rest. The result is the same as processing all races from
// the first one.
type memory struct {
	p        Params
	steps    []step
	lineages []season.Lineage // that gave the teams of all steps
	state    *state           // after all steps
	winters  map[int]*state   // by number of steps: the state before a season's first race
}

// step is one race of the history, with its inputs.
type step struct {
	year   int
	round  season.Round
	teams  []season.TeamID // of the starters, by the first of their lineage
	sample *sample
}

// follow brings the memory to the races before the last one.
func (m *memory) follow(races []race, v *season.View) {
	var run []int // the finished races
	for i, r := range races[:len(races)-1] {
		if r.round.Finished() {
			run = append(run, i)
		}
	}
	// The same facts and the same lineages give the same step. If the lineages differ, for example
	// because a team took another name, sameTeams finds the teams again and compares them.
	sameLineages := slices.EqualFunc(m.lineages, v.Lineages, func(a, b season.Lineage) bool { return slices.Equal(a.Links, b.Links) })
	kept := 0
	for kept < len(m.steps) && kept < len(run) {
		s, r := &m.steps[kept], races[run[kept]]
		if s.year != r.year || !sameRound(&s.round, r.round) || !sameLineages && !s.sameTeams(races[:run[kept]+1], v) {
			break
		}
		kept++
	}
	m.rewind(kept)
	m.lineages = v.Lineages
	for _, i := range run[len(m.steps):] {
		m.step(races[:i+1], v)
	}
}

// sameTeams reports whether the starters of the last race still belong to the lineages of the step. The
// facts of the race must be those of the step.
func (s *step) sameTeams(races []race, v *season.View) bool {
	runners, _ := field(races)
	return slices.EqualFunc(s.teams, runners, func(t season.TeamID, run runner) bool { return t == v.Root(run.team, s.year) })
}

// rewind keeps the first n steps. It goes back to the state of the winter before the last of them and
// repeats the steps since.
func (m *memory) rewind(n int) {
	if n == len(m.steps) && m.state != nil {
		return
	}
	for n > 0 && m.winters[n] == nil {
		n--
	}
	m.steps = m.steps[:n:n]
	m.state = newState(m.p)
	if before := m.winters[n]; before != nil {
		m.state = before.clone()
	}
	for k := range m.winters {
		if k > n {
			delete(m.winters, k)
		}
	}
}

func (m *memory) step(races []race, v *season.View) {
	r := races[len(races)-1]
	if r.year != m.state.year {
		if m.winters == nil {
			m.winters = map[int]*state{}
		}
		m.winters[len(m.steps)] = m.state.clone()
	}
	m.state.enter(r.year)
	smp, w := m.state.before(races, v)
	m.state.after(smp, w, r.round)
	m.steps = append(m.steps, step{r.year, *r.round, smp.teams, smp})
}

// sameRound reports whether two rounds have the same facts, of those that the models use. Facts in an archive never
// change, so that equal addresses mean equal facts.
func sameRound(a, b *season.Round) bool {
	return rowsOfRound(a) == rowsOfRound(b) || reflect.DeepEqual(factsOf(a), factsOf(b))
}

// factsOf lists the facts of a round that the models use.
func factsOf(r *season.Round) []any {
	return []any{
		r.GrandPrix, r.Sprint, r.Entries, r.Practice, r.Qualifying, r.SprintQualifying, r.SprintResults, r.Grid, r.Results,
		r.FastestLaps, r.DriverStandings, r.TeamStandings,
	}
}

// Inputs identifies the inputs of a prediction by a digest, so that a prediction can be cached by it,
// also across restarts. It digests each round of an archive once, and is safe for concurrent use.
type Inputs struct {
	mu     sync.Mutex
	rounds map[roundRows][sha256.Size]byte
}

// NewInputs returns Inputs for the views of one archive. It caches digests by the addresses of rows.
func NewInputs() *Inputs { return &Inputs{rounds: map[roundRows][sha256.Size]byte{}} }

// roundRows identifies the facts of factsOf by the addresses of their rows.
type roundRows struct {
	gp     season.GrandPrixID
	sprint bool
	tables [13]rows
}

type rows struct {
	first any // a pointer to the first row; nil: there are none
	n     int
}

func rowsOf[T any](s []T) (r rows) {
	if len(s) > 0 {
		r = rows{&s[0], len(s)}
	}
	return r
}

// Sum returns the digest of everything that a model or a simulation reads from a view to predict a
// round: the rounds up to it within the model's history, and the lineages. The error wraps ErrNoRound.
func (in *Inputs) Sum(m *Ranked, v *season.View, year int, round season.GrandPrixID) ([sha256.Size]byte, error) {
	races, err := upTo(v, year, round)
	if err != nil {
		return [sha256.Size]byte{}, err
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	h := sha256.New()
	text := json.NewEncoder(h)
	if err := text.Encode([]any{m.name, m.p, year, v.Lineages}); err != nil {
		return [sha256.Size]byte{}, err
	}
	for _, r := range m.history(races) {
		sum, err := in.round(r.round)
		if err != nil {
			return [sha256.Size]byte{}, err
		}
		_, _ = h.Write(append(sum[:], byte(r.year>>8), byte(r.year)))
	}
	return [sha256.Size]byte(h.Sum(nil)), nil
}

func rowsOfRound(r *season.Round) roundRows {
	return roundRows{r.GrandPrix, r.Sprint, [13]rows{
		rowsOf(r.Practice[0]), rowsOf(r.Practice[1]), rowsOf(r.Practice[2]), rowsOf(r.Practice[3]), rowsOf(r.Entries), rowsOf(r.Grid),
		rowsOf(r.Qualifying), rowsOf(r.SprintQualifying), rowsOf(r.SprintResults), rowsOf(r.Results), rowsOf(r.FastestLaps),
		rowsOf(r.DriverStandings), rowsOf(r.TeamStandings),
	}}
}

// round digests the facts of a round.
func (in *Inputs) round(r *season.Round) ([sha256.Size]byte, error) {
	key := rowsOfRound(r)
	if sum, ok := in.rounds[key]; ok {
		return sum, nil
	}
	text, err := json.Marshal(factsOf(r))
	if err != nil {
		return [sha256.Size]byte{}, err
	}
	in.rounds[key] = sha256.Sum256(text)
	return in.rounds[key], nil
}
