package main

import (
	"archive/zip"
	"bytes"
	"html"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"gridcast/deploy/must"
	"gridcast/deploy/nginx/nginxtest"
	"gridcast/schemas/docs"
)

// runSamples runs the programs of the documentation as their readers do, against a running service.
// A program is skipped if its language is not on the machine.
func runSamples(t *testing.T, url, key string) {
	all := slices.Concat(docs.Samples(), docs.Downloads(), []docs.Sample{docs.Seasons()}, requests(t, url))
	commands := map[string][]string{"curl": {"sh"}, "JavaScript": {"node"}, "Python": {"python3"}, "Go": append([]string{"go", "run"}, must.Flags...)}
	for _, s := range all {
		t.Run(s.File, func(t *testing.T) {
			command := commands[s.Language]
			for _, program := range []string{command[0], strings.ToLower(s.Language)} {
				if _, err := exec.LookPath(program); err != nil && (program == command[0] || program == "curl") {
					t.Skipf("no %s on this machine", program)
				}
			}
			dir := t.TempDir()
			must.Do(t, os.WriteFile(filepath.Join(dir, s.File), []byte(s.Text), 0o600))
			var printed []byte
			run := func() {
				cmd := exec.Command(command[0], append(command[1:], s.File)...)
				cmd.Dir = dir
				cmd.Env = append(os.Environ(), "GRIDCAST_URL="+url, "GRIDCAST_KEY="+key, "GOFLAGS=")
				var err error
				printed, err = cmd.CombinedOutput()
				must.Require(t, err == nil, "%v:\n%s", err, printed)
			}
			run()
			if tag := filepath.Join(dir, "season.etag"); strings.HasPrefix(s.File, "download") { // again, with the tag as curl writes it
				must.Do(t, os.WriteFile(tag, append(bytes.TrimSpace(must.Get(os.ReadFile(tag))(t)), '\n'), 0o600))
				run()
			}
			if strings.HasPrefix(s.File, "download") {
				season := must.Get(zip.OpenReader(filepath.Join(dir, "season.zip")))(t)
				defer season.Close()
				if got := season.File[0].Name; got != "gridcast-2024/README.txt" {
					t.Errorf("the first file is %s", got)
				}
				if s.Language == "Python" || s.Language == "Go" {
					must.Show(t, "what it printed", string(printed), "Bahrain Grand Prix: VER")
				}
				return
			}
			if strings.HasPrefix(s.File, "seasons") {
				for _, year := range []string{"2007", "2024"} { // the first and the current one
					if season, err := zip.OpenReader(filepath.Join(dir, "season-"+year+".zip")); err != nil || season.File[0].Name != "gridcast-"+year+"/README.txt" {
						t.Errorf("season %s: %v", year, err)
					}
				}
				return
			}
			if strings.HasPrefix(s.File, "request") {
				must.Show(t, "what it printed", string(printed), "Bahrain Grand Prix")
				return
			}
			if s.Language == "curl" {
				calendar := must.Get(os.ReadFile(filepath.Join(dir, "calendar.json")))(t)
				printed = append(printed, calendar...)
			}
			must.Show(t, "what it printed", string(printed), "Las Vegas Grand Prix", "Bahrain Grand Prix")
		})
	}
}

// proxied runs the two servers in between that the page of keys shows, nginx in ten lines and Node in twenty, and asks
// through each without a key.
func proxied(t *testing.T, url, key string) {
	for name, start := range map[string]func(t *testing.T, url, key, port string){"nginx": nginxInBetween, "node": nodeInBetween} {
		t.Run(name, func(t *testing.T) {
			if _, err := exec.LookPath(name); err != nil {
				t.Skipf("no %s on this machine", name)
			}
			port := freePort(t)
			start(t, url, key, port)
			ask := func(path, tag string) *http.Response {
				var response *http.Response
				must.Until(t, name+" answers", func() (ok bool) {
					request := must.Get(http.NewRequestWithContext(t.Context(), http.MethodGet, "http://127.0.0.1:"+port+"/", nil))(t)
					request.URL.Opaque = path // as it is, also with dots
					request.Header = http.Header{"Origin": {"https://www.example.com"}, "If-None-Match": {tag}}
					var err error
					response, err = http.DefaultClient.Do(request)
					return err == nil
				})
				t.Cleanup(func() { _ = response.Body.Close() })
				return response
			}
			limits := func() (window string, remaining int) {
				h := newClient(url, key).do(t, http.MethodGet, "/api/v1/drivers", nil).header
				return h.Get("X-RateLimit-Reset"), must.Get(strconv.Atoi(h.Get("X-RateLimit-Remaining")))(t)
			}
			window, left := limits()
			first, second := ask("/racing/api/v1/calendar", ""), ask("/racing/api/v1/calendar", "")
			body, again := must.Get(io.ReadAll(first.Body))(t), must.Get(io.ReadAll(second.Body))(t)
			must.Show(t, "the answer through "+name, string(body), "Bahrain Grand Prix")
			must.Equal(t, "an answer from the cache of "+name, string(body), string(again))
			must.Equal(t, "status of a known answer", http.StatusNotModified, ask("/racing/api/v1/calendar", first.Header.Get("ETag")).StatusCode)
			later, rest := limits()
			must.Hold(t, left == rest+2 || later != window, "%s sent %d requests for one address, want 1", name, left-rest-1)
			must.Equal(t, "status of a wrong parameter", http.StatusUnprocessableEntity, ask("/racing/api/v1/calendar?year=x", "").StatusCode)
			for _, path := range []string{"/racing/api/v1/../../status", "/racing/api/v1/%2e%2e/%2e%2e/status", "/api/v1/calendar", "/racing@example.com/api/v1/calendar", "/racing//example.com/api/v1/calendar"} {
				status := ask(path, "").StatusCode
				must.Hold(t, status == http.StatusNotFound || status == http.StatusBadRequest,
					"%s through %s: got %d, want 404 or 400", path, name, status)
			}
		})
	}
}

func nginxInBetween(t *testing.T, url, key, port string) {
	var shown string
	for _, d := range docs.Documents() {
		if d.Path == "/docs/keys" {
			shown = html.UnescapeString(regexp.MustCompile(`(?s)<code>(proxy_cache_path.*?)</code>`).FindStringSubmatch(string(d.Body))[1])
		}
	}
	must.Equal(t, "lines of nginx", 10, strings.Count(shown, "\n")+1)
	nginxtest.Start(t, strings.NewReplacer(`<span class="origin">https://HOST</span>`, url, "gc_live_…", key, "/var/cache/nginx", "cache", "server {", "server {\n  listen 127.0.0.1:"+port+";").Replace(shown))
}

func nodeInBetween(t *testing.T, url, key, port string) {
	proxy := docs.Proxy()
	must.Equal(t, "lines of Node", 20, strings.Count(proxy.Text, "\n"))
	file := filepath.Join(t.TempDir(), proxy.File)
	must.Do(t, os.WriteFile(file, []byte(proxy.Text), 0o600))
	cmd := exec.CommandContext(t.Context(), "node", file)
	cmd.Env = append(os.Environ(), "GRIDCAST_URL="+url, "GRIDCAST_KEY="+key, "PORT="+port)
	must.Do(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
}

// requests returns the requests that the page of /calendar shows, one in each language.
func requests(t *testing.T, url string) []docs.Sample {
	t.Helper()
	var all []docs.Sample
	shown := regexp.MustCompile(`(?s)<div data-language="(\w+)"><pre tabindex="0"><code>(.*?)</code></pre></div>`)
	ends := map[string]string{"curl": "sh", "JavaScript": "mjs", "Python": "py", "Go": "go"}
	for _, d := range docs.Documents() {
		if d.Path != "/docs/calendar" {
			continue
		}
		for _, m := range shown.FindAllStringSubmatch(string(d.Body), -1) {
			text := strings.NewReplacer(`<span class="origin">https://HOST</span>`, url).Replace(m[2])
			all = append(all, docs.Sample{Language: m[1], File: "request." + ends[m[1]], Text: html.UnescapeString(text)})
		}
	}
	must.Hold(t, len(all) == len(ends), "got %d requests on the page, want one in each language", len(all))
	return all
}
