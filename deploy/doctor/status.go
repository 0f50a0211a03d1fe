package doctor

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"gridcast/builder/almanac"
	"gridcast/builder/archive"
	"gridcast/builder/ingest"
	"gridcast/builder/ledger"
	"gridcast/builder/season"
	"gridcast/builder/settings"
	"gridcast/deploy/auditlog"
	"gridcast/deploy/console"
	"gridcast/deploy/flags"
	"gridcast/deploy/operator"
	"gridcast/deploy/terminal"
	"gridcast/deploy/view"
	"gridcast/schemas/frame"
	"gridcast/snapshots"
	"gridcast/snapshots/blob"
	"gridcast/snapshots/blob/dirblob"
)

// Status prints the state of the service, from the store and the admin ports of the edges.
type Status struct {
	flags.Storage
	flags.Clock
	Edges []string `help:"The admin ports of the edges." placeholder:"URL"`
}

// serviceState is the answer of status --json. Instants are race time.
type serviceState struct {
	Store     string                   `json:"store"`
	RaceTime  time.Time                `json:"race_time"`
	Version   int64                    `json:"version"` // 0: nothing is published
	BuiltAt   time.Time                `json:"built_at,omitzero"`
	DueAt     time.Time                `json:"due_at,omitzero"`
	Overdue   bool                     `json:"overdue"`
	Held      string                   `json:"held,omitzero"` // why publishing is held
	Ledger    ledger.Head              `json:"ledger"`
	Kind      ledger.Kind              `json:"ledger_kind"`
	Future    time.Time                `json:"ledger_future,omitzero"` // the instant of the head if it is in the future, because a clock was ahead
	NextRace  string                   `json:"next_race,omitzero"`
	LightsOut time.Time                `json:"lights_out,omitzero"`
	Frozen    bool                     `json:"pick_frozen"`
	Running   *runningState            `json:"running,omitzero"` // the race that may be observed now
	Waiting   []string                 `json:"results_waiting"`
	Differing []string                 `json:"results_differing"` // verified, and the source now differs
	Missing   []almanac.MissingFact    `json:"missing"`           // facts that are overdue
	Refused   []snapshots.RefusedEntry `json:"refused_documents"` // documents that keep the bytes of an earlier version
	Edges     []edgeState              `json:"edges"`
	Settings  settings.Settings        `json:"settings"`
	Audited   int                      `json:"audit_entries"`
	Backup    time.Time                `json:"backup_at,omitzero"`     // the latest that has not failed, in real time
	Free      int64                    `json:"free_bytes,omitzero"`    // for the folder of the store; 0: it is no folder
	Damaged   []string                 `json:"audit_damage,omitempty"` // damaged files of the audit log, or the settings

	waiting, differing []*almanac.Round
	missing            []almanac.MissingFact // summed up for people
	backupTo           string                // where the backup is
}

type runningState struct {
	Name  string    `json:"name"`
	State string    `json:"state"` // as on /live
	Lap   int       `json:"lap"`
	Heard time.Time `json:"heard,omitzero"` // the latest line of a source; zero: none has come
	Feed  string    `json:"source,omitzero"`
	Held  string    `json:"held,omitzero"` // the line that waits, and why
}

type edgeState struct {
	Name    string `json:"name"`
	Version int64  `json:"version,omitzero"`
	Problem string `json:"problem,omitzero"` // why it does not answer

	Faults []console.EdgeFault `json:"faults,omitempty"`
}

// Run prints the state of the service.
func (c *Status) Run(ctx context.Context, s *terminal.Streams, store blob.Store) error {
	archives := archive.NewStore(store)
	var reading sync.WaitGroup
	reading.Go(func() { _, _ = archives.Load(ctx) }) // it takes as long as everything else; its user has the error
	defer reading.Wait()
	l, err := ledger.Load(ctx, store, ledger.AnyKind)
	if errors.Is(err, ledger.ErrNotOpened) {
		return fmt.Errorf("%w; gridcast build makes the first version", err)
	}
	if err != nil {
		return err
	}
	st, err := c.read(ctx, store, l)
	if err != nil {
		return err
	}
	reading.Wait()
	if err := st.readFacts(ctx, store, archives, l); err != nil {
		return err
	}
	for _, r := range console.AskEdges(ctx, console.Remotes(c.Edges)) {
		st.Edges = append(st.Edges, edgeState{r.Name, r.Status.Version, r.Problem, r.Faults(st.Version)})
	}
	if !s.PrintedJSON(st) {
		printState(s, st)
	}
	return nil
}

// read reads the state of the published version, the ledger, the settings, the audit log and the disk.
func (c *Status) read(ctx context.Context, store blob.Store, l *ledger.Ledger) (*serviceState, error) {
	base, err := snapshots.LoadBase(ctx, store, nil)
	if err != nil {
		return nil, err
	}
	log, err := auditlog.Load(ctx, store)
	if err != nil {
		return nil, err
	}
	now, err := c.raceTime(l, base)
	if err != nil {
		return nil, err
	}
	last := log.LastBackup()
	st := &serviceState{
		Store: store.String(), RaceTime: now, Version: base.Pointer.Version, BuiltAt: base.Manifest.BuiltAt, DueAt: base.Manifest.DueAt,
		Overdue: base.Manifest.OverdueBy(now) > 0, Ledger: l.Head(), Kind: l.Fold().Kind(),
		Refused: append([]snapshots.RefusedEntry{}, base.Manifest.Refused...), Edges: []edgeState{},
		Audited: len(log.Entries()), Damaged: view.Each(log.Damage(), auditlog.Damage.String), Backup: last.At, backupTo: last.Subject,
	}
	if path, ok := strings.CutPrefix(store.String(), "dir:"); ok {
		if st.Free, err = dirblob.Free(path); err != nil {
			return nil, fmt.Errorf("free space of %s: %w", path, err)
		}
	}
	if at := l.Fold().At(); at.Sub(now) > ledger.MaxAhead {
		st.Future = at
	}
	if base.Pointer.Held {
		st.Held = base.Pointer.Reason
	}
	if st.Settings, err = settings.Load(ctx, store); err != nil {
		st.Damaged = append(st.Damaged, err.Error()) // processes then follow their own flags
	}
	return st, nil
}

// readFacts fills in the next race, the running one, the pending results and the overdue facts.
func (st *serviceState) readFacts(ctx context.Context, store blob.Store, archives *archive.Store, l *ledger.Ledger) error {
	facts, err := archives.Load(ctx)
	if err != nil {
		return err
	}
	if err := archives.Vouch(ctx, l); err != nil {
		return err
	}
	sources, err := ingest.LoadPollStates(ctx, store)
	if err != nil {
		return err
	}
	now := st.RaceTime
	o := operator.Operator{Store: store, Ledger: l, Facts: archives.Load, Now: func() time.Time { return now }}
	st.Running = runningNow(ctx, &o)
	v, fold := facts.Archive.AsOf(now), l.Current(now)
	st.rounds(almanac.Join(v, fold))
	st.Missing = append([]almanac.MissingFact{}, almanac.Missing(v, fold, now)...)
	st.missing = view.Missing(st.Missing, operator.Unanswered(sources))
	return nil
}

// runningNow returns the race that may be observed now; nil if there is none.
func runningNow(ctx context.Context, o *operator.Operator) *runningState {
	race, ok := o.Running(ctx)
	if !ok {
		return nil
	}
	running := &runningState{Name: race.GPName, State: string(race.State), Lap: race.Lap, Held: race.Held}
	if race.Heard != nil {
		running.Heard, running.Feed = race.Heard.Received, race.Heard.Source
	}
	return running
}

// raceTime is the time of the clock flags. Without them a simulated ledger stops at the published
// version, because only its server knows the race time.
func (c *Status) raceTime(l *ledger.Ledger, base *snapshots.Base) (time.Time, error) {
	clock, err := c.Race()
	if err != nil {
		return time.Time{}, err
	}
	if !clock.IsSystem() || l.Fold().Kind() == ledger.Real {
		return c.Instant(clock), nil
	}
	return season.Later(l.Fold().At(), base.Manifest.BuiltAt), nil
}

func (st *serviceState) rounds(a *almanac.Almanac) {
	_, st.waiting = view.Waiting(a)
	st.differing = a.Differing()
	name := func(r *almanac.Round) string { return fmt.Sprintf("%d %s", r.Session, r.Facts.Name) }
	st.Waiting, st.Differing = view.Each(st.waiting, name), view.Each(st.differing, name)
	if coming := a.Coming(); len(coming) > 0 {
		st.NextRace, st.LightsOut, st.Frozen = coming[0].Facts.Name, coming[0].Start, coming[0].Pick != nil
	}
}

// printState prints the state as a table: how the service stands, then everything that waits or is wrong.
func printState(s *terminal.Streams, st *serviceState) {
	t := &table{}
	t.row("release", "gridcast %s", s.Version)
	t.row("store", "%s", st.Store)
	clock := "time"
	if st.Kind != ledger.Real {
		clock = "race time"
	}
	t.row(clock, "%s", terminal.Time(st.RaceTime))
	t.published(st)
	t.races(st)
	t.waiting(st)
	for _, e := range st.Edges {
		if e.Problem == "" {
			t.row("edge "+e.Name, "serves version %d", e.Version)
		}
		for _, fault := range e.Faults {
			t.row("EDGE "+e.Name, "%s (%s)", fault.Text, fault.Fix)
		}
	}
	for _, setting := range operator.SettingsOf(st.Settings) {
		t.row(setting.Name, "%s", setting.Value)
	}
	if st.Backup.IsZero() {
		t.row("last backup", "never (gridcast store backup DIR, every night)")
	} else {
		t.row("last backup", "%s, to %s", terminal.Time(st.Backup), st.backupTo)
	}
	if st.Free > 0 {
		t.row("disk", "%.1f GB free for the store", float64(st.Free)/1e9)
	}
	t.row("operators", "%d entries in the audit log", st.Audited)
	for _, d := range st.Damaged {
		t.row("DAMAGED", "%s", d)
	}
	s.PrintTable([]any{"", ""}, t.rows)
}

func (t *table) published(st *serviceState) {
	published := "nothing yet"
	if st.Version > 0 {
		published = fmt.Sprintf("version %d, built for %s", st.Version, terminal.Time(st.BuiltAt))
	}
	switch {
	case st.Held != "":
		published += "; publishing is held: " + st.Held + " (gridcast build --release --reason WHY ends it)"
	case st.Overdue:
		published += "; overdue since " + terminal.Time(st.DueAt) + " (is the scheduler running?)"
	}
	t.row("published", "%s", published)
	head := fmt.Sprintf("%s, file %d", st.Kind, st.Ledger.Seq)
	if !st.Future.IsZero() {
		head += "; its head is of " + terminal.Time(st.Future) + ", in the future: a clock was ahead (nothing waits for it)"
	}
	t.row("ledger", "%s", head)
}

func (t *table) races(st *serviceState) {
	next := "none is known"
	if st.NextRace != "" {
		next = fmt.Sprintf("%s, lights out %s", st.NextRace, terminal.Time(st.LightsOut))
		if st.Frozen {
			next += ", pick frozen"
		}
	}
	t.row("next race", "%s", next)
	if r := st.Running; r != nil {
		heard := "no line of a source has come"
		if !r.Heard.IsZero() {
			heard = fmt.Sprintf("last line %s ago, from %s", frame.LongTime(st.RaceTime.Sub(r.Heard)), r.Feed)
		}
		if r.Held != "" {
			heard += "; " + r.Held
		}
		t.row("running", "%s, %s at lap %d; %s", r.Name, r.State, r.Lap, heard)
	}
}

type table struct{ rows [][]any }

func (t *table) row(name, format string, args ...any) {
	t.rows = append(t.rows, []any{name, fmt.Sprintf(format, args...)})
}

// waiting adds the missing facts, the refused documents and the results that wait for a person.
func (t *table) waiting(st *serviceState) {
	for _, m := range st.missing {
		name := "missing"
		if m.Urgent {
			name = "MISSING"
		}
		t.row(name, "%s, overdue since %s (%s)", m.Text, terminal.Time(m.Since), m.Fix)
	}
	for _, d := range st.Refused[:min(len(st.Refused), view.Shown)] {
		t.row("OUT OF DATE", "%s (correct that fact, or gridcast archive use, then gridcast rebuild)", d)
	}
	if more := len(st.Refused) - view.Shown; more > 0 {
		t.row("OUT OF DATE", "%d more documents (--json lists them)", more)
	}
	t.results(st.waiting, st.Waiting, "results wait", "gridcast results verify --all", "result waits", "gridcast results verify")
	t.results(st.differing, st.Differing, "source differs", "gridcast results list, show and correct", "source differs", "gridcast results show, and correct")
}

// results adds results that wait: each by its name, or many as one row.
func (t *table) results(rounds []*almanac.Round, names []string, many, command, one, commandOfOne string) {
	if len(rounds) > view.Shown {
		t.row(many, "%s (%s)", view.Results(rounds), command)
		return
	}
	for _, name := range names {
		t.row(one, "%s (%s)", name, commandOfOne)
	}
}
