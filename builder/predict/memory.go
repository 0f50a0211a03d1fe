package predict

import (
	"crypto/sha256"
	"encoding/json"
	"reflect"
	"slices"

	"gridcast/builder/season"
)

// memory is the processed history of a view. For the races of another view it keeps the steps of the
// longest common beginning and processes the rest. The result is the same as processing all races from
// the first one.
//
// Cache, by the digest of each round: a pick takes 9 ms of processor time, and .72 s from the first race on.
type memory struct {
	p        Params
	steps    []step
	lineages season.Digest  // of the lineages that gave the teams of all steps
	state    *state         // after all steps
	winters  map[int]*state // by number of steps: the state before a season's first race
}

// step is one race of the history, with its inputs.
type step struct {
	year   int
	facts  season.Digest   // of the round
	teams  []season.TeamID // of the starters, by the first of their lineage
	sample *sample
	inputs season.Digest // of this step and all before it

	starts, out int // of the race: all, and those that were not classified
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
	lineages := digestOf(v.Lineages)
	digests := make([]season.Digest, len(run))
	for i := range run {
		digests[i] = races[run[i]].round.Digest()
	}
	kept := 0
	for kept < len(m.steps) && kept < len(run) {
		s := &m.steps[kept]
		if s.year != races[run[kept]].year || s.facts != digests[kept] || m.lineages != lineages && !s.sameTeams(races[:run[kept]+1], v) {
			break
		}
		kept++
	}
	m.rewind(kept)
	m.lineages = lineages
	for k := len(m.steps); k < len(run); k++ { // rewind may have kept fewer
		m.step(races[:run[k]+1], v, digests[k])
	}
}

func digestOf(lineages []season.Lineage) (d season.Digest) {
	for _, l := range lineages {
		d = season.With(d, len(l.Links))
		for _, link := range l.Links {
			d = season.With(d, link)
		}
	}
	return d
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

func (m *memory) step(races []race, v *season.View, facts season.Digest) {
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
	s := step{year: r.year, facts: facts, teams: smp.teams, sample: smp, inputs: m.inputs(r.year, facts, smp.teams)}
	for i := range r.round.Results {
		if row := &r.round.Results[i]; row.Started() {
			s.starts++
			if row.Position == 0 {
				s.out++
			}
		}
	}
	m.steps = append(m.steps, s)
}

// inputs returns the digest of a new step and all before it.
func (m *memory) inputs(year int, facts season.Digest, teams []season.TeamID) (d season.Digest) {
	if n := len(m.steps); n > 0 {
		d = m.steps[n-1].inputs
	}
	d = season.With(season.With(d, year), facts)
	for _, team := range teams {
		d = season.With(d, team)
	}
	return d
}

// factsOf lists the facts of a round that the models use.
func factsOf(r *season.Round) []any {
	return []any{
		r.GrandPrix, r.Sprint, r.Entries, r.Practice, r.Qualifying, r.SprintQualifying, r.SprintResults, r.Grid, r.Results,
		r.FastestLaps, r.DriverStandings, r.TeamStandings,
	}
}

// Digester makes the digests of the inputs of predictions, so that a prediction can be stored under them. The digests are
// the same in every process. It is not safe for concurrent use.
type Digester struct {
	now  *season.View
	sums map[roundID][sha256.Size]byte // of the rounds of now
}

type roundID struct {
	year int
	gp   season.GrandPrixID
}

// NewDigester returns a Digester for predictions from a view and from views of earlier instants, which share most of its facts.
// It computes the digest of a round of the view once. Facts must not change in its lifetime.
func NewDigester(now *season.View) *Digester {
	return &Digester{now, map[roundID][sha256.Size]byte{}}
}

// Sum returns the digest of everything that a model or a simulation reads from a view to predict a
// round: the rounds up to it within the model's history, and the lineages. The error wraps ErrNoRound.
func (d *Digester) Sum(m *Ranked, v *season.View, year int, round season.GrandPrixID) ([sha256.Size]byte, error) {
	races, err := upTo(v, year, round)
	if err != nil {
		return [sha256.Size]byte{}, err
	}
	h := sha256.New()
	text := json.NewEncoder(h)
	if err := text.Encode([]any{m.name, m.p, year, v.Lineages}); err != nil {
		return [sha256.Size]byte{}, err
	}
	for _, r := range m.history(races) {
		sum, err := d.round(r)
		if err != nil {
			return [sha256.Size]byte{}, err
		}
		_, _ = h.Write(append(sum[:], byte(r.year>>8), byte(r.year)))
	}
	return [sha256.Size]byte(h.Sum(nil)), nil
}

// round digests the facts of a round.
func (d *Digester) round(r race) (sum [sha256.Size]byte, err error) {
	id := roundID{r.year, r.round.GrandPrix}
	now, ok := d.now.Round(id.year, id.gp)
	if ok = ok && (now == r.round || reflect.DeepEqual(factsOf(now), factsOf(r.round))); ok {
		if sum, known := d.sums[id]; known {
			return sum, nil
		}
	}
	text, err := json.Marshal(factsOf(r.round))
	if sum = sha256.Sum256(text); ok && err == nil {
		d.sums[id] = sum
	}
	return sum, err
}
