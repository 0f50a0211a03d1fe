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
// flags.Action, and the fields of the action A.
type actionCmd[O opener, A operator.Action, P printer] struct {
	Opener O `embed:""`
	flags.Action
	Do A `embed:""`
}

// The actions by the flags that they need and the answers that they print.
type (
	storeAction[A operator.Action]        = actionCmd[flags.Storage, A, record]
	listAction[A operator.Action]         = actionCmd[flags.StorageWith[flags.KeySigning], A, record]
	keyAction[A operator.Action]          = actionCmd[flags.StorageWith[flags.KeyCreation], A, record]
	webhookAction[A operator.Action]      = actionCmd[flags.StorageWith[flags.Webhooks], A, record]
	roundAction[A operator.Action]        = actionCmd[flags.Rounds, A, roundAfter]
	sessionAction[A operator.Action]      = actionCmd[flags.Manual, A, roundAfter] // may enter facts about a session
	championshipAction[A operator.Action] = actionCmd[flags.Rounds, A, decided]
	manualAction[A operator.Action]       = actionCmd[flags.Manual, A, entered]
)

// apply previews the action, asks for confirmation, applies the action and prints its answer.
func (c *actionCmd[O, A, P]) apply(ctx context.Context, s *terminal.Streams, show func(*terminal.Streams, operator.Answer)) error {
	o, err := c.Opener.Operator(ctx, s)
	if err != nil {
		return err
	}
	return c.ApplyAndPrint(ctx, s, o, c.Do, operator.Request{}, show)
}

// Run applies the action.
func (c *actionCmd[O, A, P]) Run(ctx context.Context, s *terminal.Streams) error {
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

type createdKey struct {
	ID      string    `json:"id"`
	Key     string    `json:"key"`
	Name    string    `json:"name"`
	Tier    string    `json:"tier"`
	Expires time.Time `json:"expires,omitzero"`
	Origins []string  `json:"origins,omitempty"`
}
