package service

import (
	"encoding/json"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"gridcast/builder"
	"gridcast/builder/almanac"
	"gridcast/builder/assemble"
	"gridcast/builder/ledger"
	"gridcast/schemas/wire"
	"gridcast/snapshots"
)

// serviceMetrics are the metrics of builds, and gauges that read the present state when scraped.
type serviceMetrics struct {
	phases *prometheus.HistogramVec
	builds *prometheus.CounterVec
}

// The outcomes of a build.
const (
	buildDone   = "done"
	buildHeld   = "held"
	buildFailed = "failed"
)

// settlePhase is the phase of a build before its first report of progress.
const settlePhase = "settle"

var buildPhases = []string{settlePhase, builder.Render, snapshots.Upload, snapshots.Check, snapshots.Swap}

func newServiceMetrics(s *Service, registry prometheus.Registerer) *serviceMetrics {
	m := &serviceMetrics{
		phases: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "gridcast_build_phase_seconds", Help: "Real duration of the phases of builds.",
			Buckets: []float64{.001, .005, .01, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60},
		}, []string{"phase"}),
		builds: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "gridcast_builds_total", Help: "Builds by outcome.",
		}, []string{"outcome"}),
	}
	registry.MustRegister(m.phases, m.builds)
	for _, phase := range buildPhases {
		m.phases.WithLabelValues(phase)
	}
	for _, outcome := range []string{buildDone, buildHeld, buildFailed} {
		m.builds.WithLabelValues(outcome)
	}
	gauge := func(name, help string, value func() float64) {
		registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "gridcast_" + name, Help: help}, value))
	}
	gauge("published_version", "The version that is published, as of the last build.", func() float64 {
		if base := s.published.Load(); base != nil {
			return float64(base.Pointer.Version)
		}
		return 0
	})
	gauge("publishing_held", "1 while an operator holds publishing, as of the last build.", func() float64 {
		if base := s.published.Load(); base != nil && base.Pointer.Held {
			return 1
		}
		return 0
	})
	gauge("refused_documents", "Documents that the last build left as they were, because what it rendered failed its check.",
		func() float64 { return float64(s.refused.Load()) })
	gauge("ledger_head", "The last file of the ledger.", func() float64 { return float64(s.builder.Ledger.Head().Seq) })
	gauge("race_weekend", "1 from 72 hours before a race to 24 hours after its start, in race time.", func() float64 { return s.raceWeekend() })
	gauge("source_silent_seconds", "Race time since the last good answer of the source that has failed for longest; 0: all answer.",
		func() float64 { return s.silentFor().Seconds() })
	registry.MustRegister(perSource{s}, published{s}, overdueResults{s})
	for _, gate := range assemble.Gates() {
		registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "gridcast_facts_waiting", Help: "Changes that wait for a person, by the gate that holds them; gridcast source check lists them.",
			ConstLabels: prometheus.Labels{"gate": string(gate)},
		}, func() float64 { return float64(s.waitingAt(gate)) }))
	}
	for _, code := range almanac.MissingCodes {
		registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "gridcast_missing_facts", Help: "Facts that are overdue, by kind; gridcast status says which, and the command that mends them.",
			ConstLabels: prometheus.Labels{"code": string(code)},
		}, func() float64 {
			return float64(len(slices.DeleteFunc(s.Missing(), func(l almanac.MissingFact) bool { return l.Code != code })))
		}))
	}
	gauge("missing_facts_urgent", "Overdue facts that a pick or lights out waits for.", func() float64 {
		return float64(len(slices.DeleteFunc(s.Missing(), func(l almanac.MissingFact) bool { return !l.Urgent })))
	})
	return m
}

// silentFor returns the time since the last good answer of the source that has failed for longest.
func (s *Service) silentFor() (longest time.Duration) {
	if s.sources == nil {
		return 0
	}
	now := s.clock.Now()
	for _, state := range s.sources.PollStates() {
		if state.Failures > 0 {
			silent := now.Sub(state.Answered)
			if state.Answered.IsZero() { // it never answered: estimate by the number of polls
				silent = time.Duration(state.Failures) * failingPollEvery
			}
			longest = max(longest, silent)
		}
	}
	return longest
}

// failingPollEvery is the interval at which a source is polled that has failed for long.
const failingPollEvery = 30 * time.Minute

// waitingAt counts the changes that a gate holds.
func (s *Service) waitingAt(gate assemble.Gate) (waiting int) {
	if s.sources == nil {
		return 0
	}
	for _, state := range s.sources.PollStates() {
		for _, c := range state.Held {
			if slices.ContainsFunc(c.Refused, func(r assemble.Refusal) bool { return r.Gate == gate }) {
				waiting++
			}
		}
	}
	return waiting
}

// perSource are the metrics of each source.
type perSource struct{ s *Service }

var (
	sourceFailures = prometheus.NewDesc("gridcast_source_failures", "How often in a row a source has given no answer that can be used.", []string{"source"}, nil)
	sourceDisputed = prometheus.NewDesc("gridcast_source_disagreements", "Parts of rounds that a source has otherwise than they are in use.", []string{"source"}, nil)
	sourceAnswered = prometheus.NewDesc("gridcast_source_answered_seconds", "Race time since the last answer of a source that can be used; absent: there was none.", []string{"source"}, nil)
	sourceLost     = prometheus.NewDesc("gridcast_source_lost", "Published seasons, verified results and drivers that a source had and has no longer; they stay published.", []string{"source"}, nil)
	sourceWaiting  = prometheus.NewDesc("gridcast_source_waiting", "Changes of a source that wait for a person.", []string{"source"}, nil)
)

func (perSource) Describe(to chan<- *prometheus.Desc) {
	for _, desc := range []*prometheus.Desc{sourceFailures, sourceDisputed, sourceAnswered, sourceWaiting, sourceLost} {
		to <- desc
	}
}

func (p perSource) Collect(to chan<- prometheus.Metric) {
	if p.s.sources == nil {
		return
	}
	now := p.s.clock.Now()
	for _, state := range p.s.sources.PollStates() {
		to <- prometheus.MustNewConstMetric(sourceDisputed, prometheus.GaugeValue, float64(len(state.Disputed)), state.Source)
		if !state.Answered.IsZero() {
			to <- prometheus.MustNewConstMetric(sourceAnswered, prometheus.GaugeValue, now.Sub(state.Answered).Seconds(), state.Source)
		}
		to <- prometheus.MustNewConstMetric(sourceFailures, prometheus.GaugeValue, float64(state.Failures), state.Source)
		to <- prometheus.MustNewConstMetric(sourceLost, prometheus.GaugeValue, float64(len(state.Lost)), state.Source)
		to <- prometheus.MustNewConstMetric(sourceWaiting, prometheus.GaugeValue, float64(len(state.Held)), state.Source)
	}
}

// published are the metrics of the facts behind the published version, as /status shows them.
type published struct{ s *Service }

var (
	roundsByResult = prometheus.NewDesc("gridcast_rounds", "Rounds of the current season whose race has begun, by how their result stands: awaited, provisional, verified, revised.", []string{"result"}, nil)
	picksByBasis   = prometheus.NewDesc("gridcast_picks", "Rounds of the current season with a pick, by what it rests on: grid, qualifying, form.", []string{"basis"}, nil)
	disputed       = prometheus.NewDesc("gridcast_facts_disputed", "Published parts of rounds that a source has otherwise.", nil, nil)
	borrowed       = prometheus.NewDesc("gridcast_facts_noncommercial", "Published parts of rounds that rest on a source with non-commercial terms.", nil, nil)
	nextChange     = prometheus.NewDesc("gridcast_next_change_seconds", "Race time until the published facts are next expected to change; below 0: overdue.", nil, nil)
	awaitedSince   = prometheus.NewDesc("gridcast_missing_fact_seconds", "Race time since the longest overdue fact of a kind was expected; 0: none is overdue.", []string{"code"}, nil)
)

func (published) Describe(to chan<- *prometheus.Desc) {
	for _, desc := range []*prometheus.Desc{roundsByResult, picksByBasis, disputed, borrowed, nextChange, awaitedSince} {
		to <- desc
	}
}

func (p published) Collect(to chan<- prometheus.Metric) {
	gauge := func(desc *prometheus.Desc, value float64, labels ...string) {
		to <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, value, labels...)
	}
	now := p.s.clock.Now()
	awaited := make(map[almanac.MissingCode]time.Duration)
	for _, fact := range p.s.Missing() {
		awaited[fact.Code] = max(awaited[fact.Code], now.Sub(fact.Since))
	}
	for _, code := range almanac.MissingCodes {
		gauge(awaitedSince, awaited[code].Seconds(), string(code))
	}
	base := p.s.published.Load()
	if base == nil || base.Manifest.State == nil {
		return
	}
	var state wire.FactsState
	if err := json.Unmarshal(base.Manifest.State, &state); err != nil {
		return // written by a release with another form of state
	}
	results := map[string]int{wire.FactsAwaited: 0, wire.FactsProvisional: 0, wire.FactsVerified: 0, wire.FactsRevised: 0}
	picks := map[string]int{string(ledger.OnGrid): 0, string(ledger.OnQualifying): 0, string(ledger.OnForm): 0}
	for _, r := range state.Rounds {
		if r.Result != "" {
			results[r.Result]++
		}
		if r.PickBasis != "" {
			picks[r.PickBasis]++
		}
	}
	for result, n := range results {
		gauge(roundsByResult, float64(n), result)
	}
	for basis, n := range picks {
		gauge(picksByBasis, float64(n), basis)
	}
	parts := 0
	for _, source := range state.Sources {
		parts += source.Disagreements
	}
	gauge(disputed, float64(parts))
	gauge(borrowed, float64(len(state.NonCommercial)))
	if next := time.Time(state.NextChange); !next.IsZero() {
		gauge(nextChange, next.Sub(now).Seconds())
	}
}

// Missing lists the overdue facts of the archive.
func (s *Service) Missing() []almanac.MissingFact {
	facts, known := s.Facts()
	if !known {
		return nil
	}
	now := s.clock.Now()
	return almanac.Missing(facts.Archive.AsOf(now), s.builder.Ledger.Current(now))
}

// overdueResults are the metrics of the results that a source or an operator owes. One scrape joins the seasons once.
type overdueResults struct{ s *Service }

var (
	sourceLag        = prometheus.NewDesc("gridcast_source_lag_seconds", "Race time since the oldest result that the source should have and has not; 0: it has all.", nil, nil)
	resultUnverified = prometheus.NewDesc("gridcast_result_unverified_seconds", "Race time since the end of the oldest race whose result waits for verification; 0: none does. Seasons that ended before the ledger was opened do not count.", nil, nil)
	resultsWaiting   = prometheus.NewDesc("gridcast_results_waiting", "Results of all seasons that wait for verification.", nil, nil)
)

func (overdueResults) Describe(to chan<- *prometheus.Desc) {
	for _, desc := range []*prometheus.Desc{sourceLag, resultUnverified, resultsWaiting} {
		to <- desc
	}
}

func (o overdueResults) Collect(to chan<- prometheus.Metric) {
	var lag, unverified time.Duration
	waiting := 0
	if facts := o.s.facts.Load(); facts != nil {
		now := o.s.clock.Now()
		v, state := facts.Archive.AsOf(now), o.s.builder.Ledger.Current(now)
		for _, r := range almanac.Join(v, state).Waiting() {
			over := now.Sub(r.End())
			if r.Source() == nil {
				lag = max(lag, over)
				continue
			}
			waiting++
			if year, _ := v.Season(r.Year); !year.EndedBy(state.OpenedAt()) {
				unverified = max(unverified, over)
			}
		}
	}
	to <- prometheus.MustNewConstMetric(sourceLag, prometheus.GaugeValue, lag.Seconds())
	to <- prometheus.MustNewConstMetric(resultUnverified, prometheus.GaugeValue, unverified.Seconds())
	to <- prometheus.MustNewConstMetric(resultsWaiting, prometheus.GaugeValue, float64(waiting))
}

func (s *Service) raceWeekend() float64 {
	if s.facts.Load() == nil {
		return 0
	}
	now := s.clock.Now()
	for _, r := range s.calendar().Rounds {
		if !now.Before(r.WeekendFrom) && now.Before(r.WeekendUntil) {
			return 1
		}
	}
	return 0
}

// phaseTimer measures the phases of one build by its reports of progress.
type phaseTimer struct {
	metrics *serviceMetrics
	next    snapshots.Progress

	mu    sync.Mutex // guards the following
	phase string
	since time.Time
}

func (m *serviceMetrics) begin(next snapshots.Progress) *phaseTimer {
	return &phaseTimer{metrics: m, next: next, phase: settlePhase, since: time.Now()}
}

// progress enters the reported phase and forwards the report.
func (t *phaseTimer) progress(phase string, done, total int) {
	t.enter(phase)
	t.next.Tell(phase, done, total)
}

func (t *phaseTimer) enter(phase string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if phase == t.phase {
		return
	}
	now := time.Now()
	t.metrics.phases.WithLabelValues(t.phase).Observe(now.Sub(t.since).Seconds())
	t.phase, t.since = phase, now
}

func (t *phaseTimer) end(err error) {
	t.enter("")
	outcome := buildDone
	switch {
	case errors.Is(err, snapshots.ErrHeld):
		outcome = buildHeld
	case err != nil:
		outcome = buildFailed
	}
	t.metrics.builds.WithLabelValues(outcome).Inc()
}
