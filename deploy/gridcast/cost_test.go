package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"gridcast/builder/archive"
	"gridcast/builder/archive/archivetest"
	"gridcast/deploy/must"
	"gridcast/deploy/terminal"
	"gridcast/snapshots"
)

// TestCostOfChanges publishes five seasons, then the events of a race weekend, and prints the share of objects
// that each build wrote. A build may write only objects that its event changes.
func TestCostOfChanges(t *testing.T) {
	t.Parallel() // fills the time in which others wait
	s := inDirectory(t)
	archivetest.Put(t, archive.NewStore(s), archivetest.Stored(t, archivetest.Seasons(t, 2020, 2024)))
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
			"drivers", "head-to-head/2024", "live", "next-race", "portraits/kevin-magnussen.svg", predictions, session, "probabilities/2024", "probabilities/session/2024022",
			"sessions", "sessions/session/2024022", "weekends/2024", "weekends/session/2024022",
		}, 1},
		{"lights out", "2024-11-24T06:00:01Z", []string{"calendar/2024", "next-race", "weekends/2024", "weekends/session/2024022"}, 0},
		{"result verified", "2024-11-24T09:00:00Z", []string{
			"accuracy/2024", "accuracy/all", "calendar/2024", "careers/constructors/2024", "careers/constructors/all", "careers/drivers/2024",
			"careers/drivers/all", "circuits/2024", "circuits/all", "head-to-head/2024", "live", predictions, session, "results/2024", "results/session/2024022", "sessions",
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
			must.Hold(t, receipt.ObjectsReused == 0 && len(changed) == receipt.Variants, "%s: %+v, want every variant written", step.what, receipt)
			continue
		}
		if diff := cmp.Diff(step.changed, slices.Sorted(maps.Keys(changed)), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s: variants written (-want +got):\n%s", step.what, diff)
		}
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
		if diff := cmp.Diff(want, written); diff != "" {
			t.Errorf("%s: objects written by folder (-want +got):\n%s", step.what, diff)
		}
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
		if err != nil {
			t.Fatal(err)
		}
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
