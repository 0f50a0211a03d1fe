package edge_test

import (
	"testing"
	"time"

	"gridcast/deploy/must"
	"gridcast/edge/edgetest"
	"gridcast/schemas/wire"
)

func TestCountdownMovesByItself(t *testing.T) {
	w := newWorld(t)
	for _, tt := range []struct {
		decision    string
		now         time.Time
		status      int
		name        string
		seconds     int64
		generated   time.Time
		provisional bool
	}{
		{"an hour to go", edgetest.AbuDhabi.Add(-time.Hour), 200, "Abu Dhabi Grand Prix", 3600, edgetest.AbuDhabi.Add(-time.Hour), false},
		{"part of a second counts as a whole one", edgetest.AbuDhabi.Add(-1500 * time.Millisecond), 200, "Abu Dhabi Grand Prix", 2, edgetest.AbuDhabi.Add(-2 * time.Second), false},
		{"the last instant still has a second", edgetest.AbuDhabi.Add(-1), 200, "Abu Dhabi Grand Prix", 1, edgetest.AbuDhabi.Add(-time.Second), false},
		{"at lights out the next season's first race, of unknown hour", edgetest.AbuDhabi, 200, "Australian Grand Prix", 98 * 86400, edgetest.AbuDhabi, true},
		{"none known", edgetest.Melbourne, 404, "", 0, time.Time{}, false},
	} {
		t.Run(tt.decision, func(t *testing.T) {
			w.race.set(tt.now)
			r := w.get("/api/v1/next-race")
			must.Require(t, r.StatusCode == tt.status, "got %d, want %d: %s", r.StatusCode, tt.status, r.body)
			if tt.status != 200 {
				return
			}
			valid(t, "/api/v1/next-race", r.body)
			body := must.JSON[wire.Success[wire.NextRace]](t, r.body)
			d, generated := body.Data, time.Time(body.Meta.GeneratedAt)
			if d.Name != tt.name || d.SecondsToLights != tt.seconds || !generated.Equal(tt.generated) || d.Provisional != tt.provisional {
				t.Errorf("got %+v at %s, want %s with %d seconds to go at %s", d, generated, tt.name, tt.seconds, tt.generated)
			}
			got := time.Time(d.DateStart).Sub(generated)
			must.Hold(t, got == time.Duration(d.SecondsToLights)*time.Second, "date_start - generated_at is %v, but seconds_to_lights %d", got, d.SecondsToLights)
		})
	}
}
