// Package cost_test measures the cost of running gridcast: memory, starts, bytes and growth. `make cost` runs it
// with the real binary, prints the table and fills deploy/docs/capacity.md.
package cost_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"gridcast/builder/source/sourcetest"
	"gridcast/deploy/must"
	"gridcast/edge/keys"
	"gridcast/snapshots/blob/dirblob"
	"gridcast/snapshots/blob/porttest"
	"gridcast/snapshots/blob/s3test"
)

// row is a measured cost.
type row struct {
	What   string  `json:"what"`
	Value  float64 `json:"value"`
	Unit   string  `json:"unit"`
	Wanted string  `json:"wanted,omitzero"`
}

// machine is an installation with all seasons in a folder and in a storage 30 ms away.
type machine struct {
	binary, dir, local, remote string
	env                        []string // of every process
}

// away is the latency of the remote storage.
const away = 30 * time.Millisecond

// TestCost needs GRIDCAST_COST, the path of the binary. It writes its results beside the binary's folder, to
// cost.json and cost.txt, and into the document that GRIDCAST_COST_DOCUMENT names.
func TestCost(t *testing.T) {
	binary := os.Getenv("GRIDCAST_COST")
	if binary == "" {
		t.Skip("make cost measures for some minutes")
	}
	m := &machine{binary: binary, dir: t.TempDir()}
	m.local = "dir:" + filepath.Join(m.dir, "store")
	server := s3test.Versity(t)
	config := server.Config(t)
	s3test.Store(t, config)
	forward := httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		time.Sleep(away)
		r.Out.URL.Scheme, r.Out.URL.Host = "http", server.Address // the signature covers the host of the front
	}}
	front := httptest.NewServer(&forward)
	t.Cleanup(front.Close)
	m.remote = fmt.Sprintf("s3://%s/%s?endpoint=%s&region=%s", config.Bucket, config.Prefix, url.QueryEscape(front.URL), config.Region)
	m.env = []string{"AWS_ACCESS_KEY_ID=" + s3test.AccessKey, "AWS_SECRET_ACCESS_KEY=" + s3test.SecretKey}
	release := sourcetest.Path(t, sourcetest.F1DB2026)
	for _, store := range []string{m.local, m.remote} {
		m.run(t, "archive", "import", "f1db", release, "--store", store, "--yes")
		m.run(t, "build", "--all", "--store", store)
		m.run(t, "keys", "create", "--name", "cost", "--tier", "pro", "--store", store)
	}
	var rows []row
	for _, part := range []struct {
		name    string
		measure func(*testing.T, *machine) []row
	}{
		{"cold start", coldStart},
		{"memory of an edge", edgeMemory},
		{"memory of serve", serveMemory},
		{"console", consolePage},
		{"commands", readingCommands},
		{"keys", manyKeys},
	} {
		t.Run(part.name, func(t *testing.T) { rows = append(rows, part.measure(t, m)...) }) // its servers end with it
	}
	if !t.Failed() {
		write(t, rows)
	}
}

// run runs a command to its end and returns the time it took.
func (m *machine) run(t *testing.T, args ...string) time.Duration {
	t.Helper()
	cmd := exec.Command(m.binary, args...)
	cmd.Dir, cmd.Env = m.dir, append(os.Environ(), m.env...)
	began := time.Now()
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("gridcast %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return time.Since(began)
}

// start starts a server, which ends with the test, and returns it, its address and the time until it was ready.
func (m *machine) start(t *testing.T, args ...string) (pid int, address string, ready time.Duration) {
	t.Helper()
	address = porttest.Address(t)
	ctx, cancel := context.WithCancel(t.Context())
	cmd := exec.CommandContext(ctx, m.binary, append(args, "--listen", address)...)
	cmd.Dir, cmd.Env = m.dir, append(os.Environ(), m.env...)
	began := time.Now()
	must.Do(t, cmd.Start())
	t.Cleanup(func() { cancel(); _ = cmd.Wait() })
	must.Until(t, "gridcast "+strings.Join(args, " ")+" is ready", func() bool {
		response, err := http.Get("http://" + address + "/readyz")
		if err != nil {
			return false
		}
		_ = response.Body.Close()
		return response.StatusCode == http.StatusOK
	})
	return cmd.Process.Pid, address, time.Since(began)
}

// megabytes returns a field of the memory of a process, VmRSS or VmHWM, in units of 1,000,000 bytes.
func megabytes(t *testing.T, pid int, field string) float64 {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Skip(err)
	}
	_, rest, _ := strings.Cut(string(status), field+":")
	kib := must.Get(strconv.ParseFloat(strings.Fields(rest)[0], 64))(t)
	return kib * 1024 / 1e6
}

// settle is the time after which the memory of a process no longer falls.
const settle = 15 * time.Second

func coldStart(t *testing.T, m *machine) []row {
	_, _, ready := m.start(t, "edge", "--store", m.remote)
	return []row{{"cold start of an edge from a storage 30 ms away, all seasons", ready.Seconds(), "s", "1.5"}}
}

func edgeMemory(t *testing.T, m *machine) []row {
	pid, _, _ := m.start(t, "edge", "--store", m.local)
	time.Sleep(settle)
	return []row{
		{"edge, all seasons: settled memory", megabytes(t, pid, "VmRSS"), "MB", "55"},
		{"of it the program's file, shared by all processes", megabytes(t, pid, "RssFile"), "MB", ""},
	}
}

// serveMemory replays 2025 in a store of its own, at 500,000 times its speed. Then it starts serve again with a clock
// of normal speed.
func serveMemory(t *testing.T, m *machine) []row {
	store := "dir:" + filepath.Join(m.dir, "replayed")
	release := sourcetest.Path(t, sourcetest.F1DB2026)
	before := m.env
	defer func() { m.env = before }()
	clock := func(race string, speed int) {
		m.env = slices.Concat(before, []string{fmt.Sprintf("GRIDCAST_RACE_CLOCK=%s@%s*%d", race, time.Now().UTC().Format(time.RFC3339), speed)})
	}
	clock("2025-02-20T00:00:00Z", 500_000)
	m.run(t, "archive", "import", "f1db", release, "--store", store, "--yes")
	m.run(t, "keys", "create", "--name", "cost", "--tier", "pro", "--store", store) // an edge without keys is not ready
	var rows []row
	t.Run("replay", func(t *testing.T) {
		clock("2025-02-20T00:00:00Z", 500_000)
		pid, _, _ := m.start(t, "serve", "--store", store, "--auto-verify-after", "2h")
		time.Sleep(time.Minute)
		rows = append(rows, row{"serve, all seasons, through a replayed season: peak memory", megabytes(t, pid, "VmHWM"), "MB", "230"})
	})
	t.Run("settled", func(t *testing.T) {
		clock("2026-08-01T00:00:00Z", 1)
		pid, _, _ := m.start(t, "serve", "--store", store)
		time.Sleep(2 * settle)
		rows = append(rows, row{"the same: settled memory", megabytes(t, pid, "VmRSS"), "MB", "126"})
	})
	return rows
}

// consolePage signs in to the console and reads its first page.
func consolePage(t *testing.T, m *machine) []row {
	port, token := porttest.Address(t), filepath.Join(m.dir, "token")
	m.start(t, "serve", "--store", m.local, "--operator-listen", port, "--operator-token-file", token)
	secret := must.Get(os.ReadFile(token))(t)
	jar, _ := cookiejar.New(nil)
	client := http.Client{Jar: jar}
	form := url.Values{"name": {"cost"}, "token": {strings.TrimSpace(string(secret))}}
	request, _ := http.NewRequest(http.MethodPost, "http://"+port+"/sign-in", strings.NewReader(form.Encode()))
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	request.Header.Set("Origin", "http://"+port)
	response := must.Get(client.Do(request))(t)
	defer func() { _ = response.Body.Close() }()
	var page bytes.Buffer
	if _, err := page.ReadFrom(response.Body); err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("the console answered %s: %v", response.Status, err)
	}
	return []row{{"first page of the console, all seasons", float64(page.Len()) / 1000, "KB", "150"}}
}

// readingCommands returns the slowest of the commands, each the best of three.
func readingCommands(t *testing.T, m *machine) []row {
	slowest := func(store string) float64 {
		var most time.Duration
		for _, args := range [][]string{{"snapshots", "list"}, {"rounds", "list"}, {"results", "list"}, {"keys", "list"}} {
			best := time.Hour
			for range 3 {
				best = min(best, m.run(t, append(args, "--store", store)...))
			}
			most = max(most, best)
		}
		return most.Seconds()
	}
	return []row{
		{"slowest reading command, store of all seasons in a folder", slowest(m.local), "s", "0.1"},
		{"the same from a storage 30 ms away", slowest(m.remote), "s", "0.5"},
	}
}

// manyKeys revokes one of 100,000 keys before an edge.
func manyKeys(t *testing.T, m *machine) []row {
	folder := strings.TrimPrefix(m.local, "dir:")
	store := must.Get(dirblob.Open(folder))(t)
	var id string
	must.Do(t, keys.Update(t.Context(), store, func(list *keys.List) error {
		for i := range 100_000 {
			key, _, err := list.Create(keys.Request{Name: fmt.Sprintf("client %d", i), Tier: "standard"}, time.Now())
			if err != nil {
				return err
			}
			id = key.ID
		}
		return nil
	}))
	pid, _, _ := m.start(t, "edge", "--store", m.local)
	time.Sleep(settle)
	first := megabytes(t, pid, "VmRSS")
	m.run(t, "keys", "revoke", id, "--yes", "--store", m.local)
	time.Sleep(settle)
	info := must.Get(os.Stat(filepath.Join(folder, filepath.FromSlash(keys.Object))))(t)
	return []row{
		{"edge with 100,000 keys: settled memory", first, "MB", "120"},
		{"the same after a change of one key", megabytes(t, pid, "VmRSS"), "MB", "120"},
		{"bytes that each edge reads for this change, in one read", float64(info.Size()) / 1e6, "MB", ""},
	}
}

// write writes the rows as JSON, as a table, and between the markers of the document.
func write(t *testing.T, rows []row) {
	var table strings.Builder
	table.WriteString("| | measured | wanted at most |\n|---|---|---|\n")
	for _, r := range rows {
		fmt.Fprintf(&table, "| %s | %.3g %s | %s |\n", r.What, r.Value, r.Unit, r.Wanted)
	}
	data := must.Get(json.MarshalIndent(rows, "", "  "))(t)
	results := filepath.Join(filepath.Dir(os.Getenv("GRIDCAST_COST")), "..", "cost")
	files := map[string]string{results + ".json": string(data) + "\n", results + ".txt": table.String()}
	if document := os.Getenv("GRIDCAST_COST_DOCUMENT"); document != "" {
		text := must.Get(os.ReadFile(document))(t)
		const begin, end = "<!-- cost -->\n", "<!-- end of cost -->"
		before, rest, _ := strings.Cut(string(text), begin)
		_, after, found := strings.Cut(rest, end)
		must.Require(t, found, "%s has no markers", document)
		files[document] = before + begin + table.String() + end + after
	}
	for name, content := range files {
		must.Do(t, os.WriteFile(name, []byte(content), 0o600))
	}
}
