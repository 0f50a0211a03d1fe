package operator

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"gridcast/builder/almanac"
	"gridcast/builder/assemble"
	"gridcast/builder/ingest"
	"gridcast/builder/ledger"
	"gridcast/builder/season"
	"gridcast/deploy/auditlog"
	"gridcast/deploy/view"
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
	waits := []string{}
	for _, state := range o.Ingest.PollStates() {
		for _, c := range state.Held {
			if c.ID == d.ID {
				return c, nil
			}
			waits = append(waits, c.ID)
		}
	}
	return assemble.Proposal{}, fmt.Errorf("accept %s: no such change is held; held are %v (gridcast source check)", d.ID, waits)
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
	v, err := o.view(ctx)
	if err != nil {
		return nil, err
	}
	out, err := o.Ingest.TrialAccept(ctx, v.At, d.ID)
	if err != nil {
		return nil, fmt.Errorf("accept %s: %w", d.ID, err)
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
