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

// runningState is a race that may be observed now.
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
	var (
		facts    archive.Stored
		factsErr error
		reading  sync.WaitGroup // of the facts, which takes as long as everything else
	)
	reading.Go(func() { facts, factsErr = archives.Load(ctx) })
	defer reading.Wait()
	l, err := ledger.Load(ctx, store, ledger.AnyKind)
	if errors.Is(err, ledger.ErrNotOpened) {
		return fmt.Errorf("%w; gridcast build makes the first version", err)
	}
	if err != nil {
		return err
	}
	base, err := snapshots.LoadBase(ctx, store, nil)
	if err != nil {
		return err
	}
	log, err := auditlog.Load(ctx, store)
	if err != nil {
		return err
	}
	now, err := c.raceTime(l, base)
	if err != nil {
		return err
	}
	st := serviceState{
		Store: store.String(), RaceTime: now, Version: base.Pointer.Version, BuiltAt: base.Manifest.BuiltAt, DueAt: base.Manifest.DueAt,
		Overdue: base.Manifest.OverdueBy(now) > 0,
		Ledger:  l.Head(), Kind: l.Fold().Kind(), Missing: []almanac.MissingFact{}, Refused: append([]snapshots.RefusedEntry{}, base.Manifest.Refused...), Edges: []edgeState{}, Audited: len(log.Entries()),
	}
	last := log.LastBackup()
	st.Backup, st.backupTo = last.At, last.Subject
	if path, ok := strings.CutPrefix(store.String(), "dir:"); ok {
		if st.Free, err = dirblob.Free(path); err != nil {
			return fmt.Errorf("free space of %s: %w", path, err)
		}
	}
	if at := l.Fold().At(); at.Sub(now) > ledger.MaxAhead {
		st.Future = at
	}
	st.Damaged = view.Each(log.Damage(), auditlog.Damage.String)
	if base.Pointer.Held {
		st.Held = base.Pointer.Reason
	}
	if st.Settings, err = settings.Load(ctx, store); err != nil {
		st.Damaged = append(st.Damaged, err.Error()) // processes then follow their own flags
	}
	if reading.Wait(); factsErr != nil {
		return factsErr
	}
	if err := archives.Vouch(ctx, l); err != nil {
		return err
	}
	o := operator.Operator{Store: store, Ledger: l, Facts: archives.Load, Now: func() time.Time { return now }}
	if race, ok := o.Running(ctx); ok {
		st.Running = &runningState{Name: race.GPName, State: string(race.State), Lap: race.Lap, Held: race.Held}
		if race.Heard != nil {
			st.Running.Heard, st.Running.Feed = race.Heard.Received, race.Heard.Source
		}
	}
	st.rounds(almanac.Join(facts.Archive.AsOf(now), l.Current(now)))
	missing := almanac.Missing(facts.Archive.AsOf(now), l.Current(now), now)
	sources, err := ingest.LoadPollStates(ctx, store)
	if err != nil {
		return err
	}
	st.missing = view.Missing(missing, operator.Unanswered(sources))
	st.Missing = append(st.Missing, missing...)
	for _, r := range console.AskEdges(ctx, console.Remotes(c.Edges)) {
		st.Edges = append(st.Edges, edgeState{r.Name, r.Status.Version, r.Problem, r.Faults(st.Version)})
	}
	if s.PrintedJSON(st) {
		return nil
	}
	printState(s, st)
	return nil
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

// rounds fills in the next race and the pending results.
func (st *serviceState) rounds(a *almanac.Almanac) {
	_, st.waiting = view.Waiting(a)
	st.differing = a.Differing()
	name := func(r *almanac.Round) string { return fmt.Sprintf("%d %s", r.Session, r.Facts.Name) }
	st.Waiting, st.Differing = view.Each(st.waiting, name), view.Each(st.differing, name)
	if coming := a.Coming(); len(coming) > 0 {
		st.NextRace, st.LightsOut, st.Frozen = coming[0].Facts.Name, coming[0].Start, coming[0].Pick != nil
	}
}

func printState(s *terminal.Streams, st serviceState) {
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
	next := "none is known"
	if st.NextRace != "" {
		next = fmt.Sprintf("%s, lights out %s", st.NextRace, terminal.Time(st.LightsOut))
		if st.Frozen {
			next += ", pick frozen"
		}
	}
	head := fmt.Sprintf("%s, file %d", st.Kind, st.Ledger.Seq)
	if !st.Future.IsZero() {
		head += "; its head is of " + terminal.Time(st.Future) + ", in the future: a clock was ahead (nothing waits for it)"
	}
	timeName := "race time"
	if st.Kind == ledger.Real {
		timeName = "time"
	}
	rows := [][]any{
		{"release", "gridcast " + s.Version},
		{"store", st.Store},
		{timeName, terminal.Time(st.RaceTime)},
		{"published", published},
		{"ledger", head},
		{"next race", next},
	}
	if r := st.Running; r != nil {
		text := fmt.Sprintf("%s, %s at lap %d; no line of a source has come", r.Name, r.State, r.Lap)
		if !r.Heard.IsZero() {
			text = fmt.Sprintf("%s, %s at lap %d; last line %s ago, from %s", r.Name, r.State, r.Lap, frame.LongTime(st.RaceTime.Sub(r.Heard)), r.Feed)
		}
		if r.Held != "" {
			text += "; " + r.Held
		}
		rows = append(rows, []any{"running", text})
	}
	for _, m := range st.missing {
		what := "missing"
		if m.Urgent {
			what = "MISSING"
		}
		rows = append(rows, []any{what, fmt.Sprintf("%s, overdue since %s (%s)", m.Text, terminal.Time(m.Since), m.Fix)})
	}
	for i, d := range st.Refused {
		if i == view.Shown {
			rows = append(rows, []any{"OUT OF DATE", fmt.Sprintf("%d more documents (--json lists them)", len(st.Refused)-i)})
			break
		}
		rows = append(rows, []any{"OUT OF DATE", fmt.Sprintf("%s (correct that fact, or gridcast archive use, then gridcast rebuild)", d)})
	}
	if len(st.waiting) > view.Shown {
		rows = append(rows, []any{"results wait", view.Results(st.waiting) + " (gridcast results verify --all)"})
	} else {
		for _, w := range st.Waiting {
			rows = append(rows, []any{"result waits", w + " (gridcast results verify)"})
		}
	}
	if len(st.differing) > view.Shown {
		rows = append(rows, []any{"source differs", view.Results(st.differing) + " (gridcast results list, show and correct)"})
	} else {
		for _, d := range st.Differing {
			rows = append(rows, []any{"source differs", d + " (gridcast results show, and correct)"})
		}
	}
	for _, e := range st.Edges {
		if e.Problem == "" {
			rows = append(rows, []any{"edge " + e.Name, fmt.Sprintf("serves version %d", e.Version)})
		}
		for _, fault := range e.Faults {
			rows = append(rows, []any{"EDGE " + e.Name, fmt.Sprintf("%s (%s)", fault.Text, fault.Fix)})
		}
	}
	for _, setting := range operator.SettingsOf(st.Settings) {
		rows = append(rows, []any{setting.Name, setting.Value})
	}
	backup := "never (gridcast store backup DIR, every night)"
	if !st.Backup.IsZero() {
		backup = fmt.Sprintf("%s, to %s", terminal.Time(st.Backup), st.backupTo)
	}
	rows = append(rows, []any{"last backup", backup})
	if st.Free > 0 {
		rows = append(rows, []any{"disk", fmt.Sprintf("%.1f GB free for the store", float64(st.Free)/1e9)})
	}
	rows = append(rows, []any{"operators", fmt.Sprintf("%d entries in the audit log", st.Audited)})
	for _, d := range st.Damaged {
		rows = append(rows, []any{"DAMAGED", d})
	}
	s.PrintTable([]any{"", ""}, rows)
}
