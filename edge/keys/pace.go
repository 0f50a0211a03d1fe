package keys

import "time"

// stint is how long a table is worked at without a pause.
const stint = 500 * time.Microsecond

// pace spreads long work: after each stint it sleeps as long. On one processor the scheduler
// would let requests wait for ten milliseconds before it interrupted the work.
type pace struct {
	hurry bool // nobody is being served: no pauses
	steps int
	since time.Time
}

// step is called between small pieces of the work.
func (p *pace) step() {
	if p.steps++; p.hurry || p.steps%16 != 0 {
		return
	}
	if worked := time.Since(p.since); worked >= stint {
		time.Sleep(min(worked, 4*stint)) // not for as long as something else kept it from its work
		p.since = time.Now()
	}
}
