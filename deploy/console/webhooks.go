package console

import (
	"context"
	"slices"

	"gridcast/deploy/operator"
	"gridcast/scheduler/webhook"
)

// webhooksSection lists the webhooks, and the topics to choose from.
type webhooksSection struct {
	List    []operator.WebhookStatus
	Topics  []string
	MaySign bool // webhooks can be added and tested here
}

const shownAttempts = 8

func (c *Console) collectWebhooks(ctx context.Context, p *page) error {
	p.Webhooks.Topics, p.Webhooks.MaySign = webhook.Topics(), c.Operator.Webhooks != nil && c.Operator.Webhooks.Master() != ""
	var err error
	p.Webhooks.List, err = c.Operator.ListWebhooks(ctx)
	return err
}

// latestAttempts returns the latest attempts of a webhook, the newest first.
func latestAttempts(all []webhook.Attempt) []webhook.Attempt {
	latest := slices.Clone(all[max(len(all)-shownAttempts, 0):])
	slices.Reverse(latest)
	return latest
}

// webhookNotices adds notices about webhooks that get no messages.
func (p *page) webhookNotices(add func(urgent bool, section, advice, format string, args ...any)) {
	unsigned := 0
	for _, h := range p.Webhooks.List {
		switch {
		case h.GivenUp:
			add(false, "webhooks", "Ask its owner, test it, and resume it. It then gets all missed changes in one message.", "The webhook to %s is paused: %s", h.Host(), h.Why)
		case h.State == webhook.Unsigned, h.Paused.IsZero() && !p.Webhooks.MaySign:
			unsigned++
		}
	}
	if unsigned > 0 {
		add(true, "webhooks", "Give the scheduler the earlier master (--webhook-master-file), or rotate their secrets.", "%d webhooks get no messages, because this scheduler cannot sign them", unsigned)
	}
}
