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

func (d ImportArchive) entry() auditlog.Change {
	return auditlog.Change{Action: auditlog.PutArchive, Subject: strings.TrimSpace(d.Origin + " " + archive.Sum(d.File))}
}

func (d ImportArchive) preview(ctx context.Context, o *Operator) (Preview, error) {
	next, err := archive.Decode(bytes.NewReader(d.File))
	if err != nil {
		return Preview{}, fmt.Errorf("import %s: %w", d.Origin, err)
	}
	return o.previewArchive(ctx, next, archive.Sum(d.File))
}

// previewArchive previews that the archive of a sum becomes the one in use. It is refused where a
// result is no longer there that is verified: what is published could not be built any more.
func (o *Operator) previewArchive(ctx context.Context, next *season.Archive, sum string) (Preview, error) {
	p := Preview{Title: "Use another archive", Question: "Build everything from this archive?"}
	inUse, err := archive.NewStore(o.Store).Load(ctx)
	switch {
	case errors.Is(err, blob.ErrNotFound):
		p.Question, p.Effects = "", []string{"The store has no archive yet: this one is its first."}
		return p, nil
	case err != nil:
		p.Warnings = []string{fmt.Sprintf("The archive in use cannot be read, so nothing can be compared: %v.", err)}
		return p, nil
	case inUse.SHA256 == sum:
		p.Question, p.Seen, p.Effects = "", inUse.SHA256, []string{"It is the archive in use: nothing changes."}
		return p, nil
	}
	diff := archive.Compare(inUse.Archive, next)
	p.Seen, p.Effects = inUse.SHA256, diff.Sentences()
	lost := diff.Lost()
	if len(lost) > 0 {
		p.Refusal = fmt.Sprintf("this archive lacks the results of %d rounds that the one in use has: %s", len(lost), archive.RoundNames(lost))
	}
	if len(diff.ColoursLost) > 0 {
		p.Warnings = append(p.Warnings, "Pages turn grey where team colours are lost.")
	}
	if diff.OnlyAdds() {
		p.Question = "" // nothing is replaced that anybody has relied on
	}
	return p, nil
}

func (d ImportArchive) do(ctx context.Context, o *Operator, _ Request, p Preview) (Answer, error) {
	return o.useArchive(ctx, d.File, p)
}

func (o *Operator) useArchive(ctx context.Context, file []byte, p Preview) (Answer, error) {
	facts := archive.NewStore(o.Store)
	if inUse, err := facts.Load(ctx); err == nil && p.Seen != "" && inUse.SHA256 != p.Seen {
		return Answer{}, fmt.Errorf("import: the archive in use: %w", ErrChanged)
	}
	now, err := facts.Put(ctx, file)
	if err != nil {
		return Answer{}, err
	}
	done := Answer{Facts: &now, Text: fmt.Sprintf("The archive %.12s is in use.", now.SHA256)}
	if now.SHA256 != p.Seen {
		done.Unpublished = "archive changed"
	}
	return done, nil
}

// UseArchive makes an archive the one in use that the store had before.
type UseArchive struct{ SHA256 string } // or its first digits

func (d UseArchive) entry() auditlog.Change {
	return auditlog.Change{Action: auditlog.PutArchive, Subject: d.SHA256}
}

func (d UseArchive) preview(ctx context.Context, o *Operator) (Preview, error) {
	next, _, err := archive.NewStore(o.Store).Find(ctx, d.SHA256)
	if err != nil {
		return Preview{}, err
	}
	return o.previewArchive(ctx, next.Archive, next.SHA256)
}

func (d UseArchive) do(ctx context.Context, o *Operator, _ Request, p Preview) (Answer, error) {
	_, file, err := archive.NewStore(o.Store).Find(ctx, d.SHA256)
	if err != nil {
		return Answer{}, err
	}
	return o.useArchive(ctx, file, p)
}
