package edge

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"gridcast/edge/adminport"
	"gridcast/edge/keys"
	"gridcast/edge/limit"
	"gridcast/schemas/wire"
)

// Status is the data of /status: what an operator asks an edge first.
type Status struct {
	Ready    bool   `json:"ready"`
	NotReady string `json:"not_ready,omitzero"` // why

	Version    int64        `json:"version,omitzero"` // being served; absent: none yet
	BuiltAt    wire.Instant `json:"built_at,omitzero"`
	AgeSeconds int64        `json:"age_seconds,omitzero"` // race time since BuiltAt
	DueAt      wire.Instant `json:"due_at,omitzero"`      // when a newer version should be built
	Overdue    bool         `json:"overdue"`              // race time is past DueAt: the builder is late
	Held       bool         `json:"held"`                 // automatic builds are stopped
	HeldReason string       `json:"held_reason,omitzero"`
	Season     int          `json:"season,omitzero"` // the default year
	Ledger     *LedgerHead  `json:"ledger,omitzero"`
	NextRace   wire.Instant `json:"next_race,omitzero"` // lights out of the next race
	Refused    *Refused     `json:"refused,omitzero"`   // the latest version that was not taken

	// Missing are facts that the service should have by now and has not: of the version served, as of
	// race time.
	Missing []MissingFact `json:"missing"`
	// RefusedDocuments are those of the version served that stayed as they were before, because
	// what the builder made in their place was wrong.
	RefusedDocuments []RefusedDocument `json:"refused_documents"`
	// Facts is how the facts behind the version stand, as the builder saw them.
	Facts *wire.FactsState `json:"facts,omitzero"`

	// Downloads are those of the version served, by ascending year.
	Downloads []DownloadStatus `json:"downloads"`

	// Stale: for more than 30 seconds it has not been known whether this version is the current
	// one, for whatever reason.
	Stale bool `json:"stale"`
	// StoreProblem says why the latest look for a newer version failed.
	StoreProblem string `json:"store_problem,omitzero"`

	// Certificate is that of TLS; nil: the edge does not serve TLS itself.
	Certificate *CertificateStatus `json:"certificate,omitzero"`

	Keys     KeyStatus    `json:"keys"`
	RaceTime wire.Instant `json:"race_time"`
	Limits   string       `json:"limits"` // how requests are counted
	// LimitsFault says why they are not counted as they should be.
	LimitsFault string `json:"limits_fault,omitzero"`

	// Builder says why no versions are built in this process, where they should be: the edge
	// serves what is published.
	Builder string `json:"builder,omitzero"`
}

// MissingFact is a fact that is overdue.
type MissingFact struct {
	Code       string       `json:"code"` // such as grid_overdue
	Since      wire.Instant `json:"since"`
	SessionKey int64        `json:"session_key,omitzero"` // of the round that it is of
	Urgent     bool         `json:"urgent"`               // the pick or lights out waits for it
	Text       string       `json:"text"`
	Fix        string       `json:"mend,omitzero"` // the command that mends it; not for strangers
}

// RefusedDocument is a document that is older than the version it is in.
type RefusedDocument struct {
	Path   string `json:"path"`
	Reason string `json:"reason,omitzero"` // not for strangers
}

// DownloadStatus is the download of a season.
type DownloadStatus struct {
	Year   int    `json:"year"`
	SHA256 string `json:"sha256"`
	Size   int64  `json:"size"`  // bytes
	Ready  bool   `json:"ready"` // this edge has a copy of it, and sends it
}

// LedgerHead is the head of the record that the version was built from.
type LedgerHead struct {
	Kind string `json:"kind"` // real or simulated
	Seq  int64  `json:"seq"`
	Hash string `json:"hash"`
}

// CertificateStatus says how long the certificate in use is valid.
type CertificateStatus struct {
	Expires  wire.Instant `json:"expires"`  // real time
	Expiring bool         `json:"expiring"` // in less than 14 days, or it has expired
}

// renewBefore is how long before its end a certificate should have been renewed. Automatic
// renewal usually comes 30 days before.
const renewBefore = 14 * 24 * time.Hour

// KeyStatus says how the table of keys stands.
type KeyStatus struct {
	Loaded   bool         `json:"loaded"`
	Count    int          `json:"count"` // not revoked
	FromCopy bool         `json:"from_copy"`
	Since    wire.Instant `json:"since,omitzero"`   // when this table was loaded
	Problem  string       `json:"problem,omitzero"` // of the latest look at the store
	// AgeSeconds is how long ago, in real time, the table was last known to be that of the
	// store; absent: never since the start.
	AgeSeconds int64    `json:"age_seconds,omitzero"`
	Stale      bool     `json:"stale,omitzero"`   // that is longer ago than it ever is in good order
	Skipped    []string `json:"skipped,omitzero"` // keys left out, and why
}

// Status describes the edge as of now.
func (e *Edge) Status() Status {
	now := e.deps.RaceTime(time.Now())
	s := Status{
		RaceTime: wire.Instant(now), Limits: e.deps.Limits.String(), Keys: e.keyStatus(),
		Missing: []MissingFact{}, RefusedDocuments: []RefusedDocument{}, Downloads: []DownloadStatus{},
	}
	if err := e.Ready(); err != nil {
		s.NotReady = err.Error()
	} else {
		s.Ready = true
	}
	if source, ok := e.deps.Limits.(limit.Faulty); ok {
		s.LimitsFault = source.Fault()
	}
	if e.deps.Builder != nil {
		s.Builder = e.deps.Builder()
	}
	s.Refused, s.Stale = e.versions.refused.Load(), e.versions.stale(time.Now())
	if c := e.certificate.Load(); c != nil {
		expires := c.expires()
		s.Certificate = &CertificateStatus{Expires: wire.Instant(expires), Expiring: time.Until(expires) < renewBefore}
	}
	if problem := e.versions.problem.Load(); problem != nil {
		s.StoreProblem = *problem
	}
	set := e.versions.current()
	if set == nil {
		return s
	}
	m, pointer := &set.Version().Manifest, set.Version().Pointer
	s.Held, s.HeldReason = pointer.Held, pointer.Reason
	s.Version, s.Season = m.Version, m.CurrentSeason
	s.BuiltAt, s.DueAt = wire.Instant(m.BuiltAt), wire.Instant(m.DueAt)
	s.AgeSeconds = int64(now.Sub(m.BuiltAt) / time.Second)
	s.Overdue = !m.DueAt.IsZero() && now.After(m.DueAt)
	s.Facts = set.Facts()
	s.Ledger = &LedgerHead{Kind: m.Ledger.Kind, Seq: m.Ledger.Seq, Hash: m.Ledger.Hash}
	if round := set.Countdown().Next(now); round != nil {
		s.NextRace = round.Start
	}
	for _, b := range m.Bulk {
		s.Downloads = append(s.Downloads, DownloadStatus{b.Year, b.SHA256, b.Size, e.downloads.has(b)})
	}
	for _, fact := range m.Missing {
		if fact.OverdueAt(now) {
			s.Missing = append(s.Missing, MissingFact{fact.Code, wire.Instant(fact.Since), fact.Session, fact.Urgent, fact.Text, fact.Fix})
		}
	}
	for _, refused := range m.Refused {
		s.RefusedDocuments = append(s.RefusedDocuments, RefusedDocument(refused))
	}
	return s
}

// forStrangers leaves out what may name addresses of ours or clients, such as every error of the
// store, and what is the operator's to do: the admin listener shows it.
func (s Status) forStrangers() Status {
	if s.StoreProblem != "" {
		s.StoreProblem = "the storage does not answer"
	}
	if s.Refused != nil {
		s.Refused = &Refused{Version: s.Refused.Version, At: s.Refused.At, Reason: s.Refused.public}
	}
	if s.Keys.Problem != "" {
		s.Keys.Problem = "the keys could not be read"
	}
	s.Keys.Skipped = nil
	for i := range s.Missing {
		s.Missing[i].Fix = ""
	}
	for i := range s.RefusedDocuments { // what was rendered is not published
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
	s := KeyStatus{FromCopy: state.Copied, Since: wire.Instant(state.Loaded), Problem: state.Problem, Stale: state.Stale(now)}
	if !state.Current.IsZero() {
		s.AgeSeconds = int64(now.Sub(state.Current) / time.Second)
	}
	if table := e.keys.Table(); table != nil {
		s.Loaded, s.Count, s.Skipped = true, table.Len(), table.Skipped()
	}
	return s
}

// adminServer serves metrics, profiles and the status on the admin address, and takes word of a
// new version there. It is net/http: nothing here
// is asked often, and pprof speaks it.
func (e *Edge) adminServer() (server, error) {
	listener, err := adminport.Listen(context.Background(), e.cfg.AdminListen)
	if err != nil {
		return server{}, fmt.Errorf("listen for metrics: %w; choose another address with --admin-listen", err)
	}
	mux := adminport.Mux(e.deps.Registry)
	mux.HandleFunc("GET /status", e.showStatus)
	mux.HandleFunc("GET /usage", e.showUsage)
	mux.HandleFunc("POST /look", func(w http.ResponseWriter, _ *http.Request) {
		e.Look()
		w.WriteHeader(http.StatusNoContent)
	})
	s := adminport.Server(adminport.LocalHosts(listener.Addr(), mux))
	e.log.Info("edge shows metrics", "address", listener.Addr().String())
	return server{
		serve: func() error {
			if err := s.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
				return fmt.Errorf("serve metrics: %w", err)
			}
			return nil
		},
		shutdown: func(ctx context.Context) error {
			if err := s.Shutdown(ctx); err != nil {
				return fmt.Errorf("stop metrics: %w", err)
			}
			return nil
		},
	}, nil
}

// showStatus answers as /status of the API does, for the operator's console: the API's own
// address may be one that balances over several edges.
func (e *Edge) showStatus(w http.ResponseWriter, _ *http.Request) { e.show(w, e.Status()) }

// showUsage answers with what each key asked of this edge. It is a list and no metric: clients
// come and go, and a label would keep every one of them for ever.
func (e *Edge) showUsage(w http.ResponseWriter, _ *http.Request) { e.show(w, e.Usage()) }

// Usage lists what each key asked of this edge since it was started.
func (e *Edge) Usage() []keys.KeyUsage {
	table := e.keys.Table()
	if table == nil {
		return nil
	}
	return table.Usage()
}

// show answers with a value in the envelope of the API.
func (e *Edge) show(w http.ResponseWriter, v any) {
	body, err := wire.Marshal(wire.Wrap(v, e.deps.RaceTime(time.Now())))
	if err != nil {
		panic("BUG: admin answer: " + err.Error())
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	_, _ = w.Write(body) // a console that went away needs no answer
}
