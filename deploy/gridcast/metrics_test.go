package main

import (
	"io"
	"net/http"
	"os"
	"regexp"
	"slices"
	"testing"
	"time"

	"gridcast/deploy/golden"
	"gridcast/deploy/must"
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
	golden.Sentence(t, "the limits without Redis, in /status", statusOf(t, server).LimitsFault)
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
		`gridcast_build_phase_seconds_count{phase="rendering"} `, `gridcast_builds_total{outcome="done"} `, "gridcast_published_version ", `gridcast_build_info{version="`, // of one build or two
		"gridcast_ledger_head ", `gridcast_job_failures_total{name="poll"} 0`, "gridcast_race_weekend 1", // the day after a race
		`gridcast_rounds{result="provisional"} `, `gridcast_picks{basis="grid"} `, "gridcast_facts_disputed 0", "gridcast_facts_noncommercial 0",
		"gridcast_next_change_seconds ", `gridcast_missing_fact_seconds{code="result_overdue"} `,
	)
}
