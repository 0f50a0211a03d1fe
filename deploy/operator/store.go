package operator

import (
	"context"
	"errors"
	"fmt"
	"time"

	"gridcast/deploy/auditlog"
	"gridcast/edge/keys"
	"gridcast/snapshots"
	"gridcast/snapshots/blob"
)

// BackupStore copies everything that the store holds to another place, while it is in use.
type BackupStore struct{ To blob.Store }

func (d BackupStore) entry() auditlog.Change {
	return auditlog.Change{Action: auditlog.BackupStore, Subject: d.To.String()}
}

func (d BackupStore) preview(context.Context, *Operator) (Preview, error) { //nolint:unparam // a Action, of which others fail
	return Preview{Title: "Back up the store", Effects: []string{fmt.Sprintf("Everything that %s lacks is copied there. The store goes on being used.", d.To)}}, nil
}

// do fails if something in the store is damaged; Answer has what was copied all the same.
func (d BackupStore) do(ctx context.Context, o *Operator, request Request, _ Preview) (Answer, error) {
	info, err := snapshots.Backup(ctx, o.Store, d.To, time.Now(), request.Progress)
	if err != nil {
		return Answer{}, err
	}
	done := Answer{Backup: &info, Text: fmt.Sprintf("Version %d and the ledger up to file %d are in %s: %d objects, %d of them copied now (%d bytes).",
		info.Version, info.Ledger.Seq, d.To, info.Objects, info.Copied, info.Bytes)}
	if len(info.Faults) > 0 {
		faults := make([]error, len(info.Faults))
		for i, fault := range info.Faults {
			faults[i] = errors.New(fault)
		}
		return done, fmt.Errorf("the backup has all but what is damaged in the store: %w", errors.Join(faults...))
	}
	return done, nil
}

// keysLeap is by how much the serial number of restored keys is above the backup's: by more
// changes than anybody makes between a backup and a loss. Edges refuse a document that is older
// than the one they have.
const keysLeap = 1_000_000

// restoreKeys makes edges take the keys that a backup has put into the store.
func restoreKeys(ctx context.Context, store blob.Store) error {
	document, tag, err := keys.Load(ctx, store)
	if err != nil || tag == "" { // the backup has none
		return err
	}
	return keys.Restore(ctx, store, document, document.Serial+keysLeap)
}

// RestoreStore puts a backup back into a store that was lost. Above and Since are what edges have
// seen: the highest version, and the head of the ledger.
type RestoreStore struct {
	From  blob.Store
	Above int64
	Since snapshots.Ledger
}

// entry is none: an entry of its own would make the log of an empty store another one than the
// backup's. The restore is recorded when the log is back.
func (RestoreStore) entry() auditlog.Change { return auditlog.Change{} }

func (d RestoreStore) preview(ctx context.Context, o *Operator) (Preview, error) {
	p := Preview{
		Title: "Restore the store", Question: fmt.Sprintf("Restore %s from %s?", o.Store, d.From),
		Effects: []string{
			"What the store lacks is copied back; what it has and is whole stays, such as newer keys.",
			"If the store has lost its keys, those of the backup hold: what was revoked since works again.",
			fmt.Sprintf("The backup's version is published again under a number above %d, so that every edge takes it.", d.Above),
		},
	}
	pointer, _, err := snapshots.LoadPointer(ctx, d.From)
	if err != nil {
		return Preview{}, fmt.Errorf("restore from %s: %w", d.From, err)
	}
	if d.Above > pointer.Version {
		p.Warnings = []string{fmt.Sprintf("Edges have served version %d, and the backup is of version %d: what was published between is lost.", d.Above, pointer.Version)}
	}
	if d.Above == 0 {
		p.Warnings = []string{"It is not known which version edges have served: name them with --edges, or give --above. An edge that has served a higher one refuses what is restored."}
	}
	return p, nil
}

func (d RestoreStore) do(ctx context.Context, o *Operator, request Request, _ Preview) (Answer, error) {
	_, stored, keysErr := keys.Load(ctx, o.Store)
	publisher := snapshots.Publisher{Store: o.Store, Progress: request.Progress}
	restored, err := publisher.Restore(ctx, snapshots.Restoring{Backup: d.From, Builder: o.Name, Above: d.Above, Since: d.Since})
	if err != nil {
		return Answer{}, err
	}
	if stored == "" || keysErr != nil { // the keys are the backup's
		if err := restoreKeys(ctx, o.Store); err != nil {
			return Answer{}, err
		}
	}
	done := Answer{Restored: &restored, Receipt: &restored.Receipt, Text: fmt.Sprintf("Version %d serves what the backup of %s had.",
		restored.Version, restored.Backup.At.UTC().Format(time.RFC3339))}
	log, err := auditlog.Load(ctx, o.Store)
	if err != nil {
		return done, fmt.Errorf("%s But it could not be recorded: %w", done.Text, err)
	}
	change := auditlog.Change{Actor: request.Actor, Action: auditlog.RestoreStore, Subject: d.From.String(), Reason: request.Reason}
	if err := log.Do(ctx, change, func() error { return nil }); err != nil {
		return done, fmt.Errorf("%s But it could not be recorded: %w", done.Text, err)
	}
	return done, nil
}
