package operator

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"gridcast/deploy/auditlog"
	"gridcast/scheduler/webhook"
	"gridcast/snapshots"
	"gridcast/snapshots/blob"
)

// sender is what signs and sends webhooks, which needs a master.
func (o *Operator) sender() (*webhook.Sender, error) {
	if o.Webhooks == nil || o.Webhooks.Master() == "" {
		return nil, webhook.ErrNoMaster
	}
	return o.Webhooks, nil
}

// WebhookHost is how previews and logs call a webhook: without the rest of the address, which may
// hold a token of the receiver's.
func WebhookHost(h webhook.Hook) string {
	if u, err := url.Parse(h.URL); err == nil {
		return u.Host
	}
	return "?"
}

// wanted says what a webhook is told of.
func wanted(endpoints []string) string {
	if len(endpoints) == 0 {
		return "everything"
	}
	return strings.Join(endpoints, ", ")
}

// AddWebhook has a receiver told of every published version from now on; its secret is in
// Done.Secret.
type AddWebhook struct {
	URL       string
	Endpoints []string // of webhook.Topics; empty: all
}

func (d AddWebhook) entry() auditlog.Change {
	u, err := url.Parse(d.URL)
	if err != nil {
		u = &url.URL{Host: "?"}
	}
	return auditlog.Change{Action: auditlog.AddWebhook, Subject: u.Host + ", " + wanted(d.Endpoints)}
}

func (d AddWebhook) preview(ctx context.Context, o *Operator) (Preview, error) {
	sender, err := o.sender()
	if err != nil {
		return Preview{}, fmt.Errorf("add webhook: %w", err)
	}
	h, err := webhook.New(sender, d.URL, d.Endpoints, 0)
	if err != nil {
		return Preview{}, fmt.Errorf("add webhook: %w", err)
	}
	hooks, err := webhook.Load(ctx, o.Store)
	if err != nil {
		return Preview{}, err
	}
	p := Preview{
		Title:    "Add a webhook to " + WebhookHost(h),
		Question: fmt.Sprintf("Send what changes to %s from now on?", WebhookHost(h)),
		Effects: []string{
			fmt.Sprintf("After every publication %s is sent the list of what has changed, of %s: paths and ETags, no data.", WebhookHost(h), wanted(d.Endpoints)),
			"The secret that its receiver verifies with is shown once.",
		},
		Seen: digest(len(hooks)),
	}
	if slices.ContainsFunc(hooks, func(other webhook.Hook) bool { return other.URL == d.URL }) {
		p.Warnings = append(p.Warnings, "There is a webhook to this address already: it will be told twice.")
	}
	if len(hooks) >= webhook.MaxHooks {
		return p, fmt.Errorf("add webhook: there are %d, which is as many as a store may have; remove one first", len(hooks))
	}
	return p, nil
}

func (d AddWebhook) do(ctx context.Context, o *Operator, _ Request, _ Preview) (Answer, error) {
	pointer, _, err := snapshots.LoadPointer(ctx, o.Store)
	if err != nil && !errors.Is(err, snapshots.ErrNone) {
		return Answer{}, err
	}
	h, err := webhook.New(o.Webhooks, d.URL, d.Endpoints, pointer.Version)
	if err != nil {
		return Answer{}, err
	}
	secret, err := o.Webhooks.Secret(h)
	if err != nil {
		return Answer{}, err
	}
	if err := webhook.Update(ctx, o.Store, func(hooks *[]webhook.Hook) error { *hooks = append(*hooks, h); return nil }); err != nil {
		return Answer{}, err
	}
	return Answer{
		Webhook: &h, Secret: secret,
		Text: fmt.Sprintf("Webhook %s to %s is told of every version after %d. Its secret is shown this once: it is kept nowhere.", h.ID, WebhookHost(h), h.Since),
	}, nil
}

// RotateWebhook gives a webhook another secret. The old one signs too for the grace.
type RotateWebhook struct {
	ID    string
	Grace time.Duration
}

func (d RotateWebhook) entry() auditlog.Change {
	return auditlog.Change{Action: auditlog.RotateWebhook, Subject: d.ID}
}

func (d RotateWebhook) preview(ctx context.Context, o *Operator) (Preview, error) {
	sender, err := o.sender()
	if err != nil {
		return Preview{}, fmt.Errorf("rotate webhook %s: %w", d.ID, err)
	}
	if d.Grace < 0 {
		return Preview{}, fmt.Errorf("rotate webhook %s: a grace of %s: must not be negative", d.ID, d.Grace)
	}
	return o.previewWebhook(ctx, d.ID, func(h webhook.Hook, p *Preview) {
		p.Title = "Rotate the secret of the webhook to " + WebhookHost(h)
		p.Question = fmt.Sprintf("Replace the secret of %s?", WebhookHost(h))
		p.Effects = []string{"A new secret is shown once, and signs from now on."}
		if h.Master == sender.Master() {
			p.Effects = append(p.Effects, fmt.Sprintf("The old one signs too until %s.", minute(time.Now().Add(d.Grace))))
			return
		}
		p.Warnings = []string{"The old secret is of another master and cannot sign any more: its receiver refuses messages until it has the new one."}
	})
}

func (d RotateWebhook) do(ctx context.Context, o *Operator, _ Request, p Preview) (Answer, error) {
	h, err := o.updateWebhook(ctx, d.ID, p, func(h *webhook.Hook) { h.Rotate(o.Webhooks, d.Grace) })
	if err != nil {
		return Answer{}, err
	}
	secret, err := o.Webhooks.Secret(h)
	return Answer{Webhook: &h, Secret: secret, Text: fmt.Sprintf("Webhook %s to %s has a new secret, shown this once: it is kept nowhere.", h.ID, WebhookHost(h))}, err
}

// PauseWebhook has nothing sent to a webhook until it is resumed.
type PauseWebhook struct{ ID string }

func (d PauseWebhook) entry() auditlog.Change {
	return auditlog.Change{Action: auditlog.PauseWebhook, Subject: d.ID}
}

func (d PauseWebhook) preview(ctx context.Context, o *Operator) (Preview, error) {
	return o.previewWebhook(ctx, d.ID, func(h webhook.Hook, p *Preview) {
		p.Title = "Pause the webhook to " + WebhookHost(h)
		p.Question = fmt.Sprintf("Send nothing to %s any more?", WebhookHost(h))
		p.Effects = []string{"Nothing is sent until it is resumed; then it gets one message about all that has changed meanwhile."}
		if !h.Paused.IsZero() {
			p.Warnings = []string{"It has been paused since " + minute(h.Paused) + "."}
		}
	})
}

func (d PauseWebhook) do(ctx context.Context, o *Operator, request Request, p Preview) (Answer, error) {
	why := "paused by " + request.Actor
	if request.Reason != "" {
		why += ": " + request.Reason
	}
	h, err := o.updateWebhook(ctx, d.ID, p, func(h *webhook.Hook) { h.Pause(why, false) })
	return Answer{Webhook: &h, Text: fmt.Sprintf("Webhook %s to %s is paused.", h.ID, WebhookHost(h))}, err
}

// RecordPause pauses a webhook that has taken nothing for too long, once the audit log says so. Several
// schedulers may come to it at once: of whoever comes second the log says that it failed.
func RecordPause(ctx context.Context, store blob.Store, h webhook.Hook, why string, pause func() error) error {
	log, err := auditlog.Load(ctx, store)
	if err != nil {
		return err
	}
	return log.Do(ctx, auditlog.Change{Actor: ServiceActor, Action: auditlog.PauseWebhook, Subject: h.ID, Reason: auditlog.Printable(why)}, pause)
}

// ResumeWebhook has a webhook sent to again.
type ResumeWebhook struct{ ID string }

func (d ResumeWebhook) entry() auditlog.Change {
	return auditlog.Change{Action: auditlog.ResumeWebhook, Subject: d.ID}
}

func (d ResumeWebhook) preview(ctx context.Context, o *Operator) (Preview, error) {
	return o.previewWebhook(ctx, d.ID, func(h webhook.Hook, p *Preview) {
		p.Title = "Resume the webhook to " + WebhookHost(h)
		p.Question = fmt.Sprintf("Send to %s again?", WebhookHost(h))
		p.Effects = []string{"It is sent at once what has changed since the last message that it took, and failures of before do not count."}
		if h.Paused.IsZero() {
			p.Warnings = []string{"It is not paused: only its failures are forgotten."}
		}
	})
}

func (d ResumeWebhook) do(ctx context.Context, o *Operator, _ Request, p Preview) (Answer, error) {
	h, err := o.updateWebhook(ctx, d.ID, p, (*webhook.Hook).Resume)
	return Answer{Webhook: &h, Text: fmt.Sprintf("Webhook %s to %s is sent to again.", h.ID, WebhookHost(h))}, err
}

// RemoveWebhook ends a webhook, for ever.
type RemoveWebhook struct{ ID string }

func (d RemoveWebhook) entry() auditlog.Change {
	return auditlog.Change{Action: auditlog.RemoveWebhook, Subject: d.ID}
}

func (d RemoveWebhook) preview(ctx context.Context, o *Operator) (Preview, error) {
	return o.previewWebhook(ctx, d.ID, func(h webhook.Hook, p *Preview) {
		p.Title = "Remove the webhook to " + WebhookHost(h)
		p.Question = fmt.Sprintf("Tell %s nothing any more, for ever?", WebhookHost(h))
		p.Effects = []string{"Its secret and its log are gone. One that is added again has another secret."}
	})
}

func (d RemoveWebhook) do(ctx context.Context, o *Operator, _ Request, p Preview) (Answer, error) {
	var gone webhook.Hook
	err := webhook.Update(ctx, o.Store, func(hooks *[]webhook.Hook) error {
		h, err := findWebhook(*hooks, d.ID, p)
		if err != nil {
			return err
		}
		gone = *h
		*hooks = slices.DeleteFunc(*hooks, func(h webhook.Hook) bool { return h.ID == d.ID })
		return nil
	})
	if err == nil {
		err = o.Store.Delete(ctx, webhook.DeliveryKey(d.ID))
	}
	return Answer{Webhook: &gone, Text: fmt.Sprintf("Webhook %s to %s is removed.", gone.ID, WebhookHost(gone))}, err
}

// TestWebhook sends a webhook a message that says nothing has changed, once, from this machine.
type TestWebhook struct{ ID string }

func (d TestWebhook) entry() auditlog.Change {
	return auditlog.Change{Action: auditlog.TestWebhook, Subject: d.ID}
}

func (d TestWebhook) preview(ctx context.Context, o *Operator) (Preview, error) {
	sender, err := o.sender()
	if err != nil {
		return Preview{}, fmt.Errorf("test webhook %s: %w", d.ID, err)
	}
	var wrong error
	p, err := o.previewWebhook(ctx, d.ID, func(h webhook.Hook, p *Preview) {
		p.Title = "Test the webhook to " + WebhookHost(h)
		p.Effects = []string{fmt.Sprintf("%s is sent a message of the type webhook.test, once, from this machine.", WebhookHost(h))}
		if h.Master != sender.Master() {
			wrong = fmt.Errorf("test webhook %s: %w", d.ID, webhook.MasterError(h, sender))
		}
	})
	return p, errors.Join(err, wrong)
}

func (d TestWebhook) do(ctx context.Context, o *Operator, _ Request, p Preview) (Answer, error) {
	hooks, err := webhook.Load(ctx, o.Store)
	if err != nil {
		return Answer{}, err
	}
	h, err := findWebhook(hooks, d.ID, p)
	if err != nil {
		return Answer{}, err
	}
	a, err := webhook.Test(ctx, o.Store, o.Webhooks, *h)
	if err != nil {
		return Answer{}, err
	}
	done := Answer{Webhook: h, Attempt: &a}
	if a.Outcome != webhook.Delivered {
		return done, fmt.Errorf("test webhook %s: %s did not take it (%s): %s", h.ID, WebhookHost(*h), a.Outcome, a.Detail)
	}
	done.Text = fmt.Sprintf("%s took it: status %d after %d ms.", WebhookHost(*h), a.Status, a.Millis)
	return done, nil
}

// findWebhook finds a webhook that is still as p was made from.
func findWebhook(hooks []webhook.Hook, id string, p Preview) (*webhook.Hook, error) {
	h, err := webhook.Find(hooks, id)
	if err != nil {
		return nil, err
	}
	if digest(h) != p.Seen {
		return nil, ErrChanged
	}
	return h, nil
}

// previewWebhook previews an action about the webhook of the id.
func (o *Operator) previewWebhook(ctx context.Context, id string, look func(webhook.Hook, *Preview)) (Preview, error) {
	hooks, err := webhook.Load(ctx, o.Store)
	if err != nil {
		return Preview{}, err
	}
	h, err := webhook.Find(hooks, id)
	if err != nil {
		return Preview{}, err
	}
	p := Preview{Seen: digest(h)}
	look(*h, &p)
	return p, nil
}

// updateWebhook changes a webhook, unless it has changed since p was made.
func (o *Operator) updateWebhook(ctx context.Context, id string, p Preview, edit func(*webhook.Hook)) (changed webhook.Hook, err error) {
	err = webhook.Update(ctx, o.Store, func(hooks *[]webhook.Hook) error {
		h, err := findWebhook(*hooks, id, p)
		if err != nil {
			return err
		}
		edit(h)
		changed = *h
		return nil
	})
	return changed, err
}

// WebhookStatus is how a webhook stands, for people.
type WebhookStatus struct {
	webhook.Hook

	State   webhook.Condition
	Trouble string // what is wrong, if anything
	Log     webhook.Delivery
}

// ListWebhooks tells how the webhooks of a store stand. Whether they can be signed is known only
// where the process has a master.
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
		master := h.Master // without one here, whether it can be signed is for another process to say
		if o.Webhooks != nil && o.Webhooks.Master() != "" {
			master = o.Webhooks.Master()
		}
		switch s.State = h.Condition(s.Log, master); s.State {
		case webhook.GivenUp, webhook.Paused:
			s.Trouble = h.Why
		case webhook.Unsigned:
			s.Trouble = webhook.MasterError(h, o.Webhooks).Error()
		case webhook.Failing:
			s.Trouble = fmt.Sprintf("since %s, %d attempts", minute(s.Log.Failing), s.Log.Failures)
		case webhook.Active:
		}
		list[i] = s
	}
	return list, nil
}
