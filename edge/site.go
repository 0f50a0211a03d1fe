package edge

import (
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"gridcast/edge/resident"
	"gridcast/schemas"
	"gridcast/schemas/catalog"
	"gridcast/schemas/docs"
	"gridcast/schemas/frame"
	"gridcast/snapshots"
)

// site holds the documents that change with the program and the operator alone, by path. The first request for one of
// them makes and compresses it, so that the start of an edge waits for none of them.
//
// Cache, by the operator: making the documents takes 100 ms of processor time.
type site struct {
	operator snapshots.Operator

	contract  map[string]func() *resident.Page        // of programs, browsers and crawlers
	explained func() map[string]func() *resident.Page // about the API; the first call renders all
}

// operator returns the operator as the served version names it; empty before the first version.
func (e *Edge) operator() snapshots.Operator {
	if set := e.real.current(); set != nil {
		return set.Version().Manifest.Operator
	}
	return snapshots.Operator{}
}

// tell fills the foot of a page with the operator.
func (e *Edge) tell(page []byte) []byte {
	operator := e.operator()
	return frame.Tell(page, operator.Contact, operator.Terms)
}

// latest is the site of the operator that the last request needed.
var latest atomic.Pointer[site]

// siteOf returns the documents of an operator.
func siteOf(operator snapshots.Operator) *site {
	if s := latest.Load(); s != nil && s.operator == operator {
		return s
	}
	s := newSite(operator)
	latest.Store(s)
	return s
}

func newSite(operator snapshots.Operator) *site {
	constant := func(contentType string, body func() []byte, more ...resident.Field) func() *resident.Page {
		return sync.OnceValue(func() *resident.Page {
			content, fields := body(), more
			if strings.HasPrefix(contentType, "text/html") {
				content = frame.Tell(content, operator.Contact, operator.Terms)
				fields = protection(content)
			}
			return document(resident.NewField("Content-Type", contentType), content, untilRelease, fields...)
		})
	}
	api := sync.OnceValue(func() [2][]byte {
		asJSON, asYAML := schemas.OpenAPIOf(operator.Contact, operator.Terms)
		return [2][]byte{asJSON, asYAML}
	})
	s := &site{operator: operator, contract: map[string]func() *resident.Page{
		"/openapi.json": constant("application/json; charset=utf-8", func() []byte { return api()[0] }),
		"/openapi.yaml": constant("application/yaml; charset=utf-8", func() []byte { return api()[1] }),
		"/favicon.ico":  constant("image/svg+xml", func() []byte { return favicon }),
		"/robots.txt":   constant("text/plain; charset=utf-8", func() []byte { return []byte(robots) }),
		catalogPath: constant(linkset, func() []byte { return apiCatalog(operator) },
			resident.NewField("Link", "<"+catalogPath+`>; rel="api-catalog"`)),
	}}
	s.explained = sync.OnceValue(func() map[string]func() *resident.Page {
		all := map[string]func() *resident.Page{}
		for _, d := range docs.Documents() {
			all[d.Path] = constant(d.ContentType, func() []byte { return d.Body })
		}
		return all
	})
	return s
}

// The well-known documents (RFC 8615).
const (
	catalogPath  = "/.well-known/api-catalog"
	securityPath = "/.well-known/security.txt"
)

// linkset is the content type of an API catalog (RFC 9727, section 4).
const linkset = `application/linkset+json; profile="https://www.rfc-editor.org/info/rfc9727"`

// apiCatalog returns the links of RFC 9727 to the API and everything about it. They are absolute if the operator has set
// the address of the API.
func apiCatalog(operator snapshots.Operator) []byte {
	type link struct {
		Href string `json:"href"`
		Type string `json:"type,omitempty"`
	}
	to := func(path, kind string) link { return link{operator.Address + path, kind} }
	about := map[string]any{
		"anchor":       operator.Address + catalog.BasePath,
		"service-desc": []link{to("/openapi.json", "application/json"), to("/openapi.yaml", "application/yaml")},
		"service-doc":  []link{to("/docs", "text/html"), to("/llms.txt", "text/plain")},
		"service-meta": []link{to(docs.ChangesFeed, "application/atom+xml")},
		"status":       []link{to(statusPath, "application/json")},
		"license":      []link{{Href: docs.License}},
	}
	if operator.Terms != "" {
		about["terms-of-service"] = []link{{Href: operator.Terms}}
	}
	return marshal(map[string]any{"linkset": []any{
		map[string]any{"anchor": operator.Address + catalogPath, "item": []link{{Href: operator.Address + catalog.BasePath}}}, about,
	}})
}

// security returns security.txt (RFC 9116) of an operator with a contact, at an instant of real time. It expires after ten
// to eleven months, so that the end is always ahead, by less than a year. All edges name the same end.
func security(operator snapshots.Operator, now time.Time) *resident.Response {
	expires := time.Date(now.UTC().Year(), now.UTC().Month()+11, 1, 0, 0, 0, 0, time.UTC)
	canonical := ""
	if strings.HasPrefix(operator.Address, "https:") { // the RFC allows no other
		canonical = operator.Address + securityPath
	}
	var text strings.Builder
	for _, f := range [][2]string{
		{"Contact", operator.Contact},
		{"Expires", expires.Format(time.RFC3339)},
		{"Preferred-Languages", operator.Languages},
		{"Canonical", canonical},
		{"Policy", operator.Policy},
	} {
		if f[1] != "" {
			text.WriteString(f[0] + ": " + f[1] + "\n")
		}
	}
	header := resident.Common(resident.NewField("Content-Type", "text/plain; charset=utf-8"), resident.NewField("Cache-Control", untilRelease))
	return resident.New(http.StatusOK, nil, header, []byte(text.String()))
}
