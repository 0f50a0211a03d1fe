// Package proof looks back at what was published: it audits the picks against the ledger, and makes the documents of a
// version again from their inputs.
package proof

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"gridcast/builder/almanac"
	"gridcast/builder/archive"
	"gridcast/builder/ledger"
	"gridcast/builder/live"
	"gridcast/builder/render"
	"gridcast/schemas/catalog"
	"gridcast/schemas/wire"
	"gridcast/snapshots"
	"gridcast/snapshots/blob"
	"gridcast/snapshots/blob/chain"
)

// Audit is the result of AuditStore.
type Audit struct {
	ledger.Findings
	Versions int   `json:"versions"`     // whose ledger heads were looked up
	Current  int64 `json:"version"`      // the version served; 0: none
	Served   int   `json:"picks_served"` // in its documents, equal to the frozen pick; several documents may have one pick
}

// AuditStore audits the ledger of the store and the versions that were published from it. The ledger must
// contain the head that each manifest names. Every pick in the current version must be the pick that was
// frozen by then. noted are further heads, as in ledger.Audit. Faults are in the result, and the error is
// for a store that cannot be read.
func AuditStore(ctx context.Context, store blob.Store, noted ...string) (Audit, error) {
	// Manifests are read first: a ledger that grows meanwhile still contains their heads.
	history, err := snapshots.LoadHistory(ctx, store) // without damaged ones, which the check of snapshots reports
	if errors.Is(err, snapshots.ErrNone) {
		history, err = &snapshots.History{}, nil
	}
	if err != nil {
		return Audit{}, fmt.Errorf("audit published versions: %w", err)
	}
	base, err := snapshots.LoadBase(ctx, store, nil)
	if err != nil {
		return Audit{}, fmt.Errorf("audit the current version: %w", err)
	}
	report, err := ledger.Audit(ctx, store, noted...)
	if err != nil {
		return Audit{}, err
	}
	a := &Audit{Findings: report, Versions: len(history.Versions), Current: base.Manifest.Version}
	if !a.Green() {
		return *a, nil // a damaged ledger proves nothing about versions
	}
	if err := a.observed(ctx, store); err != nil {
		return Audit{}, fmt.Errorf("audit the live picks: %w", err)
	}
	l, err := ledger.Load(ctx, store, ledger.AnyKind)
	if err != nil {
		return Audit{}, err
	}
	archives := archive.NewStore(store)
	if err := archives.Vouch(ctx, l); err != nil {
		return Audit{}, fmt.Errorf("audit the current version: %w", err)
	}
	a.heads(history, l.Files())
	if !a.Green() || base.Empty() {
		return *a, nil
	}
	if err := a.served(ctx, archives, base, l); err != nil {
		return Audit{}, fmt.Errorf("audit the current version: %w", err)
	}
	return *a, nil
}

func (a *Audit) fault(key, want, got string) {
	a.Faults = append(a.Faults, ledger.Fault{Key: key, Want: want, Got: got})
}

// heads compares the files of the ledger with the heads in the manifests.
func (a *Audit) heads(history *snapshots.History, files []ledger.File) {
	for _, version := range history.Versions {
		m := history.Manifests[version]
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

// observed looks up the observation that each live pick names, and compares the lap and the instant.
func (a *Audit) observed(ctx context.Context, store blob.Store) error {
	log := live.Log{Store: store}
	for _, p := range a.Picks {
		if !p.Live || p.Observation == nil {
			continue
		}
		folder := fmt.Sprintf("%s%d/", live.Prefix, p.Session)
		named := fmt.Sprintf("an observation of lap %d at %s with the hash %s, as the live pick at %d %% says", p.Observation.Lap, p.Observation.At.UTC().Format(time.RFC3339), p.Observation.SHA256, p.Checkpoint)
		tape, err := log.Refresh(ctx, p.Session)
		var damage *chain.DamageError
		if errors.As(err, &damage) {
			a.fault(damage.Key, damage.Want, damage.Got)
			continue
		}
		if err != nil {
			return err
		}
		i := slices.IndexFunc(tape.Observations, func(o live.Stored) bool { return o.SHA256 == p.Observation.SHA256 })
		switch {
		case i < 0:
			a.fault(folder, named, "none")
		case tape.Observations[i].Lap != p.Observation.Lap || !tape.Observations[i].Seen().Equal(p.Observation.At):
			a.fault(folder, named, fmt.Sprintf("lap %d at %s", tape.Observations[i].Lap, tape.Observations[i].Seen().Format(time.RFC3339)))
		case p.Frozen.Sub(p.Observation.At) > live.Fresh:
			a.fault(folder, named+", at most "+live.Fresh.String()+" before the pick", "a pick frozen at "+p.Frozen.UTC().Format(time.RFC3339))
		}
	}
	return nil
}

// bodiesAtOnce is the number of bodies that an audit reads side by side.
const bodiesAtOnce = 32

// served compares the picks in a version with the picks frozen up to its ledger head.
func (a *Audit) served(ctx context.Context, archives *archive.Store, version *snapshots.Base, l *ledger.Ledger) error {
	m := version.Manifest
	facts, err := archives.Get(ctx, m.Archive)
	if err != nil {
		return err
	}
	frozen := almanac.Join(facts.Archive.AsOf(m.DocumentsAt()), l.UpTo(m.Ledger.Seq))
	variants := map[string]catalog.Variant{}
	for _, v := range render.Variants(frozen) {
		variants[v.Path()] = v
	}
	entries := slices.DeleteFunc(slices.Clone(m.Entries), func(e snapshots.ManifestEntry) bool { return !holdsPicks(e.Path) })
	bodies := make([][]byte, len(entries)) // nil: damaged
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(bodiesAtOnce)
	for i, entry := range entries {
		group.Go(func() (err error) {
			if bodies[i], err = version.Body(groupCtx, entry); errors.Is(err, snapshots.ErrDamaged) {
				bodies[i], err = nil, nil
			}
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	for i, entry := range entries {
		if bodies[i] == nil {
			a.fault(entry.Object, "the bytes that the manifest names", "others")
			continue
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
		a.compare(entry, should, bodies[i])
	}
	return nil
}

var nextRacePath = catalog.Variant{Endpoint: catalog.NextRace}.Path()

func holdsPicks(path string) bool {
	return path == nextRacePath || strings.HasPrefix(path, string(catalog.Predictions)+"/")
}

// compare reports each pick of a served body that differs from the frozen one, or was never frozen.
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

// picksIn returns the picks in a body by a name of their round: its session key, or its start in
// /next-race.
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
