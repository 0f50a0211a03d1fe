package operator

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"gridcast/builder"
	"gridcast/builder/archive"
	"gridcast/builder/ledger"
	"gridcast/deploy/auditlog"
	"gridcast/deploy/view"
	"gridcast/snapshots/blob"
)

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
