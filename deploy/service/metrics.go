package service

import (
	"cmp"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"gridcast/builder"
	"gridcast/builder/almanac"
	"gridcast/builder/assemble"
	"gridcast/builder/ingest"
	"gridcast/builder/ledger"
	"gridcast/builder/live"
	"gridcast/builder/running"
	"gridcast/builder/season"
	"gridcast/deploy/operator"
	"gridcast/schemas/wire"
	"gridcast/snapshots"
	"gridcast/snapshots/blob/dirblob"
)

// serviceMetrics are the metrics of builds, and gauges that read the present state when scraped.
type serviceMetrics struct {
	phases *prometheus.HistogramVec
	builds *prometheus.CounterVec
	lines  *prometheus.CounterVec // of sources of running races
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
	m.lines = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "gridcast_live_lines_total", Help: "Lines that this process was sent about running races, by outcome: stored, repeated, held, refused.",
	}, []string{"outcome"})
	registry.MustRegister(m.phases, m.builds, m.lines)
	for _, outcome := range []string{operator.LineStored, operator.LineRepeated, operator.LineHeld, operator.LineRefused} {
		m.lines.WithLabelValues(outcome)
	}
	for _, phase := range buildPhases {
		m.phases.WithLabelValues(phase)
	}
	for _, outcome := range []string{buildDone, buildHeld, buildFailed} {
		m.builds.WithLabelValues(outcome)
	}
	registry.MustRegister(gauges{s})
	return m
}

// gauges are the metrics of the present state, from memory. Each scrape reads the state once.
type gauges struct{ s *Service }

var described = func() map[string]*prometheus.Desc {
	all := make(map[string]*prometheus.Desc)
	for _, of := range []struct{ name, help, label string }{
		{"published_version", "The version that is published, as of the last build.", ""},
		{"publishing_held", "1 while an operator holds publishing, as of the last build.", ""},
		{"refused_documents", "Documents that the last build left as they were, because what it rendered failed its check.", ""},
		{"ledger_head", "The last file of the ledger.", ""},
		{"backup_age_seconds", "Real time since the latest backup of the store that has not failed; absent: there was none.", ""},
		{"store_free_bytes", "Free bytes for the folder of the store; absent: the store is no folder.", ""},
		{"race_weekend", "1 from 72 hours before a race to 24 hours after its start, in race time.", ""},

		{"source_silent_seconds", "Race time since the last good answer of the source that has failed for longest; 0: all answer.", ""},
		{"source_failures", "How often in a row a source has given no answer that can be used.", "source"},
		{"source_disagreements", "Parts of rounds for which a source has other values than those in use.", "source"},
		{"source_answered_seconds", "Race time since the last answer of a source that can be used; absent: there was none.", "source"},
		{"source_lost", "Published seasons, verified results and drivers that a source had and has no longer; they stay published.", "source"},
		{"source_waiting", "Changes of a source that wait for a person.", "source"},
		{"facts_waiting", "Changes that wait for a person, by the gate that holds them; gridcast source check lists them.", "gate"},

		{"missing_facts", "Facts that are overdue, by kind; gridcast status says which, and the command that mends them.", "code"},
		{"missing_facts_urgent", "Overdue facts that a pick or lights out waits for.", ""},
		{"missing_fact_seconds", "Race time since the longest overdue fact of a kind was expected; 0: none is overdue.", "code"},
		{"source_lag_seconds", "Race time since the oldest result that the source should have and has not; 0: it has all.", ""},
		{"result_unverified_seconds", "Race time since the end of the oldest race whose result waits for verification; 0: none does. Seasons that ended before the ledger was opened do not count.", ""},
		{"results_waiting", "Results of all seasons that wait for verification.", ""},

		{"rounds", "Rounds of the current season whose race has begun, by how their result stands: awaited, provisional, verified, revised.", "result"},
		{"picks", "Rounds of the current season with a pick, by what it rests on: grid, qualifying, form.", "basis"},
		{"facts_disputed", "Published parts of rounds for which a source has other values.", ""},
		{"facts_noncommercial", "Published parts of rounds that rest on a source with non-commercial terms.", ""},
		{"live_observation_age_seconds", "Race time since a running race was observed last, or since its lights out; absent: no race runs, or no source is expected.", ""},
		{"live_stale_seconds", "Race time for which /live has been stale in a running race; 0: it is not, or no source is expected.", ""},
		{"next_change_seconds", "Race time until the published facts are next expected to change; below 0: overdue.", ""},
	} {
		all[of.name] = prometheus.NewDesc("gridcast_"+of.name, of.help, strings.Fields(of.label), nil)
	}
	return all
}()

// Describe implements prometheus.Collector.
func (gauges) Describe(to chan<- *prometheus.Desc) {
	for _, desc := range described {
		to <- desc
	}
}

type setter func(name string, value float64, label ...string)

// Collect implements prometheus.Collector.
func (g gauges) Collect(to chan<- prometheus.Metric) {
	set := func(name string, value float64, label ...string) {
		to <- prometheus.MustNewConstMetric(described[name], prometheus.GaugeValue, value, label...)
	}
	now := g.s.clock.Now()
	g.s.collectSources(set, now)
	g.s.collectMissing(set, now)
	g.s.collectResults(set, now)
	g.s.collectRace(set, now)
	set("refused_documents", float64(g.s.refused.Load()))
	set("ledger_head", float64(g.s.builder.Ledger.Head().Seq))
	set("race_weekend", g.s.raceWeekend(now))
	if log := g.s.audit.Load(); log != nil {
		if last := log.LastBackup(); !last.At.IsZero() {
			set("backup_age_seconds", time.Since(last.At).Seconds())
		}
	}
	if path, ok := strings.CutPrefix(g.s.builder.Store.String(), "dir:"); ok {
		if free, err := dirblob.Free(path); err == nil {
			set("store_free_bytes", float64(free))
		}
	}
	version, held := int64(0), 0.0
	if base := g.s.published.Load(); base != nil {
		version = base.Pointer.Version
		if base.Pointer.Held {
			held = 1
		}
		collectPublished(set, now, base.Manifest.State)
	}
	set("published_version", float64(version))
	set("publishing_held", held)
}

func (s *Service) collectSources(set setter, now time.Time) {
	var states []ingest.PollState
	if s.sources != nil {
		states = s.sources.PollStates()
	}
	var longest time.Duration // since the last good answer of a source that fails
	waiting := make(map[assemble.Gate]int)
	for _, state := range states {
		if state.Failures > 0 {
			silent := now.Sub(state.Answered)
			if state.Answered.IsZero() { // it never answered: estimate by the number of polls
				silent = time.Duration(state.Failures) * failingPollEvery
			}
			longest = max(longest, silent)
		}
		if !state.Answered.IsZero() {
			set("source_answered_seconds", now.Sub(state.Answered).Seconds(), state.Source)
		}
		set("source_failures", float64(state.Failures), state.Source)
		set("source_disagreements", float64(len(state.Disputed)), state.Source)
		set("source_lost", float64(len(state.Lost)), state.Source)
		set("source_waiting", float64(len(state.Held)), state.Source)
		for _, c := range state.Held {
			for _, gate := range assemble.Gates() {
				if slices.ContainsFunc(c.Refused, func(r assemble.Refusal) bool { return r.Gate == gate }) {
					waiting[gate]++
				}
			}
		}
	}
	set("source_silent_seconds", longest.Seconds())
	for _, gate := range assemble.Gates() {
		set("facts_waiting", float64(waiting[gate]), string(gate))
	}
}

// failingPollEvery is the interval at which a source is polled that has failed for long.
const failingPollEvery = 30 * time.Minute

func (s *Service) collectMissing(set setter, now time.Time) {
	count, longest, urgent := make(map[almanac.MissingCode]int), make(map[almanac.MissingCode]time.Duration), 0
	for _, fact := range s.Missing() {
		count[fact.Code]++
		longest[fact.Code] = max(longest[fact.Code], now.Sub(fact.Since))
		if fact.Urgent {
			urgent++
		}
	}
	for _, code := range almanac.MissingCodes {
		set("missing_facts", float64(count[code]), string(code))
		set("missing_fact_seconds", longest[code].Seconds(), string(code))
	}
	set("missing_facts_urgent", float64(urgent))
}

// Missing lists the overdue facts of the archive.
func (s *Service) Missing() []almanac.MissingFact {
	facts := s.facts.Load()
	if facts == nil {
		return nil
	}
	now := s.clock.Now()
	return append(s.builder.SettingsMissing(now), almanac.Missing(facts.Archive.AsOf(now), s.builder.Ledger.Current(now), now)...)
}

// collectResults sets the gauges of the results that a source or an operator owes.
func (s *Service) collectResults(set setter, now time.Time) {
	var lag, unverified time.Duration
	waiting := 0
	if facts := s.facts.Load(); facts != nil {
		v, state := facts.Archive.AsOf(now), s.builder.Ledger.Current(now)
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
	set("source_lag_seconds", lag.Seconds())
	set("result_unverified_seconds", unverified.Seconds())
	set("results_waiting", float64(waiting))
}

// collectPublished sets the gauges of the facts behind the published version, as /status shows them.
func collectPublished(set setter, now time.Time, published json.RawMessage) {
	var state wire.FactsState
	if published == nil || json.Unmarshal(published, &state) != nil {
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
		set("rounds", float64(n), result)
	}
	for basis, n := range picks {
		set("picks", float64(n), basis)
	}
	parts := 0
	for _, source := range state.Sources {
		parts += source.Disagreements
	}
	set("facts_disputed", float64(parts))
	set("facts_noncommercial", float64(len(state.NonCommercial)))
	if next := time.Time(state.NextChange); !next.IsZero() {
		set("next_change_seconds", next.Sub(now).Seconds())
	}
}

// collectRace sets the gauges of a running race. A race runs from lights out until its end is observed or its result is
// verified.
func (s *Service) collectRace(set setter, now time.Time) {
	stale := 0.0
	if facts := s.facts.Load(); facts != nil {
		state := s.builder.Ledger.Current(now)
		r := running.Round(facts.Archive.AsOf(now), state)
		tape := new(live.Tape)
		if r != nil {
			tape = cmp.Or(s.builder.Observed().Known(r.Session), tape)
		}
		if r != nil && r.Result == nil && !now.Before(r.Start) && !now.After(running.WatchedUntil(r, tape)) && (s.feed || tape.Heard() != nil) {
			race := running.RaceOf(r, state, tape)
			seen, until := season.Later(r.Start, race.Seen), race.ValidUntil()
			if until.IsZero() {
				until = r.Start.Add(live.Fresh)
			}
			if race.State != live.Ended {
				set("live_observation_age_seconds", now.Sub(seen).Seconds())
				stale = max(0, now.Sub(until).Seconds())
			}
		}
	}
	set("live_stale_seconds", stale)
}

func (s *Service) raceWeekend(now time.Time) float64 {
	if s.facts.Load() == nil {
		return 0
	}
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

func (t *phaseTimer) progress(phase string, done, total int) {
	t.enter(phase)
	t.next.Report(phase, done, total)
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
