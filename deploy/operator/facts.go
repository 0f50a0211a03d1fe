package operator

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"

	"gridcast/builder/archive"
	"gridcast/builder/season"
	"gridcast/deploy/auditlog"
	"gridcast/snapshots/blob"
)

// ImportArchive makes an archive the one that builders build from.
type ImportArchive struct {
	File   []byte // an archive file
	Origin string // where it comes from, for the log: a path, the name of an upload
}

func (d ImportArchive) look(ctx context.Context, o *Operator) (*Plan, error) {
	next, err := archive.Decode(bytes.NewReader(d.File))
	if err != nil {
		return nil, fmt.Errorf("import %s: %w", d.Origin, err)
	}
	sum := archive.Sum(d.File)
	return o.useArchive(ctx, next, sum, d.File, strings.TrimSpace(d.Origin+" "+sum))
}

// UseArchive makes an earlier archive of the store the one in use.
type UseArchive struct {
	SHA256 string `arg:"" name:"sha" help:"The first digits of its sum, from archive list."`
}

func (d UseArchive) look(ctx context.Context, o *Operator) (*Plan, error) {
	next, file, err := archive.NewStore(o.Store).Find(ctx, d.SHA256)
	if err != nil {
		return nil, err
	}
	return o.useArchive(ctx, next.Archive, next.SHA256, file, d.SHA256)
}

// useArchive plans that the archive of a file becomes the one in use. It is refused if a result that the one
// in use has is missing: what is published could not be built any more.
func (o *Operator) useArchive(ctx context.Context, next *season.Archive, sum string, file []byte, subject string) (*Plan, error) {
	store := archive.NewStore(o.Store)
	p := Preview{Title: "Use another archive", Question: "Build everything from this archive?"}
	inUse, err := store.Load(ctx)
	switch {
	case errors.Is(err, blob.ErrNotFound):
		p.Question, p.Effects = "", []string{"The store has no archive yet: this one is its first."}
	case err != nil:
		p.Warnings = []string{fmt.Sprintf("The archive in use cannot be read, so nothing can be compared: %v.", err)}
	case inUse.SHA256 == sum:
		p.Question, p.Seen, p.Effects = "", inUse.SHA256, []string{"It is the archive in use: nothing changes."}
	default:
		diff := archive.Compare(inUse.Archive, next)
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
	return &Plan{
		entry: auditlog.Intent{Action: auditlog.PutArchive, Subject: subject}, Preview: p,
		do: func(ctx context.Context, _ Request) (Answer, error) {
			if inUse, err := store.Load(ctx); err == nil && p.Seen != "" && inUse.SHA256 != p.Seen {
				return Answer{}, fmt.Errorf("import: the archive in use: %w", ErrStale)
			}
			now, err := store.Put(ctx, file)
			if err != nil {
				return Answer{}, err
			}
			answer := Answer{Record: now, Text: fmt.Sprintf("The archive %.12s is in use.", now.SHA256)}
			if now.SHA256 != p.Seen {
				answer.Unpublished = "archive changed"
			}
			return answer, nil
		},
	}, nil
}
