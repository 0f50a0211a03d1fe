package operator

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"gridcast/deploy/auditlog"
	"gridcast/scheduler/webhook"
	"gridcast/snapshots"
)

// sender returns the sender of webhooks. It fails if there is no master secret.
func (o *Operator) sender() (*webhook.Sender, error) {
	if o.Webhooks == nil || o.Webhooks.Master() == "" {
		return nil, webhook.ErrNoMaster
	}
	return o.Webhooks, nil
}

// wanted names the endpoints that a webhook is notified of.
func wanted(endpoints []string) string {
	if len(endpoints) == 0 {
		return "everything"
	}
	return strings.Join(endpoints, ", ")
}

// AddWebhook notifies a receiver of every version published from now on. The receiver verifies messages with
// Answer.Secret.
type AddWebhook struct {
	URL       string   `arg:"" help:"Where messages are posted: an https address of the public internet, at port 443 or one from 1024 on."`
	Endpoints []string `name:"endpoint" help:"An endpoint to notify of, such as standings or calendar.ics; repeat for more. Default: every endpoint, and live only when a race starts, is suspended or over, or a live pick is frozen or missed. With --endpoint live also every lap." env:"-" placeholder:"NAME"` // of webhook.Topics; empty: all
}

func (d AddWebhook) look(ctx context.Context, o *Operator) (*Plan, error) {
	sender, err := o.sender()
	if err != nil {
		return nil, fmt.Errorf("add webhook: %w", err)
	}
	h, err := webhook.New(sender, d.URL, d.Endpoints, 0)
	if err != nil {
		return nil, fmt.Errorf("add webhook: %w", err)
	}
	hooks, err := webhook.Load(ctx, o.Store)
	if err != nil {
		return nil, err
	}
	if len(hooks) >= webhook.MaxHooks {
		return nil, fmt.Errorf("add webhook: there are %d, which is as many as a store may have; remove one first", len(hooks))
	}
	host := h.Host()
	p := Preview{
		Title:    "Add a webhook to " + host,
		Question: fmt.Sprintf("Send what changes to %s from now on?", host),
		Effects: []string{
			fmt.Sprintf("After every publication %s gets the list of changed documents, of %s: paths and ETags, no data.", host, wanted(d.Endpoints)),
			"The secret that its receiver verifies with is shown once.",
		},
		Seen: digest(len(hooks)),
	}
	if slices.ContainsFunc(hooks, func(other webhook.Hook) bool { return other.URL == d.URL }) {
		p.Warnings = append(p.Warnings, "This address already has a webhook, and will get every message twice.")
	}
	return &Plan{
		Brief: true, Preview: p, entry: auditlog.Intent{Action: auditlog.AddWebhook, Subject: host + ", " + wanted(d.Endpoints)},
		do: func(ctx context.Context, _ Request) (Answer, error) {
			pointer, _, err := snapshots.LoadPointer(ctx, o.Store)
			if err != nil && !errors.Is(err, snapshots.ErrNone) {
				return Answer{}, err
			}
			h, err := webhook.New(sender, d.URL, d.Endpoints, pointer.Version)
			if err != nil {
				return Answer{}, err
			}
			secret, err := sender.Secret(h)
			if err != nil {
				return Answer{}, err
			}
			if err := webhook.Update(ctx, o.Store, func(hooks *[]webhook.Hook) error { *hooks = append(*hooks, h); return nil }); err != nil {
				return Answer{}, err
			}
			return Answer{
				Record: h, Secret: secret,
				Text: fmt.Sprintf("Webhook %s to %s is told of every version after %d. Its secret is shown this once: it is kept nowhere.", h.ID, host, h.Since),
			}, nil
		},
	}, nil
}

func (o *Operator) editWebhook(ctx context.Context, action auditlog.Verb, id string,
	preview func(*webhook.Hook, *Preview), change func(*[]webhook.Hook, *webhook.Hook, Request) (Answer, error),
) (*Plan, error) {
	return edit[[]webhook.Hook, webhook.Hook]{
		load: func(ctx context.Context) (*[]webhook.Hook, error) {
			hooks, err := webhook.Load(ctx, o.Store)
			return &hooks, err
		},
		update: func(ctx context.Context, change func(*[]webhook.Hook) error) error {
			return webhook.Update(ctx, o.Store, change)
		},
		find:    func(hooks *[]webhook.Hook) (*webhook.Hook, error) { return webhook.Find(*hooks, id) },
		preview: func(_ *[]webhook.Hook, h *webhook.Hook, p *Preview) error { preview(h, p); return nil },
		change:  change,
	}.plan(ctx, auditlog.Intent{Action: action, Subject: id})
}

// RotateWebhook gives a webhook another secret. Both secrets sign for the grace.
type RotateWebhook struct {
	ID    string `arg:"" form:"hook" help:"The webhook's id, from webhooks list."`
	Grace Span   `default:"24h" unit:"h" help:"How long the old secret also signs." env:"-"`
}

func (d RotateWebhook) look(ctx context.Context, o *Operator) (*Plan, error) {
	grace := time.Duration(d.Grace)
	sender, err := o.sender()
	if err != nil {
		return nil, fmt.Errorf("rotate webhook %s: %w", d.ID, err)
	}
	if grace < 0 {
		return nil, fmt.Errorf("rotate webhook %s: a grace of %s: must not be negative", d.ID, grace)
	}
	return o.editWebhook(ctx, auditlog.RotateWebhook, d.ID,
		func(h *webhook.Hook, p *Preview) {
			p.Title = "Rotate the secret of the webhook to " + h.Host()
			p.Question = fmt.Sprintf("Replace the secret of %s?", h.Host())
			p.Effects = []string{"A new secret is shown once, and signs from now on."}
			if h.Master == sender.Master() {
				p.Effects = append(p.Effects, fmt.Sprintf("The old one signs too until %s.", minute(time.Now().Add(grace))))
			} else {
				p.Warnings = []string{"The old secret belongs to another master and can no longer sign. The receiver refuses messages until it has the new secret."}
			}
		},
		func(_ *[]webhook.Hook, h *webhook.Hook, _ Request) (Answer, error) {
			h.Rotate(sender, grace)
			secret, err := sender.Secret(*h)
			return Answer{Record: *h, Secret: secret, Text: fmt.Sprintf("Webhook %s to %s has a new secret, shown this once: it is kept nowhere.", h.ID, h.Host())}, err
		})
}

// PauseWebhook stops messages to a webhook until it is resumed.
type PauseWebhook struct {
	ID string `arg:"" form:"hook" help:"The webhook's id, from webhooks list."`
}

func (d PauseWebhook) look(ctx context.Context, o *Operator) (*Plan, error) {
	return o.editWebhook(ctx, auditlog.PauseWebhook, d.ID,
		func(h *webhook.Hook, p *Preview) {
			p.Title = "Pause the webhook to " + h.Host()
			p.Question = fmt.Sprintf("Send nothing to %s any more?", h.Host())
			p.Effects = []string{"Nothing is sent until it is resumed; then it gets one message about all that has changed meanwhile."}
			if !h.Paused.IsZero() {
				p.Warnings = []string{"It has been paused since " + minute(h.Paused) + "."}
			}
		},
		func(_ *[]webhook.Hook, h *webhook.Hook, request Request) (Answer, error) {
			why := "paused by " + Who(request.Actor)
			if request.Reason != "" {
				why += ": " + request.Reason
			}
			h.Pause(why, false)
			return Answer{Record: *h, Text: fmt.Sprintf("Webhook %s to %s is paused.", h.ID, h.Host())}, nil
		})
}

// ResumeWebhook sends messages to a webhook again.
type ResumeWebhook struct {
	ID string `arg:"" form:"hook" help:"The webhook's id, from webhooks list."`
}

func (d ResumeWebhook) look(ctx context.Context, o *Operator) (*Plan, error) {
	return o.editWebhook(ctx, auditlog.ResumeWebhook, d.ID,
		func(h *webhook.Hook, p *Preview) {
			p.Title = "Resume the webhook to " + h.Host()
			p.Question = fmt.Sprintf("Send to %s again?", h.Host())
			p.Effects = []string{"It gets at once all changes since the last message that it accepted. Earlier failures no longer count."}
			if h.Paused.IsZero() {
				p.Warnings = []string{"It is not paused: only its count of failures is reset."}
			}
		},
		func(_ *[]webhook.Hook, h *webhook.Hook, _ Request) (Answer, error) {
			h.Resume()
			return Answer{Record: *h, Text: fmt.Sprintf("Webhook %s to %s is sent to again.", h.ID, h.Host())}, nil
		})
}

// RemoveWebhook ends a webhook, for ever.
type RemoveWebhook struct {
	ID string `arg:"" form:"hook" help:"The webhook's id, from webhooks list."`
}

func (d RemoveWebhook) look(ctx context.Context, o *Operator) (*Plan, error) {
	plan, err := o.editWebhook(ctx, auditlog.RemoveWebhook, d.ID,
		func(h *webhook.Hook, p *Preview) {
			p.Title = "Remove the webhook to " + h.Host()
			p.Question = fmt.Sprintf("Send nothing to %s any more, for ever?", h.Host())
			p.Effects = []string{"Its secret and its log are deleted. If you add it again it has another secret."}
		},
		func(hooks *[]webhook.Hook, h *webhook.Hook, _ Request) (Answer, error) {
			removed := *h
			*hooks = slices.DeleteFunc(*hooks, func(h webhook.Hook) bool { return h.ID == d.ID })
			return Answer{Record: removed, Text: fmt.Sprintf("Webhook %s to %s is removed.", removed.ID, removed.Host())}, nil
		})
	if err != nil {
		return nil, err
	}
	remove := plan.do
	plan.do = func(ctx context.Context, request Request) (Answer, error) {
		answer, err := remove(ctx, request)
		if err == nil {
			err = o.Store.Delete(ctx, webhook.DeliveryKey(d.ID))
		}
		return answer, err
	}
	return plan, nil
}

// TestWebhook sends a webhook one message without changes, from this machine.
type TestWebhook struct {
	ID string `arg:"" form:"hook" help:"The webhook's id, from webhooks list."`
}

func (d TestWebhook) look(ctx context.Context, o *Operator) (*Plan, error) {
	sender, err := o.sender()
	if err != nil {
		return nil, fmt.Errorf("test webhook %s: %w", d.ID, err)
	}
	hooks, err := webhook.Load(ctx, o.Store)
	if err != nil {
		return nil, err
	}
	h, err := webhook.Find(hooks, d.ID)
	if err != nil {
		return nil, err
	}
	if h.Master != sender.Master() {
		return nil, fmt.Errorf("test webhook %s: %w", d.ID, webhook.MasterError(*h, sender))
	}
	host := h.Host()
	return &Plan{
		entry: auditlog.Intent{Action: auditlog.TestWebhook, Subject: d.ID},
		Preview: Preview{
			Title:   "Test the webhook to " + host,
			Effects: []string{fmt.Sprintf("%s is sent a message of the type webhook.test, once, from this machine.", host)},
			Seen:    digest(h),
		},
		do: func(ctx context.Context, _ Request) (Answer, error) {
			a, err := webhook.Test(ctx, o.Store, sender, *h)
			if err != nil {
				return Answer{}, err
			}
			if a.Outcome != webhook.Delivered {
				return Answer{Record: a}, fmt.Errorf("test webhook %s: %s did not take it (%s): %s", h.ID, host, a.Outcome, a.Detail)
			}
			return Answer{Record: a, Text: fmt.Sprintf("%s took it: status %d after %d ms.", host, a.Status, a.Millis)}, nil
		},
	}, nil
}

// WebhookStatus is a webhook with the state of its deliveries, for people.
type WebhookStatus struct {
	webhook.Hook

	State   webhook.Condition
	Trouble string // the problem; empty: none
	Log     webhook.Delivery
}

// ListWebhooks returns the webhooks of a store with their states. A process without a master secret cannot
// tell whether messages can be signed.
func (o *Operator) ListWebhooks(ctx context.Context) ([]WebhookStatus, error) {
	hooks, err := webhook.Load(ctx, o.Store)
	if err != nil {
		return nil, err
	}
	list := make([]WebhookStatus, len(hooks))
	for i, h := range hooks {
		s := WebhookStatus{Hook: h}
		if s.Log, err = webhook.LoadDelivery(ctx, o.Store, h); err != nil {
			return nil, err
		}
		master := h.Master // a process without a master assumes that the webhook can be signed
		if o.Webhooks != nil && o.Webhooks.Master() != "" {
			master = o.Webhooks.Master()
		}
		switch s.State = h.Condition(s.Log, master); s.State {
		case webhook.GivenUp, webhook.Paused:
			s.Trouble = h.Why
		case webhook.Unsigned:
			s.Trouble = webhook.MasterError(h, o.Webhooks).Error()
		case webhook.Failing:
			s.Trouble = fmt.Sprintf("since %s, attempt %d", minute(s.Log.Failing), s.Log.Failures)
		case webhook.Active:
		}
		list[i] = s
	}
	return list, nil
}
