package main

import (
	"io"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"
)

// metricName finds the names of our metrics in rules, dashboards and expositions.
var metricName = regexp.MustCompile(`\bgridcast_[a-z_]+`)

// exposed returns what an admin port exposes.
func exposed(t testing.TB, admin string) string {
	t.Helper()
	client := http.Client{Timeout: 10 * time.Second}
	response, err := client.Get("http://" + admin + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	metrics, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(metrics)
}

// What rules and dashboards ask for has to be there: a renamed metric would silence an alert.
func TestRulesAndDashboardsNameMetricsThatExist(t *testing.T) {
	admin := freeAddress(t)
	dir := t.TempDir()
	newKey(t, dir, "dir:store", "pro") // without one an edge is not ready
	startServer(t, dir, "serve", "--store", "dir:store", "--now", "2024-07-01T12:00:00Z", "--model", "grid-frequency", "--archive", seasons(t, 2022, 2026), "--admin-listen", admin,
		"--redis", "redis://127.0.0.1:9") // nobody is there: its metrics are
	metrics := exposed(t, admin)
	exists := map[string]bool{}
	for _, name := range metricName.FindAllString(metrics, -1) {
		exists[name] = true
	}
	for _, file := range []string{"../prometheus/alerts.yaml", "../prometheus/alerts_test.yaml", "../grafana/gridcast.json"} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		names := metricName.FindAllString(string(text), -1)
		if len(names) < 5 {
			t.Errorf("%s names only %d metrics", file, len(names))
		}
		for _, name := range names {
			if !exists[name] {
				t.Errorf("%s asks for %s, which is not exposed", file, name)
			}
		}
	}
	for _, want := range []string{
		`gridcast_build_phase_seconds_count{phase="rendering"} 1`, `gridcast_builds_total{outcome="done"} 1`, "gridcast_published_version 1",
		"gridcast_ledger_head ", `gridcast_job_failures_total{name="poll"} 0`, "gridcast_race_weekend 1", // the day after a race
	} {
		if !strings.Contains(metrics, want) {
			t.Errorf("not exposed: %s", want)
		}
	}
}
