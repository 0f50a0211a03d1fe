package ingest

import (
	"bytes"
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

	"gridcast/builder/assemble"
	"gridcast/builder/season"
	"gridcast/snapshots/blob"
	"gridcast/snapshots/blob/chain"
)

// HandPrefix begins the key of every file of what people entered.
const HandPrefix = "facts/hand/"

// HandEntry is one file of what people entered: blocks of rounds, and those that they let go of. The
// archive is assembled from the statements that stand, whichever scheduler does it.
type HandEntry struct {
	chain.Link
	ID     string      `json:"id"` // random: tells a lost answer from a lost race
	At     time.Time   `json:"at"` // race time
	Actor  string      `json:"actor"`
	Reason string      `json:"reason,omitzero"`
	Said   []Statement `json:"said,omitzero"`
	// Things that the statements name and nobody knew before.
	Drivers  map[season.DriverID]season.Driver   `json:"drivers,omitzero"`
	Teams    map[season.TeamID]season.Team       `json:"teams,omitzero"`
	Circuits map[season.CircuitID]season.Circuit `json:"circuits,omitzero"`

	Released []assemble.BlockID `json:"released,omitzero"`
	Named    []assemble.Alias   `json:"named,omitzero"` // what sources call otherwise
}

// Statement is what a person says of a block.
type Statement struct {
	assemble.BlockID
	Is  Part `json:"is"`
	Was Part `json:"was"` // before any person said anything of it
	// Forced: it is used whatever the gates say.
	Forced bool `json:"forced,omitzero"`
	// Assumed: it followed from something else that was entered, and gives way to any source.
	Assumed bool `json:"assumed,omitzero"`
}

// Part is a block of a round: of a file it has the fields that say something.
type Part season.Round

// MarshalJSON leaves out what says nothing.
func (p Part) MarshalJSON() ([]byte, error) {
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

// InForce is a statement that is not released, and who made it.
type InForce struct {
	Statement
	Entry *HandEntry
}

// HandLog is what people entered, up to some file.
type HandLog struct {
	record[HandEntry]
	named []assemble.Alias
	stand map[assemble.BlockID]InForce
}

// LoadHand reads what people entered into a store. Damage is an error that wraps a *chain.DamageError.
func LoadHand(ctx context.Context, store blob.Store) (*HandLog, error) {
	l := &HandLog{stand: make(map[assemble.BlockID]InForce)}
	l.chain = chain.Chain{Store: store, Prefix: HandPrefix}
	return l, l.Refresh(ctx)
}

// Refresh reads what was appended since.
func (l *HandLog) Refresh(ctx context.Context) error {
	if err := l.refresh(ctx, l.fold); err != nil {
		return fmt.Errorf("read hand-made facts: %w", err)
	}
	return nil
}

// append is that of a record.
func (l *HandLog) append(ctx context.Context, e HandEntry) (bool, error) {
	e.Link = l.head.Next()
	won, err := l.record.append(ctx, e, l.fold)
	if err != nil {
		return false, fmt.Errorf("enter facts by hand: %w", err)
	}
	return won, nil
}

// clone returns a log that goes on by itself.
func (l *HandLog) clone() *HandLog {
	next := *l
	next.Entries, next.named, next.stand = slices.Clip(l.Entries), slices.Clip(l.named), maps.Clone(l.stand)
	return &next
}

func (l *HandLog) fold(e HandEntry) {
	l.Entries = append(l.Entries, e)
	for _, s := range e.Said {
		l.stand[s.BlockID] = InForce{s, &e}
	}
	for _, p := range e.Released {
		delete(l.stand, p)
	}
	l.named = append(l.named, e.Named...)
}

// InForce returns the statements that are not released, by year, Grand Prix and block.
func (l *HandLog) InForce() []InForce {
	return slices.SortedFunc(maps.Values(l.stand), func(a, b InForce) int { return compareBlocks(a.BlockID, b.BlockID) })
}

// Stands returns the statement of a place; false if nobody made one that is not released.
func (l *HandLog) Stands(p assemble.BlockID) (InForce, bool) {
	s, ok := l.stand[p]
	return s, ok
}

func compareBlocks(a, b assemble.BlockID) int {
	order := assemble.Blocks()
	if a.Year != b.Year {
		return a.Year - b.Year
	}
	if c := strings.Compare(string(a.GrandPrix), string(b.GrandPrix)); c != 0 {
		return c
	}
	return slices.Index(order, a.Block) - slices.Index(order, b.Block)
}

// Entry is the entry from which a block came; nil for one that did not come from a person.
func (l *HandLog) Entry(o Origin) *HandEntry {
	seq, err := strconv.Atoi(o.Revision)
	if o.Source != assemble.ManualSource || err != nil || seq < 1 || seq > len(l.Entries) {
		return nil
	}
	return &l.Entries[seq-1]
}

// With returns the log as it would be with an entry more; l stays as it is.
func (l *HandLog) With(e HandEntry) *HandLog {
	next := l.clone()
	e.Seq = l.head.Seq + 1
	next.fold(e)
	return next
}

// Named returns what people said that sources call otherwise, in the order in which they said it.
func (l *HandLog) Named() []assemble.Alias { return slices.Clone(l.named) }

// complete gives the statements of an entry what stood before any person said anything of their
// blocks. before is the archive in use.
func (l *HandLog) complete(e *HandEntry, before *season.Facts) {
	e.Said = slices.Clone(e.Said)
	for i := range e.Said {
		s := &e.Said[i]
		if earlier, ok := l.stand[s.BlockID]; ok {
			s.Was = earlier.Was
		} else if r, ok := before.Round(s.Year, s.GrandPrix); ok {
			s.Was = Part(assemble.Part(s.Block, r))
		}
	}
}

// documents are the statements that stand, for assembly: what wins over the sources, and what gives
// way to them.
func (l *HandLog) documents() (wins, yields assemble.Document) {
	empty := func() assemble.Document {
		return assemble.Document{
			Source: assemble.ManualSource, From: 1, To: 9999, Kind: assemble.Manual,
			Revisions: make(map[assemble.BlockID]string), Forced: make(map[assemble.BlockID]bool),
			Facts: season.Facts{
				Drivers: make(map[season.DriverID]season.Driver), Teams: make(map[season.TeamID]season.Team),
				Circuits: make(map[season.CircuitID]season.Circuit),
			},
		}
	}
	wins, yields = empty(), empty()
	for _, s := range l.InForce() {
		d := &wins
		if s.Assumed {
			d = &yields
		}
		d.Revisions[s.BlockID] = strconv.FormatInt(s.Entry.Seq, 10)
		if s.Forced {
			d.Forced[s.BlockID] = true
		}
		maps.Copy(d.Facts.Drivers, s.Entry.Drivers)
		maps.Copy(d.Facts.Teams, s.Entry.Teams)
		maps.Copy(d.Facts.Circuits, s.Entry.Circuits)
		at := slices.IndexFunc(d.Facts.Seasons, func(known season.Season) bool { return known.Year == s.Year })
		if at < 0 {
			at = len(d.Facts.Seasons)
			d.Facts.Seasons = append(d.Facts.Seasons, season.Season{Year: s.Year})
		}
		said := &d.Facts.Seasons[at]
		r := slices.IndexFunc(said.Rounds, func(r season.Round) bool { return r.GrandPrix == s.GrandPrix })
		if r < 0 {
			r = len(said.Rounds)
			said.Rounds = append(said.Rounds, season.Round{GrandPrix: s.GrandPrix})
		}
		part := season.Round(s.Is)
		assemble.Copy(s.Block, &said.Rounds[r], &part)
	}
	return wins, yields
}

// releases are those that came after the file that the archive in use was assembled with.
func (l *HandLog) releases(since int64) []assemble.Release {
	var released []assemble.Release
	stood := make(map[assemble.BlockID]Statement)
	for _, e := range l.Entries {
		for _, s := range e.Said {
			stood[s.BlockID] = s
		}
		for _, p := range e.Released {
			s, ok := stood[p]
			if _, again := l.stand[p]; ok && !again && e.Seq > since {
				released = append(released, assemble.Release{
					BlockID: p, Revision: strconv.FormatInt(e.Seq, 10), Entered: season.Round(s.Is), Before: season.Round(s.Was),
				})
			}
		}
	}
	return released
}

// Hand reads what people entered, up to now.
func (g *Ingest) Hand(ctx context.Context) (*HandLog, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if err := g.refreshHand(ctx); err != nil {
		return nil, err
	}
	return g.hand.clone(), nil
}

func (g *Ingest) refreshHand(ctx context.Context) (err error) {
	if g.hand == nil {
		g.hand, err = LoadHand(ctx, g.Store)
	} else {
		err = g.hand.Refresh(ctx)
	}
	if err != nil {
		g.hand = nil
	}
	return err
}

// Trial assembles what the archive would be if a person entered something, from what the sources said
// last. It changes nothing.
func (g *Ingest) Trial(ctx context.Context, now time.Time, e HandEntry) (assemble.Output, error) {
	return g.suppose(ctx, now, func(was *season.Facts, t *trial) {
		g.hand.complete(&e, was)
		t.hand = g.hand.With(e)
	})
}

// TrialAlias assembles what the archive would be if two drivers were one. It changes nothing.
func (g *Ingest) TrialAlias(ctx context.Context, now time.Time, from, to season.DriverID) (assemble.Output, error) {
	return g.suppose(ctx, now, func(_ *season.Facts, t *trial) {
		t.aliases = with(t.aliases, from, to)
	})
}

// TrialAccept assembles what the archive would be if a person let the change of an ID through. It
// changes nothing.
func (g *Ingest) TrialAccept(ctx context.Context, now time.Time, id string) (assemble.Output, error) {
	return g.suppose(ctx, now, func(_ *season.Facts, t *trial) {
		t.accepted = with(t.accepted, id, true)
	})
}

// with returns a map with an entry more; m stays as it is, and may be nil.
func with[K comparable, V any](m map[K]V, key K, value V) map[K]V {
	next := make(map[K]V, len(m)+1)
	maps.Copy(next, m)
	next[key] = value
	return next
}

// trial is what people said, as it would be.
type trial struct {
	hand     *HandLog
	aliases  map[season.DriverID]season.DriverID
	accepted map[string]bool // changes, by ID
}

// suppose assembles what the archive would be after something that people might say.
func (g *Ingest) suppose(ctx context.Context, now time.Time, say func(was *season.Facts, t *trial)) (assemble.Output, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if err := g.refresh(ctx); err != nil {
		return assemble.Output{}, err
	}
	current, err := g.Facts.Load(ctx)
	if err != nil {
		return assemble.Output{}, err
	}
	states, err := g.load(ctx)
	if err != nil {
		return assemble.Output{}, err
	}
	was, t := current.Archive.Facts(), trial{g.hand, g.Ledger.State().Aliases(), g.log.accepted}
	say(&was, &t)
	faults := make(map[string]error)
	return g.assemble(now, was, g.said(ctx, states, faults), t, faults)
}

// Enter keeps what a person entered. It is in use after the next Run or Apply of any scheduler.
func (g *Ingest) Enter(ctx context.Context, now time.Time, e HandEntry) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	e.ID, e.At = rand.Text(), now.UTC()
	for {
		if err := g.refreshHand(ctx); err != nil {
			return err
		}
		current, err := g.Facts.Load(ctx)
		if err != nil {
			return err
		}
		was := current.Archive.Facts()
		g.hand.complete(&e, &was)
		won, err := g.hand.append(ctx, e)
		if err != nil {
			g.hand = nil
			return err
		}
		if won {
			return nil
		}
	}
}
