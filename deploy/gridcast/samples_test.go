package main

import (
	"archive/zip"
	"html"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"gridcast/deploy/must"
	"gridcast/schemas/docs"
)

// runSamples runs the programs of the documentation as their readers do, against a running service.
// A program is skipped if its language is not on the machine.
func runSamples(t *testing.T, url, key string) {
	all := slices.Concat(docs.Samples(), docs.Downloads(), []docs.Sample{docs.Seasons()}, requests(t, url))
	commands := map[string][]string{"curl": {"sh"}, "JavaScript": {"node"}, "Python": {"python3"}, "Go": append([]string{"go", "run"}, asMakeBuild...)}
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
			cmd := exec.Command(command[0], append(command[1:], s.File)...)
			cmd.Dir = dir
			cmd.Env = append(os.Environ(), "GRIDCAST_URL="+url, "GRIDCAST_KEY="+key, "GOFLAGS=")
			printed, err := cmd.CombinedOutput()
			must.Require(t, err == nil, "%v:\n%s", err, printed)
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

// proxied runs the configuration of nginx that the page of keys shows, and asks through it without a key.
func proxied(t *testing.T, url, key string) {
	program, err := exec.LookPath("nginx")
	if err != nil {
		t.Skip("no nginx on this machine")
	}
	var shown string
	for _, d := range docs.Documents() {
		if d.Path == "/docs/keys" {
			shown = html.UnescapeString(regexp.MustCompile(`(?s)<code>(proxy_cache_path.*?)</code>`).FindStringSubmatch(string(d.Body))[1])
		}
	}
	dir, address := t.TempDir(), "127.0.0.1:"+freePort(t)
	shown = strings.NewReplacer(`<span class="origin">https://HOST</span>`, url, "gc_live_…", key, "/var/cache/nginx", dir, "server {", "server {\n  listen "+address+";").Replace(shown)
	temporary := strings.ReplaceAll("client_body_temp_path DIR/b; proxy_temp_path DIR/p; fastcgi_temp_path DIR/f; uwsgi_temp_path DIR/u; scgi_temp_path DIR/s;\n", "DIR", dir)
	workers := "" // of another user than root by default, who cannot write to dir
	if os.Geteuid() == 0 {
		workers = "user root; "
	}
	file := filepath.Join(dir, "nginx.conf")
	must.Do(t, os.WriteFile(file, []byte(workers+"daemon off; error_log stderr; pid "+dir+"/pid; events {}\nhttp { access_log off;\n"+temporary+shown+"\n}\n"), 0o600))
	nginx := exec.CommandContext(t.Context(), program, "-c", file)
	must.Do(t, nginx.Start())
	t.Cleanup(func() {
		_ = nginx.Process.Kill()
		_ = nginx.Wait()
	})
	ask := func() (body, left string) {
		must.Until(t, "nginx answers", func() bool {
			request := must.Get(http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+address+"/racing/api/v1/calendar", nil))(t)
			request.Header.Set("Origin", "https://www.example.com")
			response, err := http.DefaultClient.Do(request)
			if err != nil {
				return false
			}
			defer response.Body.Close()
			text, err := io.ReadAll(response.Body)
			body, left = string(text), response.Header.Get("X-RateLimit-Remaining")
			return response.StatusCode == http.StatusOK && err == nil
		})
		return body, left
	}
	first, left := ask()
	second, again := ask()
	must.Show(t, "the answer through nginx", first, "Bahrain Grand Prix")
	must.Hold(t, first == second && left == again, "through nginx: %d and %d bytes, %s and %s requests left, want one answer from its cache", len(first), len(second), left, again)
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
