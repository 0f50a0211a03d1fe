package builder_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"gridcast/builder"
	"gridcast/builder/provenance"
	"gridcast/deploy/must"
	"gridcast/schemas/wire"
	"gridcast/snapshots"
)

// published returns the manifest of the current version and its description of the facts.
func published(t *testing.T, b *builder.Builder) (snapshots.Manifest, wire.FactsState) {
	t.Helper()
	base := must.Get(snapshots.LoadBase(t.Context(), b.Store, nil))(t)
	state := must.JSON[wire.FactsState](t, base.Manifest.State)
	return base.Manifest, state
}

// TestFactsState follows the public description of a round and of the sources through a weekend.
func TestFactsState(t *testing.T) {
	must.Long(t, "builds the embedded seasons")
	qualified := time.Date(2024, 6, 29, 15, 0, 0, 0, time.UTC)
	lightsOut := time.Date(2024, 6, 30, 13, 0, 0, 0, time.UTC)
	b := service(t, qualified.Add(-time.Hour), policy())
	sourced := provenance.Summary{
		Sources:  []provenance.SourceSummary{{Name: "f1db", Licence: "CC BY 4.0", Revision: "8c1f3a60d2e4", Changed: qualified}},
		Disputed: []provenance.RoundPart{{Year: 2024, GrandPrix: "austria", Block: "result", Source: "jolpica"}},
		Borrowed: []provenance.RoundPart{{Year: 2024, GrandPrix: "austria", Block: "grid", Source: "jolpica", Licence: "CC BY-NC-SA 4.0"}},
	}
	b.Provenance = func(time.Time) provenance.Summary { return sourced }
	for _, step := range []struct {
		at     time.Time
		status wire.Status
		result string
		basis  string
		next   time.Time
	}{
		{qualified.Add(-time.Hour), wire.Scheduled, "", "", qualified},
		{qualified, wire.Scheduled, "", "grid", lightsOut},
		{lightsOut, wire.Live, wire.FactsAwaited, "grid", lightsOut.Add(2 * time.Hour)},
		{lightsOut.Add(3 * time.Hour), wire.Finished, wire.FactsVerified, "grid", time.Date(2024, 7, 6, 15, 0, 0, 0, time.UTC)},
	} {
		build(t, b, step.at)
		manifest, state := published(t, b)
		var austria wire.RoundState
		for _, r := range state.Rounds {
			if r.SessionKey == austriaKey {
				austria = r
			}
		}
		want := wire.RoundState{
			SessionKey: austriaKey, GPName: "Austrian Grand Prix", Status: step.status, Result: step.result, PickBasis: step.basis,
			Disputed: []wire.Dispute{{Part: "result", Source: "jolpica"}}, FrozenAt: austria.FrozenAt,
		}
		if step.result == wire.FactsVerified {
			want.Revision = 1
		}
		must.Equal(t, fmt.Sprintf("at %s", step.at), want, austria, cmp.AllowUnexported(wire.Instant{}))
		got := time.Time(state.NextChange)
		must.Hold(t, got.Equal(step.next), "at %s the next change is expected at %s, want %s", step.at, got, step.next)
		if len(manifest.Expected) != 1 || manifest.Expected[0].Year != 2024 || !manifest.Expected[0].At.Equal(step.next) {
			t.Errorf("at %s the manifest expects %v, want 2024 at %s", step.at, manifest.Expected, step.next)
		}
		if len(state.Sources) != 1 || len(state.NonCommercial) != 1 || state.NonCommercial[0].SessionKey != austriaKey || state.NonCommercial[0].Part != "grid" {
			t.Errorf("at %s: sources %+v, non-commercial %+v", step.at, state.Sources, state.NonCommercial)
		}
	}

	// An unchanged state is not published, a source that falls silent is. A builder without sources keeps
	// the description of the sources.
	at := lightsOut.Add(4 * time.Hour)
	outcome := build(t, b, at)
	must.Hold(t, outcome.Unchanged, "a version was published though nothing had changed")
	sourced.Sources[0].Silent, sourced.Sources[0].Answered = true, lightsOut
	if outcome := build(t, b, at); outcome.Unchanged {
		t.Error("no version was published though a source had fallen silent")
	}
	b.Provenance = nil
	if outcome := build(t, b, at.Add(time.Minute)); !outcome.Unchanged {
		_, state := published(t, b)
		t.Errorf("a builder that asks nobody published %+v", state.Sources)
	}
}
