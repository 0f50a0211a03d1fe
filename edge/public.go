package edge

import (
	"bytes"
	_ "embed"
	"fmt"
	"html/template"
	"net/http"
	"time"

	"gridcast/edge/negotiate"
	"gridcast/edge/resident"
	"gridcast/schemas/wire"
)

//go:embed status.html
var statusSource string

var (
	html      = resident.NewField("Content-Type", "text/html; charset=utf-8")
	variesByA = resident.NewField("Vary", "Accept")
)

// public answers what needs no key: the documents of the contract, health and status.
type public struct {
	edge       *Edge
	documents  map[string]*resident.Page
	statusHTML *template.Template
}

func newPublic(e *Edge) (*public, error) {
	page, err := template.New("status").Parse(statusSource)
	if err != nil {
		return nil, fmt.Errorf("status page: %w", err)
	}
	documents, err := documents()
	if err != nil {
		return nil, err
	}
	return &public{edge: e, documents: documents, statusHTML: page}, nil
}

// serve answers a target outside the base path.
func (p *public) serve(r *request) answer {
	path, _, _ := bytes.Cut(r.target, []byte{'?'})
	if len(path) > 1 {
		path = bytes.TrimSuffix(path, []byte{'/'})
	}
	document := p.documents[string(path)]
	switch {
	case document == nil && !computed(path):
		return answer{response: noRoute}
	case r.method != get:
		return answer{response: wrongMethod}
	case document != nil:
		return answer{response: document.Answer(r.acceptEncoding, r.ifNoneMatch)}
	case string(path) == healthPath:
		return p.health()
	case string(path) == readyPath:
		return p.readiness()
	}
	return p.status(r.accept)
}

// The paths whose answer depends on the moment.
const (
	healthPath = "/healthz"
	readyPath  = "/readyz"
	statusPath = "/status"
)

func computed(path []byte) bool {
	return string(path) == healthPath || string(path) == readyPath || string(path) == statusPath
}

// Health is the data of /healthz and /readyz.
type Health struct {
	Status string `json:"status"` // "ok"
}

// health says that the process answers: to restart it would not help.
func (p *public) health() answer {
	return answer{response: p.data(Health{Status: "ok"})}
}

// readiness says whether requests should be sent here.
func (p *public) readiness() answer {
	if err := p.edge.Ready(); err != nil {
		return answer{
			response:   refusal(http.StatusServiceUnavailable, wire.Unavailable, err.Error()),
			retryAfter: retrySoon,
		}
	}
	return answer{response: p.data(Health{Status: "ok"})}
}

func (p *public) status(accept []byte) answer {
	status := p.edge.Status().forStrangers()
	if !negotiate.PrefersHTML(accept) {
		return answer{response: p.data(status, variesByA)}
	}
	var page bytes.Buffer
	if err := p.statusHTML.Execute(&page, status); err != nil {
		panic("BUG: status page: " + err.Error())
	}
	return answer{response: resident.New(http.StatusOK, nil, resident.Uncached(html, variesByA), page.Bytes())}
}

// data makes a success response of something that is computed on request.
func (p *public) data(v any, fields ...resident.Field) *resident.Response {
	body, err := wire.Marshal(wire.Wrap(v, p.edge.deps.RaceTime(time.Now())))
	if err != nil {
		panic("BUG: " + err.Error())
	}
	return resident.New(http.StatusOK, nil, resident.Uncached(append([]resident.Field{resident.JSON}, fields...)...), body)
}
