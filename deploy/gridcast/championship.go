package main

import (
	"context"
	"fmt"
	"time"

	"gridcast/builder/almanac"
	"gridcast/deploy/flags"
	"gridcast/deploy/operator"
	"gridcast/deploy/terminal"
)

type championshipCmds struct {
	List    championshipListCmd                            `cmd:"" help:"List the decisions about the championships of a season, and those that only the source's table shows."`
	Deduct  championshipAction[operator.DeductPoints]      `cmd:"" help:"Take points from a driver or a team."`
	Add     championshipAction[operator.AddPoints]         `cmd:"" help:"Give points to a driver or a team."`
	Exclude championshipAction[operator.ExcludeCompetitor] `cmd:"" help:"Exclude a driver or a team from the championship; the results stay."`
	Restore championshipAction[operator.RestoreCompetitor] `cmd:"" help:"End a decision: the tables are as if it had not been made."`
	Accept  championshipAction[operator.AcceptDecision]    `cmd:"" help:"Enter the decision that the source's table shows."`
}

// championshipAction applies a decision about a championship.
type championshipAction[A operator.Action] struct {
	actionCmd[flags.Rounds, flags.PublishedReason, A]
}

func (c *championshipAction[A]) Run(ctx context.Context, s *terminal.Streams) error {
	return c.apply(ctx, s, func(s *terminal.Streams, answer operator.Answer) { s.Print(answer.Events, "%s\n", answer.Text) })
}

type championshipListCmd struct {
	flags.Rounds
	Year int `arg:"" help:"The season."`
}

// listedDecision is a decision of championship list --json.
type listedDecision struct {
	Number       int       `json:"decision,omitzero"` // absent: it waits for a person
	Championship string    `json:"championship"`
	Competitor   string    `json:"competitor"`
	Engine       string    `json:"engine,omitzero"`
	Decision     string    `json:"text"`
	SessionKey   int64     `json:"session_key"` // the first round whose table has it
	By           string    `json:"by,omitzero"`
	At           time.Time `json:"at,omitzero"`
	Reason       string    `json:"reason,omitzero"`
}

func (c *championshipListCmd) Run(s *terminal.Streams, a *almanac.Almanac) error {
	y, ok := a.Year(c.Year)
	if !ok {
		return fmt.Errorf("list decisions: no season %d is known; gridcast archive show lists the seasons", c.Year)
	}
	listed := []listedDecision{}
	for i, d := range y.Decisions() {
		listed = append(listed, listedDecision{
			i + 1, almanac.ChampionshipName(d.Constructors), d.Competitor, string(d.Engine), d.Championship.String(), d.Session, operator.Who(d.Actor), d.At, d.Reason,
		})
	}
	for _, o := range y.Offers() {
		listed = append(listed, listedDecision{
			Championship: almanac.ChampionshipName(o.Constructors), Competitor: o.Competitor, Engine: string(o.Engine),
			Decision: o.Championship.String(), SessionKey: o.From.Session, Reason: "the source's table alone shows it: gridcast championship accept",
		})
	}
	rows := make([][]any, len(listed))
	for i, d := range listed {
		number := any("waits")
		if d.Number > 0 {
			number = d.Number
		}
		rows[i] = []any{number, d.Championship, d.Competitor, d.Decision, d.SessionKey, d.By, d.Reason}
	}
	s.PrintList(listed, "no decision", []any{"decision", "championship", "competitor", "text", "from", "by", "reason"}, rows)
	return nil
}
