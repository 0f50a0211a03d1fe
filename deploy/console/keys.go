package console

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"gridcast/deploy/auditlog"
	"gridcast/edge/keys"
)

// keyView is a key and what it asked of all edges since they were started.
type keyView struct {
	keys.Record
	State             string
	Active            bool
	Requests, Refused uint64
}

func (c *Console) collectKeys(ctx context.Context, p *page, reports []EdgeReport) error {
	document, _, err := keys.Load(ctx, c.Store)
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
		v := keyView{Record: k, Active: k.Active(now), State: "active", Requests: usage[k.ID].Requests, Refused: usage[k.ID].Refused}
		switch {
		case !k.Revoked.IsZero():
			v.State = "revoked"
		case !v.Active:
			v.State = "expired"
		}
		p.Keys = append(p.Keys, v)
	}
	slices.SortStableFunc(p.Keys, func(a, b keyView) int {
		return cmp.Or(cmp.Compare(rank(a.Active), rank(b.Active)), cmp.Compare(b.Requests, a.Requests), cmp.Compare(a.Name, b.Name))
	})
	return nil
}

// createKey makes a key and shows it, this once.
func (c *Console) createKey(w http.ResponseWriter, r *http.Request, operator string) {
	request := keys.Request{Name: strings.TrimSpace(r.PostFormValue("client")), Tier: r.PostFormValue("tier")}
	if _, ok := c.Tiers[request.Tier]; !ok {
		c.refuse(w, r, http.StatusUnprocessableEntity, "the tier must be one of "+strings.Join(c.Tiers.Names(), ", "))
		return
	}
	if request.Name == "" {
		c.refuse(w, r, http.StatusUnprocessableEntity, "enter the client that the key is for")
		return
	}
	request.Origins = strings.Fields(r.PostFormValue("origins"))
	var record keys.Record
	var key string
	change := auditlog.Change{Actor: actor(operator), Action: auditlog.CreateKey, Subject: request.Name + ", " + request.Tier, Reason: reason(r)}
	err := c.Audit.Do(r.Context(), change, func() error {
		return keys.Update(r.Context(), c.Store, func(d *keys.Document) (err error) {
			record, key, err = d.Create(request, time.Now())
			return err
		})
	})
	if err != nil {
		c.refuse(w, r, http.StatusUnprocessableEntity, err.Error())
		return
	}
	created := createdKey{ID: record.ID, Key: key, Name: record.Name, Tier: record.Tier}
	if wantsPage(r) {
		c.render(w, http.StatusOK, "key", created)
		return
	}
	writeJSON(w, http.StatusOK, created)
}

// createdKey is a new key as it is shown, once.
type createdKey struct {
	ID   string `json:"id"`
	Key  string `json:"key"`
	Name string `json:"name"`
	Tier string `json:"tier"`
}

// revokeKey refuses a key from now on.
func (c *Console) revokeKey(w http.ResponseWriter, r *http.Request, operator string) {
	id := r.PathValue("key")
	change := auditlog.Change{Actor: actor(operator), Action: auditlog.RevokeKey, Subject: id, Reason: reason(r)}
	var record keys.Record
	err := c.Audit.Do(r.Context(), change, func() error {
		return keys.Update(r.Context(), c.Store, func(d *keys.Document) (err error) {
			record, err = d.Revoke(id, time.Now())
			return err
		})
	})
	switch {
	case errors.Is(err, keys.ErrNoKey):
		c.refuse(w, r, http.StatusNotFound, "no key of that id")
	case err != nil:
		c.refuse(w, r, http.StatusBadGateway, "the key was not revoked: "+err.Error()+"; try again")
	case wantsPage(r):
		http.Redirect(w, r, "/#keys", http.StatusSeeOther)
	default:
		writeJSON(w, http.StatusOK, map[string]string{"id": record.ID, "text": "Key " + record.ID + " of " + record.Name + " is revoked; edges follow within a second or two."})
	}
}
