package edge

import (
	"net/http"
	"time"

	"gridcast/edge/adminport"
	"gridcast/edge/keys"
	"gridcast/schemas/wire"
	"gridcast/snapshots"
)

// StatusDocument is the content of /status, the first page for an operator with a question.
type StatusDocument struct {
	Ready    bool   `json:"ready"`
	NotReady string `json:"not_ready,omitzero"` // the reason

	Release string `json:"release,omitzero"` // of the program

	Version    int64             `json:"version,omitzero"` // being served; absent: none yet
	BuiltAt    wire.Instant      `json:"built_at,omitzero"`
	AgeSeconds int64             `json:"age_seconds,omitzero"` // race time since BuiltAt
	DueAt      wire.Instant      `json:"due_at,omitzero"`      // a newer version should be built then
	Overdue    bool              `json:"overdue"`              // race time is past DueAt: the builder is late
	Held       bool              `json:"held"`                 // automatic builds are stopped
	HeldReason string            `json:"held_reason,omitzero"`
	Season     int               `json:"season,omitzero"`    // of the next race
	Ledger     *snapshots.Ledger `json:"ledger,omitzero"`    // the head of the ledger behind the version
	NextRace   wire.Instant      `json:"next_race,omitzero"` // lights out of the next race
	Refused    *Refused          `json:"refused,omitzero"`   // the latest version that the edge refused

	// Missing lists the facts that the service should have by now: of the served version, at
	// race time.
	Missing []MissingFact `json:"missing"`
	// RefusedDocuments are the documents of the served version that kept their earlier content, because
	// the builder's new content failed its check.
	RefusedDocuments []RefusedDocument `json:"refused_documents"`
	// Facts is the state of the facts behind the version, as the builder saw it.
	Facts *wire.FactsState `json:"facts,omitzero"`

	// Downloads are the downloads that the edge has on its disk, by ascending year.
	Downloads []DownloadStatus `json:"downloads"`

	// Stale: for more than 30 seconds the edge has not confirmed that this version is the current
	// one, for any reason, or GoodUntil is past.
	Stale bool `json:"stale"`
	// GoodUntil is the real time until which the publisher has signed that this version is current. An edge
	// that trusts any version has none.
	GoodUntil wire.Instant `json:"good_until,omitzero"`
	Pinned    bool         `json:"pinned,omitzero"` // the edge serves this version alone
	// StoreProblem is the fault of the latest poll for a newer version.
	StoreProblem string `json:"store_problem,omitzero"`

	// Certificate describes the TLS certificate; nil: the edge has no TLS.
	Certificate *CertificateStatus `json:"certificate,omitzero"`

	// Sandbox is the state of the simulated world; nil: the store has none.
	Sandbox *SandboxStatus `json:"sandbox,omitzero"`

	Keys     KeyStatus    `json:"keys"`
	RaceTime wire.Instant `json:"race_time"`
	Limits   string       `json:"limits"` // the way of counting
	// LimitsFault is the reason why counting does not work as configured.
	LimitsFault string `json:"limits_fault,omitzero"`

	// Builder is the fault of the builder in this process. The edge still
	// serves the published version.
	Builder string `json:"builder,omitzero"`
}

// SandboxStatus is the state of the simulated world, and its timetable.
type SandboxStatus struct {
	Version       int64        `json:"version,omitzero"` // being served; absent: none yet
	AgeSeconds    int64        `json:"age_seconds"`      // real time since it was built
	BehindSeconds int64        `json:"behind_seconds"`   // real time since a newer version was due; 0: none is
	Stale         bool         `json:"stale"`            // as of the edge
	Refused       *Refused     `json:"refused,omitzero"`
	Key           string       `json:"key,omitzero"` // for everybody, limited by the client's address
	RaceTime      wire.Instant `json:"race_time,omitzero"`
	Now           wire.Instant `json:"now"`            // the same moment in real time
	Speed         float64      `json:"speed,omitzero"` // race seconds in a real second
	Cycle         int64        `json:"cycle,omitzero"`
	// Weekends are those that run and follow, in the order of their beginning.
	Weekends []SandboxWeekend `json:"weekends"`
}

// SandboxWeekend is a weekend in the timetable of a sandbox, in real time.
type SandboxWeekend struct {
	Kind      string       `json:"kind"`
	BeginsAt  wire.Instant `json:"begins_at"`
	LightsOut wire.Instant `json:"lights_out"`
	EndsAt    wire.Instant `json:"ends_at"`
}

// MissingFact is a fact that is overdue.
type MissingFact struct {
	Code       string       `json:"code"` // such as grid_overdue
	Since      wire.Instant `json:"since"`
	SessionKey int64        `json:"session_key,omitzero"` // of its round
	Urgent     bool         `json:"urgent"`               // the pick or lights out depends on it
	Text       string       `json:"text"`
	Fix        string       `json:"mend,omitzero"` // the command that fixes it; for operators only
}

// RefusedDocument is a document that is older than the version it is in.
type RefusedDocument struct {
	Path   string `json:"path"`
	Reason string `json:"reason,omitzero"` // for operators only
}

// DownloadStatus is the download of a season.
type DownloadStatus struct {
	Year   int    `json:"year"`
	SHA256 string `json:"sha256"`
	Size   int64  `json:"size"`  // bytes
	Ready  bool   `json:"ready"` // it has the documents of the served version; the edge sends an earlier one until that is made
}

// CertificateStatus is the validity of the certificate in use.
type CertificateStatus struct {
	Expires  wire.Instant `json:"expires"`  // real time
	Expiring bool         `json:"expiring"` // in less than 14 days, or it has expired
}

// renewBefore is the time before its end at which a certificate should be renewed. Automatic
// renewal usually comes 30 days before.
const renewBefore = 14 * 24 * time.Hour

// KeyStatus is the state of the table of keys.
type KeyStatus struct {
	Loaded   bool         `json:"loaded"`
	Count    int          `json:"count"` // not revoked
	FromCopy bool         `json:"from_copy"`
	Since    wire.Instant `json:"since,omitzero"`   // when this table was loaded
	Problem  string       `json:"problem,omitzero"` // of the latest poll of the store
	Behind   string       `json:"behind,omitzero"`  // why the list is older than the publisher has signed
	// AgeSeconds is the real time since the table was last known to be the
	// store's; absent: never since the start.
	AgeSeconds int64    `json:"age_seconds,omitzero"`
	Stale      bool     `json:"stale,omitzero"`   // older than it ever is without a fault, or Behind
	Skipped    []string `json:"skipped,omitzero"` // refused keys, with the reason
}

// Status describes the edge as of now, with the real world.
func (e *Edge) Status() StatusDocument { return e.status(e.real) }

// status describes the edge with one of its worlds.
func (e *Edge) status(w *world) StatusDocument {
	set := w.current()
	now := e.raceTime(set, time.Now())
	s := StatusDocument{
		Sandbox:  e.sandboxStatus(),
		RaceTime: wire.Instant(now), Limits: e.deps.Limits.String(), LimitsFault: e.deps.Limits.Fault(), Keys: e.keyStatus(),
		Release: e.deps.Release, Missing: []MissingFact{}, RefusedDocuments: []RefusedDocument{}, Downloads: []DownloadStatus{},
	}
	if err := e.Ready(); err != nil {
		s.NotReady = err.Error()
	} else {
		s.Ready = true
	}
	if e.deps.Builder != nil {
		s.Builder = e.deps.Builder()
	}
	s.Refused, s.Stale, s.Pinned = w.refused.Load(), w.stale(time.Now()), e.cfg.Pin > 0 && !w.sandbox
	if until := w.goodUntil.Load(); until != nil {
		s.GoodUntil = wire.Instant(*until)
	}
	if c := e.certificate.Load(); c != nil {
		expires := c.pair.Load().Leaf.NotAfter
		s.Certificate = &CertificateStatus{Expires: wire.Instant(expires), Expiring: time.Until(expires) < renewBefore}
	}
	if problem := w.problem.Load(); problem != nil {
		s.StoreProblem = *problem
	}
	if set == nil {
		return s
	}
	m, pointer := &set.Version().Manifest, set.Version().Pointer
	s.Held, s.HeldReason = pointer.Held, pointer.Reason
	s.Version, s.Season = m.Version, m.CurrentSeason
	s.BuiltAt, s.DueAt = wire.Instant(m.BuiltAt), wire.Instant(m.DueAt)
	s.AgeSeconds = int64(now.Sub(m.BuiltAt) / time.Second)
	s.Overdue = m.OverdueBy(now) > 0
	s.Facts = set.Facts()
	s.Ledger = &m.Ledger
	if round := set.Countdown().Next(now); round != nil {
		s.NextRace = round.Start
	}
	s.Downloads = w.downloads.status()
	for _, fact := range m.Missing {
		if fact.OverdueAt(now) {
			s.Missing = append(s.Missing, MissingFact{fact.Code, wire.Instant(fact.Since), fact.Session, fact.Urgent, fact.Text, fact.Fix})
		}
	}
	for _, refused := range m.Refused {
		s.RefusedDocuments = append(s.RefusedDocuments, RefusedDocument{refused.Path, refused.Reason})
	}
	return s
}

// sandboxStatus describes the simulated world; nil: the store has none.
func (e *Edge) sandboxStatus() *SandboxStatus {
	set, now := e.sandbox.current(), time.Now()
	s := &SandboxStatus{
		Stale: e.sandbox.stale(now), Refused: e.sandbox.refused.Load(), Now: wire.Instant(now.UTC()), Weekends: []SandboxWeekend{},
	}
	if set == nil {
		if s.Refused == nil {
			return nil
		}
		return s
	}
	m, race := &set.Version().Manifest, set.Clock()
	s.Key = keys.Public
	s.Version, s.RaceTime, s.Speed = m.Version, wire.Instant(race.Race(now)), race.Speed()
	s.AgeSeconds = int64(now.Sub(race.Real(m.BuiltAt)) / time.Second)
	s.BehindSeconds = int64(m.OverdueBy(race.Race(now)).Seconds() / race.Speed())
	if m.Sandbox != nil {
		s.Cycle = m.Sandbox.Cycle
		for _, w := range append([]snapshots.SandboxWeekend{m.Sandbox.Weekend}, m.Sandbox.Next...) {
			s.Weekends = append(s.Weekends, SandboxWeekend{w.Kind, wire.Instant(w.BeginsAt), wire.Instant(w.LightsOut), wire.Instant(w.EndsAt)})
		}
	}
	return s
}

// forStrangers removes everything that may name our addresses or clients, such as every error of the
// store, and the operator's commands; the admin listener shows them.
func (s StatusDocument) forStrangers() StatusDocument {
	if s.StoreProblem != "" {
		s.StoreProblem = "the storage does not answer"
	}
	if s.Refused != nil {
		s.Refused = &Refused{Version: s.Refused.Version, At: s.Refused.At, Reason: s.Refused.public}
	}
	if s.Sandbox != nil && s.Sandbox.Refused != nil {
		refused := s.Sandbox.Refused
		s.Sandbox.Refused = &Refused{Version: refused.Version, At: refused.At, Reason: refused.public}
	}
	if s.Keys.Problem != "" {
		s.Keys.Problem = "the keys could not be read"
	}
	s.Keys.Skipped = nil
	for i := range s.Missing {
		s.Missing[i].Fix = ""
	}
	for i := range s.RefusedDocuments { // the refused content is not published
		s.RefusedDocuments[i].Reason = ""
	}
	if s.Builder != "" {
		s.Builder = "versions are not built"
	}
	return s
}

func (e *Edge) keyStatus() KeyStatus {
	state := e.keys.Health()
	now := time.Now()
	s := KeyStatus{FromCopy: state.Copied, Since: wire.Instant(state.Loaded), Problem: state.Problem, Behind: state.Behind, Stale: state.Stale(now)}
	if !state.Current.IsZero() {
		s.AgeSeconds = int64(now.Sub(state.Current) / time.Second)
	}
	if table := e.keys.Table(); table != nil {
		s.Loaded, s.Count, s.Skipped = true, table.Len(), table.Skipped()
	}
	return s
}

// adminPages shows metrics, profiles and the status on the admin port, and accepts notifications of
// a new version there.
func (e *Edge) adminPages() http.Handler {
	mux := adminport.Mux(e.deps.Registry)
	// As /status of the API, whose own address may balance over several edges.
	mux.HandleFunc("GET /status", func(w http.ResponseWriter, _ *http.Request) { e.show(w, e.Status()) })
	// A list and no metric, because clients come and go, and a label would keep every one of them for ever.
	mux.HandleFunc("GET /usage", func(w http.ResponseWriter, _ *http.Request) { e.show(w, e.Usage()) })
	mux.HandleFunc("POST /look", func(w http.ResponseWriter, _ *http.Request) {
		e.Look()
		w.WriteHeader(http.StatusNoContent)
	})
	return mux
}

// UsageDocument is the content of /usage on the admin port: the counters of this edge since its start.
type UsageDocument struct {
	// Instance is random and differs between two starts, because a start sets all counters to 0.
	Instance string `json:"instance"`
	Answer   int64  `json:"answer"` // the number of this answer of the instance; no counter falls from one to the next
	// UptimeMS is the real time since the start, in milliseconds. No change of a clock moves it.
	UptimeMS int64           `json:"uptime_ms"`
	Keys     []keys.KeyUsage `json:"keys"`
}

// Usage returns each key's usage of this edge since its start.
func (e *Edge) Usage() UsageDocument {
	e.counting.Lock()
	defer e.counting.Unlock()
	e.answered++
	document := UsageDocument{Instance: e.instance, Answer: e.answered, UptimeMS: time.Since(e.began).Milliseconds()}
	if table := e.keys.Table(); table != nil {
		document.Keys = table.Usage()
	}
	return document
}

// success returns the body of a success with data that are made for this request.
func (e *Edge) success(data any) []byte { return marshal(wire.Wrap(data, e.deps.RaceTime(time.Now()))) }

// show answers with a value in the envelope of the API.
func (e *Edge) show(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	_, _ = w.Write(e.success(v)) // the console may have gone away
}
