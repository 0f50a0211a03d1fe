package main

import (
	"context"

	"gridcast/deploy/auditlog"
	"gridcast/snapshots/blob"
)

// audited makes a change that an operator asked for on the command line, once it is in the
// audit log of the store.
func audited(ctx context.Context, store blob.Store, change auditlog.Change, do func() error) error {
	log, err := auditlog.Load(ctx, store)
	if err != nil {
		return err
	}
	if change.Actor == "" {
		change.Actor = operatorActor("")
	}
	return log.Do(ctx, change, do)
}
