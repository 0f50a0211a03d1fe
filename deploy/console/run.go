package console

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"gridcast/builder"
	"gridcast/schemas/wire"
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

// Event is one step of a run.
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
	last    Event
	changed chan struct{} // closed at the next event
}

// Last returns the latest event; the zero Event before the first.
func (r *Run) Last() Event {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.last
}

// wait waits for an event after the one with a number. It returns early at the end of the run, or when ctx ends.
func (r *Run) wait(ctx context.Context, seq int) {
	for {
		r.mu.Lock()
		last, changed := r.last, r.changed
		r.mu.Unlock()
		if last.Seq > seq || last.Ends() {
			return
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}

// add makes an event the latest one. It drops progress within a phase that is too fast for a reader.
func (r *Run) add(e Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	news := e.Phase != r.last.Phase || e.Total == 0 || e.Done == e.Total || e.Done*steps/e.Total > r.last.Done*steps/e.Total
	if !news {
		return
	}
	e.Seq = r.last.Seq + 1
	r.last = e
	close(r.changed)
	r.changed = make(chan struct{})
}

// steps limits the reported events of a phase.
const steps = 20

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

func (rs *runs) current() *Run {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	if len(rs.latest) == 0 {
		return nil
	}
	return rs.latest[len(rs.latest)-1]
}

// runAnswer is a run as JSON, and on its page for browsers without scripts.
type runAnswer struct {
	ID       string    `json:"id"`
	Title    string    `json:"title"`
	Operator string    `json:"operator"`
	Back     string    `json:"-"`
	Began    time.Time `json:"began"`
	Ended    bool      `json:"ended"`
	Last     Event     `json:"last"`
}

func answerOf(r *Run) runAnswer {
	last := r.Last()
	return runAnswer{ID: r.ID, Title: r.Title, Operator: r.Operator, Back: r.Back, Began: r.Began.UTC(), Ended: last.Ends(), Last: last}
}

// answerRun answers with the address of a run: a redirect for a browser without scripts, else JSON.
func (c *Console) answerRun(w http.ResponseWriter, r *http.Request, run *Run) {
	if wantsPage(r) {
		http.Redirect(w, r, "/runs/"+run.ID, http.StatusSeeOther)
		return
	}
	w.Header().Set("Location", "/runs/"+run.ID)
	writeJSON(w, http.StatusAccepted, answerOf(run))
}

// longestWait limits how long an answer waits for the next event of a run.
const longestWait = 15 * time.Second

// showRun answers with the latest event of a run. With ?after=SEQ a program waits for an event after the one with the number.
func (c *Console) showRun(w http.ResponseWriter, r *http.Request, _ visitor) {
	run, ok := c.runs.find(r.PathValue("run"))
	switch seq, err := strconv.Atoi(r.FormValue("after")); {
	case !ok:
		c.refuse(w, r, http.StatusNotFound, "no such run; only the latest are kept, and only until the scheduler restarts")
		return
	case wantsPage(r):
		if !run.Last().Ends() {
			w.Header().Set("Refresh", "1")
		}
		c.render(w, http.StatusOK, "run", answerOf(run))
		return
	case err == nil:
		ctx, cancel := context.WithTimeout(r.Context(), longestWait)
		defer cancel()
		defer context.AfterFunc(c.ctx, cancel)()
		run.wait(ctx, seq)
	}
	writeJSON(w, http.StatusOK, answerOf(run))
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	body, err := json.Marshal(v)
	if err != nil {
		panic("BUG: answer of the operator's port: " + err.Error())
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write(body) // the client may have gone
}

// refuse answers with an error, as a page or in the API's error form.
func (c *Console) refuse(w http.ResponseWriter, r *http.Request, status int, message string) {
	if wantsPage(r) {
		c.render(w, status, "refused", message)
		return
	}
	code := strings.ReplaceAll(strings.ToLower(http.StatusText(status)), " ", "_")
	writeJSON(w, status, wire.NewError(wire.Code(code), message))
}
