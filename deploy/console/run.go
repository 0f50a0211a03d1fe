package console

import (
	"context"
	"crypto/rand"
	"math"
	"slices"
	"sync"
	"time"

	"gridcast/builder"
	"gridcast/snapshots"
)

// Phase is a part of a run.
type Phase string

// The phases in sequence. A run skips unneeded phases, and ends with Done or Failed.
const (
	Prepare Phase = "prepare" // the action is logged, facts are loaded, due events are settled
	Render  Phase = builder.Render
	Upload  Phase = snapshots.Upload
	Check   Phase = snapshots.Check
	Swap    Phase = snapshots.Swap
	Serve   Phase = "serve" // edges take the version
	Done    Phase = "done"
	Failed  Phase = "failed"
)

// Event is one step of a run, as it is streamed.
type Event struct {
	Seq   int    `json:"seq"` // from 1
	Phase Phase  `json:"phase"`
	Done  int    `json:"done,omitzero"`
	Total int    `json:"total,omitzero"`
	Text  string `json:"text,omitzero"` // for people

	Result *Result `json:"result,omitzero"` // of Done
	Error  string  `json:"error,omitzero"`  // of Failed
}

// Ends reports whether the run is over with the event.
func (e Event) Ends() bool { return e.Phase == Done || e.Phase == Failed }

// Result is the outcome of a run.
type Result struct {
	Version        int64        `json:"version"`
	Unchanged      bool         `json:"unchanged"` // the published version was up to date
	Changed        []string     `json:"changed"`   // variants that differ from the version before
	ObjectsWritten int          `json:"objects_written"`
	ObjectsReused  int          `json:"objects_reused"`
	BuildSeconds   float64      `json:"build_seconds"`
	ServedSeconds  float64      `json:"served_seconds"` // from the request until the last edge served it
	ServedSince    time.Time    `json:"served_since,omitzero"`
	Edges          []EdgeResult `json:"edges"`
}

// EdgeResult is the instant at which an edge served the version of a run.
type EdgeResult struct {
	Name    string  `json:"name"`
	Seconds float64 `json:"seconds,omitzero"` // from the request
	Problem string  `json:"problem,omitzero"`
}

// Run is an action that takes a while. It is safe for concurrent use.
type Run struct {
	ID       string
	Title    string
	Operator string
	Back     string // the page that it leads back to
	Began    time.Time

	mu      sync.Mutex
	events  []Event
	changed chan struct{} // closed at the next event
}

// since returns the events after a number, true if the run has ended, and a channel that closes when more
// events come.
func (r *Run) since(seq int) (events []Event, ended bool, more <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if seq < len(r.events) {
		events = slices.Clone(r.events[max(seq, 0):])
	}
	return events, r.last().Ends(), r.changed
}

// Last returns the latest event; the zero Event before the first.
func (r *Run) Last() Event {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.last()
}

// last is Last while r.mu is held.
func (r *Run) last() Event {
	if len(r.events) == 0 {
		return Event{}
	}
	return r.events[len(r.events)-1]
}

// wait waits for the end of the run; false if ctx ends first.
func (r *Run) wait(ctx context.Context) bool {
	for {
		_, ended, more := r.since(math.MaxInt)
		if ended {
			return true
		}
		select {
		case <-more:
		case <-ctx.Done():
			return false
		}
	}
}

// add appends an event. It drops progress within a phase that is too fast for a reader.
func (r *Run) add(e Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if n := len(r.events); n > 0 && !worthTelling(r.events[n-1], e) {
		return
	}
	e.Seq = len(r.events) + 1
	r.events = append(r.events, e)
	close(r.changed)
	r.changed = make(chan struct{})
}

// steps limits the reported events of a phase.
const steps = 20

func worthTelling(last, next Event) bool {
	return next.Phase != last.Phase || next.Total == 0 || next.Done == next.Total ||
		next.Done*steps/next.Total > last.Done*steps/next.Total
}

type runs struct {
	mu     sync.Mutex
	latest []*Run // oldest first
}

const keptRuns = 50

func (rs *runs) begin(title, operator, back string) *Run {
	r := &Run{ID: rand.Text(), Title: title, Operator: operator, Back: back, Began: time.Now(), changed: make(chan struct{})}
	rs.mu.Lock()
	defer rs.mu.Unlock()
	rs.latest = append(rs.latest, r)
	if len(rs.latest) > keptRuns {
		rs.latest = slices.Clone(rs.latest[1:])
	}
	return r
}

func (rs *runs) find(id string) (*Run, bool) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	i := slices.IndexFunc(rs.latest, func(r *Run) bool { return r.ID == id })
	if i < 0 {
		return nil, false
	}
	return rs.latest[i], true
}

// current returns the latest run; nil if there was none.
func (rs *runs) current() *Run {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	if len(rs.latest) == 0 {
		return nil
	}
	return rs.latest[len(rs.latest)-1]
}
