package builder

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"gridcast/builder/almanac"
	"gridcast/builder/archive"
	"gridcast/builder/ledger"
	"gridcast/builder/render"
	"gridcast/schemas/catalog"
	"gridcast/schemas/wire"
	"gridcast/snapshots"
	"gridcast/snapshots/blob"
)

// Audit is what the store proves of its record.
type Audit struct {
	ledger.Findings
	Versions int   `json:"versions"`     // whose manifests name a head that was looked for
	Current  int64 `json:"version"`      // the version served; 0: none
	Served   int   `json:"picks_served"` // in its bodies, each the one that was frozen; one pick is in several
}

// AuditStore audits the ledger of the store, and what was published from it: the head that each
// stored manifest names has to be part of the ledger, at its place, and every pick that the
// current version serves has to be the one that was frozen by then. noted are further heads, as
// in ledger.Audit. What is wrong is in the report; the error is for a store that can not be read.
func AuditStore(ctx context.Context, store blob.Store, noted ...string) (Audit, error) {
	// What was published is read first: a ledger that goes on meanwhile still has its heads.
	manifests, err := published(ctx, store)
	if err != nil {
		return Audit{}, fmt.Errorf("audit what was published: %w", err)
	}
	base, err := snapshots.LoadBase(ctx, store, nil)
	if err != nil {
		return Audit{}, fmt.Errorf("audit what is served: %w", err)
	}
	report, err := ledger.Audit(ctx, store, noted...)
	if err != nil {
		return Audit{}, err
	}
	a := &Audit{Findings: report, Versions: len(manifests), Current: base.Manifest.Version}
	if !a.Green() {
		return *a, nil // where the ledger itself does not hold, nothing can be held to it
	}
	l, err := ledger.Load(ctx, store, ledger.AnyKind)
	if err != nil {
		return Audit{}, err
	}
	if err := Vouch(ctx, l, archive.NewStore(store)); err != nil {
		return Audit{}, fmt.Errorf("audit what is served: %w", err)
	}
	a.heads(manifests, l.Files())
	if !a.Green() || base.Empty() {
		return *a, nil
	}
	if err := a.served(ctx, store, base, l); err != nil {
		return Audit{}, fmt.Errorf("audit what is served: %w", err)
	}
	return *a, nil
}

// published returns the manifests of the versions that are or were served. A damaged one is for
// the check of snapshots to tell.
func published(ctx context.Context, store blob.Store) ([]snapshots.Manifest, error) {
	versions, err := snapshots.List(ctx, store)
	if err != nil && !errors.Is(err, snapshots.ErrNone) {
		return nil, err
	}
	var manifests []snapshots.Manifest
	for _, v := range versions {
		if v.Status == snapshots.Unpublished || v.Damage != "" {
			continue
		}
		m, err := snapshots.LoadManifest(ctx, store, v.Version)
		if err != nil {
			return nil, err
		}
		manifests = append(manifests, m)
	}
	return manifests, nil
}

func (a *Audit) fault(key, want, got string) {
	a.Faults = append(a.Faults, ledger.Fault{Key: key, Want: want, Got: got})
}

// heads holds the files of the ledger to the heads that the manifests name.
func (a *Audit) heads(manifests []snapshots.Manifest, files []ledger.File) {
	for _, m := range manifests {
		named := fmt.Sprintf("file %d with the hash %s, as version %d says", m.Ledger.Seq, m.Ledger.Hash, m.Version)
		switch seq := m.Ledger.Seq; {
		case seq < 1 || seq > int64(len(files)):
			a.fault(snapshots.ManifestKey(m.Version), named, fmt.Sprintf("%d files: the ledger was cut", len(files)))
		case files[seq-1].Hash != m.Ledger.Hash:
			a.fault(ledger.Key(seq), named, files[seq-1].Hash+": the ledger was written anew")
		case string(a.Kind) != m.Ledger.Kind:
			a.fault(snapshots.ManifestKey(m.Version), fmt.Sprintf("a %s ledger", a.Kind), "a "+m.Ledger.Kind+" one")
		}
	}
}

// served compares the picks in a version with those frozen by the head that it names.
func (a *Audit) served(ctx context.Context, store blob.Store, version *snapshots.Base, l *ledger.Ledger) error {
	m := version.Manifest
	facts, err := archive.NewStore(store).Get(ctx, m.Archive)
	if err != nil {
		return err
	}
	frozen := almanac.Join(facts.Archive.AsOf(m.BuiltAt), l.UpTo(m.Ledger.Seq))
	variants := map[string]catalog.Variant{}
	for _, v := range render.Variants(frozen) {
		variants[v.Path()] = v
	}
	for _, entry := range m.Entries {
		if !holdsPicks(entry.Path) {
			continue
		}
		body, err := version.Body(ctx, entry)
		if errors.Is(err, snapshots.ErrDamaged) {
			a.fault(entry.Object, "the bytes that the manifest names", "others")
			continue
		}
		if err != nil {
			return err
		}
		var should map[string]servedPick
		if v, ok := variants[entry.Path]; ok {
			text, err := render.Body(frozen, v, entry.GeneratedAt)
			if err != nil {
				return err
			}
			if should, err = picksIn(entry.Path, text); err != nil {
				return err
			}
		}
		a.compare(entry, should, body)
	}
	return nil
}

var nextRacePath = catalog.Variant{Endpoint: catalog.NextRace}.Path()

func holdsPicks(path string) bool {
	return path == nextRacePath || strings.HasPrefix(path, string(catalog.Predictions)+"/")
}

// compare reports every pick in a served body that is not among those that should be there.
func (a *Audit) compare(entry snapshots.ManifestEntry, should map[string]servedPick, body []byte) {
	is, err := picksIn(entry.Path, body)
	if err != nil {
		a.fault(entry.Object, "a body of "+entry.Path, err.Error())
		return
	}
	for _, of := range slices.Sorted(maps.Keys(is)) {
		switch frozen, ok := should[of]; {
		case !ok:
			a.fault(entry.Object, "no pick of "+of+", since none was frozen", is[of].String())
		case is[of] != frozen:
			a.fault(entry.Object, fmt.Sprintf("the frozen pick of %s, %s", of, frozen), is[of].String())
		default:
			a.Served++
		}
	}
}

// servedPick is a pick as served, with a text for people.
type servedPick wire.Prediction

func (p servedPick) String() string {
	return fmt.Sprintf("%s with %.1f %%, podium %s %s %s", p.Winner, float64(p.ConfidencePct)/10, p.Podium.P1, p.Podium.P2, p.Podium.P3)
}

// picksIn returns the picks in a body by what they are of: a session, or the round that starts
// at an instant.
func picksIn(path string, body []byte) (map[string]servedPick, error) {
	picks := map[string]servedPick{}
	if path != nextRacePath {
		var records wire.Success[[]wire.PredictionRecord]
		if err := json.Unmarshal(body, &records); err != nil {
			return nil, err
		}
		for _, r := range records.Data {
			picks[fmt.Sprintf("session %d", r.SessionKey)] = servedPick(r.Prediction)
		}
		return picks, nil
	}
	countdown, err := wire.ParseCountdown(body)
	if err != nil {
		return nil, err
	}
	for _, r := range countdown.Rounds {
		var next wire.Success[wire.NextRace]
		if err := json.Unmarshal(r.Append(nil, time.Time(r.Start).Add(-time.Second)), &next); err != nil {
			return nil, err
		}
		if next.Data.Prediction != nil {
			picks[fmt.Sprintf("%s at %s", next.Data.Name, r.Start)] = servedPick(*next.Data.Prediction)
		}
	}
	return picks, nil
}
