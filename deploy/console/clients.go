package console

import (
	"cmp"
	"context"
	"slices"
	"time"

	"gridcast/deploy/operator"
	"gridcast/deploy/view"
	"gridcast/edge/keys"
	"gridcast/scheduler/webhook"
)

// keyRow is a key with the requests that all edges have counted since their start.
type keyRow struct {
	keys.StoredKey
	State             string
	Active            bool
	Requests, Refused uint64
}

type keysSection struct {
	List  []keyRow
	Tiers []string
}

func (c *Console) collectKeys(ctx context.Context, p *page, reports []EdgeReport) error {
	p.Keys.Tiers = c.Operator.Tiers.Names()
	document, _, err := keys.Load(ctx, c.Operator.Store)
	if err != nil {
		return err
	}
	usage := map[string]keys.KeyUsage{}
	for _, r := range reports {
		for _, u := range r.Usage {
			sum := usage[u.ID]
			usage[u.ID] = keys.KeyUsage{ID: u.ID, Requests: sum.Requests + u.Requests, Refused: sum.Refused + u.Refused}
		}
	}
	now := time.Now()
	for _, k := range document.Keys {
		p.Keys.List = append(p.Keys.List, keyRow{StoredKey: k, Active: k.Active(now), State: view.KeyState(&k, now), Requests: usage[k.ID].Requests, Refused: usage[k.ID].Refused})
	}
	slices.SortStableFunc(p.Keys.List, func(a, b keyRow) int {
		return cmp.Or(cmp.Compare(rank(a.Active), rank(b.Active)), cmp.Compare(b.Requests, a.Requests), cmp.Compare(a.Name, b.Name))
	})
	return nil
}

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
