package ingest

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"gridcast/builder/almanac"
	"gridcast/builder/assemble"
	"gridcast/builder/ledger"
	"gridcast/builder/season"
	"gridcast/builder/stewards"
	"gridcast/snapshots/blob"
	"gridcast/snapshots/blob/chain"
)

// ManualPrefix begins the key of every file of the manual log.
const ManualPrefix = "facts/hand/"

// ManualEntry is one file of the manual log: facts that a person entered or released. Every scheduler
// assembles the archive from all active statements.
type ManualEntry struct {
	chain.Link
	ID         string      `json:"id"` // random, so that a writer recognises its own entry after a lost answer
	At         time.Time   `json:"at"` // race time
	Actor      string      `json:"actor"`
	Reason     string      `json:"reason,omitzero"`
	Statements []Statement `json:"said,omitzero"`
	// Things in the statements that the archive did not know.
	Drivers  map[season.DriverID]season.Driver   `json:"drivers,omitzero"`
	Teams    map[season.TeamID]season.Team       `json:"teams,omitzero"`
	Circuits map[season.CircuitID]season.Circuit `json:"circuits,omitzero"`

	Released []assemble.BlockID `json:"released,omitzero"`
	Named    []assemble.Alias   `json:"named,omitzero"` // other names that sources use
}

// Statement is a block of a round that a person entered.
type Statement struct {
	assemble.BlockID
	Entered PartialRound `json:"is"`
	Before  PartialRound `json:"was"` // the block before the first statement about it
	// Forced statements are applied in spite of the gates.
	Forced bool `json:"forced,omitzero"`
	// Assumed statements follow from another statement, and yield to any source.
	Assumed bool `json:"assumed,omitzero"`
}

// PartialRound is a round of which one block counts. Its JSON has the fields with a value.
type PartialRound season.Round

// MarshalJSON leaves out the fields without a value.
func (p PartialRound) MarshalJSON() ([]byte, error) {
	var out bytes.Buffer
	v := reflect.ValueOf(p)
	for i := range v.NumField() {
		if v.Field(i).IsZero() {
			continue
		}
		value, err := json.Marshal(v.Field(i).Interface())
		if err != nil {
			return nil, err
		}
		name, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
		if out.Len() > 0 {
			out.WriteByte(',')
		}
		fmt.Fprintf(&out, "%q:%s", name, value)
	}
	return fmt.Appendf(nil, "{%s}", out.Bytes()), nil
}

// ActiveStatement is a statement that nobody has released, with its entry.
type ActiveStatement struct {
	Statement
	Entry *ManualEntry
}

// ManualLog is the manual log, read up to some entry.
type ManualLog struct {
	chain.Journal[ManualEntry]
	named  []assemble.Alias
	active map[assemble.BlockID]ActiveStatement
}

// LoadManual reads the manual log of a store. Damage is an error that wraps a *chain.DamageError.
func LoadManual(ctx context.Context, store blob.Store) (*ManualLog, error) {
	l := &ManualLog{active: make(map[assemble.BlockID]ActiveStatement)}
	l.Journal = chain.Journal[ManualEntry]{Name: "manual log", Chain: chain.Chain{Store: store, Prefix: ManualPrefix}, Fold: l.fold}
	return l, l.Refresh(ctx)
}

func (l *ManualLog) fold(e *ManualEntry) {
	for _, s := range e.Statements {
		l.active[s.BlockID] = ActiveStatement{s, e}
	}
	for _, id := range e.Released {
		delete(l.active, id)
	}
	l.named = append(l.named, e.Named...)
}

// clone returns a copy that can be changed without a change of l.
func (l *ManualLog) clone() *ManualLog {
	next := *l
	next.Entries, next.named, next.active = slices.Clip(l.Entries), slices.Clip(l.named), maps.Clone(l.active)
	next.Fold = next.fold
	return &next
}

// With returns the log with one more entry; l does not change.
func (l *ManualLog) With(e ManualEntry) *ManualLog {
	next := l.clone()
	e.Seq = l.Head.Seq + 1
	next.Entries = append(next.Entries, e)
	next.fold(&e)
	return next
}

// Active returns the active statements by year, Grand Prix and block.
func (l *ManualLog) Active() []ActiveStatement {
	blocks := assemble.Blocks()
	return slices.SortedFunc(maps.Values(l.active), func(a, b ActiveStatement) int {
		return cmp.Or(cmp.Compare(a.Year, b.Year), cmp.Compare(a.GrandPrix, b.GrandPrix),
			cmp.Compare(slices.Index(blocks, a.Block), slices.Index(blocks, b.Block)))
	})
}

// Find returns the active statement about a block.
func (l *ManualLog) Find(id assemble.BlockID) (ActiveStatement, bool) {
	s, ok := l.active[id]
	return s, ok
}

// EntryOf returns the entry from which a block came, nil for a block of a source.
func (l *ManualLog) EntryOf(o Origin) *ManualEntry {
	seq, err := strconv.Atoi(o.Revision)
	if o.Source != assemble.ManualSource || err != nil || seq < 1 || seq > len(l.Entries) {
		return nil
	}
	return &l.Entries[seq-1]
}

// Named returns the other names that sources use, in the order of their entries.
func (l *ManualLog) Named() []assemble.Alias { return slices.Clone(l.named) }

// setBefore gives each statement of an entry the block before the first statement about it: that of
// an active statement, else that of the archive in use.
func (l *ManualLog) setBefore(e *ManualEntry, inUse *season.Facts) {
	e.Statements = slices.Clone(e.Statements)
	for i := range e.Statements {
		s := &e.Statements[i]
		if earlier, ok := l.active[s.BlockID]; ok {
			s.Before = earlier.Before
		} else if r, ok := inUse.Round(s.Year, s.GrandPrix); ok {
			s.Before = PartialRound(assemble.Only(s.Block, r))
		}
	}
}

// documents returns the active statements as two documents: first goes before the sources, last
// holds the assumed statements and goes after them.
func (l *ManualLog) documents() (first, last assemble.Document) {
	empty := func() assemble.Document {
		return assemble.Document{
			Source: assemble.ManualSource, From: 1, To: 9999, Kind: assemble.Manual,
			Revisions: make(map[assemble.BlockID]string), Forced: make(map[assemble.BlockID]bool),
			Facts: season.NewFacts(),
		}
	}
	first, last = empty(), empty()
	last.Assumed = true
	for _, s := range l.Active() {
		d := &first
		if s.Assumed {
			d = &last
		}
		d.Revisions[s.BlockID] = strconv.FormatInt(s.Entry.Seq, 10)
		if s.Forced {
			d.Forced[s.BlockID] = true
		}
		maps.Copy(d.Facts.Drivers, s.Entry.Drivers)
		maps.Copy(d.Facts.Teams, s.Entry.Teams)
		maps.Copy(d.Facts.Circuits, s.Entry.Circuits)
		entered := season.Round(s.Entered)
		assemble.Copy(s.Block, roundOf(&d.Facts, s.BlockID), &entered)
	}
	return first, last
}

// roundOf returns the round of a block in the facts of a document, and adds an empty one if there is
// none.
func roundOf(f *season.Facts, id assemble.BlockID) *season.Round {
	s, ok := f.Season(id.Year)
	if !ok {
		f.Seasons = append(f.Seasons, season.Season{Year: id.Year})
		s = &f.Seasons[len(f.Seasons)-1]
	}
	r, ok := s.Round(id.GrandPrix)
	if !ok {
		s.Rounds = append(s.Rounds, season.Round{GrandPrix: id.GrandPrix})
		r = &s.Rounds[len(s.Rounds)-1]
	}
	return r
}

// releases returns the blocks that were released after an entry and not entered again.
func (l *ManualLog) releases(after int64) []assemble.Release {
	var released []assemble.Release
	latest := make(map[assemble.BlockID]Statement)
	for _, e := range l.Entries {
		for _, s := range e.Statements {
			latest[s.BlockID] = s
		}
		for _, id := range e.Released {
			s, ok := latest[id]
			if _, again := l.active[id]; ok && !again && e.Seq > after {
				released = append(released, assemble.Release{
					BlockID: id, Revision: strconv.FormatInt(e.Seq, 10), Entered: season.Round(s.Entered), Before: season.Round(s.Before),
				})
			}
		}
	}
	return released
}

// Manual reads the manual log up to now.
func (g *Ingest) Manual(ctx context.Context) (*ManualLog, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if err := g.refreshManual(ctx); err != nil {
		return nil, err
	}
	return g.manual.clone(), nil
}

func (g *Ingest) refreshManual(ctx context.Context) (err error) {
	if g.manual == nil {
		g.manual, err = LoadManual(ctx, g.Store)
	} else {
		err = g.manual.Refresh(ctx)
	}
	if err != nil {
		g.manual = nil
	}
	return err
}

// Enter stores a manual entry. The next Poll or Apply of any scheduler applies it.
func (g *Ingest) Enter(ctx context.Context, now time.Time, e ManualEntry) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	e.ID, e.At = rand.Text(), now.UTC()
	for {
		if err := g.refreshManual(ctx); err != nil {
			return err
		}
		current, err := g.Facts.Load(ctx)
		if err != nil {
			return err
		}
		inUse := current.Archive.Facts()
		g.manual.setBefore(&e, &inUse)
		e.Link = g.manual.Head.Next()
		won, err := g.manual.Append(ctx, e)
		if err != nil {
			g.manual = nil
			return err
		}
		if won {
			return nil
		}
	}
}

// trial is the input from people to an assembly.
type trial struct {
	manual   *ManualLog
	aliases  map[season.DriverID]season.DriverID
	accepted map[string]bool // IDs of proposals
}

// Trial assembles the archive that would follow from a manual entry and the last documents. It
// changes nothing.
func (g *Ingest) Trial(ctx context.Context, now time.Time, e ManualEntry) (assemble.Output, error) {
	return g.try(ctx, now, func(inUse *season.Facts, t *trial) error {
		g.manual.setBefore(&e, inUse)
		t.manual = g.manual.With(e)
		return nil
	})
}

// TrialAlias assembles the archive that would follow if one driver were renamed to another. It
// changes nothing.
func (g *Ingest) TrialAlias(ctx context.Context, now time.Time, from, to season.DriverID) (assemble.Output, error) {
	return g.try(ctx, now, func(_ *season.Facts, t *trial) error {
		renamed, err := g.Ledger.Fold().Trial(now, []ledger.Event{ledger.Rename(from, to)})
		if err == nil {
			t.aliases = renamed.Aliases()
		}
		return err
	})
}

// TrialAccept assembles the archive that would follow if a person accepted a held proposal. It changes
// nothing.
func (g *Ingest) TrialAccept(ctx context.Context, now time.Time, id string) (assemble.Output, error) {
	return g.try(ctx, now, func(_ *season.Facts, t *trial) error {
		t.accepted = with(t.accepted, id, true)
		return nil
	})
}

// with returns a copy of a map, which may be nil, with one more entry.
func with[K comparable, V any](m map[K]V, key K, value V) map[K]V {
	next := make(map[K]V, len(m)+1)
	maps.Copy(next, m)
	next[key] = value
	return next
}

// try assembles the archive after a change of the input from people.
func (g *Ingest) try(ctx context.Context, now time.Time, change func(inUse *season.Facts, t *trial) error) (assemble.Output, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if err := g.refresh(ctx); err != nil {
		return assemble.Output{}, err
	}
	current, err := g.Facts.Load(ctx)
	if err != nil {
		return assemble.Output{}, err
	}
	states, err := g.loadStates(ctx)
	if err != nil {
		return assemble.Output{}, err
	}
	inUse, t := current.Archive.Facts(), trial{manual: g.manual, aliases: g.Ledger.Fold().Aliases(), accepted: g.log.accepted}
	if err := change(&inUse, &t); err != nil {
		return assemble.Output{}, err
	}
	faults := make(map[string]error)
	return g.assemble(now, inUse, g.lastDocuments(ctx, states, faults), t, faults)
}

// DriversEntry is the entry of a list of drivers: the entries, the qualifying or the grid of a round.
// If the roster does not know the entries of the round, the drivers of the list are assumed to be
// the entries until a source names them.
func DriversEntry(r *almanac.Round, block assemble.Block, roster *stewards.Roster, list *stewards.List) ManualEntry {
	part := PartialRound{GrandPrix: r.Facts.GrandPrix}
	switch block {
	case assemble.Entries:
		part.Entries = list.Entries()
	case assemble.Qualifying:
		part.Qualifying = list.Qualifying()
	case assemble.Grid:
		part.Grid = list.Grid()
	}
	id := assemble.BlockID{Year: r.Year, GrandPrix: r.Facts.GrandPrix, Block: block}
	entry := ManualEntry{Statements: []Statement{{BlockID: id, Entered: part}}}
	for _, driver := range list.New {
		entry.Drivers = with(entry.Drivers, driver.ID, driver)
	}
	for _, team := range list.NewTeams {
		entry.Teams = with(entry.Teams, team.ID, team)
	}
	if block != assemble.Entries && !roster.Listed {
		id.Block = assemble.Entries
		entry.Statements = append(entry.Statements, Statement{BlockID: id, Entered: PartialRound{GrandPrix: r.Facts.GrandPrix, Entries: list.Entries()}, Assumed: true})
	}
	return entry
}
