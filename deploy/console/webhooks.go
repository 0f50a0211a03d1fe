package console

import (
	"context"
	"slices"

	"gridcast/deploy/operator"
	"gridcast/scheduler/webhook"
)

type hookView struct {
	operator.WebhookStatus

	Active bool // not paused
	Bad    bool
	Lines  []webhook.Attempt // the latest attempts, newest first
}

// webhooksSection lists the webhooks, and the topics to choose from.
type webhooksSection struct {
	List    []hookView
	Topics  []string
	MaySign bool // webhooks can be added and tested here
}

const shownAttempts = 8

func (c *Console) collectWebhooks(ctx context.Context, p *page) error {
	p.Webhooks.Topics, p.Webhooks.MaySign = webhook.Topics(), c.Operator.Webhooks != nil && c.Operator.Webhooks.Master() != ""
	list, err := c.Operator.ListWebhooks(ctx)
	if err != nil {
		return err
	}
	for _, h := range list {
		v := hookView{WebhookStatus: h, Active: h.Paused.IsZero(), Bad: h.State != webhook.Active && h.State != webhook.Paused}
		v.Lines = slices.Clone(h.Log.Attempts[max(len(h.Log.Attempts)-shownAttempts, 0):])
		slices.Reverse(v.Lines)
		p.Webhooks.List = append(p.Webhooks.List, v)
	}
	return nil
}

// webhookNotices adds notices about webhooks that get no messages.
func (p *page) webhookNotices(add func(urgent bool, section, advice, format string, args ...any)) {
	unsigned := 0
	for _, h := range p.Webhooks.List {
		switch {
		case h.GivenUp:
			add(false, "webhooks", "Ask its owner, test it, and resume it. It then gets all missed changes in one message.", "The webhook to %s is paused: %s", h.Host(), h.Why)
		case h.State == webhook.Unsigned, h.Active && !p.Webhooks.MaySign:
			unsigned++
		}
	}
	if unsigned > 0 {
		add(true, "webhooks", "Give the scheduler the earlier master (--webhook-master-file), or rotate their secrets.", "%d webhooks get no messages, because this scheduler cannot sign them", unsigned)
	}
}
