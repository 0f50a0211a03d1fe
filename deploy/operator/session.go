package operator

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"gridcast/builder/assemble"
	"gridcast/builder/ingest"
	"gridcast/builder/season"
	"gridcast/deploy/auditlog"
	"gridcast/deploy/view"
)

// planSession cancels a session of a weekend, or puts it back. The other sessions stay as they are, and a release of the
// sessions follows the sources again.
func (o *Operator) planSession(ctx context.Context, key int64, kind season.SessionKind, cancel bool) (*Plan, error) {
	if o.Ingest == nil {
		return nil, errNoFacts
	}
	v, err := o.view(ctx)
	if err != nil {
		return nil, err
	}
	r, err := findRound(v, o.Ledger.Fold(), key)
	if err != nil {
		return nil, err
	}
	sessions := slices.Clone(r.Facts.Sessions)
	if r.Facts.Sprint && !slices.ContainsFunc(sessions, func(s season.Session) bool { return s.Kind == season.Sprint }) {
		sessions = append(sessions, season.Session{Kind: season.Sprint, Date: r.Facts.Date.AddDate(0, 0, -1)})
	}
	i := slices.IndexFunc(sessions, func(s season.Session) bool { return s.Kind == kind })
	switch {
	case i < 0:
		return nil, fmt.Errorf("the weekend of the %s has no session %q; it has %s", label(r), kind,
			strings.Join(view.Each(sessions, func(s season.Session) string { return string(s.Kind) }), ", "))
	case cancel && r.Facts.Held(kind):
		return nil, fmt.Errorf("%s of the %s was held: its outcome is known", kind, label(r))
	case r.Facts.Cancelled(kind) && cancel:
		return nil, fmt.Errorf("%s of the %s is cancelled already; gridcast rounds reinstate %d --session %s puts it back", kind, label(r), key, kind)
	case !r.Facts.Cancelled(kind) && !cancel:
		return nil, fmt.Errorf("%s of the %s is not cancelled; gridcast rounds cancel %d --session %s cancels it", kind, label(r), key, kind)
	}
	sessions[i].Cancelled = cancel
	season.SortSessions(sessions)
	entry := ingest.ManualEntry{Statements: []ingest.Statement{{
		BlockID: assemble.BlockID{Year: r.Year, GrandPrix: r.Facts.GrandPrix, Block: assemble.Sessions},
		Entered: ingest.PartialRound{GrandPrix: r.Facts.GrandPrix, Sessions: sessions},
	}}}
	p, err := o.previewFacts(ctx, r, entry)
	if err != nil {
		return nil, err
	}
	action, done := auditlog.CancelRound, "cancelled"
	p.Title, p.Question = fmt.Sprintf("Cancel the %s of the %s", kind, label(r)), fmt.Sprintf("Call the %s off?", kind)
	if !cancel {
		action, done = auditlog.ReinstateRound, "held"
		p.Title, p.Question = fmt.Sprintf("Reinstate the %s of the %s", kind, label(r)), fmt.Sprintf("Put the %s back?", kind)
	}
	audited := roundEntry(action, key)
	audited.Subject += " " + string(kind)
	return &Plan{
		entry: audited, Preview: p,
		do: func(ctx context.Context, request Request) (Answer, error) {
			answer, err := o.enter(ctx, entry, request)
			answer.Record, answer.Text = r, fmt.Sprintf("The %s of the %s is %s.", kind, label(r), done)
			return answer, err
		},
	}, nil
}
