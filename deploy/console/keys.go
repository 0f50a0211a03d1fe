package console

import (
	"cmp"
	"context"
	"slices"
	"time"

	"gridcast/deploy/view"
	"gridcast/edge/keys"
)

// keyView is a key with the requests that all edges have counted since their start.
type keyView struct {
	keys.StoredKey
	State             string
	Active            bool
	Requests, Refused uint64
}

type keysSection struct {
	List  []keyView
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
		p.Keys.List = append(p.Keys.List, keyView{StoredKey: k, Active: k.Active(now), State: view.KeyState(&k, now), Requests: usage[k.ID].Requests, Refused: usage[k.ID].Refused})
	}
	slices.SortStableFunc(p.Keys.List, func(a, b keyView) int {
		return cmp.Or(cmp.Compare(rank(a.Active), rank(b.Active)), cmp.Compare(b.Requests, a.Requests), cmp.Compare(a.Name, b.Name))
	})
	return nil
}
