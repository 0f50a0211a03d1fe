package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"gridcast/deploy/flags"
	"gridcast/deploy/operator"
	"gridcast/deploy/terminal"
	"gridcast/scheduler/webhook"
)

type webhooksCmds struct {
	Add    webhooksAddCmd    `cmd:"" help:"Tell a server what every published version changes; its secret is shown once."`
	List   webhooksListCmd   `cmd:"" help:"List the webhooks and how they stand."`
	Log    webhooksLogCmd    `cmd:"" help:"Show the latest attempts of a webhook."`
	Test   webhooksTestCmd   `cmd:"" help:"Send a webhook a message that says nothing has changed, once, from this machine."`
	Pause  webhooksPauseCmd  `cmd:"" help:"Send a webhook nothing until it is resumed."`
	Resume webhooksResumeCmd `cmd:"" help:"Send to a webhook again, with all that has changed meanwhile."`
	Rotate webhooksRotateCmd `cmd:"" help:"Give a webhook another secret; the old one signs too for a while."`
	Remove webhooksRemoveCmd `cmd:"" help:"Tell a webhook nothing any more, for ever."`
}

// webhookActionFlags is what an action about a webhook is told.
type webhookActionFlags struct {
	flags.Storage        `embed:""`
	flags.Webhooks       `embed:""`
	flags.Action         `embed:""`
	flags.OptionalReason `embed:""`
}

// webhookArg names the webhook that an action is about.
type webhookArg struct {
	ID string `arg:"" help:"The webhook's id, from webhooks list."`
}

func (f *webhookActionFlags) do(ctx context.Context, s *terminal.Streams, action operator.Action) (operator.Answer, error) {
	o, err := f.Operator(ctx, s)
	if err != nil {
		return operator.Answer{}, err
	}
	if o.Webhooks, err = f.Sender(nil); err != nil {
		return operator.Answer{}, err
	}
	return f.Apply(ctx, s, o, action, operator.Request{Reason: f.Reason})
}

// change carries out an action that makes no secret, and prints what became of the webhook.
func (f *webhookActionFlags) change(ctx context.Context, s *terminal.Streams, action operator.Action) error {
	done, err := f.do(ctx, s, action)
	switch {
	case err != nil:
		return err
	case s.JSON:
		s.PrintJSON(done.Record)
		return nil
	}
	s.Printf("%s\n", done.Text)
	return nil
}

// printSecret shows the secret of a webhook, this once.
func (f *webhookActionFlags) printSecret(ctx context.Context, s *terminal.Streams, action operator.Action) error {
	done, err := f.do(ctx, s, action)
	switch {
	case err != nil:
		return err
	case s.JSON:
		s.PrintJSON(struct {
			webhook.Hook

			Secret string `json:"secret"`
		}{done.Record.(webhook.Hook), done.Secret})
		return nil
	}
	s.Printf("%s\n\n%s\n", done.Secret, done.Text)
	return nil
}

type webhooksAddCmd struct {
	webhookActionFlags `embed:""`
	URL                string   `arg:"" help:"Where messages are posted: an https address of the public internet, at port 443 or one from 1024 on."`
	Endpoint           []string `help:"What to tell of, such as standings or calendar.ics; repeat for more. Default: everything." env:"-" placeholder:"NAME"`
}

func (c *webhooksAddCmd) Run(ctx context.Context, s *terminal.Streams) error {
	for _, e := range c.Endpoint {
		if !slices.Contains(webhook.Topics(), e) {
			return terminal.Usagef("--endpoint %q: must be one of %s", e, strings.Join(webhook.Topics(), ", "))
		}
	}
	return c.printSecret(ctx, s, operator.AddWebhook{URL: c.URL, Endpoints: c.Endpoint})
}

type webhooksRotateCmd struct {
	webhookActionFlags `embed:""`
	webhookArg         `embed:""`
	Grace              flags.Span `default:"24h" help:"How long the old secret signs too." placeholder:"DURATION" env:"-"`
}

func (c *webhooksRotateCmd) Run(ctx context.Context, s *terminal.Streams) error {
	return c.printSecret(ctx, s, operator.RotateWebhook{ID: c.ID, Grace: operator.Span(c.Grace)})
}

type webhooksTestCmd struct {
	webhookActionFlags `embed:""`
	webhookArg         `embed:""`
}

func (c *webhooksTestCmd) Run(ctx context.Context, s *terminal.Streams) error {
	return c.change(ctx, s, operator.TestWebhook{ID: c.ID})
}

type webhooksPauseCmd struct {
	webhookActionFlags `embed:""`
	webhookArg         `embed:""`
}

func (c *webhooksPauseCmd) Run(ctx context.Context, s *terminal.Streams) error {
	return c.change(ctx, s, operator.PauseWebhook{ID: c.ID})
}

type webhooksResumeCmd struct {
	webhookActionFlags `embed:""`
	webhookArg         `embed:""`
}

func (c *webhooksResumeCmd) Run(ctx context.Context, s *terminal.Streams) error {
	return c.change(ctx, s, operator.ResumeWebhook{ID: c.ID})
}

type webhooksRemoveCmd struct {
	webhookActionFlags `embed:""`
	webhookArg         `embed:""`
}

func (c *webhooksRemoveCmd) Run(ctx context.Context, s *terminal.Streams) error {
	return c.change(ctx, s, operator.RemoveWebhook{ID: c.ID})
}

type webhooksListCmd struct {
	flags.Storage  `embed:""`
	flags.Webhooks `embed:""`
}

func (c *webhooksListCmd) Run(ctx context.Context, s *terminal.Streams) error {
	store, err := c.OpenToRead(ctx)
	if err != nil {
		return err
	}
	sender, err := c.Sender(nil)
	if err != nil {
		return err
	}
	list, err := (&operator.Operator{Store: store, Webhooks: sender}).ListWebhooks(ctx)
	switch {
	case err != nil:
		return err
	case s.JSON:
		hooks := make([]any, len(list))
		for i, h := range list {
			hooks[i] = struct {
				webhook.Hook

				State string `json:"state"`
				Told  int64  `json:"told"`
			}{h.Hook, h.State.String(), h.Log.Told}
		}
		s.PrintJSON(hooks)
		return nil
	case len(list) == 0:
		s.Printf("%s has no webhooks; gridcast webhooks add makes one\n", store)
		return nil
	}
	rows := make([][]any, len(list))
	for i, h := range list {
		endpoints := "everything"
		if len(h.Endpoints) > 0 {
			endpoints = strings.Join(h.Endpoints, " ")
		}
		state := h.State.String()
		if h.Trouble != "" {
			state += ": " + h.Trouble
		}
		rows[i] = []any{h.ID, terminal.Quoted(operator.WebhookHost(h.Hook)), endpoints, terminal.Time(h.Created), h.Log.Told, terminal.Quoted(state)}
	}
	s.PrintTable([]any{"id", "host", "told of", "created", "up to version", "state"}, rows)
	return nil
}

type webhooksLogCmd struct {
	flags.Storage `embed:""`
	webhookArg    `embed:""`
}

func (c *webhooksLogCmd) Run(ctx context.Context, s *terminal.Streams) error {
	store, err := c.OpenToRead(ctx)
	if err != nil {
		return err
	}
	hooks, err := webhook.Load(ctx, store)
	if err != nil {
		return err
	}
	h, err := webhook.Find(hooks, c.ID)
	if err != nil {
		return err
	}
	state, err := webhook.LoadDelivery(ctx, store, *h)
	switch {
	case err != nil:
		return err
	case s.JSON:
		s.PrintJSON(state.Attempts)
		return nil
	case len(state.Attempts) == 0:
		s.Printf("nothing was sent to %s yet; gridcast webhooks test %s tries the way\n", operator.WebhookHost(*h), h.ID)
		return nil
	}
	rows := make([][]any, len(state.Attempts))
	for i, a := range state.Attempts {
		about := "test"
		if a.Version > 0 {
			about = fmt.Sprintf("version %d", a.Version)
		}
		rows[i] = []any{a.At.Format(time.RFC3339), a.Message, about, a.Number, string(a.Outcome), fmt.Sprintf("%d ms", a.Millis), terminal.Time(a.Retry), terminal.Quoted(a.Detail)}
	}
	s.PrintTable([]any{"at", "message", "about", "attempt", "outcome", "took", "again", "detail"}, rows)
	return nil
}
