package sourcetest

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// Replay is an API on this machine that answers with recordings, or with an answer of the test.
// It is safe for concurrent use.
type Replay struct {
	URL string // of the API, without a slash at its end

	// Missing answers requests without a recording; nil: 404.
	Missing http.HandlerFunc

	mu       sync.Mutex
	instead  func(w http.ResponseWriter, r *http.Request) bool
	rewrite  func(target, body string) string
	requests []string
}

// NewReplay starts an API. Its recordings are files in folders of the data folder, named by path with
// "__" before each parameter. The first folder with a recording answers. Without the first folder
// the test is skipped.
func NewReplay(t testing.TB, prefix string, folders ...string) *Replay {
	t.Helper()
	paths := make([]string, len(folders))
	for i, folder := range folders {
		paths[i] = Path(t, folder)
	}
	p := &Replay{Missing: http.NotFound}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.mu.Lock()
		instead, rewrite := p.instead, p.rewrite
		p.requests = append(p.requests, r.URL.RequestURI())
		p.mu.Unlock()
		if instead != nil && instead(w, r) {
			return
		}
		name, query, _ := strings.Cut(strings.TrimPrefix(r.URL.RequestURI(), "/"), "?")
		if name = strings.TrimSuffix(name, ".json"); query != "" {
			name += "__" + strings.ReplaceAll(query, "&", "__")
		}
		for _, path := range paths {
			// The test's own client made the name, which stays below the folder.
			body, err := os.ReadFile(filepath.Join(path, filepath.FromSlash(filepath.Clean("/"+name+".json"))))
			if err != nil {
				continue
			}
			if rewrite != nil {
				body = []byte(rewrite(r.URL.RequestURI(), string(body)))
			}
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write(body)
			return
		}
		p.Missing(w, r)
	}))
	t.Cleanup(server.Close)
	p.URL = server.URL + prefix
	return p
}

// Answer returns a function for Instead: it answers every request with a status, a type and a body.
func Answer(status int, contentType, body string) func(http.ResponseWriter, *http.Request) bool {
	return func(w http.ResponseWriter, _ *http.Request) bool {
		w.Header().Set("Content-Type", contentType)
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body))
		return true
	}
}

// Instead lets a function answer the requests for which it returns true. Nil ends that.
func (p *Replay) Instead(answer func(w http.ResponseWriter, r *http.Request) bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.instead = answer
}

// Rewrite changes recordings before they are sent. Nil ends that.
func (p *Replay) Rewrite(change func(target, body string) string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rewrite = change
}

// Requests returns the requested targets in order.
func (p *Replay) Requests() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]string(nil), p.requests...)
}
