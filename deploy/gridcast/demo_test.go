package main

import (
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"gridcast/deploy/must"
	"gridcast/edge/keys"
	"gridcast/scheduler/webhook"
	"gridcast/schemas/wire"
	"gridcast/snapshots"
	"gridcast/snapshots/blob/dirblob"
)

func (d demo) store(t testing.TB) *dirblob.Store {
	t.Helper()
	return must.Get(dirblob.Open(filepath.Join(d.cmd.Dir, ".var", "demo")))(t)
}

// manyClients creates keys and returns a client of each, once the edge accepts them.
func (d demo) manyClients(t testing.TB, n int) []*client {
	t.Helper()
	clients := make([]*client, n)
	must.Do(t, keys.Update(t.Context(), d.store(t), func(doc *keys.List) error {
		for i := range clients {
			_, key, err := doc.Create(keys.Request{Name: "test", Tier: "pro"}, time.Now())
			if err != nil {
				return err
			}
			clients[i] = newClient(d.url, key)
		}
		return nil
	}))
	must.Until(t, "the new keys are accepted", func() bool {
		return clients[n-1].do(t, http.MethodGet, "/api/v1/drivers", nil).status == http.StatusOK
	})
	return clients
}

// TestDemoWeekend watches a whole race weekend through the API: qualifying, the frozen pick,
// lights out, the result. Two servers have webhooks, and one of them never answers.
func TestDemoWeekend(t *testing.T) {
	t.Parallel() // most of it waits
	const lasVegas = 2024022
	told := newListeners(t)
	d := startDemo(t, "3000", append(told.flags(), "--archive", lateSeason(t))...)
	hook, secret := told.add(d.cmd.Dir, "dir:.var/demo")
	clients := d.manyClients(t, 20)
	c := func() *client { // in turn, so that looking often meets no limit
		clients = append(clients[1:], clients[0])
		return clients[0]
	}
	next := func() wire.NextRace { return data[wire.NextRace](t, c().get(t, "/next-race")) }
	round := func() wire.CalendarEntry {
		for _, e := range data[[]wire.CalendarEntry](t, c().get(t, "/calendar?year=2024")) {
			if e.SessionKey == lasVegas {
				return e
			}
		}
		t.Fatalf("session %d is not in the calendar", lasVegas)
		return wire.CalendarEntry{}
	}

	var frozen *wire.Prediction
	must.Until(t, "the pick is in /next-race", func() bool {
		race := next()
		frozen = race.Prediction
		if race.Name != "Las Vegas Grand Prix" { // a busy machine has looked too late
			frozen = nil
			for _, record := range data[[]wire.PredictionRecord](t, c().get(t, "/predictions?session_key=2024022")) {
				frozen = &record.Prediction
			}
		}
		return frozen != nil
	})
	must.Until(t, "/next-race moves on at lights out", func() bool { return next().Name != "Las Vegas Grand Prix" })
	must.Until(t, "the calendar knows of lights out", func() bool { s := round().Status; return s == wire.Live || s == wire.AwaitingResult })
	// The result waits for the visitor, and the banner names the command that verifies it.
	must.Until(t, "the demo shows the page of results to verify", func() bool { return waitingPage.MatchString(d.output.String()) })
	if r := round(); r.Winner != "" {
		t.Errorf("nobody has verified the result, and the calendar has it: %+v", r)
	}
	for _, session := range []string{"2024021", "2024022"} { // the race before the demo, and the one that it showed
		must.Until(t, "/live has every lap of "+session, func() bool {
			timeline := data[wire.LiveRace](t, c().get(t, "/live?session_key="+session))
			return timeline.State == wire.LiveOver && timeline.Lap >= 50 && len(timeline.Timeline) == timeline.Lap
		})
	}
	must.Until(t, "a webhook has a version without the result", func() bool {
		messages, _ := told.messages(secret)
		return len(messages) > 0
	})
	clock := regexp.MustCompile(`GRIDCAST_RACE_CLOCK='([^']*)'`).FindStringSubmatch(d.output.String())
	gridcast(t, d.cmd.Dir, "results", "verify", "2024022", "--yes", "--store", "dir:.var/demo", "--race-clock", clock[1])
	must.Until(t, "the result is in the calendar", func() bool { return round().Winner == "RUS" })

	records := data[[]wire.PredictionRecord](t, c().get(t, "/predictions?session_key=2024022"))
	must.Require(t, len(records) == 1 && records[0].Prediction == *frozen, "the pick moved: frozen %+v, published %+v", frozen, records)
	if r := records[0].Result; r == nil || r.Podium != (wire.Podium{P1: "RUS", P2: "HAM", P3: "SAI"}) {
		t.Errorf("result: got %+v, want RUS, HAM, SAI", r)
	}
	gridcast(t, d.cmd.Dir, "ledger", "audit", "--store", "dir:.var/demo")

	// The listening server gets the result, and the silent server has delayed nothing above.
	must.Until(t, "a webhook says that the standings have changed", func() bool {
		messages, _ := told.messages(secret)
		return slices.ContainsFunc(messages, func(m wire.PublishedData) bool {
			return slices.ContainsFunc(m.Changes, func(v wire.WebhookVariant) bool { return v.Path == "/api/v1/standings" })
		})
	})
	if messages, _ := told.messages(secret); len(messages) < 2 || messages[0].Previous == 0 || !sameDocuments(t, filepath.Join(d.cmd.Dir, ".var", "demo"), messages[0].Version, messages[1].Previous) {
		t.Errorf("got %+v, want that each begins where the one before ends, or at a later version with the same documents", messages)
	}
	_, last := told.messages(secret)
	t.Run("verifiers", func(t *testing.T) { runVerifiers(t, secret, last) })
	attempts := printed[[]webhook.Attempt](t, d.cmd.Dir, "webhooks", "log", hook, "--store", "dir:.var/demo")
	must.Hold(t, len(attempts) != 0 && !slices.ContainsFunc(attempts, func(a webhook.Attempt) bool { return a.Status/100 != 2 }),
		"webhooks log: got %+v, want deliveries alone", attempts)
	must.Until(t, "webhooks list has one active and one failing", func() bool { // an attempt without an answer takes its time
		states := map[string]int{}
		for _, h := range printed[[]struct {
			State string `json:"state"`
		}](t, d.cmd.Dir, "webhooks", "list", "--store", "dir:.var/demo") {
			states[h.State]++
		}
		return states["active"] == 1 && states["failing"] == 1
	})
	must.Hide(t, "the log", d.output.String(), strings.TrimPrefix(secret, "whsec_"), "correct horse")
}

// TestDemoWithoutVisitor checks that the demo verifies a result by rule, by default ten minutes of real
// time after the race, and that Ctrl-C ends it in order.
func TestDemoWithoutVisitor(t *testing.T) {
	must.Long(t, "makes a demo")
	t.Parallel() // most of it waits
	const speed = 6000
	d := startDemo(t, strconv.Itoa(speed), "--auto-verify-after", "1h", "--archive", lateSeason(t)) // instead of its thousand hours
	must.Until(t, "the demo says that the result is verified in a second", func() bool {
		m := waitingPage.FindStringSubmatch(d.output.String())
		return m != nil && m[1] == "1s"
	})
	c := d.manyClients(t, 1)[0]
	must.Until(t, "the result is verified by itself", func() bool {
		return slices.ContainsFunc(data[[]wire.CalendarEntry](t, c.get(t, "/calendar?year=2024")), func(e wire.CalendarEntry) bool {
			return e.SessionKey == 2024022 && e.Winner == "RUS"
		})
	})
	must.Do(t, d.cmd.Process.Signal(os.Interrupt))
	err := <-d.ended
	d.ended <- err // for the end of the test
	must.Succeed(t, "the end by Ctrl-C", err)
	must.Hide(t, "the output", d.output.String(), "\ngridcast: ", "level=ERROR", "context canceled")
}

// waitingPage is the address of the page of results to verify, and how long later a result is verified by rule.
var waitingPage = regexp.MustCompile(`/#waiting (?s:.*) (\w+)\.\n`)

// sameDocuments reports whether two versions of a store in a directory have equal documents.
func sameDocuments(t *testing.T, root string, a, b int64) bool {
	t.Helper()
	store := must.Get(dirblob.OpenReadOnly(root))(t)
	bodies := func(version int64) map[string]string {
		m := must.Get(snapshots.LoadManifest(t.Context(), store, version))(t)
		hashes := map[string]string{}
		for _, e := range m.Entries {
			hashes[e.Path] = e.SHA256
		}
		return hashes
	}
	return maps.Equal(bodies(a), bodies(b))
}
