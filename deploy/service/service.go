// Package service is the running service: it builds versions when they fall due, follows the ledger
// and the archive, polls the sources, verifies published versions and delivers webhooks.
package service

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"gridcast/builder"
	"gridcast/builder/almanac"
	"gridcast/builder/archive"
	"gridcast/builder/derive"
	"gridcast/builder/ingest"
	"gridcast/builder/ledger"
	"gridcast/builder/predict"
	"gridcast/builder/settings"
	"gridcast/deploy/auditlog"
	"gridcast/deploy/operator"
	"gridcast/edge/keys"
	"gridcast/scheduler"
	"gridcast/scheduler/cadence"
	"gridcast/scheduler/webhook"
	"gridcast/snapshots"
	"gridcast/snapshots/blob"
	"gridcast/snapshots/blob/lock"
	"gridcast/snapshots/notes"
	"gridcast/snapshots/uptime"
)

// Service runs the builder when something falls due, and whenever ledger or archive change. Call Start
// first, then Run. From Start on every other method is safe for concurrent use.
type Service struct {
	builder *builder.Builder
	clock   scheduler.Clock
	log     *slog.Logger
	facts   atomic.Pointer[archive.Stored]      // as of the last build, for the schedule
	jobs    atomic.Pointer[scheduler.Scheduler] // from a successful Start on
	metrics *serviceMetrics
	reg     prometheus.Registerer
	sources *ingest.Ingest // nil: facts change by import alone
	sender  *webhook.Sender
	hooks   *webhook.Deliverer // nil: no webhooks

	trustKeys notes.Trust          // see TrustKeys
	intervals *scheduler.Intervals // see UseIntervals; nil: each interval for itself

	laps      Laps                                           // see Replay; nil: none are replayed
	feed      bool                                           // a source is expected to send lines of running races
	first     func()                                         // see BuildAfter; nil: nothing comes first
	deriving  func(context.Context, time.Time) (bool, error) // computes odds and record; true if they are new
	onPublish []func(context.Context)                        // called after each published version
	measuring *measuring                                     // see Measure; nil: nothing is measured
	notifying sync.WaitGroup                                 // calls after builds; guarded by building
	holds     holds
	refused   atomic.Int64                   // documents that the last build kept from an earlier version
	building  lock.Lock                      // serialises the builds of concurrent jobs
	published atomic.Pointer[snapshots.Base] // as of the last build
	audit     atomic.Pointer[auditlog.Log]   // nil until Operator has read it
}

// The jobs, by name.
const (
	buildJob  = "build"
	freezeJob = "freeze"
	pollJob   = "poll"
	verifyJob = "verify"

	measureJob = "measure" // the minutes of the public address and the edges
	servedJob  = "served"  // the time from a verified result to the answers with it
	freshJob   = "fresh"   // the publisher's signature that the version is current
	deriveJob  = "derive"  // forecasts, title odds and track record, after a build that published
)

// followEvery is the real interval at which the service reads the ledger for appends of other processes.
const followEvery = time.Second

// StopGrace limits how long a running build may delay the end of the process.
const StopGrace = 20 * time.Second

// New returns an idle service. It registers its metrics, and at Start those of its jobs.
func New(b *builder.Builder, c scheduler.Clock, log *slog.Logger, registry prometheus.Registerer) *Service {
	s := &Service{builder: b, clock: c, log: log, reg: registry, deriving: b.Derive}
	s.metrics = newServiceMetrics(s, registry)
	return s
}

// Ingest makes the service poll sources when polls are due. Call it before Start.
func (s *Service) Ingest(from *ingest.Ingest) {
	s.sources = from
	s.builder.Policy.Stability, s.builder.Policy.Arrived, s.builder.Provenance = from.Stability, from.Arrived, from.Provenance
}

// UseIntervals makes the service call its functions at the intervals of i, which others may use too. Call it before Run.
func (s *Service) UseIntervals(i *scheduler.Intervals) { s.intervals = i }

// Deliver makes the service send webhooks for each published version, also for versions of other processes.
// Call it before Start.
func (s *Service) Deliver(sender *webhook.Sender) {
	// If several schedulers pause the same webhook, the log says that the later ones failed.
	pausing := func(ctx context.Context, h webhook.Hook, why string, pause func() error) error {
		log, err := auditlog.Load(ctx, s.builder.Store)
		if err != nil {
			return err
		}
		return log.Do(ctx, auditlog.Intent{Actor: operator.ServiceActor, Action: auditlog.PauseWebhook, Subject: h.ID, Reason: auditlog.Printable(why)}, pause)
	}
	s.sender, s.hooks = sender, webhook.NewDeliverer(s.builder.Store, s.builder.Signers, sender, pausing, s.log, s.reg)
}

// OnPublish registers functions that the service calls concurrently as soon as it has published a version,
// so that edges in this process need not find the version by themselves. Only the end of Run waits for them.
// Call it before Start.
func (s *Service) OnPublish(of ...func(context.Context)) { s.onPublish = append(s.onPublish, of...) }

// BuildAfter makes each build call gate before it begins. Gate returns when no more important build runs; see Idle. It may be
// nil. Call BuildAfter before Start.
func (s *Service) BuildAfter(gate func()) { s.first = gate }

// Recovered calls a function. A panic of the function is its error: a bug of a simulated world must not end the process of the
// real one.
func Recovered(run func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("BUG: panic: %v\n%s", p, debug.Stack())
		}
	}()
	return run()
}

// Idle returns when no build of the service runs.
func (s *Service) Idle() {
	s.building.Lock()
	defer s.building.Unlock()
}

// TrustKeys makes fresh.note name only lists of API keys that one of these keys has signed, and none that is lower than
// before. Call it before Start.
func (s *Service) TrustKeys(trust notes.Trust) { s.trustKeys = trust }

// Start publishes the due version, so that there is something to serve, and creates the jobs. The caller may
// call Start again if it fails; meanwhile operators can use the actions that need no jobs.
func (s *Service) Start(ctx context.Context, progress snapshots.Progress) error {
	err := s.build(ctx, "start", progress)
	if err != nil {
		return err
	}
	since := s.published.Load().Manifest.BuiltAt
	build := func(ctx context.Context, t scheduler.Trigger) error { return s.build(ctx, t.String(), nil) }
	// The end of the service waits for no odds, which the next start derives, and for no answer that is measured.
	hasty := func(run scheduler.Func) scheduler.Func {
		return func(job context.Context, t scheduler.Trigger) error {
			job, cancel := context.WithCancel(job)
			defer cancel()
			defer context.AfterFunc(ctx, cancel)()
			if err := run(job, t); ctx.Err() == nil {
				return err
			}
			return nil
		}
	}
	list := []scheduler.Job{
		{Name: buildJob, Work: cadence.Build, Run: build, Since: since},
		{Name: freezeJob, Work: cadence.Freeze, Run: build, Since: since},
		{Name: pollJob, Work: cadence.Poll, Run: s.poll, Since: since},
		{Name: verifyJob, Work: cadence.Verify, Run: s.checkObjects, Since: since},
		{Name: deriveJob, Run: hasty(s.derive)},
	}
	if s.measuring != nil {
		s.measuring.served = s.lastVerified(since)
		list = append(list, scheduler.Job{Name: measureJob, Every: time.Minute, Run: hasty(s.measure)}, scheduler.Job{Name: servedJob, Run: hasty(s.timeServed)})
	}
	if s.builder.Signers != nil {
		fresh := func(ctx context.Context, _ scheduler.Trigger) error {
			return s.builder.Freshen(ctx, keys.FreshText(s.builder.Store, s.trustKeys))
		}
		list = append(list, scheduler.Job{Name: freshJob, Every: snapshots.FreshEvery, Run: fresh})
	}
	for i, job := range list {
		if s.first != nil { // beside the real world
			list[i].Run = func(ctx context.Context, t scheduler.Trigger) error {
				return Recovered(func() error { return job.Run(ctx, t) })
			}
		}
	}
	jobs, err := scheduler.New(scheduler.DefaultConfig(), s.clock, s.calendar, s.log, list...)
	if err != nil {
		return err
	}
	s.jobs.Store(jobs)
	return s.reg.Register(jobs.Collector())
}

// Run runs the jobs until ctx ends, and waits for a running build.
func (s *Service) Run(ctx context.Context) error {
	s.jobs.Load().Start()
	s.trigger(deriveJob, "start")
	if s.sources != nil {
		s.trigger(pollJob, "start") // concurrently, because no source may delay the start
	}
	var delivering sync.WaitGroup // concurrently, because no receiver may delay the service
	if s.hooks != nil {
		delivering.Go(func() { s.hooks.Run(ctx) })
	}
	if s.laps != nil {
		delivering.Go(func() { s.end("replaying laps", s.replayLaps(ctx)) })
	}
	s.end("following the store", s.follow(ctx))
	defer delivering.Wait()
	defer func() {
		s.building.Lock() // no build calls the functions of OnPublish meanwhile
		defer s.building.Unlock()
		s.notifying.Wait()
	}()
	stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), StopGrace)
	defer cancel()
	err := s.jobs.Load().Stop(stopping)
	s.end("writing the measurements", s.writeMeasured(stopping, time.Now()))
	if errors.Is(err, scheduler.ErrCancelled) { // no failure, because a build that ends early publishes nothing
		s.log.Warn("a job was cancelled; the next start does its work", "err", err)
		return nil
	}
	return err
}

func (s *Service) end(what string, err error) {
	if err != nil {
		s.log.Error("the service does not stop cleanly", "what", what, "err", err)
	}
}

// build is Build for the jobs. It ignores ErrHeld, because holding is a decision of an operator.
func (s *Service) build(ctx context.Context, reason string, progress snapshots.Progress) error {
	_, err := s.Build(ctx, builder.Request{Reason: reason, Progress: progress})
	if errors.Is(err, snapshots.ErrHeld) {
		s.log.Warn("publishing is held", "err", err)
		return nil
	}
	return err
}

// Build settles and publishes once, at the race time at which its turn comes, and records the outcome.
func (s *Service) Build(ctx context.Context, request builder.Request) (builder.Outcome, error) {
	if s.first != nil {
		s.first()
	}
	s.building.Lock()
	defer s.building.Unlock()
	request.At = s.clock.Now()
	phases := s.metrics.begin(request.Progress)
	request.Progress = phases.progress
	outcome, err := s.builder.Build(ctx, request)
	if outcome.Version > 0 && !outcome.Unchanged {
		for _, notify := range s.onPublish { // first, because a person may wait for the edges
			s.notifying.Go(func() { notify(context.WithoutCancel(ctx)) })
		}
	}
	phases.end(err)
	s.refused.Store(int64(len(outcome.Refused)))
	if factsErr := s.loadFacts(ctx); factsErr != nil {
		return outcome, unhold(err, factsErr)
	}
	s.logSettled(outcome.Events)
	if baseErr := s.setPublished(ctx, outcome.Base); baseErr != nil {
		return outcome, unhold(err, baseErr)
	}
	if s.jobs.Load() != nil && s.measuring != nil {
		s.trigger(servedJob, "a build") // also where another process has published
	}
	var unsettled *builder.UnsettledError
	if (err == nil || errors.As(err, &unsettled)) && !outcome.Unchanged { // a pick that cannot be made holds up nothing else
		s.log.Info("published", "version", outcome.Version, "reason", request.Reason,
			"objects_written", outcome.ObjectsWritten, "objects_reused", outcome.ObjectsReused, "seconds", outcome.Seconds)
		if s.jobs.Load() != nil { // earlier, Run triggers it
			s.trigger(deriveJob, fmt.Sprintf("version %d", outcome.Version))
		}
	}
	return outcome, err
}

// unhold joins the error of a build and a later one. A hold is not in it, because the jobs ignore a hold, and would ignore the
// later error with it.
func unhold(err, later error) error {
	if errors.Is(err, snapshots.ErrHeld) {
		return later
	}
	return errors.Join(err, later)
}

func (s *Service) logSettled(events []ledger.Event) {
	for _, e := range events {
		s.log.Info("settled", "event", e.Type, "session_key", e.Session, "what", e.String(), "race_time", e.At)
	}
}

// trigger makes a job run. It does nothing once the jobs stop, because the next start does their work.
func (s *Service) trigger(job, reason string) {
	if _, err := s.jobs.Load().Trigger(job, reason); err != nil && !errors.Is(err, scheduler.ErrStopped) {
		s.log.Error("job not triggered", "job", job, "reason", reason, "err", err)
	}
}

// holds counts the people who wait for a version.
type holds struct {
	mu    sync.Mutex
	count int
	idle  chan struct{} // closed when count is 0 again; nil while it is
}

// Hold makes long background work wait until release is called, because a person waits for a version to be
// served.
func (s *Service) Hold() (release func()) {
	a := &s.holds
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.count++; a.count == 1 {
		a.idle = make(chan struct{})
	}
	return sync.OnceFunc(func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		if a.count--; a.count == 0 {
			close(a.idle)
			a.idle = nil
		}
	})
}

// wait waits until all holds are released, or ctx ends.
func (a *holds) wait(ctx context.Context) error {
	for {
		a.mu.Lock()
		idle := a.idle
		a.mu.Unlock()
		if idle == nil {
			return context.Cause(ctx)
		}
		select {
		case <-idle:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// derive computes forecasts, title odds and track record if facts have changed, and triggers a build with
// them. Builds go on meanwhile, but derive waits for every Hold.
func (s *Service) derive(ctx context.Context, _ scheduler.Trigger) error {
	if s.holds.wait(ctx) != nil {
		return nil //nolint:nilerr // the next start triggers both again
	}
	for range 2 { // facts that changed meanwhile have other odds
		began := time.Now()
		made, err := s.deriving(ctx, s.clock.Now())
		if err != nil || !made {
			return err
		}
		s.log.Info("derived", "what", "forecasts, title odds, track record", "seconds", time.Since(began).Seconds())
		built, err := s.jobs.Load().Trigger(buildJob, derive.Reason)
		if err != nil {
			return err
		}
		if err := <-built; err != nil {
			return err
		}
	}
	return nil
}

// setPublished stores the published version: base or, if that is nil, the current version of the store.
func (s *Service) setPublished(ctx context.Context, base *snapshots.Base) error {
	if base == nil {
		var err error
		if base, err = snapshots.LoadBase(ctx, s.builder.Store, nil); err != nil {
			return err
		}
	}
	s.published.Store(base)
	if s.hooks != nil {
		s.hooks.Published()
	}
	return nil
}

// checkObjects reads every object of the current version again, so that damage in the store is found before an
// edge starts from it. A build repairs the damage.
func (s *Service) checkObjects(ctx context.Context, _ scheduler.Trigger) error {
	found, err := snapshots.Verify(ctx, s.builder.Store, 0, nil)
	if err != nil || len(found.Faults) > 0 {
		if _, err := s.Build(ctx, builder.Request{Reason: "repair", Repair: true}); err != nil && !errors.Is(err, snapshots.ErrHeld) {
			return err
		}
		found, err = snapshots.Verify(ctx, s.builder.Store, 0, nil)
	}
	if err != nil {
		return err
	}
	if len(found.Faults) > 0 {
		return fmt.Errorf("version %d: %d of %d objects are wrong: %w", found.Version, len(found.Faults), found.Objects, errors.Join(found.Faults...))
	}
	s.log.Info("verified", "version", found.Version, "objects", found.Objects, "bytes", found.Bytes)
	return nil
}

// poll polls the sources, settles the facts, and triggers a build after a change. A failing source does not
// fail the job: its state and the metrics show the failure.
func (s *Service) poll(ctx context.Context, t scheduler.Trigger) error {
	if s.sources != nil {
		report, err := s.sources.Poll(ctx, s.clock.Now(), len(t.Requested) > 0)
		if err != nil {
			return err
		}
		if report.Changed || len(report.Events) > 0 {
			s.trigger(buildJob, "the sources have news")
		}
	}
	if err := s.loadFacts(ctx); err != nil {
		return err
	}
	fresh, err := s.builder.Ledger.Refresh(ctx)
	if err != nil {
		return err
	}
	events, err := s.builder.Rules(ctx).Settle(ctx, fresh, *s.facts.Load(), s.clock.Now())
	if err != nil {
		return err
	}
	s.logSettled(events)
	reason := "settled"
	if len(events) == 0 {
		if reason, err = s.statusChange(); err != nil || reason == "" {
			return err
		}
	}
	s.trigger(buildJob, reason)
	return nil
}

// statusChange returns the reason for a build if /status would report another state of the facts, for
// example an overdue result or a failing source. It returns an empty reason otherwise.
func (s *Service) statusChange() (string, error) {
	base := s.published.Load()
	if base.Pointer.Held {
		return "", nil
	}
	said := slices.ContainsFunc(base.Manifest.Missing, func(m snapshots.Missing) bool { return m.Code == string(almanac.SettingsUnread) })
	if said != (len(s.builder.SettingsMissing(s.clock.Now())) > 0) {
		return "the settings of the store became unreadable or readable", nil
	}
	if s.builder.Told(base) != base.Manifest.Operator {
		return "the settings tell another operator", nil
	}
	state, err := s.builder.State(*s.facts.Load(), s.clock.Now(), base)
	if err != nil || bytes.Equal(state, base.Manifest.State) {
		return "", err
	}
	return "the state of the facts changed", nil
}

// lookEvery is the number of followEvery after which follow reads the pointer of the store and the audit log, and plans
// the jobs anew. Each third time it heals documents.
const lookEvery = 10

// pointerMoved reports whether somebody has damaged the pointer, or has moved it to a version that no builder published
// after the last build of this process. The next build then replaces it.
func (s *Service) pointerMoved(ctx context.Context) bool {
	now, _, err := snapshots.LoadPointer(ctx, s.builder.Store)
	base := s.published.Load().Pointer
	switch {
	case err != nil:
		return errors.Is(err, snapshots.ErrDamaged) || errors.Is(err, snapshots.ErrNone)
	case now.Version == base.Version:
		return now.Manifest != base.Manifest
	case now.Version < base.Version, now.Version-base.Version > snapshots.MaxGap:
		return true
	}
	return s.builder.Signers != nil && errors.Is(snapshots.CheckNote(ctx, s.builder.Store, now.Version, s.builder.Signers.Trust()), snapshots.ErrUnsigned)
}

// follow triggers a build when another process appends to the ledger, changes the archive or observes a lap of a
// race, or when the pointer is damaged, until ctx ends. It moves the jobs to the instants of the calendar that it has read. It plans
// them only after a change, after the clock was set back, or at every lookEvery, because a plan reads two seasons.
func (s *Service) follow(ctx context.Context) error {
	var last time.Time                // the clock at the last tick
	m := &s.published.Load().Manifest // a job may have appended events since the first build: they are a change, too
	head, facts, observed := ledger.Head{Seq: m.Ledger.Seq, Hash: m.Ledger.Hash}, m.Archive, m.Live
	ticks, unread := 0, false // an unread log of the race is read again only at each lookEvery, because each try reads all its files
	return s.intervals.Every(ctx, followEvery, func(ctx context.Context) {
		ticks++
		if ticks%(3*lookEvery) == 0 {
			s.heal(ctx)
		}
		if ticks%lookEvery == 0 && s.pointerMoved(ctx) {
			s.trigger(buildJob, "the pointer of the store is damaged")
		}
		_, ledgerErr := s.builder.Ledger.Refresh(ctx)
		if err := errors.Join(ledgerErr, s.loadFacts(ctx)); err != nil {
			if ctx.Err() == nil {
				s.log.Warn("the store cannot be read; builds wait", "err", err)
			}
			return
		}
		reason, newHead, newFacts, now := "", s.builder.Ledger.Head(), s.facts.Load().SHA256, s.clock.Now()
		if newHead != head || newFacts != facts || now.Before(last) || ticks%lookEvery == 0 {
			s.jobs.Load().Update()
		}
		last = now
		if newHead != head {
			head = newHead
			if head.Seq > s.published.Load().Manifest.Ledger.Seq {
				reason = "ledger changed"
			}
		}
		if newFacts != facts {
			facts, reason = newFacts, "archive changed"
		}
		if !unread || ticks%lookEvery == 0 {
			seen, err := s.builder.Look(ctx, *s.facts.Load(), now)
			if seen != observed && seen != s.published.Load().Manifest.Live {
				reason = cmp.Or(reason, "the race goes on")
			}
			observed, unread = seen, err != nil
		}
		if reason != "" {
			s.trigger(buildJob, reason)
		}
	})
}

// heal puts the copies of damaged documents back, and records damage of the audit log in it.
func (s *Service) heal(ctx context.Context) {
	for _, document := range []struct {
		what string
		heal func(context.Context, blob.Store) (bool, error)
	}{{"API keys", keys.Heal}, {"operators", operator.HealPeople}, {"settings", settings.Heal}, {"webhooks", webhook.Heal}, {"measurements", uptime.Heal}} {
		switch healed, err := document.heal(ctx, s.builder.Store); {
		case healed:
			s.log.Warn("a damaged or lost document was replaced by its copy", "what", document.what)
		case err != nil && ctx.Err() == nil:
			s.log.Debug("document not compared with its copy", "what", document.what, "err", err) // its readers warn
		}
	}
	if log := s.audit.Load(); log != nil {
		if err := log.Refresh(ctx); err == nil { // commands write to it too; the next operator's action reports a fault
			_ = log.Note(ctx)
		}
	}
}

func (s *Service) loadFacts(ctx context.Context) error {
	facts, err := s.builder.Facts(ctx)
	if err != nil {
		return err
	}
	s.facts.Store(&facts)
	return nil
}

// calendar is the schedule's input, from facts and ledger in memory.
func (s *Service) calendar() cadence.Calendar {
	now := s.clock.Now()
	cal := calendarOf(s.facts.Load().Archive.AsOf(now), s.builder.Ledger.Current(now), s.builder.Policy.Arrived)
	for i := range cal.Rounds {
		if r := &cal.Rounds[i]; s.builder.Unread() {
			r.FreezeBy = r.Start.Add(-builder.LastMinute)
		}
	}
	return cal
}

// Jobs returns the states of the jobs; none before Start has succeeded.
func (s *Service) Jobs() []scheduler.JobStatus {
	if jobs := s.jobs.Load(); jobs != nil {
		return jobs.Status()
	}
	return nil
}

func (s *Service) runJob(name, reason string) (<-chan error, error) {
	if jobs := s.jobs.Load(); jobs != nil {
		return jobs.Trigger(name, reason)
	}
	return nil, errors.New("the service has not started yet")
}

// Operator returns an operator that builds through the service, one build at a time.
func (s *Service) Operator(ctx context.Context, tiers keys.Tiers) (*operator.Operator, error) {
	log, err := auditlog.Load(ctx, s.builder.Store)
	if err != nil {
		return nil, err
	}
	s.audit.Store(log)
	return &operator.Operator{
		Store: s.builder.Store, Sign: s.builder.Signers, Audit: log, Tiers: tiers, Name: s.builder.Name, Now: s.clock.Now,
		Ledger: s.builder.Ledger, Build: s.Build,
		Facts: s.currentFacts, Ingest: s.sources, Model: func(ctx context.Context) predict.Model { return s.builder.Rules(ctx).Model },
		Observed: s.builder.Observed(), Lines: func(outcome string) { s.metrics.lines.WithLabelValues(outcome).Inc() }, Jobs: s.Jobs, RunJob: s.runJob, Webhooks: s.sender, Hold: s.Hold,
	}, nil
}

// currentFacts returns the archive in use, from memory if it is loaded.
func (s *Service) currentFacts(ctx context.Context) (archive.Stored, error) {
	if facts := s.facts.Load(); facts != nil {
		return *facts, nil
	}
	return s.builder.Facts(ctx)
}

// Sources returns the sources of facts with their states.
func (s *Service) Sources() []operator.Source {
	facts := s.facts.Load()
	if facts == nil {
		return nil
	}
	source := operator.Source{Name: "archive", Detail: archiveDetail(*facts, s.clock.Now())}
	for _, job := range s.Jobs() {
		if job.Name == pollJob {
			source.Checked, source.Problem = job.LastEnd, job.LastError
		}
	}
	list := []operator.Source{source}
	if s.sources != nil {
		list = append(list, operator.SourcesOf(s.sources)...)
	}
	return list
}

// archiveDetail describes an archive and its last result.
func archiveDetail(facts archive.Stored, now time.Time) string {
	detail := facts.Archive.Facts().Source
	v := facts.Archive.AsOf(now)
	for i := len(v.Seasons) - 1; i >= 0; i-- {
		if r := v.Seasons[i].LatestResult(); r != nil {
			return fmt.Sprintf("%s; last result: %s of %d", detail, r.Name, v.Seasons[i].Year)
		}
	}
	return detail
}
