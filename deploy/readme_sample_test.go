package deploy_test

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"
	"time"

	"gridcast/builder/archive/archivetest"
	"gridcast/builder/predict"
	"gridcast/deploy/must"
	"gridcast/schemas/wire"
)

// TestReadmeShowsTheDemosPick compares the answer of /next-race in README.md with the pick that the demo freezes: the
// forecast of the published model when the grid of that round was known.
func TestReadmeShowsTheDemosPick(t *testing.T) {
	if testing.Short() {
		t.Skip("learns the published model")
	}
	sample := regexp.MustCompile(`(?s)\{"ok":true,"data":\{"name".*?"generated_at":"[^"]*"\}\}`).FindString(readReadme(t))
	var got wire.Success[wire.NextRace]
	if err := json.Unmarshal([]byte(strings.ReplaceAll(sample, "\n     ", "")), &got); err != nil {
		t.Fatalf("the sample in README.md: %v\n%s", err, sample)
	}
	a := archivetest.Embedded(t)
	start := time.Time(got.Data.DateStart)
	for _, s := range a.Facts().Seasons {
		for _, r := range s.Rounds {
			if s.Year != start.Year() || r.Name != got.Data.Name {
				continue
			}
			view := a.AsOf(r.GridKnownAt())
			forecast := must.Get(predict.NewV2(predict.DefaultParams()).Predict(view, s.Year, r.GrandPrix))(t)
			codes := view.Codes(s.Year)
			circuit := a.Facts().Circuits[r.Circuit]
			podium := wire.Podium{P1: codes[forecast.Podium[0]], P2: codes[forecast.Podium[1]], P3: codes[forecast.Podium[2]]}
			want := wire.NextRace{
				Name: r.Name, Circuit: circuit.Name, Country: circuit.Country, DateStart: wire.Instant(r.Start),
				SecondsToLights: int64(start.Sub(time.Time(got.Meta.GeneratedAt)).Seconds()),
				Prediction:      &wire.Prediction{Winner: podium.P1, ConfidencePct: wire.PercentFrom(forecast.Candidates[0].Win), Podium: podium},
			}
			wantJSON := must.Get(wire.Marshal(want))(t)
			gotJSON := must.Get(wire.Marshal(got.Data))(t)
			must.Hold(t, string(gotJSON) == string(wantJSON), "README.md shows\n%s\nthe demo answers\n%s", gotJSON, wantJSON)
			return
		}
	}
	t.Fatalf("no round %q of %d", got.Data.Name, start.Year())
}
