package console

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"net/http"
	"strings"
	"sync"
	"time"

	"gridcast/deploy/auditlog"
	"gridcast/deploy/operator"
	"gridcast/deploy/view"
	"gridcast/schemas/frame"
	"gridcast/schemas/wire"
)

//go:embed page.html
var pageSource string

//go:embed style.css
var styleSource string

//go:embed script.js
var scriptSource string

// contentSecurityPolicy allows the page its own style and script, and nothing from elsewhere.
var contentSecurityPolicy = fmt.Sprintf("default-src 'none'; style-src '%s'; script-src '%s'; connect-src 'self'; "+
	"form-action 'self'; base-uri 'none'; frame-ancestors 'none'; img-src data:", sourceHash(string(frame.Style(styleSource))), sourceHash(scriptSource))

func sourceHash(source string) string {
	sum := sha256.Sum256([]byte(source))
	return "sha256-" + base64.StdEncoding.EncodeToString(sum[:])
}

// templates are parsed for the first page, because most commands show none.
var templates = sync.OnceValue(func() *template.Template {
	return template.Must(template.New("console").Funcs(functions).Parse(pageSource))
})

var functions = template.FuncMap{
	"style":   func() template.CSS { return frame.Style(styleSource) },
	"script":  func() template.JS { return template.JS(scriptSource) }, //nolint:gosec // it is our own file
	"instant": func(t time.Time) string { return t.UTC().Format(time.RFC3339) },
	"clock":   clockTime,
	"local":   func(t time.Time) string { return t.UTC().Format("2006-01-02T15:04") },
	"minute":  func(t time.Time) string { return t.UTC().Format("2 Jan 2006 15:04") },
	"pct":     func(p *wire.Percent) string { return fmt.Sprintf("%.1f", float64(*p)/10) },
	"percent": view.Percent,
	"who":     operator.Who,
	"ended":   view.Ended,
	"what":    func(a auditlog.Verb) string { return strings.ReplaceAll(string(a), "_", " ") },
	"since":   func(now, t time.Time) string { return frame.LongTime(now.Sub(t)) },
	"join":    func(s []string) string { return strings.Join(s, " ") },
	"mib":     func(n int64) string { return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20)) },
}

// render answers with a page. It is made whole before anything is sent.
func (c *Console) render(w http.ResponseWriter, status int, name string, data any) {
	var body bytes.Buffer
	if err := templates().ExecuteTemplate(&body, name, data); err != nil {
		panic("BUG: page " + name + ": " + err.Error())
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = body.WriteTo(w) // the client may have gone
}
