package main

import (
	"context"
	"time"

	"gridcast/deploy/flags"
	"gridcast/deploy/operator"
	"gridcast/deploy/terminal"
	"gridcast/edge/keys"
	"gridcast/scheduler/webhook"
)

// opener opens the store with everything that an action needs.
type opener interface {
	Operator(ctx context.Context, s *terminal.Streams) (*operator.Operator, error)
}

// printer prints the answer of an action.
type printer interface {
	print(s *terminal.Streams, answer operator.Answer)
}

// actionCmd applies an action of operators, and prints its answer by P. Its flags are those of O, which opens the store, of
// flags.Action, of the reason R, and the fields of the action A.
type actionCmd[O opener, R interface{ Text() string }, A operator.Action, P printer] struct {
	Opener O `embed:""`
	flags.Action
	Why R `embed:""`
	Do  A `embed:""`
}

// The actions by the flags that they need and the answers that they print.
type (
	storeAction[A operator.Action]        = actionCmd[flags.Storage, flags.OptionalReason, A, record]
	listAction[A operator.Action]         = actionCmd[flags.StorageWith[flags.KeySigning], flags.OptionalReason, A, record]
	keyAction[A operator.Action]          = actionCmd[flags.StorageWith[flags.KeyCreation], flags.OptionalReason, A, record]
	webhookAction[A operator.Action]      = actionCmd[flags.StorageWith[flags.Webhooks], flags.OptionalReason, A, record]
	roundAction[A operator.Action]        = actionCmd[flags.Rounds, flags.PublishedReason, A, roundAfter]
	sessionAction[A operator.Action]      = actionCmd[flags.Manual, flags.RequiredReason, A, roundAfter] // may enter facts about a session
	championshipAction[A operator.Action] = actionCmd[flags.Rounds, flags.PublishedReason, A, decided]
	manualAction[A operator.Action]       = actionCmd[flags.Manual, flags.RequiredReason, A, entered]
)

// apply previews the action, asks for confirmation, applies the action and prints its answer.
func (c *actionCmd[O, R, A, P]) apply(ctx context.Context, s *terminal.Streams, show func(*terminal.Streams, operator.Answer)) error {
	o, err := c.Opener.Operator(ctx, s)
	if err != nil {
		return err
	}
	return c.ApplyAndPrint(ctx, s, o, c.Do, operator.Request{Reason: c.Why.Text()}, show)
}

// Run applies the action.
func (c *actionCmd[O, R, A, P]) Run(ctx context.Context, s *terminal.Streams) error {
	var p P
	return c.apply(ctx, s, p.print)
}

// record prints the record of an answer as JSON, or its text below its secret.
type record struct{}

func (record) print(s *terminal.Streams, answer operator.Answer) {
	if answer.Secret == "" {
		s.Print(answer.Record, "%s\n", answer.Text)
		return
	}
	shown := answer.Record
	switch r := shown.(type) {
	case keys.StoredKey:
		shown = createdKey{ID: r.ID, Key: answer.Secret, Name: r.Name, Tier: r.Tier, Expires: r.Expires, Origins: r.Origins}
	case webhook.Hook:
		shown = struct {
			webhook.Hook

			Secret string `json:"secret"`
		}{r, answer.Secret}
	case operator.Person:
		shown = map[string]string{"name": r.Name, "role": string(r.Role), "token": answer.Secret}
	}
	s.Print(shown, "%s\n\n%s\n", answer.Secret, answer.Text)
}

// createdKey is the answer of keys create --json.
type createdKey struct {
	ID      string    `json:"id"`
	Key     string    `json:"key"`
	Name    string    `json:"name"`
	Tier    string    `json:"tier"`
	Expires time.Time `json:"expires,omitzero"`
	Origins []string  `json:"origins,omitempty"`
}
