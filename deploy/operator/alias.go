package operator

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"gridcast/builder/assemble"
	"gridcast/builder/ingest"
	"gridcast/builder/ledger"
	"gridcast/builder/season"
	"gridcast/deploy/auditlog"
	"gridcast/deploy/view"
)

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
		return nil, fmt.Errorf("alias %s: the archive knows no %s %q; near it stand %v", d.From, d.Kind, d.To, ids[max(0, at-2):min(len(ids), at+2)])
	}
	now, state := o.Now(), o.Ledger.Fold()
	p := Preview{
		Title: fmt.Sprintf("%s is %s", d.From, d.To), Question: fmt.Sprintf("Merge the two into one %s for ever?", d.Kind), Effects: []string{},
		Seen: digest(struct{ Archive, Head any }{inUse.SHA256, state.Head()}),
	}
	alias := assemble.Alias{Kind: d.Kind, From: d.From, To: d.To}
	var out assemble.Output
	if d.Kind == assemble.DriverAlias {
		if _, err := state.Trial(now, []ledger.Event{ledger.Rename(season.DriverID(d.From), season.DriverID(d.To))}); err != nil {
			return nil, err
		}
		out, err = o.Ingest.TrialAlias(ctx, now, season.DriverID(d.From), season.DriverID(d.To))
		p.Effects = append(p.Effects, "Picks, results and standings of both belong to one driver, also in past seasons.")
	} else {
		out, err = o.Ingest.Trial(ctx, now, ingest.ManualEntry{Named: []assemble.Alias{alias}})
		p.Effects = append(p.Effects, fmt.Sprintf("Facts that a source reports about %s apply to %s.", d.From, d.To))
		if slices.Contains(ids, d.From) && d.Kind != assemble.RoundAlias {
			p.Effects = append(p.Effects, fmt.Sprintf("The facts in use and the verified results have %s in place of %s, too.", d.To, d.From))
		}
	}
	if err != nil {
		return nil, fmt.Errorf("%s and %s cannot be one: %w", d.From, d.To, err)
	}
	for _, c := range out.Applied {
		p.Effects = append(p.Effects, fmt.Sprintf("%s of %s %d now comes from %s.", view.Sentence(cmp.Or(BlockWords[c.Block], string(c.Block))), c.GrandPrix, c.Year, c.Source))
	}
	return &Plan{
		entry: auditlog.Intent{Action: auditlog.AliasSource, Subject: fmt.Sprintf("%s %s %s", d.Kind, d.From, d.To)}, Preview: p,
		do: func(ctx context.Context, request Request) (Answer, error) {
			if d.Kind == assemble.DriverAlias {
				return d.rename(ctx, o, fresh, request)
			}
			answer, err := o.enter(ctx, ingest.ManualEntry{Named: []assemble.Alias{alias}}, request)
			answer.Text = fmt.Sprintf("What sources call %s is %s from now on.", d.From, d.To)
			return answer, err
		},
	}, nil
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
