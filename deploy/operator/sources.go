package operator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"gridcast/builder"
	"gridcast/builder/almanac"
	"gridcast/builder/archive"
	"gridcast/builder/assemble"
	"gridcast/builder/ingest"
	"gridcast/builder/ledger"
	"gridcast/builder/season"
	"gridcast/deploy/auditlog"
	"gridcast/deploy/view"
	"gridcast/snapshots/blob"
)

// Source is a source of facts with its state.
type Source struct {
	Name    string
	Detail  string            // its revision or content
	Checked time.Time         // race time of the last poll; zero: never
	Problem string            // of the last poll; empty: none
	State   *ingest.PollState // the state of the last poll; nil for the archive
}

// SourcesOf returns the polled sources with their states as of the last poll.
func SourcesOf(in *ingest.Ingest) []Source {
	return view.Each(in.PollStates(), func(state ingest.PollState) Source {
		return Source{Name: state.Source, Detail: "revision " + state.Revision, Checked: state.Polled, Problem: state.Problem(), State: &state}
	})
}

// Unanswered reports whether there are sources, and none has answered yet.
func Unanswered(states []ingest.PollState) bool {
	return len(states) > 0 && !slices.ContainsFunc(states, func(s ingest.PollState) bool { return !s.Answered.IsZero() })
}

// AcceptChange applies a change of a source that the gates hold.
type AcceptChange struct {
	reasoned

	ID string `arg:"" help:"The change's id, from source check."`
}

// change returns the held change, as of the last poll.
func (d AcceptChange) change(o *Operator) (assemble.Proposal, error) {
	if o.Ingest == nil {
		return assemble.Proposal{}, errors.New("this process polls no sources")
	}
	var waits []string
	for _, state := range o.Ingest.PollStates() {
		for _, c := range state.Held {
			if c.ID == d.ID {
				return c, nil
			}
			waits = append(waits, c.ID)
		}
	}
	return assemble.Proposal{}, fmt.Errorf("accept %s: no such change is held; held: %s (gridcast source check)", d.ID, cmp.Or(strings.Join(waits, " "), "none"))
}

func (d AcceptChange) look(ctx context.Context, o *Operator) (*Plan, error) {
	c, err := d.change(o)
	if err != nil {
		return nil, err
	}
	p := Preview{
		Title:    fmt.Sprintf("Accept the %s of %s from %s", c.Block, c.Round(), c.Source),
		Question: "Apply this change?", Effects: view.Each(c.Lines, Difference),
	}
	for _, refused := range c.Refused {
		p.Warnings = append(p.Warnings, fmt.Sprintf("The gate %s holds it: %s.", strings.ReplaceAll(string(refused.Gate), "_", " "), refused.Reason))
	}
	v, err := o.known(ctx)
	if err != nil {
		return nil, err
	}
	out, err := o.Ingest.TrialAccept(ctx, v.At, d.ID)
	if err != nil {
		return nil, fmt.Errorf("accept %s: %w", d.ID, err)
	}
	for _, still := range out.Held {
		if still.ID == d.ID {
			return nil, fmt.Errorf("accept %s: it would still wait: %s", d.ID, still.Refused[0].Reason)
		}
	}
	archive, err := season.New(out.Facts)
	if err != nil {
		return nil, fmt.Errorf("accept %s: %w", d.ID, err)
	}
	state := o.Ledger.Fold()
	after := almanac.Join(archive.AsOf(v.At), state, c.Year)
	if c.GrandPrix == "" { // the source lost rounds
		p.Effects = append(p.Effects, lossEffects(v, state, &c, &out)...)
		p.compareVariants(almanac.Join(v, state, c.Year), after, c.Year)
	}
	if key, known := state.Key(c.Year, c.GrandPrix); known {
		if r, err := findRound(v, state, key); err == nil {
			o.follows(ctx, &p, v, r, archive, after, &out)
		}
	}
	p.Seen = digest(struct{ Change, Head any }{c, state.Head()})
	return &Plan{
		entry: auditlog.Intent{Action: auditlog.AcceptChange, Subject: d.ID}, Preview: p,
		do: func(ctx context.Context, request Request) (Answer, error) {
			now := o.Now()
			if _, err := o.Ingest.Accept(ctx, now, request.Actor, d.ID, request.Reason); err != nil {
				return Answer{}, err
			}
			report, err := o.Ingest.Apply(ctx, now)
			if err != nil {
				return Answer{}, fmt.Errorf("the change is accepted, and applied once this is fixed: %w", err)
			}
			answer := Answer{Text: fmt.Sprintf("The %s of %s is what %s says.", c.Block, c.Round(), c.Source), Events: report.Events}
			if report.Changed || len(report.Events) > 0 {
				answer.Unpublished = "a change of " + c.Source + " was accepted"
			}
			return answer, nil
		},
	}, nil
}

// lossEffects describes the consequences if an operator accepts that a source lost rounds.
func lossEffects(v *season.View, state *ledger.Fold, c *assemble.Proposal, out *assemble.Output) []string {
	coming, other := 0, 0
	for _, line := range c.Lines {
		key, _ := state.Key(c.Year, season.GrandPrixID(line.About))
		if r, err := findRound(v, state, key); err == nil && !r.Off() && v.At.Before(r.Start) {
			coming++
		}
	}
	for _, taken := range out.Applied {
		if taken.Source == c.Source {
			other++
		}
	}
	return []string{
		fmt.Sprintf("Of the rounds that %s dropped, %d are to come. Each of these is postponed if a further revision a day later does not have it either. Finished rounds stay.", c.Source, coming),
		fmt.Sprintf("All other changes of %s are applied again: %d parts of rounds change at once.", c.Source, other),
	}
}

// Difference describes a line of a change in a sentence.
func Difference(line assemble.Line) string {
	switch {
	case line.Was == "":
		return fmt.Sprintf("%s: %s", line.About, line.Is)
	case line.Is == "":
		return fmt.Sprintf("%s: no longer %s", line.About, line.Was)
	}
	return fmt.Sprintf("%s: %s, was %s", line.About, line.Is, line.Was)
}

// MergeIdentities makes one identity of two: From becomes To. For a driver it is an event of the
// ledger, which names drivers for ever. For a team, a circuit or a Grand Prix it is a rule for reading sources.
type MergeIdentities struct {
	reasoned

	From string             `arg:"" name:"old" form:"from" help:"The identity to replace: the name that a source uses or used."`
	To   string             `arg:"" name:"new" form:"to" help:"The identity that the archive knows."`
	Kind assemble.AliasKind `help:"The kind of both: ${enum}." enum:"driver,team,engine,circuit,round" default:"driver" env:"-"`
}

// known lists the identities of a kind that the archive has.
func (d MergeIdentities) known(f *season.Facts) ([]string, error) {
	switch d.Kind {
	case assemble.DriverAlias:
		return sorted(f.Drivers), nil
	case assemble.TeamAlias:
		return sorted(f.Teams), nil
	case assemble.CircuitAlias:
		return sorted(f.Circuits), nil
	case assemble.EngineAlias:
		return sorted(f.Engines), nil
	case assemble.RoundAlias:
		rounds := make(map[season.GrandPrixID]bool)
		for i := range f.Seasons {
			for _, r := range f.Seasons[i].Rounds {
				rounds[r.GrandPrix] = true
			}
		}
		return sorted(rounds), nil
	}
	return nil, fmt.Errorf("alias of a %q: want %s, %s, %s, %s or %s", d.Kind, assemble.DriverAlias, assemble.TeamAlias, assemble.EngineAlias, assemble.CircuitAlias, assemble.RoundAlias)
}

func sorted[K ~string, V any](of map[K]V) []string {
	return view.Each(slices.Sorted(maps.Keys(of)), func(key K) string { return string(key) })
}

func (d MergeIdentities) look(ctx context.Context, o *Operator) (*Plan, error) {
	if o.Ingest == nil {
		return nil, errNoFacts
	}
	fresh, err := o.Ledger.Refresh(ctx)
	if err != nil {
		return nil, err
	}
	inUse, err := o.Facts(ctx)
	if err != nil {
		return nil, err
	}
	facts := inUse.Archive.Facts()
	ids, err := d.known(&facts)
	if err != nil {
		return nil, err
	}
	switch {
	case d.From == d.To || d.From == "":
		return nil, fmt.Errorf("alias %s %q: name two different identities", d.Kind, d.From)
	case !slices.Contains(ids, d.To):
		at, _ := slices.BinarySearch(ids, d.To)
		return nil, fmt.Errorf("alias %s: the archive knows no %s %q; near it stand %s", d.From, d.Kind, d.To, strings.Join(ids[max(0, at-2):min(len(ids), at+2)], ", "))
	}
	effects, err := d.try(ctx, o, ids)
	if err != nil {
		return nil, err
	}
	p := Preview{
		Title: fmt.Sprintf("%s is %s", d.From, d.To), Question: fmt.Sprintf("Merge the two into one %s for ever?", d.Kind), Effects: effects,
		Seen: digest(struct{ Archive, Head any }{inUse.SHA256, o.Ledger.Fold().Head()}),
	}
	return &Plan{
		entry: auditlog.Intent{Action: auditlog.AliasSource, Subject: fmt.Sprintf("%s %s %s", d.Kind, d.From, d.To)}, Preview: p,
		do: func(ctx context.Context, request Request) (Answer, error) {
			if d.Kind == assemble.DriverAlias {
				return d.rename(ctx, o, fresh, request)
			}
			answer, err := o.enter(ctx, d.named(), request)
			answer.Text = fmt.Sprintf("What sources call %s is %s from now on.", d.From, d.To)
			return answer, err
		},
	}, nil
}

// named returns the entry that makes one identity of two, other than drivers.
func (d MergeIdentities) named() ingest.ManualEntry {
	return ingest.ManualEntry{Named: []assemble.Alias{{Kind: d.Kind, From: d.From, To: d.To}}}
}

// try merges the two in a trial and describes the effects. ids are the identities that the archive knows.
func (d MergeIdentities) try(ctx context.Context, o *Operator, ids []string) (effects []string, err error) {
	now := o.Now()
	var out assemble.Output
	if d.Kind == assemble.DriverAlias {
		from, to := season.DriverID(d.From), season.DriverID(d.To)
		out, err = o.Ingest.TrialAlias(ctx, now, from, to)
		effects = append(effects, "Picks, results and standings of both belong to one driver, also in past seasons.")
	} else {
		out, err = o.Ingest.Trial(ctx, now, d.named())
		effects = append(effects, fmt.Sprintf("Facts that a source reports about %s apply to %s.", d.From, d.To))
		if slices.Contains(ids, d.From) && d.Kind != assemble.RoundAlias {
			effects = append(effects, fmt.Sprintf("The facts in use and the verified results have %s in place of %s, too.", d.To, d.From))
		}
	}
	if err != nil {
		return nil, fmt.Errorf("%s and %s cannot be one: %w", d.From, d.To, err)
	}
	for _, c := range out.Applied {
		effects = append(effects, fmt.Sprintf("%s of %s %d now comes from %s.", view.Sentence(cmp.Or(BlockWords[c.Block], string(c.Block))), c.GrandPrix, c.Year, c.Source))
	}
	return effects, nil
}

// rename appends the event that makes one driver of two.
func (d MergeIdentities) rename(ctx context.Context, o *Operator, fresh ledger.Fresh, request Request) (Answer, error) {
	now := o.Now()
	events, err := fresh.Append(ctx, now, request.Actor, func(*ledger.Fold) ([]ledger.Event, error) {
		renamed := ledger.Rename(season.DriverID(d.From), season.DriverID(d.To))
		renamed.Reason = request.Reason
		return []ledger.Event{renamed}, nil
	})
	if err != nil {
		return Answer{}, err
	}
	if _, err := o.Ingest.Apply(ctx, now); err != nil {
		return Answer{}, fmt.Errorf("the two are one in the ledger, and in the archive once this is fixed: %w", err)
	}
	return Answer{Events: events, Text: fmt.Sprintf("%s is %s.", d.From, d.To), Unpublished: "two identities are one"}, nil
}

// ImportArchive makes an archive the one that builders build from.
type ImportArchive struct {
	Archive archive.Stored
	Origin  string // where it comes from, for the log: a path, the name of an upload
}

func (d ImportArchive) look(ctx context.Context, o *Operator) (*Plan, error) {
	return o.useArchive(ctx, d.Archive, strings.TrimSpace(d.Origin+" "+d.Archive.SHA256), true)
}

// UseArchive makes an earlier archive of the store the one in use.
type UseArchive struct {
	reasoned

	SHA256 string `arg:"" name:"sha" help:"The first digits of its sum, from archive list."`
}

func (d UseArchive) look(ctx context.Context, o *Operator) (*Plan, error) {
	next, err := archive.NewStore(o.Store).Find(ctx, d.SHA256)
	if err != nil {
		return nil, err
	}
	return o.useArchive(ctx, next, d.SHA256, false)
}

// useArchive plans the use of an archive. The plan is refused if the archive lacks a result of the one in use,
// because the published documents could then not be built again. An imported archive vouches for the results of
// seasons that ended before the ledger was opened.
func (o *Operator) useArchive(ctx context.Context, next archive.Stored, subject string, imported bool) (*Plan, error) {
	store := archive.NewStore(o.Store)
	p := Preview{Title: "Use another archive", Question: "Build everything from this archive?"}
	inUse, err := store.Load(ctx)
	switch {
	case errors.Is(err, blob.ErrNotFound):
		p.Question, p.Effects = "", []string{"The store has no archive yet: this one is its first."}
	case err != nil:
		p.Warnings = []string{view.Ended(fmt.Sprintf("The archive in use cannot be read, so nothing can be compared: %v", err))}
	case inUse.SHA256 == next.SHA256:
		p.Question, p.Seen, p.Effects = "", inUse.SHA256, []string{"It is the archive in use: nothing changes."}
	default:
		diff := archive.Compare(inUse.Archive, next.Archive)
		p.Seen, p.Effects = inUse.SHA256, diff.Sentences()
		if lost := diff.Lost(); len(lost) > 0 {
			p.Refusal = fmt.Sprintf("this archive lacks the results of %d rounds that the one in use has: %s", len(lost), archive.RoundNames(lost))
		}
		if len(diff.ColoursLost) > 0 {
			p.Warnings = append(p.Warnings, "Pages show grey for teams without a colour.")
		}
		if diff.OnlyAdds() {
			p.Question = "" // nothing is replaced that anybody has relied on
		}
	}
	effect, err := o.importEffect(ctx, next, imported)
	if err != nil {
		return nil, err
	}
	p.Warnings = append(p.Warnings, effect...)
	return &Plan{
		entry: auditlog.Intent{Action: auditlog.PutArchive, Subject: subject}, Preview: p,
		do: func(ctx context.Context, request Request) (Answer, error) {
			if inUse, err := store.Load(ctx); err == nil && p.Seen != "" && inUse.SHA256 != p.Seen {
				return Answer{}, fmt.Errorf("import: the archive in use: %w", ErrStale)
			}
			// The ledger comes first, so that no build finds the results without the event.
			if imported {
				if err := o.vouch(ctx, next, request); err != nil {
					return Answer{}, err
				}
			}
			if err := store.Put(ctx, next); err != nil {
				return Answer{}, err
			}
			answer := Answer{Record: next, Text: strings.Join(append([]string{fmt.Sprintf("The archive %.12s is in use.", next.SHA256)}, effect...), " ")}
			if next.SHA256 != p.Seen || len(effect) > 0 {
				answer.Unpublished = "archive changed"
			}
			return answer, nil
		},
	}, nil
}

// importEffect says how many results an archive would vouch for, and how many would wait for an operator. It says
// nothing if the store has no ledger yet: the ledger is then opened on the archive.
func (o *Operator) importEffect(ctx context.Context, next archive.Stored, imported bool) ([]string, error) {
	if o.Ledger == nil {
		return nil, nil
	}
	if _, err := o.Ledger.Refresh(ctx); err != nil {
		return nil, err
	}
	i, err := builder.NewImport(next.Archive.AsOf(o.Now()), o.Ledger.Fold(), next.SHA256, "")
	if err != nil {
		return nil, fmt.Errorf("import: %w", err)
	}
	var text []string
	switch n := len(i.Vouched); {
	case n == 0:
	case imported:
		text = append(text, "Verified by this archive: "+view.Results(i.Vouched)+", because their seasons ended before the ledger was opened.")
	default:
		i.Waiting = slices.Concat(i.Vouched, i.Waiting)
	}
	if len(i.Waiting) > 0 {
		text = append(text, "Waiting for an operator: "+view.Results(i.Waiting)+" (gridcast results verify --all).")
	}
	return text, nil
}

// vouch records in the ledger that an imported archive vouches for results.
func (o *Operator) vouch(ctx context.Context, next archive.Stored, request Request) error {
	if o.Ledger == nil {
		return nil
	}
	fresh, err := o.Ledger.Refresh(ctx)
	if err != nil {
		return err
	}
	at := o.Now()
	_, err = fresh.Append(ctx, at, request.Actor, func(s *ledger.Fold) ([]ledger.Event, error) {
		i, err := builder.NewImport(next.Archive.AsOf(at), s, next.SHA256, request.Reason)
		return i.Events, err
	})
	return err
}
