package f1db

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"gridcast/builder/season"
	"gridcast/builder/source"
	"gridcast/builder/source/media"
)

// The addresses of F1DB.
const (
	RepositoryURL = "https://codeload.github.com/f1db/f1db/tar.gz/refs/heads/main"
	ReleaseURL    = "https://github.com/f1db/f1db/releases/latest/download/f1db-json-splitted.zip"
)

var licence = source.Licence{Name: "CC BY 4.0"}

// clientConfig limits the requests to F1DB.
func clientConfig(target, userAgent string, types ...string) (source.ClientConfig, error) {
	host, err := source.Host(target)
	if err != nil {
		return source.ClientConfig{}, err
	}
	return source.ClientConfig{
		Hosts: []string{
			host, "github.com", "codeload.github.com", "objects.githubusercontent.com", "release-assets.githubusercontent.com",
		},
		UserAgent: userAgent, PerSecond: 1, PerHour: 60, MaxBytes: MaxPacked, ContentTypes: types, RetryDelay: time.Second,
	}, nil
}

// repository is F1DB's repository as an upstream.
type repository struct {
	url    string
	media  media.Media
	client *source.Client
}

// NewRepository returns F1DB's repository at the URL of a branch as tar.gz. It has the facts of a
// weekend as soon as they are committed. add supplies the colours and portraits that F1DB lacks.
func NewRepository(target, userAgent string, add media.Media) (source.Upstream, error) {
	config, err := clientConfig(target, userAgent, "application/x-gzip", "application/gzip", "application/octet-stream")
	if err != nil {
		return nil, err
	}
	return &repository{url: target, media: add, client: source.NewClient(config)}, nil
}

func (*repository) Name() string            { return "f1db" }
func (*repository) Licence() source.Licence { return licence }

func (r *repository) Fetch(ctx context.Context, now time.Time, from, to int, known source.Known) (source.Payload, error) {
	answer, err := r.client.Get(ctx, now, r.url, known.Validators)
	if err != nil || answer.NotModified {
		return source.Payload{NotModified: answer.NotModified, Validators: answer.Validators}, err
	}
	tree, err := ReadTree(bytes.NewReader(answer.Body), from, to)
	if err != nil {
		return source.Payload{}, &source.Fault{Kind: source.Malformed, Err: err}
	}
	packed, err := tree.Encode()
	if err != nil {
		return source.Payload{}, &source.Fault{Kind: source.Malformed, Err: err}
	}
	return source.NewPayload(packed, revisionOf(tree, packed), answer.Validators, known), nil
}

func (r *repository) Read(packed []byte) (source.Document, error) {
	tree, err := DecodeTree(packed)
	if err != nil {
		return source.Document{}, err
	}
	d, err := tree.Document(r.media)
	d.Revision = revisionOf(tree, packed)
	return d, err
}

// revisionOf names a packed tree, also one of an archive that names no commit.
func revisionOf(t *Tree, packed []byte) string { return cmp.Or(t.Commit, source.RevisionOf(packed)) }

// Document reads the tree as the document of the repository. It adds colours and portraits to the facts.
func (t *Tree) Document(add media.Media) (source.Document, error) {
	facts, report, err := t.facts(add)
	if err != nil {
		return source.Document{}, err
	}
	d := document((*repository)(nil).Name(), t.Commit, t.From, t.To, facts, report)
	d.Committed = t.Committed
	return d, nil
}

// latest is F1DB's latest release as an upstream.
type latest struct {
	place  string
	media  media.Media
	client *source.Client // nil for a file
}

// NewRelease returns an F1DB release as an upstream: the splitted zip at an https URL, or at a path.
// A fragment #sha256=HEX of the URL names the digest that the file must have.
func NewRelease(place, userAgent string, add media.Media) (source.Upstream, error) {
	if !strings.Contains(place, "://") {
		return &latest{place: place, media: add}, nil
	}
	config, err := clientConfig(place, userAgent, "application/zip", "application/octet-stream")
	if err != nil {
		return nil, err
	}
	return &latest{place, add, source.NewClient(config)}, nil
}

func (*latest) Name() string            { return "f1db-release" }
func (*latest) Licence() source.Licence { return licence }

func (r *latest) Fetch(ctx context.Context, now time.Time, _, _ int, known source.Known) (source.Payload, error) {
	if r.client == nil {
		packed, err := os.ReadFile(r.place)
		if err != nil {
			return source.Payload{}, &source.Fault{Kind: source.Unreachable, Err: err}
		}
		return source.NewPayload(packed, source.RevisionOf(packed), source.Validators{}, known), nil
	}
	target, fragment, _ := strings.Cut(r.place, "#")
	answer, err := r.client.Get(ctx, now, target, known.Validators)
	if err != nil || answer.NotModified {
		return source.Payload{NotModified: answer.NotModified, Validators: answer.Validators}, err
	}
	sum := source.Sum(answer.Body)
	if want, ok := strings.CutPrefix(fragment, "sha256="); ok && !strings.EqualFold(want, sum) {
		return source.Payload{}, &source.Fault{Kind: source.Malformed, Err: fmt.Errorf("get %s: SHA-256 is %s, want %s", target, sum, want)}
	}
	return source.NewPayload(answer.Body, source.RevisionOf(answer.Body), answer.Validators, known), nil
}

func (r *latest) Read(packed []byte) (source.Document, error) {
	facts, report, err := loadZip(bytes.NewReader(packed), int64(len(packed)), Options{Media: r.media})
	if err != nil {
		return source.Document{}, fmt.Errorf("read f1db release: %w", err)
	}
	to := facts.Seasons[len(facts.Seasons)-1].Year
	return document(r.Name(), source.RevisionOf(packed), to-2, to, facts, report), nil
}

func document(name, revision string, from, to int, facts season.Facts, report Report) source.Document {
	d := source.Document{Source: name, Revision: revision, From: from, To: to, Facts: facts, Sheets: report.sheets, Born: report.born, Unread: report.Unread}
	for _, s := range report.Skipped {
		if strings.HasSuffix(s.Why, "no time") {
			d.Notes = append(d.Notes, s.What+": "+s.Why)
		}
	}
	return d
}
