package main

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/alecthomas/kong"

	"gridcast/deploy/must"
	"gridcast/snapshots/blob/porttest"
)

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
