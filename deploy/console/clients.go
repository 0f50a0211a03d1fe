package console

import (
	"cmp"
	"context"
	"slices"
	"time"

	"gridcast/deploy/operator"
	"gridcast/deploy/usage"
	"gridcast/deploy/view"
	"gridcast/edge/keys"
	"gridcast/scheduler/webhook"
)

type keyRow struct {
	keys.StoredKey
	usage.Sum
	State  string
	Active bool
	Bars   []usageBar
}

// usageBar is the requests of a day in the drawing of a key.
type usageBar struct {
	X, Height, Refused int // of barsHeight
}

type keysSection struct {
	List  []keyRow
	Tiers []string
	Until time.Time // requests are counted up to here; zero: none were ever
	Gaps  []usage.Gap
}

const (
	usageDays  = 30
	barsHeight = 24
	// smallTier is the number of days with a 429 from which a tier is too small.
	smallTier = 3
)

func (c *Console) collectKeys(ctx context.Context, p *page) error {
	p.Keys.Tiers = c.Operator.Tiers.Names()
	document, _, err := keys.Load(ctx, c.Operator.Store)
	if err != nil {
		return err
	}
	now := time.Now()
	days := usage.Days(now, usageDays)
	used, err := c.Usage(ctx, days[0])
	p.trouble(err, "The usage of keys cannot be read", "Check the storage. Edges go on counting.", "keys")
	p.Keys.Until, p.Keys.Gaps = used.Until, used.Gaps
	sums := used.Sums(days[0], days[usageDays-1])
	for _, k := range document.Keys {
		row := keyRow{StoredKey: k, Active: k.Active(now), State: view.KeyState(&k, now), Sum: sums[k.ID]}
		if row.Requests > 0 {
			row.Bars = usageBars(days, used.Days, k.ID)
		}
		p.Keys.List = append(p.Keys.List, row)
	}
	slices.SortStableFunc(p.Keys.List, func(a, b keyRow) int {
		return cmp.Or(cmp.Compare(rank(a.Active), rank(b.Active)), cmp.Compare(b.Requests, a.Requests), cmp.Compare(a.Name, b.Name))
	})
	return nil
}

func usageBars(days []usage.Day, used map[usage.Day]map[string]keys.Counts, id string) (bars []usageBar) {
	var most uint64
	for _, day := range days {
		most = max(most, used[day][id].Requests)
	}
	for i, day := range days {
		if n := used[day][id]; n.Requests > 0 {
			of := func(n uint64) int { return int((n*barsHeight + most - 1) / most) }
			bars = append(bars, usageBar{i * 4, of(n.Requests), of(n.Refused())})
		}
	}
	return bars
}

func (p *page) usageNotices() {
	var small []keyRow
	for _, k := range p.Keys.List {
		if k.Active && k.LimitedDays >= smallTier {
			small = append(small, k)
		}
	}
	for _, k := range small[:min(len(small), view.Shown)] {
		p.add(false, "keys", "Ask the client to cache, or give the key another tier.", "The tier %s is too small for %s: 429 on %d of %d days", k.Tier, k.Name, k.LimitedDays, usageDays)
	}
	if more := len(small) - view.Shown; more > 0 {
		p.add(false, "keys", "gridcast keys usage lists them.", "The tiers of %d more keys are too small", more)
	}
	for _, g := range p.Keys.Gaps {
		if g.Why == usage.Unread {
			p.add(false, "keys", "Start the edge, or name its --admin-listen in --edges.", "Usage: %s", g)
		}
	}
}

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

func (p *page) webhookNotices() {
	unsigned := 0
	for _, h := range p.Webhooks.List {
		switch {
		case h.GivenUp:
			p.add(false, "webhooks", "Ask its owner, test it, and resume it. It then gets all missed changes in one message.", "The webhook to %s is paused: %s", h.Host(), h.Why)
		case h.State == webhook.Unsigned, h.Paused.IsZero() && !p.Webhooks.MaySign:
			unsigned++
		}
	}
	if unsigned > 0 {
		p.add(true, "webhooks", "Give the scheduler the earlier master (--webhook-master-file), or rotate their secrets.", "%d webhooks get no messages, because this scheduler cannot sign them", unsigned)
	}
}
