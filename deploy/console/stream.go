package console

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"gridcast/schemas/wire"
)

// runView is a run as JSON, and on its page for browsers without scripts.
type runView struct {
	ID       string    `json:"id"`
	Title    string    `json:"title"`
	Operator string    `json:"operator"`
	Back     string    `json:"-"`
	Began    time.Time `json:"began"`
	Ended    bool      `json:"ended"`
	Last     Event     `json:"last"`
}

func viewOf(r *Run) runView {
	last := r.Last()
	return runView{ID: r.ID, Title: r.Title, Operator: r.Operator, Back: r.Back, Began: r.Began.UTC(), Ended: last.Ends(), Last: last}
}

// answerRun answers with the address of a run: a redirect for a browser without scripts, else JSON, at once
// or, with ?wait, after the end of the run.
func (c *Console) answerRun(w http.ResponseWriter, r *http.Request, run *Run) {
	if wantsPage(r) {
		http.Redirect(w, r, "/runs/"+run.ID, http.StatusSeeOther)
		return
	}
	status := http.StatusAccepted
	if r.URL.Query().Has("wait") {
		out := http.NewResponseController(w)
		_ = errors.Join(out.SetReadDeadline(time.Time{}), out.SetWriteDeadline(time.Time{})) // otherwise the server's limits end it early
		if !run.wait(r.Context()) {
			return
		}
		status = http.StatusOK
	}
	w.Header().Set("Location", "/runs/"+run.ID)
	writeJSON(w, status, viewOf(run))
}

func (c *Console) showRun(w http.ResponseWriter, r *http.Request, _ visitor) {
	run, ok := c.runs.find(r.PathValue("run"))
	if !ok {
		c.refuse(w, r, http.StatusNotFound, "no such run; only the latest are kept, and only until the scheduler restarts")
		return
	}
	if wantsPage(r) {
		if !run.Last().Ends() {
			w.Header().Set("Refresh", "1")
		}
		c.render(w, http.StatusOK, "run", viewOf(run))
		return
	}
	writeJSON(w, http.StatusOK, viewOf(run))
}

// keepAlive is how often a stream without news sends a comment, so that proxies keep it open.
const keepAlive = 15 * time.Second

// streamRun sends the events of a run as they come, from the beginning or after the one the
// client saw last, and ends with the run.
func (c *Console) streamRun(w http.ResponseWriter, r *http.Request, _ visitor) {
	run, ok := c.runs.find(r.PathValue("run"))
	if !ok {
		c.refuse(w, r, http.StatusNotFound, "no such run")
		return
	}
	seq := 0
	if last := r.Header.Get("Last-Event-ID"); last != "" {
		if _, err := fmt.Sscan(last, &seq); err != nil || seq < 0 {
			c.refuse(w, r, http.StatusBadRequest, "Last-Event-ID: want the number of an event")
			return
		}
	}
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no") // a proxy must not buffer the stream
	out := http.NewResponseController(w)
	if err := errors.Join(out.SetReadDeadline(time.Time{}), out.SetWriteDeadline(time.Time{})); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return // the server's limits are for short answers
	}
	quiet := time.NewTicker(keepAlive)
	defer quiet.Stop()
	for {
		events, ended, more := run.since(seq)
		for _, e := range events {
			data, err := json.Marshal(e)
			if err != nil {
				panic("BUG: event of a run: " + err.Error())
			}
			if _, err := fmt.Fprintf(w, "id: %d\ndata: %s\n\n", e.Seq, data); err != nil {
				return
			}
			seq = e.Seq
		}
		if err := out.Flush(); err != nil || ended {
			return
		}
		select {
		case <-more:
		case <-quiet.C:
			if _, err := w.Write([]byte(": still here\n\n")); err != nil {
				return
			}
		case <-r.Context().Done():
			return
		case <-c.ctx.Done():
			return
		}
	}
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
