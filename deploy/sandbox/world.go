// Package sandbox is the simulated world beside the real one: recorded race weekends, one after another by a timetable, in
// which events happen that break pages. Each weekend is one more [service.Service], on a view of the store and on a clock
// of its own. So everything enters the world as it would the real one: facts by the archive, decisions by the actions of
// operators, laps by the log of the race.
//
// The versions of the world lie below snapshots.SandboxFolder, and their numbers go on. The ledger of a cycle and everything
// else that can be written lie below the number of the cycle in it.
package sandbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"gridcast/builder"
	"gridcast/builder/archive"
	"gridcast/builder/live"
	"gridcast/builder/season"
	"gridcast/deploy/operator"
	"gridcast/deploy/service"
	"gridcast/scheduler"
	"gridcast/schemas/catalog"
	"gridcast/snapshots"
	"gridcast/snapshots/blob"
	"gridcast/snapshots/clock"
	"gridcast/snapshots/retry"
)

// World replays weekends into a store. Set its fields before Run.
type World struct {
	Store  blob.Store    // of the real world
	Length time.Duration // of a weekend, in real time: Hour
	// Open opens the builder of a cycle on a view of the store that has an archive. The ledger begins at the instant.
	Open func(ctx context.Context, view blob.Store, begins time.Time) (*builder.Builder, error)
	// Gate returns when no build of the real world runs, because those come first. It may be nil.
	Gate      func()
	Intervals *scheduler.Intervals  // see service.Service.UseIntervals; may be nil
	OnPublish func(context.Context) // see service.Service.OnPublish; may be nil
	Log       *slog.Logger

	record archive.Stored            // the seasons of the world, as they were
	edited map[string]archive.Stored // by the edits that apply; see facts
}

// verifyAfter is how long after a race the world verifies its result: about as long as an operator takes.
const verifyAfter = time.Hour

// Rules sets the flags of a builder's policy to those of the world.
func Rules(autoVerify, autoRevise *time.Duration) { *autoVerify, *autoRevise = verifyAfter, 0 }

// Run replays the weekend that the timetable has now, and then the ones that follow, until ctx ends. A fault is logged, and
// the weekend goes on a little later from the state in the store.
func (w *World) Run(ctx context.Context) {
	pauses, failures := retry.Rule{First: time.Second, Longest: time.Minute}, 0
	for ctx.Err() == nil {
		now := at(time.Now(), w.Length, 0)
		err := service.Recovered(func() error { return w.replay(ctx, now) })
		if failures++; err == nil || ctx.Err() != nil {
			failures = 0
			continue
		}
		pause := pauses.Pause(failures)
		w.Log.Error("the sandbox stands still; the real world does not", "weekend", now.entry().Kind, "cycle", now.cycle, "err", err, "again_in", pause)
		retry.Sleep(ctx, pause)
	}
}

// published reports whether the object of a key, or those of the prefix of a listing, belong to the versions of the world. Only
// they outlast a cycle.
func published(key string) bool {
	return snapshots.OfVersion(key) || key == snapshots.PointerKey || key == snapshots.FreshKey ||
		strings.HasPrefix(key, snapshots.DerivedFolder) || key == ""
}

// view returns the store of a cycle.
func (w *World) view(cycle int64) blob.Store {
	own := snapshots.SandboxFolder + strconv.FormatInt(cycle, 10) + "/"
	return blob.Placed(w.Store, func(key string) string {
		if published(key) {
			return snapshots.SandboxFolder
		}
		return own
	})
}

// replay replays a weekend until it ends. It repeats no decision that the ledger of the cycle has, so that the weekend goes on
// after a restart. It settles the rounds before the weekend in one go. Of weekends without a scheduler it leaves
// out the scripts.
func (w *World) replay(ctx context.Context, now weekend) error {
	ctx, cancel := context.WithDeadline(ctx, now.ends)
	defer cancel()
	if err := w.load(); err != nil {
		return err
	}
	round := w.round(now)
	race, err := now.clock(round.StartsAt())
	if err != nil {
		return err
	}
	view, begin := w.view(now.cycle), round.StartsAt().Add(before)
	b, err := w.open(ctx, now, view, begin)
	if err != nil {
		return err
	}
	table := now.timetable()
	b.Simulated = &builder.Simulation{Clock: race.String(), Sandbox: &table}
	if err := w.use(ctx, view, race.Now()); err != nil {
		return err
	}
	running := service.New(b, race, b.Log, prometheus.NewRegistry())
	running.BuildAfter(w.Gate)
	running.Replay(func(race live.Fixture) []live.Observation { return w.laps(now, b, race) })
	running.UseIntervals(w.Intervals)
	if w.OnPublish != nil {
		running.OnPublish(w.OnPublish)
	}
	if err := running.Start(ctx, nil); err != nil {
		return err
	}
	w.Log.Info("the sandbox replays a weekend", "weekend", now.entry().Kind, "cycle", now.cycle, "race", round.Name, "clock", race)
	var acting sync.WaitGroup
	defer acting.Wait()
	acting.Go(func() {
		if err := service.Recovered(func() error { w.act(ctx, now, running, b, view, race); return nil }); err != nil {
			w.Log.Error("the sandbox leaves out the rest of its script", "weekend", now.entry().Kind, "cycle", now.cycle, "err", err)
		}
	})
	return running.Run(ctx)
}

// open removes earlier cycles, opens the builder of this one, and brings its ledger to the beginning of the weekend.
func (w *World) open(ctx context.Context, now weekend, view blob.Store, begin time.Time) (*builder.Builder, error) {
	if err := w.prune(ctx, now.cycle); err != nil {
		return nil, err
	}
	if err := w.use(ctx, view, begin); err != nil {
		return nil, err
	}
	b, err := w.Open(ctx, view, season.BeginsAt(firstYear))
	if err != nil || !b.Ledger.Fold().At().Before(begin) {
		return b, err
	}
	facts, err := b.Facts(ctx)
	if err != nil {
		return nil, err
	}
	if err := b.Policy.Replay(ctx, b.Ledger, facts, begin, nil); err != nil {
		return nil, err
	}
	return b, ShowEarlier(ctx, b, facts, begin)
}

// load reads the record, the embedded facts of the seasons of the world.
func (w *World) load() error {
	if w.record.Archive != nil {
		return nil
	}
	all, err := archive.Embedded()
	if err != nil {
		return err
	}
	facts := all.Archive.Facts()
	facts.Seasons = slices.DeleteFunc(slices.Clone(facts.Seasons), func(s season.Season) bool { return s.Year < firstYear || s.Year > lastYear })
	facts.Drivers = maps.Clone(facts.Drivers)
	for id, driver := range facts.Drivers { // the drawn portraits of this world
		driver.HeadshotURL = "/" + snapshots.SandboxFolder + catalog.Portrait(string(id))
		facts.Drivers[id] = driver
	}
	a, err := season.New(facts)
	if err != nil {
		return err
	}
	w.record, err = archive.Encode(a, all)
	w.edited = map[string]archive.Stored{}
	return err
}

func (w *World) round(k weekend) *season.Round {
	facts := w.record.Archive.Facts()
	r, _ := facts.Round(k.year, k.grandPrix)
	return r
}

// facts returns the archive of the world at an instant of race time.
func (w *World) facts(now time.Time) (archive.Stored, error) {
	facts := w.record.Archive.Facts()
	var applied []byte
	facts.Seasons = slices.Clone(facts.Seasons)
	for i := range facts.Seasons {
		facts.Seasons[i].Rounds = slices.Clone(facts.Seasons[i].Rounds)
	}
	for i, k := range kinds {
		r, _ := facts.Round(k.year, k.grandPrix)
		lightsOut := r.StartsAt()
		for j, e := range k.edits {
			if now.Before(lightsOut.Add(e.from)) || !now.Before(lightsOut.Add(e.until)) {
				continue
			}
			applied = fmt.Appendf(applied, "%d.%d ", i, j)
			e.apply(r)
			// The tables after the race would contradict its results.
			r.DriverStandings, r.TeamStandings = nil, nil
		}
	}
	stored, ok := w.edited[string(applied)]
	if ok {
		return stored, nil
	}
	a, err := season.New(facts)
	if err == nil {
		stored, err = archive.Encode(a, w.record)
	}
	if err != nil {
		return stored, fmt.Errorf("facts of the sandbox at %s: %w", now, err)
	}
	w.edited[string(applied)] = stored
	return stored, nil
}

// use makes the facts of an instant the archive in use, as an import does.
func (w *World) use(ctx context.Context, view blob.Store, now time.Time) error {
	facts, err := w.facts(now)
	if err != nil {
		return err
	}
	store := archive.NewStore(view)
	if inUse, err := store.InUse(ctx); err == nil && inUse == facts.SHA256 {
		return nil
	}
	return store.Put(ctx, facts)
}

// laps returns the observations of the weekend's race, from the start that it has now.
func (w *World) laps(now weekend, b *builder.Builder, race live.Fixture) []live.Observation {
	if key, ok := b.Ledger.Fold().Key(now.year, now.grandPrix); !ok || key != race.Session {
		return nil
	}
	moved := *w.round(now)
	moved.Start = race.Start
	all := Order(race.Session, &moved)
	if now.kind.laps != nil {
		all = now.kind.laps(all)
	}
	starts := map[season.DriverID]bool{}
	for _, driver := range race.Grid {
		starts[driver] = true
	}
	for i := range all {
		all[i].Cars = slices.DeleteFunc(all[i].Cars, func(c live.Car) bool { return len(starts) > 0 && !starts[c.Driver] })
	}
	return all
}

// act carries out the script of a weekend until it ends. It leaves out the decisions that the ledger of the cycle has, and
// makes those that are late in their order.
func (w *World) act(ctx context.Context, now weekend, running *service.Service, b *builder.Builder, view blob.Store, race clock.Clock) {
	type event struct {
		at time.Duration
		do func() error
	}
	lightsOut := w.round(now).StartsAt()
	edit := func() error { return w.use(ctx, view, race.Now()) }
	script := make([]event, 0, 2*len(now.edits)+len(now.steps))
	for _, e := range now.edits {
		script = append(script, event{e.from, edit}, event{e.until, edit})
	}
	for _, s := range now.steps {
		script = append(script, event{s.at, func() error { return w.decide(ctx, now, running, b, s, lightsOut) }})
	}
	slices.SortStableFunc(script, func(a, b event) int { return cmp.Compare(a.at, b.at) })
	for _, e := range script {
		if e.at < before || e.at > after {
			continue
		}
		if !retry.Sleep(ctx, time.Until(race.Real(lightsOut.Add(e.at)))) {
			return
		}
		err := e.do()
		for again := 0; err != nil && again < 4 && retry.Sleep(ctx, time.Second); again++ { // another scheduler may have decided
			err = e.do()
		}
		if err != nil && ctx.Err() == nil {
			w.Log.Error("the sandbox leaves out an event of its script", "weekend", now.entry().Kind, "cycle", now.cycle, "from_lights_out", e.at, "err", err)
		}
	}
}

// actor decides in the world.
const actor = operator.Proven + "sandbox"

// decide makes a decision, unless the ledger has it.
func (w *World) decide(ctx context.Context, now weekend, running *service.Service, b *builder.Builder, s step, lightsOut time.Time) error {
	if _, err := b.Ledger.Refresh(ctx); err != nil {
		return err
	}
	key, _ := b.Ledger.Fold().Key(now.year, now.grandPrix)
	for _, e := range b.Ledger.Fold().Log() {
		if e.Session == key && e.Reason == s.reason {
			return nil
		}
	}
	actions, err := running.Operator(ctx, nil)
	if err != nil {
		return err
	}
	_, err = actions.Do(ctx, s.action(key, lightsOut), operator.Request{Actor: actor, Reason: s.reason, Force: true})
	return err
}

// prune removes the cycles before the last one, and the versions that nobody needs any more.
func (w *World) prune(ctx context.Context, cycle int64) error {
	for info, err := range w.Store.List(ctx, snapshots.SandboxFolder) {
		if err != nil {
			return err
		}
		folder, _, _ := strings.Cut(strings.TrimPrefix(info.Key, snapshots.SandboxFolder), "/")
		if number, err := strconv.ParseInt(folder, 10, 64); err != nil || number >= cycle-1 {
			continue
		}
		if err := w.Store.Delete(ctx, info.Key); err != nil {
			return err
		}
	}
	_, err := snapshots.Prune(ctx, w.view(cycle), keep, time.Now(), false)
	if errors.Is(err, snapshots.ErrNone) {
		return nil
	}
	return err
}

// keep is the number of versions that stay besides those that are younger than snapshots.PruneAge.
const keep = 10
