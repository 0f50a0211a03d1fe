package edge

import (
	"bytes"
	_ "embed"
	"fmt"
	"html/template"
	"net/http"

	"gridcast/edge/negotiate"
	"gridcast/edge/resident"
	"gridcast/schemas/wire"
)

//go:embed status.html
var statusHTML string

var (
	html       = resident.NewField("Content-Type", "text/html; charset=utf-8")
	variesByA  = resident.NewField("Vary", "Accept")
	fiveMinute = resident.NewField("Cache-Control", "public, max-age=300")
)

// public answers what needs no key: the documents of the contract, health and status.
type public struct {
	edge       *Edge
	documents  map[string]*resident.Response
	statusPage *template.Template
}

func newPublic(e *Edge) (*public, error) {
	page, err := template.New("status").Parse(statusHTML)
	if err != nil {
		return nil, fmt.Errorf("status page: %w", err)
	}
	documents, err := documents()
	if err != nil {
		return nil, err
	}
	return &public{edge: e, documents: documents, statusPage: page}, nil
}

// serve answers a target outside the base path.
func (p *public) serve(r *request) answer {
	path, _, _ := bytes.Cut(r.target, []byte{'?'})
	if len(path) > 1 {
		path = bytes.TrimSuffix(path, []byte{'/'})
	}
	respond := p.find(string(path))
	switch {
	case respond == nil:
		return answer{response: noRoute}
	case r.method != get:
		return answer{response: wrongMethod}
	}
	return respond(r)
}

func (p *public) find(path string) func(*request) answer {
	if document := p.documents[path]; document != nil {
		return func(*request) answer { return answer{response: document} }
	}
	switch path {
	case "/healthz":
		return p.health
	case "/readyz":
		return p.readiness
	case "/status":
		return p.status
	}
	return nil
}

// Health is the data of /healthz and /readyz.
type Health struct {
	Status string `json:"status"` // "ok"
}

// health says that the process answers: to restart it would not help.
func (p *public) health(*request) answer {
	return answer{response: p.data(Health{Status: "ok"})}
}

// readiness says whether requests should be sent here.
func (p *public) readiness(*request) answer {
	if err := p.edge.Ready(); err != nil {
		return answer{
			response:   refusal(http.StatusServiceUnavailable, wire.Unavailable, err.Error()),
			retryAfter: retrySoon,
		}
	}
	return answer{response: p.data(Health{Status: "ok"})}
}

func (p *public) status(r *request) answer {
	status := p.edge.Status()
	if !negotiate.PrefersHTML(r.accept) {
		return answer{response: p.data(status, variesByA)}
	}
	var page bytes.Buffer
	if err := p.statusPage.Execute(&page, status); err != nil {
		panic("BUG: status page: " + err.Error())
	}
	return answer{response: &resident.Response{
		Status: http.StatusOK,
		Fields: resident.Uncached(html, variesByA),
		Body:   page.Bytes(),
	}}
}

// data makes a success response of something that is computed on request.
func (p *public) data(v any, fields ...resident.Field) *resident.Response {
	body, err := wire.Marshal(wire.Wrap(v, p.edge.deps.RaceTime()))
	if err != nil {
		panic("BUG: " + err.Error())
	}
	return &resident.Response{
		Status: http.StatusOK,
		Fields: resident.Uncached(append([]resident.Field{resident.JSON}, fields...)...),
		Body:   body,
	}
}

// document makes the response of something that is the same for the life of the process.
func document(contentType resident.Field, body []byte) *resident.Response {
	return &resident.Response{Status: http.StatusOK, Fields: resident.Common(contentType, fiveMinute), Body: body}
}
