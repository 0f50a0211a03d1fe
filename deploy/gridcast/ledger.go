package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"gridcast/builder"
	"gridcast/builder/ledger"
	"gridcast/deploy/operator"
)

type ledgerCmds struct {
	List  ledgerListCmd  `cmd:"" help:"List the events."`
	Audit ledgerAuditCmd `cmd:"" help:"Prove from the store alone that no pick was made late or changed."`
}

type ledgerListCmd struct {
	storeFlags `embed:""`
	Session    int64 `help:"Only events of this session key."`
	Last       int   `help:"Only the last N events." placeholder:"N"`
}

func (c *ledgerListCmd) Run(ctx context.Context, s *streams) error {
	store, err := c.openToRead(ctx)
	if err != nil {
		return err
	}
	l, err := ledger.Load(ctx, store, ledger.AnyKind)
	if err != nil {
		return err
	}
	type listed struct {
		Seq int64 `json:"seq"`
		ledger.Event
	}
	var events []listed
	for _, file := range l.Files() {
		for _, e := range file.Events {
			if c.Session == 0 || e.Session == c.Session {
				events = append(events, listed{file.Seq, e})
			}
		}
	}
	if c.Last > 0 && len(events) > c.Last {
		events = events[len(events)-c.Last:]
	}
	if s.json {
		return s.printJSON(events)
	}
	rows := make([][]any, len(events))
	for i, e := range events {
		rows[i] = []any{e.Seq, shortTime(e.When()), e.Type, sessionCell(e.Session), e.Event.String(), e.Actor}
	}
	return s.printTable([]any{"file", "at", "event", "session", "what", "actor"}, rows)
}

func sessionCell(key int64) string {
	if key == 0 {
		return ""
	}
	return strconv.FormatInt(key, 10)
}

type ledgerAuditCmd struct {
	storeFlags `embed:""`
	SinceHead  []string `help:"A head noted earlier, the hash of /status or a manifest: must still be part of the record. Repeat for more." placeholder:"HASH"`
}

func (c *ledgerAuditCmd) Run(ctx context.Context, s *streams) error {
	store, err := c.openToRead(ctx)
	if err != nil {
		return err
	}
	done, err := (&operator.Operator{Store: store}).Do(ctx, operator.AuditLedger{Heads: c.SinceHead}, operator.Order{})
	switch {
	case done.Audited == nil:
		return err
	case s.json:
		return errors.Join(s.printJSON(done.Audited), err)
	}
	if err := s.printAudit(*done.Audited); err != nil {
		return err
	}
	return err
}

// printAudit prints the tables of a report: what it proves, and where it breaks.
func (s *streams) printAudit(r builder.Audit) error {
	closest := time.Duration(-1)
	for _, p := range r.Picks {
		if margin := p.Margin(); !p.Live && (closest < 0 || margin < closest) {
			closest = margin
		}
	}
	if err := s.printf("ledger   %s, opened %s\nhead     file %d, %s\nevents   %d\npicks    %d frozen\n",
		r.Kind, shortTime(r.Opened), r.Head.Seq, r.Head.Hash, r.Events, len(r.Picks)); err != nil {
		return err
	}
	if closest >= 0 {
		if err := s.printf("closest  %s before lights out\n", closest); err != nil {
			return err
		}
	}
	if err := s.printf("versions %d, whose heads were looked for\nserved   version %d, with %d picks compared\n", r.Versions, r.Current, r.Served); err != nil {
		return err
	}
	for _, h := range r.Noted {
		if err := s.printf("noted    %s is file %d\n", h.Hash, h.Seq); err != nil {
			return err
		}
	}
	var rows [][]any
	for _, c := range r.Corrections {
		rows = append(rows, []any{shortTime(c.At), c.Session, c.GrandPrix, fmt.Sprintf("revision %d: %s", c.Revision, c.Reason), c.Actor})
	}
	for _, d := range r.Decisions {
		rows = append(rows, []any{shortTime(d.At), d.Session, d.GrandPrix, fmt.Sprintf("%s %s: %s", d.Type, shortTime(d.Start), d.Reason), d.Actor})
	}
	if len(rows) > 0 {
		if err := s.printf("\n%s\n", renderTable([]any{"at", "session", "round", "what", "actor"}, rows)); err != nil {
			return err
		}
	}
	if r.Green() {
		return s.printf("\nThe record is whole: every pick served was frozen before lights out and never changed.\n")
	}
	rows = nil
	for _, f := range r.Faults {
		rows = append(rows, []any{f.Key, f.Want, f.Got})
	}
	return s.printf("\n%s\n", renderTable([]any{"file", "expected", "found"}, rows))
}
