// Package webhook tells receivers which variants a published version has changed.
//
// An operator adds a Hook: an address, and which endpoints its receiver wants to hear of. A
// Deliverer, which every scheduler runs beside its jobs, notices each published version, whoever
// published it, and posts the list of what has changed, signed by Standard Webhooks. Nothing waits
// for it: a receiver that hangs, or is gone, changes nothing about publishing.
//
// The promise is at least once, and the newest state wins. An attempt is claimed in the store before
// it is made, so that several schedulers do not make the same one; if one dies between the answer and
// its record, another repeats the message under the same id when the claim has run out. A message
// that fails is repeated by the schedule of Standard Webhooks. If a newer version is published
// meanwhile, the next attempt is a new message about everything since the last one that was taken: a
// receiver that was away for hours gets one message, not all that it missed. One that takes nothing
// until the schedule ends, three days later, is paused, and so is one that answers 410 at once.
//
// In the store:
//
//	webhooks/webhooks.json    every Hook, swapped: by operators, and when one is given up
//	webhooks/state/<id>.json  how a hook stands, swapped by Deliverers: what it was told, its claim, its log
//
// No secret is in the store: each is derived from a master that the schedulers are given, by the
// hook's id and generation; see Sender.
package webhook

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"gridcast/schemas/catalog"
	"gridcast/snapshots/blob"
)

// Key is where the hooks of a store are kept.
const Key = "webhooks/webhooks.json"

// MaxHooks is how many a store may have: they are for a newsroom's servers, not for every reader.
const MaxHooks = 100

// Hook is a receiver. Instants are real time, in UTC.
type Hook struct {
	ID        string    `json:"id"`
	URL       string    `json:"url"`
	Endpoints []string  `json:"endpoints,omitzero"` // what it wants to hear of, from Topics; empty: everything
	Created   time.Time `json:"created"`
	Since     int64     `json:"since"` // the version that was published then, of which it need not hear

	// Of its secret; see Sender.
	Master     string    `json:"master"`             // names the master
	Generation int       `json:"generation"`         // 1 for the first
	OldUntil   time.Time `json:"old_until,omitzero"` // the generation before signs too until then

	Paused  time.Time `json:"paused,omitzero"`   // nothing is sent since then
	Why     string    `json:"why,omitzero"`      // it is paused, for people
	GivenUp bool      `json:"given_up,omitzero"` // paused by its failures, not by an operator
	Resumed int       `json:"resumed,omitzero"`  // how often, so that failures of before do not count
}

// Condition is how a hook stands; in metrics it is the label.
type Condition string

// The conditions.
const (
	Active   Condition = "active"
	Failing  Condition = "failing"  // its last attempt failed, and is repeated
	Paused   Condition = "paused"   // by an operator
	GivenUp  Condition = "given_up" // paused, because it took nothing
	Unsigned Condition = "unsigned" // its master is not the one that messages are signed with
)

var conditions = []Condition{Active, Failing, Paused, GivenUp, Unsigned}

// String is the condition in words.
func (c Condition) String() string { return strings.ReplaceAll(string(c), "_", " ") }

// Condition says how the hook stands by its state, where messages are signed with the master of that
// name.
func (h Hook) Condition(s State, master string) Condition {
	switch {
	case h.GivenUp:
		return GivenUp
	case !h.Paused.IsZero():
		return Paused
	case h.Master != master:
		return Unsigned
	case s.Failures > 0 && s.Resumed == h.Resumed: // what failed before it was resumed does not count
		return Failing
	}
	return Active
}

// document is the content of Key, in order of creation.
type document struct {
	Format int    `json:"format"` // 1
	Hooks  []Hook `json:"hooks"`
}

// ErrNoHook says that there is no hook of an id.
var ErrNoHook = errors.New("no such webhook")

// Topics lists what a hook may want to hear of: the endpoints of the catalog, and the feeds.
func Topics() []string {
	topics := make([]string, 0, len(catalog.Endpoints)+len(catalog.Feeds))
	for _, e := range catalog.Endpoints {
		if !e.File { // a download follows the documents that it is made of, of which a hook hears
			topics = append(topics, string(e.Name))
		}
	}
	for _, f := range catalog.Feeds {
		topics = append(topics, strings.TrimPrefix(f.Path, "/"))
	}
	return topics
}

// New makes a hook that is not in a store yet, of the master that s has.
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

// wants says whether the receiver wants to hear of an endpoint.
func (h Hook) wants(endpoint string) bool {
	return len(h.Endpoints) == 0 || slices.Contains(h.Endpoints, endpoint)
}

// Pause has nothing sent to the hook any more.
func (h *Hook) Pause(why string, givenUp bool) {
	h.Paused, h.Why, h.GivenUp = time.Now().UTC().Truncate(time.Second), why, givenUp
}

// Resume has it sent to again, with everything since it was told last, as if nothing had failed.
func (h *Hook) Resume() {
	h.Paused, h.Why, h.GivenUp = time.Time{}, "", false
	h.Resumed++
}

// Rotate gives the hook another secret, of the master that s has. The one of before signs too for the
// grace, if it is of the same master.
func (h *Hook) Rotate(s *Sender, grace time.Duration) {
	h.OldUntil = time.Time{}
	if h.Master == s.Master() && grace > 0 {
		h.OldUntil = time.Now().Add(grace).UTC().Truncate(time.Second)
	}
	h.Master, h.Generation = s.Master(), h.Generation+1
}

// Load returns the hooks of a store, in order of creation.
func Load(ctx context.Context, store blob.Store) ([]Hook, error) {
	d, _, err := load(ctx, store)
	return d.Hooks, err
}

// Find returns the hook of an id, for changing it in place, or ErrNoHook.
func Find(hooks []Hook, id string) (*Hook, error) {
	i := slices.IndexFunc(hooks, func(h Hook) bool { return h.ID == id })
	if i < 0 {
		return nil, fmt.Errorf("%w: %q", ErrNoHook, id)
	}
	return &hooks[i], nil
}

func load(ctx context.Context, store blob.Store) (document, blob.Tag, error) {
	object, err := store.Get(ctx, Key, blob.MaxDocument)
	if errors.Is(err, blob.ErrNotFound) {
		return document{Format: 1}, "", nil
	}
	if err != nil {
		return document{}, "", fmt.Errorf("load webhooks: %w", err)
	}
	d, err := decode(object.Data)
	return d, object.Tag, err
}

// decode reads the content of Key; nothing is a document without hooks.
func decode(data []byte) (document, error) {
	d := document{Format: 1}
	if len(data) == 0 {
		return d, nil
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields() // a field that this program does not know may be a restriction
	if err := dec.Decode(&d); err != nil {
		return document{}, fmt.Errorf("load webhooks: %s is damaged: %w", Key, err)
	}
	if d.Format != 1 {
		return document{}, fmt.Errorf("load webhooks: format %d, this program reads 1", d.Format)
	}
	return d, nil
}

// Update changes the hooks of a store, starting over when somebody else does too.
func Update(ctx context.Context, store blob.Store, edit func(*[]Hook) error) error {
	for {
		d, tag, err := load(ctx, store)
		if err != nil {
			return err
		}
		if err := edit(&d.Hooks); err != nil {
			return err
		}
		if len(d.Hooks) > MaxHooks {
			return fmt.Errorf("a store has at most %d webhooks; remove one first", MaxHooks)
		}
		data, err := json.MarshalIndent(d, "", "  ")
		if err != nil {
			return fmt.Errorf("update webhooks: %w", err)
		}
		_, err = blob.Replace(ctx, store, Key, tag, data)
		if err == nil || ctx.Err() != nil || !errors.Is(err, blob.ErrConflict) && !errors.Is(err, blob.ErrUnknown) {
			return err
		}
	}
}

// State is how a hook stands. Instants are real time, in UTC.
type State struct {
	Format  int   `json:"format"`  // 1
	Told    int64 `json:"told"`    // the receiver has taken everything up to this version, or wants none of it
	Resumed int   `json:"resumed"` // Hook.Resumed as of which failures count

	Pending  *Message  `json:"pending,omitempty"`  // claimed, or failed and not yet repeated
	Failures int       `json:"failures,omitzero"`  // attempts in a row
	Failing  time.Time `json:"failing,omitzero"`   // since when
	Next     time.Time `json:"next,omitzero"`      // no attempt before this
	GiveUp   string    `json:"give_up,omitzero"`   // why the hook is to be paused
	Owner    string    `json:"owner,omitzero"`     // of the claim: a run of a Deliverer
	Until    time.Time `json:"until,omitzero"`     // of the claim
	Attempts []Attempt `json:"attempts,omitempty"` // the latest, oldest first
}

// Message is what a receiver is told, but for the list of changes, which follows from it.
type Message struct {
	ID       string    `json:"id"` // the same in every attempt
	Version  int64     `json:"version"`
	Previous int64     `json:"previous"` // State.Told
	At       time.Time `json:"at"`       // when the version was published
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
	Retry   time.Time `json:"retry,omitzero"` // when it is repeated
}

// shownAttempts is how many attempts of a hook are kept.
const shownAttempts = 30

// StateKey is where the state of a hook is kept.
func StateKey(id string) string { return "webhooks/state/" + id + ".json" }

// LoadState returns how a hook stands; one that was never sent anything has been told what was
// published when it was added.
func LoadState(ctx context.Context, store blob.Store, h Hook) (State, error) {
	s, _, err := loadState(ctx, store, h)
	return s, err
}

func loadState(ctx context.Context, store blob.Store, h Hook) (State, blob.Tag, error) {
	object, err := store.Get(ctx, StateKey(h.ID), blob.MaxDocument)
	if errors.Is(err, blob.ErrNotFound) {
		return State{Format: 1, Told: h.Since, Resumed: h.Resumed}, "", nil
	}
	if err != nil {
		return State{}, "", fmt.Errorf("load the state of webhook %s: %w", h.ID, err)
	}
	var s State
	if err := json.Unmarshal(object.Data, &s); err != nil || s.Format != 1 {
		// Whatever it was told is lost: it is told that everything may have changed.
		return State{Format: 1, Resumed: h.Resumed}, object.Tag, nil //nolint:nilerr // what is damaged is begun anew
	}
	return s, object.Tag, nil
}

// swapState replaces how a hook stands. It returns blob.ErrConflict if somebody else did.
func swapState(ctx context.Context, store blob.Store, id string, old blob.Tag, s State) (blob.Tag, error) {
	data, err := json.MarshalIndent(s, "", " ")
	if err != nil {
		return "", fmt.Errorf("save the state of webhook %s: %w", id, err)
	}
	return blob.Replace(ctx, store, StateKey(id), old, data)
}
