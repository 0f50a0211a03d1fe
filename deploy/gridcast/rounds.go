package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"gridcast/builder/almanac"
	"gridcast/builder/ledger"
	"gridcast/builder/render"
	"gridcast/deploy/flags"
	"gridcast/deploy/operator"
	"gridcast/deploy/terminal"
	"gridcast/deploy/view"
)

type roundsCmds struct {
	List      roundsListCmd                          `cmd:"" help:"List the rounds of a season, and the actions that each allows."`
	Postpone  roundAction[operator.PostponeRound]    `cmd:"" help:"Postpone a round: it loses its date and will be held later."`
	Cancel    sessionAction[operator.CancelRound]    `cmd:"" help:"Cancel a round, whose pick is then void, or one session of its weekend."`
	Move      roundAction[operator.MoveRound]        `cmd:"" help:"Give a round another start, before the one it has."`
	Reinstate sessionAction[operator.ReinstateRound] `cmd:"" help:"Reinstate a postponed or cancelled round, or a cancelled session."`
	Release   roundAction[operator.ReleaseRound]     `cmd:"" help:"Release a start entered by hand: the round follows the sources again."`
}

type roundsListCmd struct {
	flags.Rounds
	Year int `help:"The season; default: the current one."`
}

// listedRound is a round of rounds list --json.
type listedRound struct {
	SessionKey  int64              `json:"session_key"`
	Year        int                `json:"year"`
	Round       int                `json:"round"`
	Name        string             `json:"gp_name"`
	Start       time.Time          `json:"start"`
	Provisional bool               `json:"provisional,omitzero"`
	Status      string             `json:"status"`
	Frozen      time.Time          `json:"pick_frozen_at,omitzero"`
	Allowed     []almanac.Decision `json:"allowed"`
}

func (c *roundsListCmd) Run(s *terminal.Streams, a *almanac.Almanac) error {
	rounds := a.Rounds(c.Year)
	if len(rounds) == 0 {
		return fmt.Errorf("list rounds: no calendar of %d is known; gridcast archive show --store '%s' lists the seasons", c.Year, c.Store)
	}
	listed := make([]listedRound, len(rounds))
	rows := make([][]any, len(rounds))
	for i, r := range rounds {
		row := view.RoundOf(r)
		listed[i] = listedRound{
			SessionKey: row.Session, Year: row.Year, Round: row.Number, Name: row.Name,
			Start: row.Start, Provisional: row.Provisional, Status: string(render.Status(r.State)), Allowed: row.Allowed,
		}
		if row.Pick != nil {
			listed[i].Frozen = row.Pick.FrozenAt
		}
		allowed := view.Each(row.Allowed, func(d almanac.Decision) string { return string(d) })
		rows[i] = []any{row.Session, row.Name, startCell(r), row.State, terminal.Time(listed[i].Frozen), strings.Join(allowed, " ")}
	}
	s.PrintList(listed, "", []any{"session", "round", "start", "status", "pick frozen", "allowed now"}, rows)
	return nil
}

func startCell(r *almanac.Round) string {
	if r.Provisional {
		return terminal.Time(r.Start) + " assumed"
	}
	return terminal.Time(r.Start)
}

// roundAction applies an action on a round, and prints the state of the round after it.
type roundAction[A operator.Action] struct {
	actionCmd[flags.Rounds, flags.PublishedReason, A]
}

func (c *roundAction[A]) Run(ctx context.Context, s *terminal.Streams) error {
	return c.apply(ctx, s, printRound)
}

// sessionAction is roundAction for actions that may enter facts about a session.
type sessionAction[A operator.Action] struct {
	actionCmd[flags.Manual, flags.RequiredReason, A]
}

func (c *sessionAction[A]) Run(ctx context.Context, s *terminal.Streams) error {
	return c.apply(ctx, s, printRound)
}

func printRound(s *terminal.Streams, answer operator.Answer) {
	r := answer.Record.(*almanac.Round)
	if answer.Text != "" && len(answer.Events) == 0 { // of a session, which is no event of the ledger
		printEntered(s, answer)
		return
	}
	s.Print(answer.Events, "%d %s: %s, start %s\n", r.Session, r.Facts.Name, render.Status(r.State), startCell(r))
	if s.JSON {
		return
	}
	for _, e := range answer.Events {
		if e.Type == ledger.PickVoided {
			s.Printf("its pick is void: %s\n", e.Reason)
			return
		}
	}
	if r.Pick != nil {
		s.Printf("its pick of %s stands\n", terminal.Time(r.Pick.FrozenAt))
	}
}
