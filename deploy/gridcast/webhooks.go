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
	"gridcast/snapshots/blob"
)

type webhooksCmds struct {
	Add    webhooksAddCmd                        `cmd:"" help:"Notify a server of the changes in every published version; the command shows its secret once."`
	List   webhooksListCmd                       `cmd:"" help:"List the webhooks with their states."`
	Log    webhooksLogCmd                        `cmd:"" help:"Show the latest attempts of a webhook."`
	Test   webhookAction[operator.TestWebhook]   `cmd:"" help:"Send a webhook one message without changes, from this machine."`
	Pause  webhookAction[operator.PauseWebhook]  `cmd:"" help:"Pause a webhook until it is resumed."`
	Resume webhookAction[operator.ResumeWebhook] `cmd:"" help:"Resume a webhook; its next message lists all changes since the pause."`
	Rotate webhookAction[operator.RotateWebhook] `cmd:"" help:"Give a webhook another secret; the old one also signs for a while."`
	Remove webhookAction[operator.RemoveWebhook] `cmd:"" help:"Remove a webhook for ever."`
}

type webhooksAddCmd struct {
	webhookAction[operator.AddWebhook]
}

func (c *webhooksAddCmd) Run(ctx context.Context, s *terminal.Streams) error {
	for _, e := range c.Do.Endpoints {
		if !slices.Contains(webhook.Topics(), e) {
			return terminal.Usagef("--endpoint %q: must be one of %s", e, strings.Join(webhook.Topics(), ", "))
		}
	}
	return c.webhookAction.Run(ctx, s)
}

type webhooksListCmd struct {
	flags.Storage
	flags.Webhooks
}

// listedWebhook is a row of webhooks list --json.
type listedWebhook struct {
	webhook.Hook

	State string `json:"state"`
	Told  int64  `json:"told"`
}

func (c *webhooksListCmd) Run(ctx context.Context, s *terminal.Streams, store blob.Store) error {
	sender, err := c.Sender(nil)
	if err != nil {
		return err
	}
	list, err := (&operator.Operator{Store: store, Webhooks: sender}).ListWebhooks(ctx)
	if err != nil {
		return err
	}
	listed, rows := make([]listedWebhook, len(list)), make([][]any, len(list))
	for i, h := range list {
		listed[i] = listedWebhook{h.Hook, h.State.String(), h.Log.Told}
		endpoints := "everything"
		if len(h.Endpoints) > 0 {
			endpoints = strings.Join(h.Endpoints, " ")
		}
		state := h.State.String()
		if h.Trouble != "" {
			state += ": " + h.Trouble
		}
		rows[i] = []any{h.ID, h.Host(), endpoints, terminal.Time(h.Created), h.Log.Told, state}
	}
	s.PrintList(listed, fmt.Sprintf("%s has no webhooks; gridcast webhooks add makes one", store), []any{"id", "host", "told of", "created", "up to version", "state"}, rows)
	return nil
}

type webhooksLogCmd struct {
	flags.Storage
	ID string `arg:"" help:"The webhook's id, from webhooks list."`
}

func (c *webhooksLogCmd) Run(ctx context.Context, s *terminal.Streams, store blob.Store) error {
	hooks, err := webhook.Load(ctx, store)
	if err != nil {
		return err
	}
	h, err := webhook.Find(hooks, c.ID)
	if err != nil {
		return err
	}
	state, err := webhook.LoadDelivery(ctx, store, *h)
	if err != nil {
		return err
	}
	none := fmt.Sprintf("nothing was sent to %s yet; gridcast webhooks test %s sends a test message", h.Host(), h.ID)
	header := []any{"at", "message", "about", "attempt", "outcome", "took", "again", "detail"}
	terminal.PrintRows(s, state.Attempts, none, header, func(a webhook.Attempt) []any {
		about := "test"
		if a.Version > 0 {
			about = fmt.Sprintf("version %d", a.Version)
		}
		return []any{a.At.Format(time.RFC3339), a.Message, about, a.Number, string(a.Outcome), fmt.Sprintf("%d ms", a.Millis), terminal.Time(a.Retry), a.Detail}
	})
	return nil
}
