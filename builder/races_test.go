package builder_test

import (
	"testing"
	"time"

	"gridcast/builder/live"
	"gridcast/deploy/must"
	"gridcast/schemas/wire"
)

// TestVerifiedWhileTheFeedRuns: once the result is verified, /live shows it, and later laps of the feed freeze nothing.
func TestVerifiedWhileTheFeedRuns(t *testing.T) {
	r := austriaRuns(t, policy())
	for _, n := range []int{1, 18, 36} {
		r.sees(r.lap(n))
	}
	verified := austriaStart.Add(4 * time.Hour)
	build(t, r.Builder, verified)
	for n := 37; n <= 55; n++ {
		o := r.lap(n)
		o.At, o.Received = verified.Add(time.Duration(n)*time.Minute), verified.Add(time.Duration(n)*time.Minute)
		if n < 54 {
			must.Get2(r.Observed().Append(t.Context(), live.Fixture{}, o))(t)
			continue
		}
		r.sees(o)
	}
	var now wire.LiveRace
	r.data("live", &now)
	if now.State != wire.LiveOver || now.Provisional || now.Result == nil || now.Result.Winner != "RUS" {
		t.Errorf("/live is %s, provisional %t, with the result %+v", now.State, now.Provisional, now.Result)
	}
	record, _ := r.Ledger.Fold().Record(austriaKey)
	must.Hold(t, len(record.Live) == 3, "got %d live picks, want the three from before the verification", len(record.Live))
}
