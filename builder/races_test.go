package builder_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"gridcast/builder"
	"gridcast/builder/archive"
	"gridcast/builder/ledger"
	"gridcast/builder/live"
	"gridcast/builder/predict"
	"gridcast/builder/proof"
	"gridcast/deploy/must"
	"gridcast/schemas/wire"
)

// TestTwoBuildersOfARace: two schedulers read the same source and build at the same time. The race has each lap once, and
// one live pick at each checkpoint.
func TestTwoBuildersOfARace(t *testing.T) {
	r := austriaRuns(t, policy())
	l := must.Get(ledger.Open(t.Context(), r.Store, ledger.Simulated, austriaStart, "second", ""))(t)
	second := &builder.Builder{Store: r.Store, Ledger: l, Facts: archive.NewStore(r.Store).Load, Policy: policy(), Name: "second", Log: r.Log}
	seen := []int{1, 2, 18, 19, 36, 37, 54, 55, 64, 65, 71}
	for _, n := range seen {
		var both sync.WaitGroup
		at := r.lap(n).Received.Add(2 * time.Second) // of both builds, because no version may be earlier than its base
		for i, b := range []*builder.Builder{r.Builder, second} {
			o := r.lap(n)
			o.Received = o.Received.Add(time.Duration(i) * time.Second)
			both.Go(func() {
				must.Succeed(t, "Append", must.Err2(b.Observed().Append(t.Context(), live.Fixture{}, o)))
				must.Succeed(t, fmt.Sprintf("lap %d", n), must.Err(b.Build(t.Context(), builder.Request{At: at})))
			})
		}
		both.Wait()
	}
	r.sees(r.phase(live.Over, ends(71).Add(3*time.Second)))
	var timeline wire.LiveRace
	r.data("live/session/2024011", &timeline)
	if len(timeline.Timeline) != len(seen) || timeline.State != wire.LiveOver {
		t.Errorf("the timeline has %d laps, %s", len(timeline.Timeline), timeline.State)
	}
	record, _ := r.Ledger.Fold().Record(austriaKey)
	var made []int
	for _, p := range record.Live {
		made = append(made, p.Checkpoint)
	}
	if !slices.Equal(made, predict.Checkpoints) {
		t.Errorf("the ledger has live picks at %v, want one at each of %v", made, predict.Checkpoints)
	}
	audit, err := proof.AuditStore(t.Context(), r.Store)
	if err != nil || !audit.Green() {
		t.Errorf("the audit says %v, %v", audit.Err(), err)
	}
}

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
	if record, _ := r.Ledger.Fold().Record(austriaKey); len(record.Live) != 3 {
		t.Errorf("got %d live picks, want the three from before the verification", len(record.Live))
	}
}
