package main

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/alecthomas/kong"
	"github.com/google/go-cmp/cmp/cmpopts"

	"gridcast/builder/archive"
	"gridcast/builder/archive/archivetest"
	"gridcast/deploy/golden"
	"gridcast/deploy/must"
	"gridcast/deploy/terminal"
	"gridcast/snapshots"
	"gridcast/snapshots/blob/porttest"
)

// metricName finds the names of our metrics in rules, dashboards and expositions.
var metricName = regexp.MustCompile(`\bgridcast_[a-z_]+`)

// exposed returns the metrics of an admin port.
func exposed(t testing.TB, admin string) string {
	t.Helper()
	client := http.Client{Timeout: time.Minute}
	response := must.Get(client.Get("http://" + admin + "/metrics"))(t)
	defer response.Body.Close()
	metrics := must.Get(io.ReadAll(response.Body))(t)
	return string(metrics)
}

// metricsOfSources are exposed when a source has answered, which TestLasVegas2025 of deploy/service checks, while a race runs,
// or where the store is a folder.
var metricsOfSources = []string{"gridcast_store_free_bytes", "gridcast_live_observation_age_seconds", "gridcast_source_answered_seconds", "gridcast_source_disagreements", "gridcast_source_lost"}

// TestRulesAndDashboardsNameMetricsThatExist guards against a renamed metric, which would silence an alert.
func TestRulesAndDashboardsNameMetricsThatExist(t *testing.T) {
	admin := porttest.Address(t)
	dir := t.TempDir()
	key := newKey(t, dir, "dir:store", "pro") // without one an edge is not ready
	simulated := []string{"--store", "dir:store", "--now", "2024-07-01T12:00:00Z", "--model", "grid-frequency", "--archive", seasons(t, 2024, 2024)}
	gridcast(t, dir, append([]string{"build"}, simulated...)...)
	gridcast(t, dir, "store", "backup", "backup", "--store", "dir:store", "--by", "anna")
	server := startServer(t, dir, append(append([]string{"serve"}, simulated...), "--admin-listen", admin, "--cache-dir", "cache",
		"--redis", "redis://127.0.0.1:9")...) // nothing listens there, and its metrics are exposed
	metrics := ""
	server.await(t, func() bool { // the version is served before the first build of the service
		metrics = exposed(t, admin)
		names := metricName.FindAllString(metrics, -1)
		return slices.Contains(names, "gridcast_rounds") && slices.Contains(names, "gridcast_job_failures_total") && slices.Contains(names, "gridcast_backup_age_seconds")
	})
	// Without Redis from the start, the service serves, counts by itself, and says so in /status.
	if a := newClient(server.url, key).get(t, "/standings"); a.status != http.StatusOK || a.header.Get("X-RateLimit-Limit") != "600" {
		t.Errorf("without Redis: got status %d and the limit %q, want 200 and 600", a.status, a.header.Get("X-RateLimit-Limit"))
	}
	golden.Sentence(t, "the limits without Redis, in /status", statusOf(t, server.url).LimitsFault)
	exists := map[string]bool{}
	for _, name := range metricName.FindAllString(metrics, -1) {
		exists[name] = true
	}
	for _, file := range []string{"../prometheus/alerts.yaml", "../prometheus/alerts_test.yaml", "../prometheus/alerts_days_test.yaml", "../grafana/gridcast.json"} {
		text := must.Get(os.ReadFile(file))(t)
		names := metricName.FindAllString(string(text), -1)
		must.Hold(t, len(names) >= 3, "%s names only %d metrics", file, len(names))
		for _, name := range names {
			must.Hold(t, exists[name] || slices.Contains(metricsOfSources, name), "%s asks for %s, which is not exposed", file, name)
		}
	}
	must.Show(t, "/metrics", metrics,
		`gridcast_build_phase_seconds_count{phase="rendering"} `, `gridcast_builds_total{outcome="done"} `, "gridcast_published_version ", `gridcast_build_info{commit="unknown",goversion="go1.`, // of one build or two
		"gridcast_ledger_head ", `gridcast_job_failures_total{name="poll"} 0`, "gridcast_race_weekend 1", // the day after a race
		`gridcast_rounds{result="provisional"} `, `gridcast_picks{basis="grid"} `, "gridcast_facts_disputed 0", "gridcast_facts_noncommercial 0",
		"gridcast_next_change_seconds ", `gridcast_missing_fact_seconds{code="result_overdue"} `,
	)
}

// TestMetricsByDefault starts serve without an admin address: it shows its metrics on loopback, or says that the port is
// taken and serves all the same.
func TestMetricsByDefault(t *testing.T) {
	must.Long(t, "starts a process")
	const shown, taken = "edge shows metrics", "metrics are not served"
	dir := t.TempDir()
	newKey(t, dir, "dir:store", "pro")
	serve := []string{"serve", "--store", "dir:store", "--archive", seasons(t, 2025, 2025), "--no-sources"}
	p := startServer(t, dir, serve...)
	p.end(t) // its output is whole
	must.Hold(t, p.output.Says(shown) || p.output.Says(taken), "the server does not say where its metrics are")

	// Services of other tests take the port for a moment, so the test waits until it has the port itself.
	var occupied net.Listener
	held := must.Within(time.Minute, func() (free bool) {
		var err error
		occupied, err = net.Listen("tcp", "127.0.0.1:9100")
		return err == nil
	})
	if held { // a service of this machine may have the port for good
		p = startServer(t, dir, serve...)
		p.end(t)
		must.Hold(t, p.output.Says(taken), "the server does not say that the port of its metrics is taken")
		must.Do(t, occupied.Close())
	}
	p = startServer(t, dir, append(serve, "--admin-listen=")...)
	p.end(t)
	must.Hold(t, !p.output.Says(shown) && !p.output.Says(taken), "the server shows metrics that nobody wants")
}

// named matches the commands of gridcast in a text.
var named = regexp.MustCompile(`\bgridcast((?: [a-z][a-z0-9]*)+)`)

// TestAdviceNamesCommandsThatExist checks every command that an alert or the console recommends.
func TestAdviceNamesCommandsThatExist(t *testing.T) {
	var c cli
	parser := must.Get(kong.New(&c, kong.Name("gridcast"), kong.DefaultEnvars("GRIDCAST"), kong.Vars{"version": ""}))(t)
	find := func(node *kong.Node, name string) *kong.Node {
		for _, child := range node.Children {
			if child.Name == name {
				return child
			}
		}
		return nil
	}
	count := 0
	for _, pattern := range []string{"../prometheus/alerts.yaml", "../console/*.go", "../operator/*.go", "../doctor/*.go", "../flags/*.go", "../servers/*.go", "*.go"} {
		files := must.Get(filepath.Glob(pattern))(t)
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			text := must.Get(os.ReadFile(file))(t)
			for _, match := range named.FindAllStringSubmatch(quotedText(file, string(text)), -1) {
				words := strings.Fields(match[1])
				node := find(parser.Model.Node, words[0])
				if node == nil {
					if ordinary[words[0]] {
						continue
					}
					t.Errorf("%s names gridcast%s: there is no command %s", file, match[1], words[0])
					continue
				}
				count++
				if len(node.Children) > 0 && (len(words) < 2 || find(node, words[1]) == nil) {
					t.Errorf("%s names gridcast%s: %s has no command of that name", file, match[1], words[0])
				}
			}
		}
	}
	must.Hold(t, count >= 30, "found only %d commands: the test does not see them", count)
}

// ordinary words may follow the name of the program in a sentence.
var ordinary = map[string]bool{"serves": true, "operator": true, "session": true, "gateway": true, "edges": true, "has": true, "that": true, "does": true, "freezes": true}

// quotedText returns the parts of a file that people read: all of a text, the strings of a Go file.
func quotedText(file, text string) string {
	if !strings.HasSuffix(file, ".go") {
		return text
	}
	return strings.Join(regexp.MustCompile(`"(?:[^"\\\n]|\\.)*"`).FindAllString(text, -1), "\n")
}

// TestPrometheusSeesAnOutage runs a real Prometheus with the shipped rules, with waiting times of a
// second. It fires when the store of a real edge is gone, and when the edge stops.
func TestPrometheusSeesAnOutage(t *testing.T) {
	t.Parallel() // most of it waits
	prometheus, err := exec.LookPath("prometheus")
	if err != nil {
		t.Skip("no prometheus on this machine: the rules are tested by promtool alone")
	}
	dir := t.TempDir()
	gridcast(t, dir, "build", "--store", "dir:store", "--now", "2024-07-01T12:00:00Z", "--model", "grid-frequency", "--archive", seasons(t, 2024, 2024))
	newKey(t, dir, "dir:store", "pro")
	admin := porttest.Address(t)
	server := startServer(t, dir, "edge", "--store", "dir:store", "--now", "2024-07-01T12:00:00Z", "--admin-listen", admin)

	rules := must.Get(os.ReadFile("../prometheus/alerts.yaml"))(t)
	impatient := regexp.MustCompile(`for: \d+[mh]`).ReplaceAll(rules, []byte("for: 1s"))
	write := func(name string, data string) {
		must.Do(t, os.WriteFile(filepath.Join(dir, name), []byte(data), 0o600))
	}
	write("alerts.yaml", string(impatient))
	write("prometheus.yaml", "global: {scrape_interval: 500ms, scrape_timeout: 400ms, evaluation_interval: 500ms}\nrule_files: [alerts.yaml]\n"+
		"scrape_configs:\n  - {job_name: gridcast-edge, static_configs: [{targets: ['"+admin+"']}]}\n")
	address := porttest.Address(t)
	cmd := exec.Command(prometheus, "--config.file=prometheus.yaml", "--storage.tsdb.path=tsdb", "--web.listen-address="+address)
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, io.Discard, io.Discard
	must.Do(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })

	firing := func(alert string) bool {
		response, err := (&http.Client{Timeout: time.Minute}).Get("http://" + address + "/api/v1/alerts")
		if err != nil {
			return false
		}
		defer response.Body.Close()
		var answer struct {
			Data struct {
				Alerts []struct {
					State  string
					Labels map[string]string
				}
			}
		}
		if err := json.NewDecoder(response.Body).Decode(&answer); err != nil {
			return false // it still starts
		}
		for _, a := range answer.Data.Alerts {
			if a.Labels["alertname"] == alert && a.State == "firing" {
				return true
			}
		}
		return false
	}
	must.Until(t, "Prometheus has scraped the edge: nobody schedules", func() bool { return firing("GridcastNoScheduler") })
	// On a busy machine a scrape may have come too late; the next one ends the alert.
	must.Until(t, "no alert fires while the edge and its store are there", func() bool {
		return !firing("GridcastProcessGone") && !firing("GridcastKeysStale")
	})
	must.Do(t, os.Rename(filepath.Join(dir, "store"), filepath.Join(dir, "gone")))
	// A missing folder looks like a store that lost its objects.
	must.Until(t, "the keys are gone", func() bool { return firing("GridcastKeysStale") })
	server.kill(t)
	must.Until(t, "the edge is gone", func() bool { return firing("GridcastProcessGone") })
}

// TestCostOfChanges publishes two seasons, then the events of a race weekend, and prints the share of objects
// that each build wrote. A build may write only objects that its event changes.
func TestCostOfChanges(t *testing.T) {
	t.Parallel() // fills the time in which others wait
	s := inDirectory(t)
	archivetest.Put(t, archive.NewStore(s), archivetest.Stored(t, archivetest.Seasons(t, 2023, 2024)))
	const predictions, session = "predictions/2024", "predictions/session/2024022"

	rows := make([][]any, 0, 5)
	for _, step := range []struct {
		what, at string
		changed  []string // catalog paths; nil: all
		ledger   int      // files that are appended
	}{
		{"the first version", "2024-11-22T00:00:00Z", nil, 2}, // opened, keys assigned
		{"nothing", "2024-11-22T00:01:00Z", []string{}, 0},
		// The grid is that of the latest qualifying, so it changes along with the pick, and a driver who is back on it gets a
		// portrait again.
		{"pick frozen", "2024-11-23T08:00:00Z", []string{
			"drivers", "head-to-head/2024", "live", "next-race", "overview", "overview/2024", "portraits/kevin-magnussen.svg", predictions, session, "probabilities/2024", "probabilities/session/2024022",
			"sessions", "sessions/session/2024022", "weekends/2024", "weekends/session/2024022",
		}, 1},
		{"lights out", "2024-11-24T06:00:01Z", []string{"calendar/2024", "next-race", "overview", "overview/2024", "weekends/2024", "weekends/session/2024022"}, 0},
		{"result verified", "2024-11-24T09:00:00Z", []string{
			"accuracy/2024", "accuracy/all", "calendar/2024", "careers/constructors/2024", "careers/constructors/all", "careers/drivers/2024",
			"careers/drivers/all", "circuits/2024", "circuits/all", "head-to-head/2024", "live", "overview", "overview/2024", predictions, session, "results/2024", "results/session/2024022", "sessions",
			"sessions/session/2024022", "standings-progress/constructors/2024", "standings-progress/drivers/2024", "standings/constructors/2024", "standings/drivers/2024", "weekends/2024", "weekends/session/2024022",
		}, 1},
	} {
		before := s.sizes(t)
		receipt := s.build(t, step.at, "--auto-verify-after", "30m")
		after := s.sizes(t)
		written, bytes := map[string]int{}, int64(0) // new objects by folder
		for key, size := range after {
			if _, old := before[key]; !old {
				folder, _, _ := strings.Cut(key, "/")
				written[folder]++
				bytes += size
			}
		}
		rows = append(rows, []any{step.what, receipt.ObjectsWritten, receipt.ObjectsWritten + receipt.ObjectsReused, receipt.BytesWritten, bytes, fmt.Sprintf("%.2f", receipt.Seconds)})

		changed := s.changedIn(t, receipt)
		if step.changed == nil {
			must.Hold(t, receipt.ObjectsReused == 0 && len(changed) == receipt.Variants,
				"%s: %+v, want every variant written", step.what, receipt)
			continue
		}
		must.Equal(t, fmt.Sprintf("%s: variants written", step.what), step.changed, slices.Sorted(maps.Keys(changed)), cmpopts.EquateEmpty())
		want := map[string]int{}
		for _, objects := range changed {
			want["objects"] += objects
		}
		if len(changed) > 0 {
			want["versions"], want["manifests"] = 1, 1
			if slices.Contains(step.changed, "portraits/kevin-magnussen.svg") {
				want["manifests"]++ // the part of the entries that no season has
			}
		}
		if len(changed) > 1 {
			want["deltas"] = 1
		}
		if step.ledger > 0 {
			want["ledger"] = step.ledger
		}
		must.Equal(t, fmt.Sprintf("%s: objects written by folder", step.what), want, written)
		if receipt.ObjectsWritten != want["objects"] {
			t.Errorf("%s: the receipt says %d objects, written were %d", step.what, receipt.ObjectsWritten, want["objects"])
		}
	}
	t.Logf("\n%s", terminal.Table([]any{"event", "objects written", "of", "bytes", "with manifest and record", "seconds"}, rows, 0))
}

// sizes returns the size of every object in the store.
func (s storage) sizes(t *testing.T) map[string]int64 {
	t.Helper()
	sizes := map[string]int64{}
	for info, err := range s.List(t.Context(), "") {
		must.Do(t, err)
		sizes[info.Key] = info.Size
	}
	return sizes
}

// changedIn returns how many objects a build wrote for each variant, by the manifest; none if
// it published nothing.
func (s storage) changedIn(t *testing.T, receipt snapshots.Receipt) map[string]int {
	t.Helper()
	changed := map[string]int{}
	if receipt.ObjectsWritten == 0 {
		return changed
	}
	var m snapshots.Manifest
	out := gridcast(t, t.TempDir(), "snapshots", "show", "--json", "--store", s.name)
	must.Do(t, json.Unmarshal([]byte(out), &m))
	for _, e := range m.Entries {
		if strings.HasPrefix(e.Object, snapshots.ObjectKey(receipt.Version, e.Path)) {
			changed[e.Path] = 1
		}
	}
	return changed
}
