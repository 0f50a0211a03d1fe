package proof

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"runtime"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"gridcast/builder/almanac"
	"gridcast/builder/archive"
	"gridcast/builder/derive"
	"gridcast/builder/ledger"
	"gridcast/builder/live"
	"gridcast/builder/predict"
	"gridcast/builder/render"
	"gridcast/builder/running"
	"gridcast/builder/tiles"
	"gridcast/builder/units"
	"gridcast/schemas/catalog"
	"gridcast/schemas/wire"
	"gridcast/snapshots"
	"gridcast/snapshots/blob"
)

// Reproduction is the result of making the documents of a version again.
type Reproduction struct {
	Version         int64          `json:"version"`
	Documents       int            `json:"documents"` // of the version, feeds included
	Equal           int            `json:"equal"`     // whose bytes are those of the manifest and of the store
	FirstDifference *DocDifference `json:"first_difference"`

	Release string `json:"-"` // that built the version; equality is promised for the same one
}

// DocDifference is the first difference of a document from the one that its inputs give.
type DocDifference struct {
	Endpoint  string `json:"endpoint"` // of the catalog; of a feed its path
	Variant   string `json:"variant"`  // path in the manifest
	Field     string `json:"field"`    // such as data[driver=VER].points; empty: one side has no document
	Published string `json:"published"`
	Made      string `json:"made"`
}

// Reproducer makes the documents of published versions again. It uses nothing but the store, and nothing derived that
// the store has. It is not safe for concurrent use. A Reproducer of several versions computes a derived part only once.
type Reproducer struct {
	store    blob.Store
	ledger   *ledger.Ledger
	archives *archive.Store
	deriver  derive.Deriver // its memory has the parts that were derived here, and none of the store
	observed live.Log

	facts     archive.Stored           // read last
	derived   derive.File              // made last
	timelines map[string]wire.LiveRace // of earlier races, by store key
	read      map[string]string        // hashes of the bodies that were read, by store key
}

// NewReproducer reads the ledger of the store and the archive on which it was opened.
func NewReproducer(ctx context.Context, store blob.Store) (*Reproducer, error) {
	l, err := ledger.Load(ctx, store, ledger.AnyKind)
	if err != nil {
		return nil, fmt.Errorf("reproduce: %w", err)
	}
	r := &Reproducer{
		store: store, ledger: l, archives: archive.NewStore(store), read: map[string]string{}, timelines: map[string]wire.LiveRace{},
		observed: live.Log{Store: store}, deriver: derive.Deriver{Store: store, Log: slog.New(slog.DiscardHandler), Memory: &derive.Memory{}},
	}
	r.deriver.Observed = &r.observed
	if opening := l.Fold().OpenedOn(); opening != "" {
		first, err := r.archive(ctx, opening, "the archive on which the ledger was opened")
		if err != nil {
			return nil, fmt.Errorf("reproduce: %w", err)
		}
		l.Vouch(first.Archive.AsOf(l.Fold().OpenedAt()))
	}
	return r, nil
}

// Version makes the documents of a version again and compares them with the manifest and with the stored bytes; 0
// stands for the current one. A difference is no error. The error says which input the store does not have.
func (r *Reproducer) Version(ctx context.Context, version int64) (Reproduction, error) {
	m, err := snapshots.LoadManifest(ctx, r.store, version)
	if err != nil {
		return Reproduction{}, fmt.Errorf("reproduce version %d: %w", version, err)
	}
	again := Reproduction{Version: m.Version, Documents: len(m.Entries), Release: m.Release}
	made, err := r.remakeAll(ctx, &m)
	if err == nil {
		err = r.compare(ctx, &m, made, &again)
	}
	if err != nil {
		return again, fmt.Errorf("reproduce version %d: %w", m.Version, err)
	}
	return again, nil
}

// compare compares the documents of a version with the ones that were made again.
func (r *Reproducer) compare(ctx context.Context, m *snapshots.Manifest, made map[string]remake, again *Reproduction) error {
	changes := make([]*snapshots.ValueChange, len(m.Entries)) // nil: equal
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(4 * runtime.GOMAXPROCS(0)) // some wait for the store
	for i, entry := range m.Entries {
		document, ok := made[entry.Path]
		if delete(made, entry.Path); !ok {
			changes[i] = &snapshots.ValueChange{Old: "a document"}
			continue
		}
		group.Go(func() error {
			body, err := document(entry.GeneratedAt)
			if err != nil || r.read[entry.Object] == entry.SHA256 && snapshots.Digest(body) == entry.SHA256 {
				return err
			}
			change, equal, err := entry.Compare(ctx, r.store, body)
			if !equal {
				changes[i] = &change
			}
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	differs := func(path string, change *snapshots.ValueChange) {
		if again.FirstDifference == nil || path < again.FirstDifference.Variant {
			again.FirstDifference = &DocDifference{Endpoint: endpointOf(path), Variant: path, Field: change.At, Published: change.Old, Made: change.New}
		}
	}
	for i, entry := range m.Entries {
		if changes[i] != nil {
			differs(entry.Path, changes[i])
		} else {
			again.Equal++
			r.read[entry.Object] = entry.SHA256
		}
	}
	for path := range made {
		differs(path, &snapshots.ValueChange{New: "a document"})
	}
	return nil
}

// endpointOf names the endpoint of a path, or the feed.
func endpointOf(path string) string {
	if i := slices.IndexFunc(catalog.Feeds, func(f catalog.Feed) bool { return f.Stored == path }); i >= 0 {
		return catalog.Feeds[i].Path
	}
	if strings.HasPrefix(path, snapshots.LogFolder) || strings.HasPrefix(path, catalog.Portraits) {
		return "/" + path
	}
	v, _ := catalog.ParsePath(path) // of a document that this release does not have, the endpoint is empty
	return string(v.Endpoint)
}

// remake makes a document again, as first rendered at an instant.
type remake func(generatedAt time.Time) ([]byte, error)

// remakeAll returns the documents of a version by path. A refused document comes from the inputs of the version whose
// bytes it keeps.
func (r *Reproducer) remakeAll(ctx context.Context, m *snapshots.Manifest) (map[string]remake, error) {
	kept, versions := map[string]remake{}, map[int64]map[string]remake{}
	for _, refused := range m.Refused {
		if v, err := catalog.ParsePath(refused.Path); refused.Version == 0 && err == nil && v.Endpoint.Derived() {
			kept[refused.Path] = nil // the version lacks it
			continue
		}
		if refused.Version == 0 {
			kept[refused.Path] = func(at time.Time) ([]byte, error) { return units.Empty(refused.Path, at) }
			continue
		}
		if versions[refused.Version] == nil {
			earlier, err := snapshots.LoadManifest(ctx, r.store, refused.Version)
			if err == nil {
				versions[refused.Version], err = r.remake(ctx, &earlier)
			}
			if err != nil {
				return nil, fmt.Errorf("%s keeps the bytes of version %d: %w", refused.Path, refused.Version, err)
			}
		}
		kept[refused.Path] = versions[refused.Version][refused.Path]
	}
	made, err := r.remake(ctx, m)
	if err != nil {
		return nil, err
	}
	maps.Copy(made, kept)
	maps.DeleteFunc(made, func(_ string, document remake) bool { return document == nil })
	return made, nil
}

// remake returns the documents that the inputs of a version give, by path.
func (r *Reproducer) remake(ctx context.Context, m *snapshots.Manifest) (map[string]remake, error) {
	a, err := r.almanac(ctx, m.Archive, m.Ledger, m.DocumentsAt())
	if err != nil {
		return nil, err
	}
	made := map[string]remake{}
	for _, v := range render.Variants(a) {
		made[v.Path()] = func(at time.Time) ([]byte, error) { return render.Body(a, v, at) }
	}
	for _, f := range catalog.Feeds {
		made[f.Stored] = func(at time.Time) ([]byte, error) { return render.Feed(a, f, at) }
	}
	for path, drawn := range render.Portraits(a) {
		made[path] = func(time.Time) ([]byte, error) { return drawn, nil }
	}
	if err := r.live(ctx, m, a, made); err != nil {
		return nil, err
	}
	if err := r.log(ctx, m, made); err != nil {
		return nil, err
	}
	if m.Derived != "" {
		data, err := r.derive(ctx, m.DerivedFrom)
		if err != nil {
			return nil, err
		}
		for path, body := range data {
			made[path] = func(at time.Time) ([]byte, error) { return render.Data(body, at) }
		}
	}
	return made, nil
}

// log adds the public log of the ledger, if the version has one. Nobody can sign its checkpoint again without the key.
func (r *Reproducer) log(ctx context.Context, m *snapshots.Manifest, made map[string]remake) error {
	stored := map[string][]byte{}
	for _, e := range m.Entries {
		if e.Path != tiles.Checkpoint && e.Path != tiles.Keys && !strings.HasPrefix(e.Path, tiles.ProofFolder) {
			continue
		}
		data, err := snapshots.Object{Key: e.Object, SHA256: e.SHA256, Size: e.Size}.Read(ctx, r.store)
		if err != nil {
			return err
		}
		stored[e.Path] = data
	}
	checkpoint, ok := stored[tiles.Checkpoint]
	if !ok {
		return nil
	}
	size := tiles.Size(checkpoint, len(r.ledger.Files()))
	files, err := tiles.Remake(r.ledger.Files()[:size], r.ledger.UpTo(int64(size)), stored)
	for path, data := range files {
		made[path] = func(time.Time) ([]byte, error) { return data, nil }
	}
	return err
}

// live adds the documents of /live. The race that the version shows comes from the observations up to the head that the
// manifest names. The timeline of an earlier race comes from the inputs of the version that wrote it.
func (r *Reproducer) live(ctx context.Context, m *snapshots.Manifest, a *almanac.Almanac, made map[string]remake) error {
	tape := &live.Tape{}
	if round := running.RoundIn(a); round != nil {
		var err error
		if tape, err = r.observations(ctx, round.Session, m.Live); err != nil {
			return err
		}
	}
	races := render.LiveRaces(a, r.ledger.UpTo(m.Ledger.Seq), tape)
	for _, entry := range m.Entries {
		v, err := catalog.ParsePath(entry.Path)
		if _, known := races[entry.Path]; known || err != nil || v.Endpoint != catalog.Live || v.SessionKey <= 0 {
			continue
		}
		race, known := r.timelines[entry.Object]
		if !known {
			if race, err = r.timeline(ctx, entry, v.SessionKey); err != nil {
				return fmt.Errorf("%s was written in version %d: %w", entry.Path, entry.WrittenIn(), err)
			}
			r.timelines[entry.Object] = race
		}
		races[entry.Path] = race
	}
	for path, race := range races {
		text, err := wire.Marshal(race)
		if err != nil {
			return err
		}
		made[path] = func(at time.Time) ([]byte, error) { return render.Data(text, at) }
	}
	return nil
}

// timeline makes the timeline of a race again, from the inputs of the version that wrote it. If that version showed
// another race, it had all observations.
func (r *Reproducer) timeline(ctx context.Context, entry snapshots.ManifestEntry, session int64) (race wire.LiveRace, err error) {
	m, err := snapshots.LoadManifest(ctx, r.store, entry.WrittenIn())
	if err != nil {
		return race, err
	}
	a, err := r.almanac(ctx, m.Archive, m.Ledger, m.DocumentsAt())
	if err != nil {
		return race, err
	}
	round, err := a.Round(session)
	if err != nil {
		return race, err
	}
	tape, err := r.observed.Refresh(ctx, session)
	if running.RoundIn(a) == round {
		tape, err = r.observations(ctx, session, m.Live)
	}
	if err != nil {
		return race, err
	}
	return render.Timeline(running.RaceOf(round, r.ledger.UpTo(m.Ledger.Seq), tape), a.At), nil
}

// observations returns the log of a race up to the head with a hash, which is empty if there was no observation.
func (r *Reproducer) observations(ctx context.Context, session int64, head string) (*live.Tape, error) {
	whole, err := r.observed.Refresh(ctx, session)
	if err != nil || head == "" {
		return &live.Tape{}, err
	}
	tape := whole.UpTo(head)
	if tape == nil {
		return nil, fmt.Errorf("%s lacks observations of session %d up to the hash %s; gridcast store restore brings them back from a backup", r.store, session, head)
	}
	return tape, nil
}

// almanac joins the facts and the events that a version names.
func (r *Reproducer) almanac(ctx context.Context, sum string, head snapshots.Ledger, at time.Time) (*almanac.Almanac, error) {
	facts, err := r.archive(ctx, sum, "the archive that it was built from")
	if err != nil {
		return nil, err
	}
	events, err := r.upTo(head)
	if err != nil {
		return nil, err
	}
	return almanac.Join(facts.Archive.AsOf(at), events), nil
}

// archive reads an archive; role describes it for an error.
func (r *Reproducer) archive(ctx context.Context, sum, role string) (archive.Stored, error) {
	if r.facts.SHA256 == sum {
		return r.facts, nil
	}
	facts, err := r.archives.Get(ctx, sum)
	if errors.Is(err, blob.ErrNotFound) {
		err = fmt.Errorf("%s lacks %s, or a part of it; gridcast store restore brings it back from a backup: %w", r.store, role, err)
	}
	if err == nil {
		r.facts = facts
	}
	return facts, err
}

// upTo returns the ledger as it was with a head.
func (r *Reproducer) upTo(head snapshots.Ledger) (*ledger.Fold, error) {
	files := r.ledger.Files()
	if head.Seq < 1 || head.Seq > int64(len(files)) {
		return nil, fmt.Errorf("it was built from %d files of the ledger, and %s has %d; gridcast ledger audit shows the damage", head.Seq, r.store, len(files))
	}
	if got := files[head.Seq-1].Hash; got != head.Hash {
		return nil, fmt.Errorf("it was built from file %d of the ledger with the hash %s, and that of %s has %s; gridcast ledger audit shows the damage", head.Seq, head.Hash, r.store, got)
	}
	return r.ledger.UpTo(head.Seq), nil
}

// derive makes derived data from the inputs that a version names for them.
func (r *Reproducer) derive(ctx context.Context, from snapshots.Derivation) (derive.Data, error) {
	if from == r.derived.Derivation {
		return r.derived.Data, nil
	}
	if from.Archive == "" {
		return nil, errors.New("it does not name the inputs of its derived documents, because an earlier release derived them")
	}
	var model predict.Model
	for _, name := range predict.Names {
		if m, err := predict.ByName(name); err == nil && m.Name() == from.Model {
			model = m
		}
	}
	if model == nil {
		return nil, fmt.Errorf("its derived documents were made with the model %s, which only another release of gridcast has", from.Model)
	}
	a, err := r.almanac(ctx, from.Archive, from.Ledger, from.MadeAt)
	if err != nil {
		return nil, fmt.Errorf("its derived documents: %w", err)
	}
	file, err := r.deriver.Make(ctx, derive.From{At: from.MadeAt, Facts: r.facts, Ledger: r.ledger.UpTo(from.Ledger.Seq), Model: model}, a)
	if err == nil {
		r.derived, r.derived.Derivation = file, from
	}
	return file.Data, err
}
