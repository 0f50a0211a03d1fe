package operator

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"gridcast/builder/settings"
	"gridcast/deploy/auditlog"
	"gridcast/edge/keys"
	"gridcast/snapshots"
	"gridcast/snapshots/backup"
	"gridcast/snapshots/blob"
)

// BackupStore copies every object of the store to another place, while the store is in use.
type BackupStore struct{ To blob.Store }

// look plans the copy. If an object of the store is damaged, Apply copies the others and returns the report
// with the error. A store without a version is refused, because it is the wrong one or its disk is not mounted.
func (d BackupStore) look(ctx context.Context, o *Operator) (*Plan, error) {
	if _, _, err := snapshots.LoadPointer(ctx, o.Store); errors.Is(err, snapshots.ErrNone) {
		return nil, fmt.Errorf("back up %s: nothing is published there: is the store right, and its disk mounted?", o.Store)
	}
	return &Plan{
		entry:   auditlog.Intent{Action: auditlog.BackupStore, Subject: d.To.String()},
		Preview: Preview{Title: "Back up the store", Effects: []string{fmt.Sprintf("Objects that are missing in %s are copied there. The store stays in use.", d.To)}},
		do: func(ctx context.Context, request Request) (Answer, error) {
			info, err := backup.Make(ctx, o.Store, d.To, time.Now(), request.Progress)
			if err != nil {
				return Answer{}, err
			}
			answer := Answer{Record: info, Text: fmt.Sprintf("Version %d and the ledger up to file %d are in %s: %d objects, %d of them copied now (%d bytes).",
				info.Version, info.Ledger.Seq, d.To, info.Objects, info.Copied, info.Bytes)}
			if len(info.Faults) > 0 {
				return answer, fmt.Errorf("the backup lacks the damaged objects of the store: %s", strings.Join(info.Faults, "\n"))
			}
			return answer, nil
		},
	}, nil
}

// keysLeap raises the serial number of restored keys above that of any later change. Edges refuse a document
// that is older than the one they have.
const keysLeap = 1_000_000

// RestoreStore puts a backup back into a store that was lost. Open opens that store for writing. Above and Since are the
// highest version and the ledger's head that edges have served.
type RestoreStore struct {
	From   blob.Store
	Open   func(context.Context) (blob.Store, error)
	Above  int64
	Since  snapshots.Ledger
	Silent []string // edges that did not say which version they have served
}

func (d RestoreStore) look(ctx context.Context, o *Operator) (*Plan, error) {
	p := Preview{
		Title: "Restore the store", Question: fmt.Sprintf("Restore %s from %s?", o.Store, d.From),
		Effects: []string{
			"Missing objects are copied back. Undamaged objects of the store stay, such as newer keys.",
			"If the store has lost its keys, the backup's keys apply: a key revoked since then works again.",
			fmt.Sprintf("The backup's version is published again under a number above %d, so that every edge takes it.", d.Above),
		},
	}
	pointer, _, err := snapshots.LoadPointer(ctx, d.From)
	if err != nil {
		return nil, fmt.Errorf("restore from %s: %w", d.From, err)
	}
	if list, _, err := keys.Load(ctx, d.From); err == nil && list.Signature != nil && o.SignKeys == nil {
		return nil, fmt.Errorf("restore from %s: %w", d.From, keys.ErrNoSigner)
	}
	if d.Above > pointer.Version {
		p.Warnings = []string{fmt.Sprintf("Edges have served version %d, and the backup is of version %d: the versions between are lost.", d.Above, pointer.Version)}
	}
	if d.Above == 0 {
		p.Warnings = []string{"The version that edges have served is unknown: name the edges with --edges or the copy of one with --cache-dir, or give --above. An edge that has served a higher version refuses the restored one."}
	}
	if len(d.Silent) > 0 {
		p.Warnings = append(p.Warnings, fmt.Sprintf("No answer from %s. An edge that has served a version above %d refuses the restored one: give that version with --above.", strings.Join(d.Silent, ", "), d.Above))
	}
	// No entry: it would make the log of an empty store differ from the backup's. The restore is recorded
	// when the log is back.
	return &Plan{Preview: p, do: func(ctx context.Context, request Request) (Answer, error) { return d.restore(ctx, o, request) }}, nil
}

func (d RestoreStore) restore(ctx context.Context, o *Operator, request Request) (Answer, error) {
	store, err := d.Open(ctx)
	if err != nil {
		return Answer{}, err
	}
	_, stored, keysErr := keys.Load(ctx, store)
	var damaged []string
	for key, read := range map[string]func() error{
		keys.Object:  func() error { return keysErr },
		PeopleKey:    func() error { _, err := LoadPeople(ctx, store); return err },
		settings.Key: func() error { _, err := settings.Load(ctx, store); return err },
	} {
		if read() != nil {
			damaged = append(damaged, key)
		}
	}
	restored, err := backup.Restore(ctx, backup.Restoring{Store: store, Damaged: damaged, Signers: o.Sign, Progress: request.Progress, Backup: d.From, Builder: o.Name, Above: d.Above, Since: d.Since})
	if err != nil {
		return Answer{}, err
	}
	if stored == "" || keysErr != nil { // the keys are the backup's
		document, tag, err := keys.Load(ctx, store)
		if err == nil && tag != "" { // otherwise the backup has none
			above := document.Serial + keysLeap
			if o.SignKeys != nil {
				above = 0 // a signed list counts by the clock
			}
			err = keys.Restore(ctx, store, document, above, o.SignKeys)
		}
		if err != nil {
			return Answer{}, err
		}
	}
	answer := Answer{Record: restored, Receipt: &restored.Receipt, Text: fmt.Sprintf("Version %d serves what the backup of %s had.",
		restored.Version, restored.Backup.At.UTC().Format(time.RFC3339))}
	log, err := auditlog.Load(ctx, store)
	if err == nil {
		change := auditlog.Intent{Actor: request.Actor, Action: auditlog.RestoreStore, Subject: d.From.String(), Reason: request.Reason}
		err = log.Do(ctx, change, func() error { return nil })
	}
	if err != nil {
		return answer, fmt.Errorf("%s The audit log could not be written: %w", answer.Text, err)
	}
	return answer, nil
}
