package flags

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"time"

	"gridcast/builder"
	"gridcast/builder/ingest"
	"gridcast/builder/source"
	"gridcast/builder/source/f1db"
	"gridcast/builder/source/jolpica"
	"gridcast/builder/source/media"
	"gridcast/deploy/operator"
	"gridcast/deploy/terminal"
	"gridcast/scheduler/webhook"
)

// Sources names the sources of facts.
type Sources struct {
	Source      []string `help:"A source of facts: f1db, f1db-release or jolpica, each also as NAME=URL (https, or http on this machine), f1db-release as NAME=PATH. The list replaces the default; an earlier source wins over a later one. Default: f1db, for a real ledger. jolpica has non-commercial terms: its facts are only compared with the others, unless --accept-terms names it." placeholder:"NAME[=URL]" sep:" "`
	AcceptTerms []string `help:"Accept the non-commercial terms of a source: its facts may be published. /status names it." placeholder:"NAME" sep:" "`
	NoSources   bool     `help:"Poll no source unless --source names one: facts come only by import and by hand."`
}

// freshFor is how long a source's document counts as fresh. The schedule decides when to poll;
// freshFor keeps two schedulers of one store from polling a source twice.
const freshFor = 50 * time.Second

// Upstreams returns the sources to poll. They see version in the user agent. A ledger that is not
// real has no sources by default, because the past has no news.
func (f Sources) Upstreams(real bool, version string) ([]ingest.Source, error) {
	wanted := f.Source
	switch {
	case len(wanted) > 0:
	case f.NoSources, !real:
		return nil, nil
	default:
		wanted = []string{"f1db"}
	}
	agent := "gridcast/" + version + " (+https://github.com/gridcast)"
	var sources []ingest.Source
	seen := make(map[string]bool)
	for _, text := range wanted {
		name, place, _ := strings.Cut(text, "=")
		if seen[name] {
			return nil, terminal.Usagef("--source %s: named twice", name)
		}
		seen[name] = true
		var upstream source.Upstream
		var every time.Duration
		var err error
		switch name {
		case "f1db":
			upstream, err = f1db.NewRepository(cmp.Or(place, f1db.RepositoryURL), agent, media.Default())
		case "f1db-release":
			upstream, err = f1db.NewRelease(cmp.Or(place, f1db.ReleaseURL), agent, media.Default())
		case "jolpica":
			upstream, err = jolpica.New(cmp.Or(place, jolpica.URL), agent)
			every = jolpica.Every
		default:
			if strings.Contains(name, ":") { // a URL, which may hold a password
				name = "…"
			}
			err = errors.New("unknown source: must be f1db, f1db-release or jolpica, each also as NAME=URL")
		}
		if err != nil {
			return nil, terminal.Usagef("--source %s: %w", name, err)
		}
		sources = append(sources, ingest.Source{
			Upstream: upstream, Every: every, CheckOnly: upstream.Licence().NonCommercial && !slices.Contains(f.AcceptTerms, name),
		})
	}
	for _, name := range f.AcceptTerms {
		if !seen[name] {
			return nil, terminal.Usagef("--accept-terms %s: this source is not polled; name it with --source too", name)
		}
	}
	return sources, nil
}

// Ingest returns the ingest that polls the sources and brings their facts into the store of b.
func (f Sources) Ingest(ctx context.Context, b *builder.Builder, real bool, s *terminal.Streams) (*ingest.Ingest, error) {
	upstreams, err := f.Upstreams(real, s.Version)
	if err != nil {
		return nil, err
	}
	in := &ingest.Ingest{
		Store: b.Store, Facts: b.Archives, Ledger: b.Ledger, Sources: upstreams, Release: s.Version, Log: s.Log,
		Interval: func(time.Time) time.Duration { return freshFor },
	}
	return in, in.Load(ctx)
}

// Webhooks is for processes that sign and send webhooks.
type Webhooks struct {
	WebhookMasterFile       string `help:"A file with the master of the webhooks' secrets, at least 32 random bytes; the same for every scheduler and for commands that add webhooks. Create one: (umask 077; openssl rand -base64 32 >FILE)." placeholder:"FILE"`
	WebhookInsecureLoopback bool   `help:"For tests and demonstrations only: allow webhooks to this machine itself, also without TLS. The right to add a webhook then opens every service on it."`
}

// Sender returns the sender of webhooks. It warns on log, which may be nil.
func (f Webhooks) Sender(log *slog.Logger) (*webhook.Sender, error) {
	master, err := webhook.ReadMaster(f.WebhookMasterFile)
	if err != nil {
		return nil, err
	}
	if f.WebhookInsecureLoopback && log != nil {
		log.Warn("webhooks may go to this machine itself: --webhook-insecure-loopback is for tests and demonstrations")
	}
	return webhook.NewSender(webhook.SenderOptions{Master: master, InsecureLoopback: f.WebhookInsecureLoopback})
}

// Equip gives an operator the sender.
func (f Webhooks) Equip(o *operator.Operator) (err error) {
	o.Webhooks, err = f.Sender(nil)
	return err
}
