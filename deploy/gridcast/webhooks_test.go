package main

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"gridcast/deploy/must"
	"gridcast/schemas"
	"gridcast/schemas/docs"
	"gridcast/schemas/wire"
)

// listeners are two servers for webhooks of one process: one accepts every message, the other never
// answers.
type listeners struct {
	t      *testing.T
	master string // file

	good, hanging *httptest.Server

	mu  sync.Mutex
	got []heard
}

// heard is a message as it came.
type heard struct {
	header http.Header
	body   []byte
}

func newListeners(t *testing.T) *listeners {
	l := &listeners{t: t, master: filepath.Join(t.TempDir(), "master")}
	must.Do(t, os.WriteFile(l.master, []byte("correct horse battery staple, again and again\n"), 0o600))
	l.good = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		l.mu.Lock()
		defer l.mu.Unlock()
		l.got = append(l.got, heard{r.Header.Clone(), body})
	}))
	ended := make(chan struct{})
	l.hanging = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-r.Context().Done():
		case <-ended:
		}
	}))
	t.Cleanup(func() { close(ended); l.good.Close(); l.hanging.Close() })
	return l
}

// flags are those of the process and of commands.
func (l *listeners) flags(args ...string) []string {
	return append(args, "--webhook-master-file", l.master, "--webhook-insecure-loopback")
}

// add makes a webhook for each of them, and returns the ID and the secret of the accepting server.
func (l *listeners) add(dir, store string) (id, secret string) {
	l.t.Helper()
	gridcast(l.t, dir, l.flags("webhooks", "add", l.hanging.URL, "--store", store, "--yes")...)
	var added struct{ ID, Secret string }
	out := gridcast(l.t, dir, l.flags("webhooks", "add", l.good.URL+"/hook", "--store", store, "--yes", "--json")...)
	if err := json.Unmarshal([]byte(out), &added); err != nil || !strings.HasPrefix(added.Secret, "whsec_") {
		l.t.Fatalf("webhooks add --json: %v\n%s", err, out)
	}
	return added.ID, added.Secret
}

// messages are those that came until now, each verified by a library that is not ours.
func (l *listeners) messages(secret string) (all []wire.PublishedData, last heard) {
	l.t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	wh := must.Get(standardwebhooks.NewWebhook(secret))(l.t)
	for _, h := range l.got {
		must.Succeed(l.t, string(h.body), wh.Verify(h.body, h.header))
		var m wire.Webhook[wire.PublishedData]
		must.Do(l.t, json.Unmarshal(h.body, &m))
		must.Succeed(l.t, "ValidateBody", schemas.ValidateBody(m.Type, h.body))
		if m.Type == wire.WebhookPublished {
			all, last = append(all, m.Data), h
		}
	}
	return all, last
}

// runVerifiers runs the programs of the documentation that verify a message, on a genuine message and
// on forged ones.
func runVerifiers(t *testing.T, secret string, h heard) {
	programs := map[string][]string{"JavaScript": {"node"}, "Python": {"python3"}, "Go": {"go", "run"}, "Shell": {"sh"}}
	for _, s := range docs.Verifiers() {
		t.Run(s.Language, func(t *testing.T) {
			command := programs[s.Language]
			needed := []string{command[0]}
			if s.Language == "Shell" {
				needed = append(needed, "openssl", "xxd")
			}
			for _, program := range needed {
				if _, err := exec.LookPath(program); err != nil {
					t.Skipf("no %s on this machine", program)
				}
			}
			dir := t.TempDir()
			must.Do(t, os.WriteFile(filepath.Join(dir, s.File), []byte(s.Text), 0o600))
			if s.Language == "Go" { // compiled once
				build := exec.Command("go", slices.Concat([]string{"build"}, must.Flags, []string{"-o", "verify", s.File})...)
				build.Dir, build.Env = dir, append(os.Environ(), "GOFLAGS=")
				if out, err := build.CombinedOutput(); err != nil {
					t.Fatalf("%v\n%s", err, out)
				}
				command = []string{"./verify"}
			}
			run := func(secret, body string, header http.Header) (string, error) {
				cmd := exec.Command(command[0], append(slices.Clone(command[1:]), s.File)...)
				cmd.Dir, cmd.Stdin = dir, strings.NewReader(body)
				cmd.Env = append(os.Environ(), "GRIDCAST_WEBHOOK_SECRET="+secret, "WEBHOOK_ID="+header.Get("webhook-id"),
					"WEBHOOK_TIMESTAMP="+header.Get("webhook-timestamp"), "WEBHOOK_SIGNATURE="+header.Get("webhook-signature"))
				out, err := cmd.CombinedOutput()
				return string(out), err
			}
			out, err := run(secret, string(h.body), h.header)
			must.Succeed(t, "a message that is genuine", err)
			must.Show(t, "what it printed", out, "/api/v1/")
			two := h.header.Clone()
			two.Set("webhook-signature", "v1,AAAA "+h.header.Get("webhook-signature"))
			if out, err := run(secret, string(h.body), two); err != nil {
				t.Errorf("one of two signatures is right: %v\n%s", err, out)
			}
			for what, spoil := range map[string]func(http.Header) (string, string){
				"another body":   func(http.Header) (string, string) { return secret, string(h.body) + " " },
				"another secret": func(http.Header) (string, string) { return "whsec_" + strings.Repeat("A", 43) + "=", string(h.body) },
				"another id":     func(x http.Header) (string, string) { x.Set("webhook-id", "msg_x"); return secret, string(h.body) },
				"an old message": func(x http.Header) (string, string) {
					x.Set("webhook-timestamp", "1700000000")
					return secret, string(h.body)
				},
				"no signature": func(x http.Header) (string, string) { x.Del("webhook-signature"); return secret, string(h.body) },
			} {
				header := h.header.Clone()
				secret, body := spoil(header)
				if out, err := run(secret, body, header); err == nil {
					t.Errorf("%s is taken:\n%s", what, out)
				}
			}
		})
	}
}
