// Package operator holds every action that an operator can take.
//
// An Action is one thing that an operator does: verify a result, cancel a round, revoke a key, roll
// a version back. Command line and console read the same action structs and hand them to the same
// Operator, which treats all of them alike:
//
//   - Look plans an action: its Preview states the effects on the pick, the standings, the
//     winner and the published variants. Look changes nothing.
//   - Apply announces the planned action in the audit log and applies it. It refuses the action with
//     ErrStale if the state has changed since the operator looked at it.
//
// A preview with a question voids, replaces or ends something. The caller must show the question
// to a person and have an answer before Apply.
package operator

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"gridcast/builder"
	"gridcast/builder/archive"
	"gridcast/builder/ingest"
	"gridcast/builder/ledger"
	"gridcast/builder/live"
	"gridcast/builder/predict"
	"gridcast/deploy/auditlog"
	"gridcast/edge/keys"
	"gridcast/scheduler"
	"gridcast/scheduler/webhook"
	"gridcast/snapshots"
	"gridcast/snapshots/blob"
	"gridcast/snapshots/blob/chain"
	"gridcast/snapshots/notes"
)

// An actor in ledger and audit log is a prefix and a name.
const (
	// Proven is the prefix of a person who signed in with a token of their own.
	Proven = "operator:"
	// Claimed is the prefix of a name that nothing proves: the person had the credentials of the store, or
	// the shared token, and can give any name.
	Claimed = "claimed:"
	// ServiceActor is the service itself. It pauses webhooks that fail for too long.
	ServiceActor = "service"
)

// Who names an actor of ledger and audit log in texts for people. Their files and JSON keep the prefix.
func Who(actor string) string {
	if name, ok := strings.CutPrefix(actor, Claimed); ok {
		return name + " (unproven name)"
	}
	return actor
}

var (
	// ErrStale means that the state has changed since the operator looked at it.
	ErrStale = errors.New("it has changed since you looked at it: look again")
	// ErrNoReason means that an action requires a reason and was given none.
	ErrNoReason = errors.New("say why in a few words: the reason stands in the audit log")
	// ErrRefused means that the preview refuses an action. Its text gives the reason; Request.Force
	// overrides it.
	ErrRefused = errors.New("refused")
)

// Operator applies actions to a store. It is safe for concurrent use. An action that needs a missing field
// fails with an error that names the field.
type Operator struct {
	Store blob.Store     // required
	Audit *auditlog.Log  // required
	Tiers keys.Tiers     // those that keys can be created with
	Sign  *notes.Signers // the version key, for actions that publish; nil: versions are not signed
	// SignKeys signs the list of API keys; nil: the list is not signed.
	SignKeys *notes.Signers
	Name     string           // which process publishes, for people
	Now      func() time.Time // race time

	Ledger *ledger.Ledger
	Facts  func(context.Context) (archive.Stored, error) // the archive in use
	// Archives has loaded Facts, so that an ingest of this process need not decode them again. It may be nil.
	Archives *archive.Store
	// Ingest assembles the archive, and stores and applies the facts that people enter.
	Ingest *ingest.Ingest
	// Model returns the model that predicts the pick in previews of entered facts; nil: previews predict no
	// pick.
	Model func(context.Context) predict.Model
	// Webhooks signs and sends; nil, or without a master: webhooks cannot be added or tested.
	Webhooks *webhook.Sender
	// Observed is the log of the running race; nil: the one of the store.
	Observed *live.Log
	// Lines counts the lines of sources of a running race by outcome: LineStored and so on; nil: nobody counts.
	Lines func(outcome string)
	// Build builds and publishes once. Its error is snapshots.ErrHeld while publishing is held.
	Build func(context.Context, builder.Request) (builder.Outcome, error)
	// Hold makes background work wait until release is called, because a person waits for a version to be
	// served; nil: nothing has to wait.
	Hold func() (release func())
	// Jobs returns the state of the jobs of the running service. RunJob runs one of them now.
	Jobs   func() []scheduler.JobStatus
	RunJob func(name, reason string) (<-chan error, error)
}

// Action is one thing that an operator can do. It is a struct: its fields are the target of the action and
// its options. Command line and console read the same fields by the same tags.
type Action interface {
	// look plans the action. It changes nothing, and fails if the action is impossible now.
	look(ctx context.Context, o *Operator) (*Plan, error)
}

// Plan is an action that was looked at and can be applied. Only Look makes one.
type Plan struct {
	Preview

	// Brief is true if Apply answers at once and publishes nothing.
	Brief bool
	// Request may still be given a Progress before Apply.
	Request Request

	operator  *Operator
	published bool            // readers see the reason
	entry     auditlog.Intent // without an action: nothing changes, and nothing is logged
	explain   func(*Preview)
	do        func(context.Context, Request) (Answer, error)
}

// Preview describes the effects of an action, in sentences for people.
type Preview struct {
	Title    string   `json:"title"`             // the action: "Cancel the Dutch Grand Prix of 2026"
	Question string   `json:"question,omitzero"` // to be answered with yes before the action is applied; empty: it needs no answer
	Effects  []string `json:"effects"`           // the effects, the most important first
	Warnings []string `json:"warnings,omitzero"` // unusual circumstances
	Refusal  string   `json:"refusal,omitzero"`  // why it is not applied unless it is forced
	Variants []string `json:"variants,omitzero"` // the published variants that would change, if known
	Seen     string   `json:"seen"`              // identifies the state that was looked at, for Request.Seen
}

// Request is how an operator asks for an action.
type Request struct {
	Actor  string // the operator's name in audit log and ledger
	Reason string // why, in their words
	Seen   string // Preview.Seen of the preview they saw; empty: they saw none
	Force  bool   // apply the action although its preview refuses it

	// Progress is called while a version is built or checked, concurrently; may be nil.
	Progress snapshots.Progress
}

// Answer is the result of an action.
type Answer struct {
	Text   string // the result as a sentence for people
	Secret string // a new key or secret, which cannot be shown again
	// Record is the value that the action made or changed, such as a keys.StoredKey or a webhook.Hook. The
	// command line prints it with --json. It is nil if there is nothing to print. It has no common type,
	// because each of a dozen types belongs to the package that stores it, and each caller knows its action.
	Record any
	Events []ledger.Event
	// Receipt is that of the version that the action published, or of the one that was up to date.
	Receipt *snapshots.Receipt
	// Unpublished is why a version should be built now; empty if nothing is left to publish. A
	// running service finds it by itself within a second or two.
	Unpublished string
}

// reasoned is embedded by actions that require a reason.
type reasoned struct{}

func (reasoned) requiresReason() {}

// published marks an action with a public reason: readers see it in documents such as /changes, or in /status.
type published struct {
	reasoned
	publishing
}

// publishing is embedded by actions that may have a reason, which readers see.
type publishing struct{}

func (publishing) publishesReason() bool { return true }

// Complete checks that a request has everything that its action requires.
func Complete(a Action, request Request) error {
	if _, ok := a.(interface{ requiresReason() }); ok && request.Reason == "" {
		return ErrNoReason
	}
	return cmp.Or(chain.CheckText("name of an operator", request.Actor), chain.CheckText("reason", request.Reason))
}

// Look plans an action. It returns ErrStale if the state is not the one that the request has seen. Effects
// and variants, which only people read, may be left out until Explain.
func (o *Operator) Look(ctx context.Context, a Action, request Request) (*Plan, error) {
	if err := Complete(a, request); err != nil {
		return nil, err
	}
	plan, err := a.look(ctx, o)
	if err != nil {
		return nil, err
	}
	if request.Seen != "" && request.Seen != plan.Seen {
		return nil, ErrStale
	}
	plan.operator, plan.Request = o, request
	reason, ok := a.(interface{ publishesReason() bool })
	plan.published = ok && reason.publishesReason()
	return plan, nil
}

// Explain completes the preview for people. It may add a refusal.
func (p *Plan) Explain() {
	if p.explain != nil {
		p.explain(&p.Preview)
	}
	if p.published && p.Request.Reason != "" {
		p.Effects = append(p.Effects, fmt.Sprintf("Readers see the reason %q.", p.Request.Reason))
	}
}

// Apply announces the action in the audit log and applies it. If it fails, the log says so too. It returns
// ErrRefused if the preview refuses the action and the request does not force it, and ErrStale if the state
// has changed since Look.
func (p *Plan) Apply(ctx context.Context) (answer Answer, err error) {
	if p.Refusal != "" && !p.Request.Force {
		return Answer{}, fmt.Errorf("%w: %s", ErrRefused, p.Refusal)
	}
	if p.entry.Action == "" {
		return p.do(ctx, p.Request)
	}
	if p.operator.Audit == nil {
		return Answer{}, errors.New("the audit log cannot be read, so no action can be applied")
	}
	change := p.entry
	change.Actor, change.Reason = p.Request.Actor, p.Request.Reason
	err = p.operator.Audit.Do(ctx, change, func() error {
		answer, err = p.do(ctx, p.Request)
		return err
	})
	return answer, err
}

// unchanged plans nothing, because the text says why there is nothing to do. Nothing is logged.
func unchanged(p Preview, record any, text string) *Plan {
	p.Question, p.Effects = "", []string{text}
	return &Plan{Preview: p, do: func(context.Context, Request) (Answer, error) { return Answer{Record: record, Text: text}, nil }}
}

// Do looks at an action and applies it.
func (o *Operator) Do(ctx context.Context, a Action, request Request) (Answer, error) {
	plan, err := o.Look(ctx, a, request)
	if err != nil {
		return Answer{}, err
	}
	if request.Seen == "" {
		plan.Explain()
	}
	return plan.Apply(ctx)
}

// digest returns a short hash of a value, which tells two states apart.
func digest(v any) string {
	data, err := json.Marshal(v)
	if err != nil {
		panic("BUG: digest: " + err.Error())
	}
	return snapshots.Digest(data)[:16]
}

// edit is a change of one T, such as a key, in a document D of the store, such as all keys.
type edit[D, T any] struct {
	load   func(context.Context) (*D, error)
	update func(context.Context, func(*D) error) error
	find   func(*D) (*T, error)
	// preview may refuse the change.
	preview func(*D, *T, *Preview) error
	change  func(*D, *T, Request) (Answer, error)
}

// plan finds the T, and plans its change. Apply returns ErrStale if the T differs by then.
func (e edit[D, T]) plan(ctx context.Context, entry auditlog.Intent) (*Plan, error) {
	doc, err := e.load(ctx)
	if err != nil {
		return nil, err
	}
	item, err := e.find(doc)
	if err != nil {
		return nil, err
	}
	p := &Plan{Brief: true, entry: entry, Preview: Preview{Seen: digest(item)}}
	if err := e.preview(doc, item, &p.Preview); err != nil {
		return nil, err
	}
	p.do = func(ctx context.Context, request Request) (answer Answer, err error) {
		err = e.update(ctx, func(doc *D) error {
			item, err := e.find(doc)
			if err != nil {
				return err
			}
			if digest(item) != p.Seen {
				return ErrStale
			}
			answer, err = e.change(doc, item, request)
			return err
		})
		return answer, err
	}
	return p, nil
}
