// Package webhook notifies receivers of the variants that a published version changes.
//
// An operator adds a Hook: an address, and the endpoints its receiver wants. A
// Deliverer, which every scheduler runs beside its jobs, notices each published version of any
// process, and posts the list of changes, signed by Standard Webhooks. Publishing never waits
// for it, even if a receiver hangs or is gone.
//
// The promise is at least once, and the newest state wins. A Deliverer claims an attempt in the store before
// it sends, so that several schedulers do not make the same attempt. If one dies between the answer and
// its record, another repeats the message under the same id when the claim has run out. A failed
// message is repeated by the schedule of Standard Webhooks. If a newer version is published
// meanwhile, the next attempt is a new message with everything since the last accepted one: a
// receiver that was away for hours gets one message, not every missed one. A receiver that accepts nothing
// until the schedule ends, three days later, is paused; one that answers 410 is paused at once.
//
// In the store:
//
//	webhooks/webhooks.json    every Hook, swapped: by operators, and when the Deliverer gives one up
//	webhooks/state/<id>.json  the delivery state of a hook, swapped by Deliverers: delivered version, claim, log
//
// No secret is in the store: the Sender derives each from a master file of the schedulers, the
// hook's id and its generation; see Sender.
package webhook

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"gridcast/schemas/catalog"
	"gridcast/snapshots/blob"
)

// Key is the store key of the hooks.
const Key = "webhooks/webhooks.json"

// MaxHooks is the largest number of hooks of a store: they are for a newsroom's servers, not for every reader.
const MaxHooks = 100

// Hook is a receiver. Instants are real time, in UTC.
type Hook struct {
	ID        string    `json:"id"`
	URL       string    `json:"url"`
	Endpoints []string  `json:"endpoints,omitzero"` // the endpoints it wants, from Topics; empty: all, without the laps of a race
	Created   time.Time `json:"created"`
	Since     int64     `json:"since"` // the version that was published then; the first message starts after it

	// The following describe its secret; see Sender.
	Master     string    `json:"master"`             // the name of the master
	Generation int       `json:"generation"`         // 1 for the first
	OldUntil   time.Time `json:"old_until,omitzero"` // the previous generation signs too until then

	Paused  time.Time `json:"paused,omitzero"`   // no message is sent since then
	Why     string    `json:"why,omitzero"`      // the reason of the pause, for people
	GivenUp bool      `json:"given_up,omitzero"` // paused after failures, not by an operator
	Resumed int       `json:"resumed,omitzero"`  // number of resumptions, so that earlier failures do not count
}

// Condition is the state of a hook; in metrics it is the label.
type Condition string

// The conditions.
const (
	Active   Condition = "active"
	Failing  Condition = "failing"  // its last attempt failed, and is repeated
	Paused   Condition = "paused"   // by an operator
	GivenUp  Condition = "given_up" // paused, because it accepted nothing
	Unsigned Condition = "unsigned" // messages are signed with another master than its own
)

var conditions = []Condition{Active, Failing, Paused, GivenUp, Unsigned}

// String returns the condition in words.
func (c Condition) String() string { return strings.ReplaceAll(string(c), "_", " ") }

// Condition returns the condition of the hook in a delivery state, where messages are signed with the master of that
// name.
func (h Hook) Condition(s Delivery, master string) Condition {
	switch {
	case h.GivenUp:
		return GivenUp
	case !h.Paused.IsZero():
		return Paused
	case h.Master != master:
		return Unsigned
	case s.Failures > 0 && s.Resumed == h.Resumed: // failures before a resumption do not count
		return Failing
	}
	return Active
}

// hooks is the content of Key, in order of creation.
type hooks struct {
	Format int    `json:"format"` // 1
	Hooks  []Hook `json:"hooks"`
}

// ErrNoHook means that no hook has the id.
var ErrNoHook = errors.New("no such webhook")

// Topics lists the possible endpoints of a hook: the endpoints of the catalog, and the feeds.
func Topics() []string {
	topics := make([]string, 0, len(catalog.Endpoints)+len(catalog.Feeds))
	for _, e := range catalog.Endpoints {
		if !e.File { // a download follows its documents, and a hook gets those
			topics = append(topics, string(e.Name))
		}
	}
	for _, f := range catalog.Feeds {
		topics = append(topics, strings.TrimPrefix(f.Path, "/"))
	}
	return topics
}

// New makes a hook that is not in a store yet, with the master of s.
func New(s *Sender, address string, endpoints []string, since int64) (Hook, error) {
	if s.Master() == "" {
		return Hook{}, ErrNoMaster
	}
	if err := s.CheckURL(address); err != nil {
		return Hook{}, err
	}
	for i, e := range endpoints {
		if !slices.Contains(Topics(), e) {
			return Hook{}, fmt.Errorf("endpoint %q: must be one of %s", e, strings.Join(Topics(), ", "))
		}
		if slices.Contains(endpoints[:i], e) {
			return Hook{}, fmt.Errorf("endpoint %s is named twice", e)
		}
	}
	return Hook{
		ID: "wh" + strings.ToLower(rand.Text()[:10]), URL: address, Endpoints: endpoints, Since: since,
		Created: time.Now().UTC().Truncate(time.Second), Master: s.Master(), Generation: 1,
	}, nil
}

// wants reports whether the receiver wants an endpoint. It gets a mere lap of a race only if it names the endpoint.
func (h Hook) wants(endpoint string, lap bool) bool {
	return len(h.Endpoints) == 0 && !lap || slices.Contains(h.Endpoints, endpoint)
}

// Pause stops all messages to the hook.
func (h *Hook) Pause(why string, givenUp bool) {
	h.Paused, h.Why, h.GivenUp = time.Now().UTC().Truncate(time.Second), why, givenUp
}

// Resume starts messages again, with everything since the last accepted one, as if nothing had failed.
func (h *Hook) Resume() {
	h.Paused, h.Why, h.GivenUp = time.Time{}, "", false
	h.Resumed++
}

// Rotate gives the hook another secret, of the master of s. The old secret signs too for the
// grace, if it comes from the same master.
func (h *Hook) Rotate(s *Sender, grace time.Duration) {
	h.OldUntil = time.Time{}
	if h.Master == s.Master() && grace > 0 {
		h.OldUntil = time.Now().Add(grace).UTC().Truncate(time.Second)
	}
	h.Master, h.Generation = s.Master(), h.Generation+1
}

// Host returns the host that gets the messages. The rest of the address may hold a token of the receiver, so previews
// and logs leave it out.
func (h Hook) Host() string {
	if u, err := url.Parse(h.URL); err == nil {
		return u.Host
	}
	return "?"
}

// Load returns the hooks of a store, in order of creation.
func Load(ctx context.Context, store blob.Store) ([]Hook, error) {
	d, _, err := document(store).Load(ctx)
	if err != nil {
		return nil, fmt.Errorf("load webhooks: %w", err)
	}
	return d.Hooks, nil
}

// Find returns the hook of an id, for changing it in place, or ErrNoHook.
func Find(hooks []Hook, id string) (*Hook, error) {
	i := slices.IndexFunc(hooks, func(h Hook) bool { return h.ID == id })
	if i < 0 {
		return nil, fmt.Errorf("%w %q; gridcast webhooks list shows them", ErrNoHook, id)
	}
	return &hooks[i], nil
}

// Heal replaces a damaged or lost list of webhooks by its copy in the store; see [blob.Document.Heal].
func Heal(ctx context.Context, store blob.Store) (bool, error) { return document(store).Heal(ctx) }

// document returns the object of the store that holds the hooks.
func document(store blob.Store) blob.Document[hooks] {
	return blob.Document[hooks]{Store: store, Key: Key, Copied: true, Decode: decode}
}

// decode reads the content of Key; without data it returns a document without hooks.
func decode(data []byte) (hooks, error) {
	d := hooks{Format: 1}
	if err := blob.DecodeJSON(data, &d); err != nil {
		return hooks{}, err
	}
	if d.Format != 1 {
		return hooks{}, fmt.Errorf("format %d, this program reads 1", d.Format)
	}
	return d, nil
}

// Update applies edit to the hooks of a store; see [blob.Document.Update] for its contract.
func Update(ctx context.Context, store blob.Store, edit func(*[]Hook) error) error {
	_, err := document(store).Update(ctx, func(d *hooks) error {
		if err := edit(&d.Hooks); err != nil {
			return err
		}
		if len(d.Hooks) > MaxHooks {
			return fmt.Errorf("a store has at most %d webhooks; remove one first", MaxHooks)
		}
		return nil
	})
	return err
}

// Delivery is the delivery state of a hook. Instants are real time, in UTC.
type Delivery struct {
	Format  int   `json:"format"`  // 1
	Told    int64 `json:"told"`    // the receiver has accepted every wanted change up to this version
	Resumed int   `json:"resumed"` // Hook.Resumed as of which failures count

	Pending  *Message  `json:"pending,omitempty"`  // claimed, or failed and not yet repeated
	Tried    []int64   `json:"tried,omitempty"`    // the versions of earlier messages since Told; the receiver may have got them
	Failures int       `json:"failures,omitzero"`  // attempts in a row
	Failing  time.Time `json:"failing,omitzero"`   // instant of the first of them
	Next     time.Time `json:"next,omitzero"`      // no attempt before this
	GiveUp   string    `json:"give_up,omitzero"`   // the reason for pausing the hook
	Owner    string    `json:"owner,omitzero"`     // of the claim: a run of a Deliverer
	Until    time.Time `json:"until,omitzero"`     // of the claim
	Attempts []Attempt `json:"attempts,omitempty"` // the latest, oldest first
}

// Message is a message without its list of changes, which follows from it.
type Message struct {
	ID       string    `json:"id"` // the same in every attempt
	Version  int64     `json:"version"`
	Previous int64     `json:"previous"` // Delivery.Told
	At       time.Time `json:"at"`       // publication of the version
}

// Attempt is a line of a hook's log.
type Attempt struct {
	At      time.Time `json:"at"`
	Message string    `json:"message"`
	Version int64     `json:"version,omitzero"` // 0: of a test
	Number  int       `json:"number"`           // 1 for the first since one succeeded
	Outcome Outcome   `json:"outcome"`
	Status  int       `json:"status,omitzero"` // of HTTP
	Millis  int64     `json:"milliseconds"`
	Detail  string    `json:"detail,omitzero"`
	Retry   time.Time `json:"retry,omitzero"` // the instant of the next attempt
}

// shownAttempts is the number of attempts in a hook's log.
const shownAttempts = 30

// DeliveryKey is the store key of the delivery state of a hook.
func DeliveryKey(id string) string { return "webhooks/state/" + id + ".json" }

// deliveryOf returns the object of the store that holds the delivery state of a hook. A new hook has every change up to the
// version that was published when it was added.
func deliveryOf(store blob.Store, h Hook) blob.Document[Delivery] {
	return blob.Document[Delivery]{Store: store, Key: DeliveryKey(h.ID), Decode: func(data []byte) (Delivery, error) {
		if len(data) == 0 {
			return Delivery{Format: 1, Told: h.Since, Resumed: h.Resumed}, nil
		}
		var s Delivery
		if err := json.Unmarshal(data, &s); err != nil || s.Format != 1 {
			// The receiver gets a message that everything may have changed.
			return Delivery{Format: 1, Resumed: h.Resumed}, nil //nolint:nilerr // a damaged state starts anew
		}
		return s, nil
	}}
}

// LoadDelivery returns the delivery state of a hook.
func LoadDelivery(ctx context.Context, store blob.Store, h Hook) (Delivery, error) {
	s, _, err := deliveryOf(store, h).Load(ctx)
	if err != nil {
		return Delivery{}, fmt.Errorf("load the state of webhook %s: %w", h.ID, err)
	}
	return s, nil
}
