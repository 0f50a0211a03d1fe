// Package edgetest makes versions for tests of the edge: small, complete, valid against the
// contract, and different from each other in every body.
package edgetest

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"gridcast/schemas"
	"gridcast/schemas/catalog"
	"gridcast/schemas/wire"
	"gridcast/snapshots"
	"gridcast/snapshots/blob"
	"gridcast/snapshots/notes"
)

// Known are the seasons of every version, Picks the rounds with a prediction.
var (
	Known = catalog.Known{Seasons: []int{1950, 2023, 2024}, Current: 2024}
	Picks = []int64{2023005, 2024001}
)

// The starts of the two coming rounds: the last of a season and the first of the next, whose
// hour nobody knows yet.
var (
	AbuDhabi  = time.Date(2024, 12, 8, 13, 0, 0, 0, time.UTC)
	Melbourne = time.Date(2025, 3, 16, 13, 0, 0, 0, time.UTC)
)

// Publish makes the next version of the store and returns it as an edge would read it. The
// points of its standings are n. The paths in without are left out. Each version has a body
// whose path the catalog does not know.
func Publish(t testing.TB, store blob.Store, n int64, without ...string) *snapshots.Version {
	t.Helper()
	return publish(t, store, nil, "", n, without)
}

// Suspended is the first version in which the running race is suspended.
const Suspended = 2000

// Weekend is the running weekend of every version of a sandbox.
var Weekend = snapshots.SandboxWeekend{
	Kind: catalog.SandboxKinds[0].Name, BeginsAt: AbuDhabi, EndsAt: AbuDhabi.Add(time.Hour), LightsOut: AbuDhabi.Add(50 * time.Minute),
}

// PublishSigned is Publish with a signature.
func PublishSigned(t testing.TB, store blob.Store, signers *notes.Signers, n int64) *snapshots.Version {
	t.Helper()
	return publish(t, store, signers, "", n, nil)
}

// PublishSandbox makes the next version of the sandbox in the store of a real world, as Publish does, with this clock. The
// signers may be nil.
func PublishSandbox(t testing.TB, store blob.Store, signers *notes.Signers, clock string, n int64, without ...string) *snapshots.Version {
	t.Helper()
	return publish(t, blob.Under(store, snapshots.SandboxFolder), signers, clock, n, without)
}

func publish(t testing.TB, store blob.Store, signers *notes.Signers, clock string, n int64, without []string) *snapshots.Version {
	t.Helper()
	base, err := snapshots.LoadBase(t.Context(), store, nil)
	if err != nil {
		t.Fatal(err)
	}
	draft := snapshots.Draft{Base: base, About: snapshots.About{
		Builder:       "edgetest",
		BuiltAt:       AbuDhabi.Add(-time.Hour),
		DueAt:         AbuDhabi,
		CurrentSeason: Known.Current,
		Seasons:       Known.Seasons,
		Archive:       snapshots.Digest([]byte("archive")),
		Ledger:        snapshots.Ledger{Kind: "simulated", Seq: 7, Hash: snapshots.Digest([]byte("ledger"))},
		Expected:      []snapshots.Expected{{Year: 1950, At: AbuDhabi}, {Year: 2024, At: AbuDhabi}}, // of 1950 a result is awaited
		State: []byte(`{"next_change":"2024-12-08T13:00:00+00:00","sources":[{"source":"f1db","licence":"CC BY 4.0","use":"published","silent":true},` +
			`{"source":"jolpica","licence":"CC BY-NC-SA 4.0","non_commercial":true,"use":"compared","disagreements":1}],` +
			`"rounds":[{"session_key":2024024,"gp_name":"Abu Dhabi Grand Prix","status":"awaiting_result","result":"provisional","pick_basis":"qualifying","disputed":[{"part":"result","source":"jolpica"}]}],` +
			`"non_commercial":[]}`),
	}}
	if clock != "" {
		next := Weekend
		// The race of the next one begins in an hour.
		next.Kind, next.BeginsAt, next.LightsOut = catalog.SandboxKinds[2].Name, Weekend.EndsAt, time.Now().Add(time.Hour)
		next.EndsAt = next.LightsOut.Add(time.Hour)
		draft.Clock, draft.Sandbox = clock, &snapshots.Sandbox{Cycle: 3, Weekend: Weekend, Next: []snapshots.SandboxWeekend{next}}
	}
	// packed makes even the smallest body one that is served in every coding.
	w := gzip.NewWriter(nil)
	packed := func(body []byte) []byte {
		var b bytes.Buffer
		w.Reset(&b)
		_, _ = w.Write(body)
		_ = w.Close()
		return b.Bytes()
	}
	for _, v := range catalog.All(Known, Picks) {
		if slices.Contains(without, v.Path()) {
			continue
		}
		body := render(t, v, n)
		if v.Endpoint == catalog.NextRace {
			draft.Variants = append(draft.Variants, snapshots.Unfinished(v.Path(), body))
			continue
		}
		draft.Variants = append(draft.Variants, snapshots.New(v.Path(), body, packed(body), generatedAt(n)))
	}
	for _, f := range catalog.Feeds {
		if body := []byte(f.Path + " of version " + strconv.FormatInt(n, 10)); !slices.Contains(without, f.Stored) {
			draft.Variants = append(draft.Variants, snapshots.New(f.Stored, body, packed(body), generatedAt(n)))
		}
	}
	drawn := []byte(`<svg xmlns="http://www.w3.org/2000/svg"/>`)
	draft.Variants = append(draft.Variants, snapshots.New(catalog.Portrait("lando-norris"), drawn, packed(drawn), generatedAt(n)))
	// A newer builder may know more endpoints than the edge.
	later := []byte(`{"later":true}`)
	draft.Variants = append(draft.Variants, snapshots.New("later/2024", later, packed(later), generatedAt(n)))
	publisher := snapshots.Publisher{Store: store, Signers: signers}
	if _, err := publisher.Publish(t.Context(), draft); err != nil {
		t.Fatal(err)
	}
	version, err := snapshots.Open(t.Context(), store, nil)
	if err != nil {
		t.Fatal(err)
	}
	return version
}

func generatedAt(n int64) time.Time { return AbuDhabi.Add(time.Duration(n-86400) * time.Second) }

// samples say the data of an endpoint's variants in version n. An endpoint without a sample has the data of an example in
// the OpenAPI document.
var samples = map[catalog.Name]func(v catalog.Variant, n int64) any{
	catalog.Standings: func(v catalog.Variant, n int64) any {
		if v.Type == catalog.ConstructorsType {
			return []wire.ConstructorStanding{{Position: 1, Team: "McLaren", Points: float64(n), Wins: 1, Podiums: 2}}
		}
		return []wire.DriverStanding{{
			Position: 1, Driver: "NOR", Name: "Lando Norris", Team: "McLaren", TeamColour: "#FF8000",
			Points: float64(n), Wins: 1, Podiums: 2,
		}}
	},
	catalog.Calendar: func(v catalog.Variant, _ int64) any {
		return []wire.CalendarEntry{{
			Round: 24, SessionKey: int64(v.Year)*1000 + 24, GPName: "Abu Dhabi Grand Prix", Circuit: "Yas Marina",
			Locality: "Abu Dhabi", Country: "United Arab Emirates", Date: "2024-12-08", DateStart: wire.Instant(AbuDhabi),
			Status: wire.Scheduled,
		}}
	},
	catalog.Drivers: func(catalog.Variant, int64) any {
		return []wire.Driver{{
			Driver: "NOR", Name: "Lando Norris", FirstName: "Lando", LastName: "Norris", Number: 4, Team: "McLaren", Country: "GBR",
		}}
	},
	catalog.Overview: func(catalog.Variant, int64) any {
		o := wire.NewOverview(2024)
		o.Rounds = append(o.Rounds, wire.OverviewRound{
			SessionKey: 2024024, GPName: "Abu Dhabi Grand Prix", Circuit: "Yas Marina", Country: "United Arab Emirates", Date: "2024-12-08",
			DateStart: wire.Instant(AbuDhabi), Status: wire.Scheduled,
			Prediction: &wire.Prediction{Winner: "NOR", ConfidencePct: 625, Podium: wire.Podium{P1: "NOR", P2: "VER", P3: "LEC"}},
		})
		return o
	},
	catalog.Accuracy: func(_ catalog.Variant, n int64) any { return wire.Accuracy{RacesEvaluated: int(n)} },
	catalog.Live: func(v catalog.Variant, n int64) any {
		if v.SessionKey == catalog.NoSession {
			return wire.LiveRace{State: wire.LiveNone}
		}
		gap, win := int(n), wire.Percent(1000)
		car := wire.LiveCar{Position: 1, Driver: "NOR", DriverID: "lando-norris", TeamID: "mclaren", GapMS: &gap, WinPct: &win, PodiumPct: &win}
		data := wire.LiveRace{State: wire.LiveRunning, Provisional: true, SessionKey: 2024024, GPName: "Abu Dhabi Grand Prix", Lap: 3, Laps: 58, ObservedAt: wire.Instant(AbuDhabi), Order: []wire.LiveCar{car}}
		if n >= Suspended {
			data.State = wire.LiveSuspended
		}
		if v.SessionKey > 0 {
			data.Timeline = []wire.LiveLap{{Lap: 3, ObservedAt: wire.Instant(AbuDhabi), Order: data.Order}}
		}
		return data
	},
}

// render makes the body of a variant in version n.
func render(t testing.TB, v catalog.Variant, n int64) []byte {
	var content any
	if v.Endpoint == catalog.NextRace {
		content = Countdown(t)
	} else if sample := samples[v.Endpoint]; sample != nil {
		content = wire.Wrap(sample(v, n), generatedAt(n))
	} else {
		content = wire.Wrap(example(t, v), generatedAt(n))
	}
	body, err := wire.Marshal(content)
	if err != nil {
		t.Fatal(err)
	}
	return body
}

// example returns the data of an endpoint's first example in the OpenAPI document: for a season and a session with records
// of their own, the first record under that session, and otherwise none.
func example(t testing.TB, v catalog.Variant) any {
	t.Helper()
	examples := documented().Paths[catalog.BasePath+"/"+string(v.Endpoint)].Get.Responses["200"].Content["application/json"].Examples
	for _, name := range slices.Sorted(maps.Keys(examples)) {
		data := examples[name].Value.Data
		var records []json.RawMessage
		if err := json.Unmarshal(data, &records); err != nil || len(records) > 0 && !session.Match(records[0]) {
			return data // of an endpoint without sessions
		}
		switch {
		case v.SessionKey <= 0:
			return records[:0]
		case len(records) > 0:
			return []json.RawMessage{session.ReplaceAll(records[0], fmt.Appendf(nil, `"session_key":%d`, v.SessionKey))}
		}
	}
	t.Fatalf("the OpenAPI document has no example of %s", v.Path())
	return nil
}

// session is the session of a record.
var session = regexp.MustCompile(`"session_key":\s*\d+`)

// document is the part of the OpenAPI document that has the examples.
type document struct {
	Paths map[string]struct {
		Get struct {
			Responses map[string]struct {
				Content map[string]struct {
					Examples map[string]struct {
						Value struct{ Data json.RawMessage }
					}
				}
			}
		}
	}
}

var documented = sync.OnceValue(func() (d document) {
	if err := json.Unmarshal(schemas.OpenAPIJSON(), &d); err != nil {
		panic("BUG: edgetest: " + err.Error())
	}
	return d
})

// Countdown returns the coming rounds of every version.
func Countdown(t testing.TB) wire.Countdown {
	var c wire.Countdown
	for _, race := range []wire.NextRace{
		{
			Name: "Abu Dhabi Grand Prix", Circuit: "Yas Marina", Country: "United Arab Emirates", DateStart: wire.Instant(AbuDhabi),
			Prediction: &wire.Prediction{Winner: "NOR", ConfidencePct: 625, Podium: wire.Podium{P1: "NOR", P2: "VER", P3: "LEC"}},
		},
		{Name: "Australian Grand Prix", Circuit: "Albert Park", Country: "Australia", DateStart: wire.Instant(Melbourne), Provisional: true},
	} {
		round, err := wire.NewCountdownRound(race)
		if err != nil {
			t.Fatal(err)
		}
		c.Rounds = append(c.Rounds, round)
	}
	return c
}

// fileFolder holds documents that are the files of seasons, for Downloads. No endpoint has their paths.
const fileFolder = "file/"

// PublishBulk makes the next version of the store, with these downloads by year and nothing else that
// is new. The edge needs Downloads.
func PublishBulk(t testing.TB, store blob.Store, files map[int][]byte) {
	t.Helper()
	base, err := snapshots.LoadBase(t.Context(), store, nil)
	if err != nil {
		t.Fatal(err)
	}
	m := &base.Manifest
	draft := snapshots.Draft{Base: base, About: m.About}
	for _, e := range m.Entries {
		if !strings.HasPrefix(e.Path, fileFolder) {
			draft.Variants = append(draft.Variants, snapshots.Reused(e))
		}
	}
	for year, data := range files {
		draft.Variants = append(draft.Variants, snapshots.New(fileFolder+strconv.Itoa(year), data, nil, m.BuiltAt))
	}
	publisher := snapshots.Publisher{Store: store}
	if _, err := publisher.Publish(t.Context(), draft); err != nil {
		t.Fatal(err)
	}
}

// Downloads returns the files of PublishBulk as the maker of an edge.
type Downloads struct{}

// Sources returns the hashes of the files.
func (Downloads) Sources(v *snapshots.Version) (map[int]string, error) {
	sources := map[int]string{}
	for path, body := range v.All() {
		if year, ok := strings.CutPrefix(path, fileFolder); ok {
			n, err := strconv.Atoi(year)
			if err != nil {
				return nil, err
			}
			sources[n] = body.Entry.SHA256
		}
	}
	return sources, nil
}

// Make returns a file.
func (Downloads) Make(v *snapshots.Version, year int) ([]byte, error) {
	body, _ := v.Body(fileFolder + strconv.Itoa(year))
	return body.Plain(), nil
}
