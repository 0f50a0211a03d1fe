package edge_test

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"gridcast/edge"
	"gridcast/schemas/wire"
)

// TestAdmin looks at what an operator sees.
func TestAdmin(t *testing.T) {
	probe, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := probe.Addr().String()
	probe.Close()
	w := newWorld(t, func(c *edge.Config, _ *edge.Deps, _ *setup) { c.AdminListen = address })
	w.get("/api/v1/calendar")
	w.do("GET", "/api/v1/calendar")
	body := fetch(t, "http://"+address+"/metrics")
	for _, want := range []string{
		`gridcast_edge_requests_total{endpoint="calendar",status="200",tier="pro"} 1`,
		`gridcast_edge_requests_total{endpoint="unrouted",status="401",tier="none"} 1`,
		`gridcast_edge_version 1`,
		`gridcast_edge_version_age_seconds 0`,
		`gridcast_edge_versions_loaded_total 1`,
		`gridcast_edge_versions_refused_total 0`,
		`gridcast_edge_ready 1`,
		`gridcast_edge_keys 6`,
		`go_goroutines `,
	} {
		if !strings.Contains(body, "\n"+want) {
			t.Errorf("metrics without %s", want)
		}
	}
	var status wire.Success[edge.Status]
	if err := json.Unmarshal([]byte(fetch(t, "http://"+address+"/status")), &status); err != nil || status.Data.Version != 1 {
		t.Errorf("status: got %+v, %v", status, err)
	}
	fetch(t, "http://"+address+"/debug/pprof/")
}

func fetch(t testing.TB, url string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("%s: got %s, %v", url, response.Status, err)
	}
	return string(body)
}
