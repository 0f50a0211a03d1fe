// Package service is the running service: it builds versions when they fall due, follows the ledger
// and the archive, polls the sources, verifies published versions and delivers webhooks.
package service

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"gridcast/builder"
	"gridcast/builder/archive"
	"gridcast/builder/ingest"
	"gridcast/builder/predict"
	"gridcast/deploy/auditlog"
	"gridcast/deploy/operator"
	"gridcast/edge/keys"
	"gridcast/scheduler"
	"gridcast/scheduler/cadence"
	"gridcast/scheduler/webhook"
	"gridcast/snapshots"
)

// Service keeps the published version true: it has the scheduler run the builder when something
// falls due, and whenever ledger or archive change. Start comes first, then Run; everything else
// is for any goroutine from Start on.
type Service struct {
	builder *builder.Builder
	clock   Clock
	log     *slog.Logger
	facts   atomic.Pointer[archive.Stored]      // as of the last build, for the schedule
	jobs    atomic.Pointer[scheduler.Scheduler] // from a successful Start on
	metrics *serviceMetrics
	reg     prometheus.Registerer
	sources *ingest.Ingest // nil: facts come by import alone
	sender  *webhook.Sender
	hooks   *webhook.Deliverer // nil: nobody is told

	deriving  func(context.Context, time.Time) (bool, error) // makes odds and record, and says whether they are new
	zipping   func(context.Context) (builder.Downloads, error)
	tell      []func(context.Context) // of each version that is published
	telling   sync.WaitGroup          // of builds; building guards it
	holds     holds
	refused   atomic.Int64                   // documents that the last build left as they were
	building  sync.Mutex                     // jobs run side by side; their builds need not race each other
	published atomic.Pointer[snapshots.Base] // as of the last build
}

// Clock is race time and its speed, in race seconds a real second. A clock.Clock is one.
type Clock interface {
	Now() time.Time
	Speed() float64
}

// The jobs, by name.
const (
	buildJob  = "build"
	freezeJob = "freeze"
	pollJob   = "poll"
	verifyJob = "verify"
	deriveJob = "derive" // title odds, track record and downloads, after a build that published
)

// lookEvery is how often the ledger is looked at for what others appended, in real time.
const lookEvery = time.Second

// StopGrace is how long a build under way may go on when the process is told to stop.
const StopGrace = 20 * time.Second

// New returns a service that does nothing yet. Its metrics, and from Start on those of its
// jobs, are in the registry.
func New(b *builder.Builder, c Clock, log *slog.Logger, registry prometheus.Registerer) *Service {
	s := &Service{builder: b, clock: c, log: log, reg: registry, deriving: b.Derive, zipping: b.MakeDownloads}
	s.metrics = newServiceMetrics(s, registry)
	return s
}

// Ingest has the service ask sources for facts, which it does when its polls are due. It comes
// before Start.
func (s *Service) Ingest(from *ingest.Ingest) {
	s.sources = from
	s.builder.Policy.Stability, s.builder.Policy.Arrived, s.builder.Provenance = from.Stability, from.Arrived, from.Provenance
}

// Deliver has the service tell receivers what it publishes, and what others publish. It comes
// before Start.
func (s *Service) Deliver(sender *webhook.Sender) {
	s.sender, s.hooks = sender, webhook.NewDeliverer(s.builder.Store, sender, s.log, s.reg)
	s.hooks.Pausing = func(ctx context.Context, h webhook.Hook, why string, pause func() error) error {
		return operator.RecordPause(ctx, s.builder.Store, h, why, pause)
	}
}

// Tell has the service call each function, side by side, as soon as it has published a version: those
// who serve it need not find it by themselves. Nothing waits for them but the end of Run. It comes before
// Start.
func (s *Service) Tell(of ...func(context.Context)) { s.tell = append(s.tell, of...) }

// Start publishes what is due now, so that there is something to serve, and makes the jobs. If it
// fails it can be called again; meanwhile an operator can see and do what needs no jobs.
func (s *Service) Start(ctx context.Context, progress snapshots.Progress) error {
	err := s.build(ctx, "start", progress)
	if err != nil {
		return err
	}
	since := s.published.Load().Manifest.BuiltAt
	build := func(ctx context.Context, t scheduler.Trigger) error { return s.build(ctx, t.String(), nil) }
	jobs, err := scheduler.New(scheduler.DefaultConfig(), s.clock.Now, s.calendar, s.log,
		scheduler.Job{Name: buildJob, Work: cadence.Build, Run: build, Since: since},
		scheduler.Job{Name: freezeJob, Work: cadence.Freeze, Run: build, Since: since},
		scheduler.Job{Name: pollJob, Work: cadence.Poll, Run: s.poll, Since: since},
		scheduler.Job{Name: verifyJob, Work: cadence.Verify, Run: s.verify, Since: since},
		scheduler.Job{Name: deriveJob, Run: s.derive},
	)
	if err != nil {
		return err
	}
	s.jobs.Store(jobs)
	return s.reg.Register(jobs.Collector())
}

// Run conducts until ctx ends, and waits for a build under way.
func (s *Service) Run(ctx context.Context) error {
	s.jobs.Load().Start()
	s.wantDerived("start")
	if s.sources != nil {
		// Beside everything else: no source holds up a start.
		if _, err := s.jobs.Load().Trigger(pollJob, "start"); err != nil {
			s.log.Error("sources are not asked at the start", "err", err)
		}
	}
	var delivering sync.WaitGroup // beside everything else, too: nothing waits for a receiver
	if s.hooks != nil {
		delivering.Go(func() { s.hooks.Run(ctx) })
	}
	s.follow(ctx)
	defer delivering.Wait()
	defer func() {
		s.building.Lock() // no build tells anybody meanwhile
		defer s.building.Unlock()
		s.telling.Wait()
	}()
	stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), StopGrace)
	defer cancel()
	return s.jobs.Load().Stop(stopping)
}

// build is Build for the jobs: a held pointer is the operator's decision, no error.
func (s *Service) build(ctx context.Context, reason string, progress snapshots.Progress) error {
	_, err := s.Build(ctx, builder.Request{Reason: reason, Progress: progress})
	if errors.Is(err, snapshots.ErrHeld) {
		s.log.Warn("publishing is held; gridcast build --release ends it", "err", err)
		return nil
	}
	return err
}

// Build settles and publishes once, as of the moment its turn comes, and notes what came of
// it.
func (s *Service) Build(ctx context.Context, request builder.Request) (builder.Outcome, error) {
	s.building.Lock()
	defer s.building.Unlock()
	request.At = s.clock.Now()
	phases := s.metrics.begin(request.Progress)
	request.Progress = phases.progress
	outcome, err := s.builder.Build(ctx, request)
	if outcome.Version > 0 && !outcome.Unchanged {
		for _, tell := range s.tell { // first: somebody waits until it is served
			s.telling.Go(func() { tell(context.WithoutCancel(ctx)) })
		}
	}
	phases.end(err)
	s.refused.Store(int64(len(outcome.Refused)))
	if factsErr := s.loadFacts(ctx); factsErr != nil {
		return outcome, errors.Join(err, factsErr)
	}
	for _, e := range outcome.Events {
		s.log.Info("settled", "event", e.Type, "session_key", e.Session, "what", e.String(), "race_time", e.At)
	}
	if baseErr := s.notePublished(ctx, outcome.Base); baseErr != nil {
		return outcome, errors.Join(err, baseErr)
	}
	if err == nil && !outcome.Unchanged {
		s.log.Info("published", "version", outcome.Version, "reason", request.Reason,
			"objects_written", outcome.ObjectsWritten, "objects_reused", outcome.ObjectsReused, "seconds", outcome.Seconds)
		if s.jobs.Load() != nil { // before, Run asks for it
			s.wantDerived(fmt.Sprintf("version %d", outcome.Version))
		}
	}
	return outcome, err
}

// wantDerived has the odds and the record made of what is published now.
func (s *Service) wantDerived(reason string) {
	if _, err := s.jobs.Load().Trigger(deriveJob, reason); err != nil {
		s.log.Error("title odds and track record not made", "reason", reason, "err", err)
	}
}

// holds counts what people wait for.
type holds struct {
	mu    sync.Mutex
	count int
	idle  chan struct{} // closed when count is 0 again; nil while it is
}

// Hold says that somebody waits for what is published until over is called. Work that nobody waits
// for and that takes a processor for a while begins after that.
func (s *Service) Hold() (over func()) {
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

// wait waits until nobody waits for anything, or ctx ends.
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

// derive makes title odds and track record, if the verified results are not those that they were
// made of, and has a version built with them; then the downloads of the seasons that have changed.
// Builds go on meanwhile, but neither begins while somebody waits for one to be served.
func (s *Service) derive(ctx context.Context, _ scheduler.Trigger) error {
	if s.holds.wait(ctx) != nil {
		return nil //nolint:nilerr // the next start asks for both
	}
	began := time.Now()
	made, err := s.deriving(ctx, s.clock.Now())
	if err == nil && made {
		s.log.Info("derived", "what", "title odds, track record", "seconds", time.Since(began).Seconds())
		var built <-chan error
		if built, err = s.jobs.Load().Trigger(buildJob, "title odds and track record"); err == nil {
			err = <-built
		}
	}
	if errors.Is(err, scheduler.ErrStopped) {
		return nil // the next start asks for both
	}
	return errors.Join(err, s.publishDownloads(ctx))
}

// publishDownloads makes the downloads that are not of what is published now, and publishes them. What
// takes time, reading documents and packing them, is done before it is its turn among the builds.
func (s *Service) publishDownloads(ctx context.Context) error {
	if s.holds.wait(ctx) != nil {
		return nil // the next start asks for them
	}
	began := time.Now()
	downloads, err := s.zipping(ctx)
	if downloads.Len() == 0 {
		return err
	}
	s.building.Lock()
	defer s.building.Unlock()
	receipt, publishErr := s.builder.PublishDownloads(ctx, downloads)
	switch {
	case errors.Is(publishErr, snapshots.ErrHeld):
		return err // a version that somebody has rolled back to keeps the downloads that it had
	case publishErr != nil:
		return errors.Join(err, publishErr)
	case !receipt.Unchanged:
		s.log.Info("downloads published", "version", receipt.Version, "seasons", downloads.Len(),
			"bytes", receipt.BytesWritten, "seconds", time.Since(began).Seconds())
	}
	return errors.Join(err, s.notePublished(ctx, receipt.Base))
}

// notePublished remembers what is published now: base or, if that is nil, what the store says.
func (s *Service) notePublished(ctx context.Context, base *snapshots.Base) error {
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

// verify reads every object of the current version again: what is damaged in the store is
// found before an edge has to start from it.
func (s *Service) verify(ctx context.Context, _ scheduler.Trigger) error {
	found, err := snapshots.Verify(ctx, s.builder.Store, 0, nil)
	if err != nil {
		return err
	}
	if len(found.Faults) > 0 {
		return fmt.Errorf("version %d: %d of %d objects are wrong: %w", found.Version, len(found.Faults), found.Objects, errors.Join(found.Faults...))
	}
	s.log.Info("verified", "version", found.Version, "objects", found.Objects, "bytes", found.Bytes)
	return nil
}

// poll asks the sources, settles what the archive now shows, and has a version built if that was
// anything. A source that fails is no failure of the job: it is in its state and in the metrics.
func (s *Service) poll(ctx context.Context, t scheduler.Trigger) error {
	if s.sources != nil {
		report, err := s.sources.Poll(ctx, s.clock.Now(), len(t.Requested) > 0)
		if err != nil {
			return err
		}
		if report.Changed || len(report.Events) > 0 {
			if _, err := s.jobs.Load().Trigger(buildJob, "the sources have news"); err != nil {
				return err
			}
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
	for _, e := range events {
		s.log.Info("settled", "event", e.Type, "session_key", e.Session, "what", e.String(), "race_time", e.At)
	}
	reason := "settled"
	if len(events) == 0 {
		if reason, err = s.factsNews(); err != nil || reason == "" {
			return err
		}
	}
	_, err = s.jobs.Load().Trigger(buildJob, reason)
	return err
}

// factsNews says why a version should be built for what /status says of the facts: a source fell
// silent, or something is overdue now. It is empty if it says the same.
func (s *Service) factsNews() (string, error) {
	base := s.published.Load()
	if base.Pointer.Held {
		return "", nil
	}
	state, err := s.builder.State(*s.facts.Load(), s.clock.Now(), base)
	if err != nil || bytes.Equal(state, base.Manifest.State) {
		return "", err
	}
	return "the facts stand otherwise", nil
}

// follow triggers a build when somebody else appended to the ledger or put another archive
// into the store, until ctx ends.
func (s *Service) follow(ctx context.Context) {
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	head, facts := s.builder.Ledger.Head(), s.facts.Load().SHA256
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		_, ledgerErr := s.builder.Ledger.Refresh(ctx)
		if err := errors.Join(ledgerErr, s.loadFacts(ctx)); err != nil {
			if ctx.Err() == nil {
				s.log.Warn("the store can not be read; builds wait", "err", err)
			}
			continue
		}
		reason := ""
		if newHead := s.builder.Ledger.Head(); newHead != head {
			head = newHead
			if head.Seq > s.published.Load().Manifest.Ledger.Seq {
				reason = "ledger changed"
			}
		}
		if newFacts := s.facts.Load().SHA256; newFacts != facts {
			facts, reason = newFacts, "archive changed"
		}
		if reason == "" {
			continue
		}
		if _, err := s.jobs.Load().Trigger(buildJob, reason); err != nil {
			s.log.Error("build not triggered", "reason", reason, "err", err)
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

// calendar is what the schedule goes by: the facts and the ledger as they are in memory.
func (s *Service) calendar() cadence.Calendar {
	now := s.clock.Now()
	return calendarOf(s.facts.Load().Archive.AsOf(now), s.builder.Ledger.Current(now), s.builder.Policy.Arrived)
}

// Facts is the archive in use, from memory; not known before the first build.
func (s *Service) Facts() (facts archive.Stored, known bool) {
	if loaded := s.facts.Load(); loaded != nil {
		return *loaded, true
	}
	return archive.Stored{}, false
}

// Jobs tells how the jobs stand; there are none before Start has succeeded.
func (s *Service) Jobs() []scheduler.Status {
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

// Operator returns an operator whose actions build through the service, one at a time with its own
// builds.
func (s *Service) Operator(ctx context.Context, tiers keys.Tiers) (*operator.Operator, error) {
	log, err := auditlog.Load(ctx, s.builder.Store)
	if err != nil {
		return nil, err
	}
	return &operator.Operator{
		Store: s.builder.Store, Audit: log, Tiers: tiers, Name: s.builder.Name, Now: s.clock.Now,
		Ledger: s.builder.Ledger, Build: s.Build,
		Facts: s.currentFacts, Ingest: s.sources, Model: func(ctx context.Context) predict.Model { return s.builder.Rules(ctx).Model },
		Jobs: s.Jobs, RunJob: s.runJob, Webhooks: s.sender, Hold: s.Hold,
	}, nil
}

// currentFacts is the archive in use, from memory as soon as it is there.
func (s *Service) currentFacts(ctx context.Context) (archive.Stored, error) {
	if facts, known := s.Facts(); known {
		return facts, nil
	}
	return s.builder.Facts(ctx)
}

// Speed is how many race seconds a real second has.
func (s *Service) Speed() float64 { return s.clock.Speed() }

// sourcePatience is how long after a race, in race time, a source may be without its result.
const sourcePatience = time.Hour

// Sources tells how the sources of the facts stand.
func (s *Service) Sources() []operator.Source {
	facts, known := s.Facts()
	if !known {
		return nil
	}
	source := operator.Source{Name: "archive", Detail: archiveDetail(facts, s.clock.Now())}
	for _, job := range s.Jobs() {
		if job.Name == pollJob {
			source.Checked, source.Problem = job.LastEnd, job.LastError
		}
	}
	if lag, _ := s.overdueResults(); lag > sourcePatience && source.Problem == "" {
		source.Problem = "a result has been due for " + lag.Round(time.Minute).String()
	}
	list := []operator.Source{source}
	if s.sources != nil {
		list = append(list, operator.SourcesOf(s.sources)...)
	}
	return list
}

// archiveDetail says what an archive is and how far it goes.
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
