// Package operator holds every action that an operator can take.
//
// An Action is one thing that an operator does: verify a result, cancel a round, revoke a key, roll
// a version back. Command line and console make the same actions and hand them to the same
// Operator, which treats all of them alike:
//
//   - Preview says what an action would do: to the pick, the standings, the winner, the published
//     variants. It changes nothing.
//   - Do announces an action in the audit log and applies it. It refuses the action with ErrChanged
//     if the state has changed since the operator looked at it.
//
// A preview with a question voids, replaces or ends something. The caller must show the question
// to a person and have an answer before Do.
package operator

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"time"
	"unicode"

	"gridcast/builder"
	"gridcast/builder/almanac"
	"gridcast/builder/archive"
	"gridcast/builder/ingest"
	"gridcast/builder/ledger"
	"gridcast/builder/predict"
	"gridcast/deploy/auditlog"
	"gridcast/edge/keys"
	"gridcast/scheduler"
	"gridcast/scheduler/webhook"
	"gridcast/snapshots"
	"gridcast/snapshots/blob"
)

// An actor in ledger and audit log is a name and how it is known.
const (
	// Proven begins the name of somebody who signed in with a token of their own.
	Proven = "operator:"
	// Claimed begins a name that somebody gave who holds the credentials of the store, or the
	// shared token: they write as anybody.
	Claimed = "claimed:"
	// ServiceActor is the service itself, which pauses a webhook that takes nothing.
	ServiceActor = "service"
)

var (
	// ErrChanged says that what an action is about has changed since it was looked at.
	ErrChanged = errors.New("it has changed since you looked at it: look again")
	// ErrNoReason says that an action needs a reason and was given none.
	ErrNoReason = errors.New("say why in a few words: the reason stands in the audit log")
	// ErrRefused says that an action is done only when it is forced; the text says why.
	ErrRefused = errors.New("refused")
)

// Operator carries out actions on a store. It is safe for concurrent use. A action that needs a field
// which is not set is refused with an error that says what is missing.
type Operator struct {
	Store blob.Store       // required
	Audit *auditlog.Log    // required
	Tiers keys.Tiers       // those that keys can be created with
	Name  string           // which process publishes, for people
	Now   func() time.Time // race time

	Ledger *ledger.Ledger
	Facts  func(context.Context) (archive.Stored, error) // the archive in use
	// Ingest assembles the archive: it keeps what people enter, and has it used.
	Ingest *ingest.Ingest
	// Model is the model by which the pick is foretold that would follow from facts that are entered;
	// nil: nobody does that.
	Model func(context.Context) predict.Model
	// Webhooks signs and sends; nil, or without a master: webhooks cannot be added or tested.
	Webhooks *webhook.Sender
	// Build builds and publishes once. It does not hide that publishing is held.
	Build func(context.Context, builder.Request) (builder.Outcome, error)
	// Hold says that somebody waits for what Build publishes, until it is served and over is called; nil:
	// nothing else is done meanwhile.
	Hold func() (over func())
	// Jobs tells how the jobs of the running service stand, RunJob has one run now.
	Jobs   func() []scheduler.Status
	RunJob func(name, reason string) (<-chan error, error)
}

// Action is one thing that an operator can do. It is a value: what it is done to, and how.
type Action interface {
	// entry is the action in the audit log; an action without an action changes nothing and is not
	// in it.
	entry() auditlog.Change
	// preview looks at what the action would do. It refuses what could not be done now.
	preview(ctx context.Context, o *Operator) (Preview, error)
	// do carries the action out, if what it is about is still what p was made from.
	do(ctx context.Context, o *Operator, request Request, p Preview) (Answer, error)
}

// checked is an action whose preview has much that only people read. check leaves that out, and makes sure of
// the rest: what Seen names, and whether the action can be done now.
type checked interface {
	check(ctx context.Context, o *Operator) (Preview, error)
}

// reasoned is an action that may require a reason.
type reasoned interface{ needsReason() bool }

// Preview says what an action would do, in sentences for people.
type Preview struct {
	Title    string   `json:"title"`             // the action: "Cancel the Dutch Grand Prix of 2026"
	Question string   `json:"question,omitzero"` // to be answered with yes before the action is done; empty: it needs no answer
	Effects  []string `json:"effects"`           // what it does, the most important first
	Warnings []string `json:"warnings,omitzero"` // what is out of the ordinary
	Refusal  string   `json:"refusal,omitzero"`  // why it is not done unless it is forced
	Variants []string `json:"variants,omitzero"` // the published variants that would change, if it can be told
	Seen     string   `json:"seen"`              // names what the preview was made from, for Request.Seen

	fresh ledger.Fresh // of an action about a round: the ledger that the preview was made from
}

// Request is how an action is asked for.
type Request struct {
	Actor  string // who, as the audit log and the ledger name them
	Reason string // why, in their words
	Seen   string // Preview.Seen of what they looked at; empty: they did not look
	Force  bool   // do it although the preview refuses it

	// Progress is told while a version is built or checked, concurrently; may be nil.
	Progress snapshots.Progress
}

// Answer is what became of an action.
type Answer struct {
	Text     string // what was done, for people
	Events   []ledger.Event
	Round    *almanac.Round     // of an action about a round: how it stands now
	Receipt  *snapshots.Receipt // of an action that published or found everything published already
	Key      keys.StoredKey     // of an action about a key
	Secret   string             // a new key or secret, which nobody can be shown again
	Webhook  *webhook.Hook      // of an action about a webhook
	Attempt  *webhook.Attempt   // of a test of it
	Pruned   *snapshots.Pruned
	Facts    *archive.Stored
	Checked  *snapshots.Verification
	Audited  *builder.Audit
	Backup   *snapshots.BackupInfo
	Restored *snapshots.Restored
	// Unpublished is why a version should be built now, for Rebuild; empty if the action leaves
	// nothing to publish. A running service finds it by itself within a second or two.
	Unpublished string
}

// Outcome is that of the build of an action that published.
func (d Answer) Outcome() builder.Outcome {
	outcome := builder.Outcome{Events: d.Events}
	if d.Receipt != nil {
		outcome.Receipt = *d.Receipt
	}
	return outcome
}

// Preview looks at what an action would do now.
func (o *Operator) Preview(ctx context.Context, d Action) (Preview, error) { return d.preview(ctx, o) }

// Check is the preview of an action for somebody who has looked at what seen names: it may leave out what only
// people read, the effects and the variants. Without seen it is the whole preview. The error is ErrChanged if
// the action is about something else by now.
func (o *Operator) Check(ctx context.Context, d Action, seen string) (Preview, error) {
	look := d.preview
	if c, ok := d.(checked); ok && seen != "" {
		look = c.check
	}
	p, err := look(ctx, o)
	if err == nil {
		err = p.StillOf(seen)
	}
	return p, err
}

// StillOf returns ErrChanged if the preview is of something else than seen names, unless that is empty.
func (p Preview) StillOf(seen string) error {
	if seen != "" && seen != p.Seen {
		return ErrChanged
	}
	return nil
}

// Complete says what an order for an action lacks, before anything is done.
func Complete(d Action, request Request) error {
	if r, ok := d.(reasoned); ok && r.needsReason() && request.Reason == "" {
		return ErrNoReason
	}
	return errors.Join(printable("the name of an operator", request.Actor), printable("a reason", request.Reason))
}

// Do is Check and Apply for an order that is complete, and that the preview does not refuse.
func (o *Operator) Do(ctx context.Context, d Action, request Request) (Answer, error) {
	if err := Complete(d, request); err != nil {
		return Answer{}, err
	}
	p, err := o.Check(ctx, d, request.Seen)
	switch {
	case err != nil:
		return Answer{}, err
	case p.Refusal != "" && !request.Force:
		return Answer{}, fmt.Errorf("%w: %s", ErrRefused, p.Refusal)
	}
	return o.Apply(ctx, d, request, p)
}

// Apply carries out an action, as who orders it has just had it previewed or checked: the error is ErrChanged
// if it is about something else by now. The action is announced in the audit log, which says what was asked
// for also when it then fails, and that it did.
func (o *Operator) Apply(ctx context.Context, d Action, request Request, p Preview) (Answer, error) {
	change := d.entry()
	if change.Action == "" {
		return d.do(ctx, o, request, p)
	}
	if o.Audit == nil {
		return Answer{}, errors.New("the audit log cannot be read, so nothing can be done that belongs there")
	}
	change.Actor, change.Reason = request.Actor, request.Reason
	var done Answer
	err := o.Audit.Do(ctx, change, func() (err error) {
		done, err = d.do(ctx, o, request, p)
		return err
	})
	return done, err
}

// printable refuses what would reach into a terminal: names and reasons are shown to colleagues.
func printable(what, text string) error {
	for _, r := range text {
		if !unicode.IsPrint(r) {
			return fmt.Errorf("%s may hold only printable characters: %q has %U", what, text, r)
		}
	}
	return nil
}

// digest names a value, to tell whether it is still the one that was looked at.
func digest(v any) string {
	data, err := json.Marshal(v)
	if err != nil {
		panic("BUG: digest: " + err.Error())
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:8])
}
