package main

import (
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

type roundAfter struct{}

func (roundAfter) print(s *terminal.Streams, answer operator.Answer) {
	r := answer.Record.(*almanac.Round)
	if answer.Text != "" && len(answer.Events) == 0 { // of a session, which is no event of the ledger
		entered{}.print(s, answer)
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

type championshipCmds struct {
	List    championshipListCmd                            `cmd:"" help:"List the decisions about the championships of a season, and those that only the source's table shows."`
	Deduct  championshipAction[operator.DeductPoints]      `cmd:"" help:"Take points from a driver or a team."`
	Add     championshipAction[operator.AddPoints]         `cmd:"" help:"Give points to a driver or a team."`
	Exclude championshipAction[operator.ExcludeCompetitor] `cmd:"" help:"Exclude a driver or a team from the championship; the results stay."`
	Restore championshipAction[operator.RestoreCompetitor] `cmd:"" help:"End a decision: the tables are as if it had not been made."`
	Accept  championshipAction[operator.AcceptDecision]    `cmd:"" help:"Enter the decision that the source's table shows."`
}

type decided struct{}

func (decided) print(s *terminal.Streams, answer operator.Answer) {
	s.Print(answer.Events, "%s\n", answer.Text)
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
	header := []any{"decision", "championship", "competitor", "text", "from", "by", "reason"}
	terminal.PrintRows(s, listed, "no decision", header, func(d listedDecision) []any {
		number := any("waits")
		if d.Number > 0 {
			number = d.Number
		}
		return []any{number, d.Championship, d.Competitor, d.Decision, d.SessionKey, d.By, d.Reason}
	})
	return nil
}
