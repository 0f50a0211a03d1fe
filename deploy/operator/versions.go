package operator

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"gridcast/builder"
	"gridcast/builder/ledger"
	"gridcast/builder/proof"
	"gridcast/builder/season"
	"gridcast/builder/settings"
	"gridcast/deploy/auditlog"
	"gridcast/deploy/view"
	"gridcast/edge/keys"
	"gridcast/scheduler"
	"gridcast/snapshots"
	"gridcast/snapshots/backup"
	"gridcast/snapshots/blob"
)

// Rebuild builds and publishes now.
type Rebuild struct {
	reasoned

	// Store is the store that the caller expects, so that a program does not reach the scheduler of another
	// store; empty: any.
	Store string `kong:"-"`
}

// ErrOtherStore means that a request is about another store than the one at hand.
var ErrOtherStore = errors.New("wrong store")

func (d Rebuild) look(_ context.Context, o *Operator) (*Plan, error) {
	if d.Store != "" && d.Store != o.Store.String() {
		return nil, fmt.Errorf("%w: this scheduler works on %s, not on %s", ErrOtherStore, o.Store, d.Store)
	}
	return &Plan{
		entry:   auditlog.Intent{Action: auditlog.Rebuild},
		Preview: Preview{Title: "Rebuild", Effects: []string{"Due events are settled, and a version is published if anything has changed."}},
		do:      o.builds(builder.Request{}),
	}, nil
}

// Repair writes again every damaged file of the current version.
type Repair struct{}

func (Repair) look(_ context.Context, o *Operator) (*Plan, error) { //nolint:unparam // an Action; others fail
	return &Plan{
		entry: auditlog.Intent{Action: auditlog.Rebuild, Subject: "repair"},
		Preview: Preview{Title: "Repair the current version", Effects: []string{
			"Every file of the current version is read. A damaged one is written again, or the next version has its documents anew.",
		}},
		do: o.builds(builder.Request{Repair: true}),
	}, nil
}

// ReleasePublishing ends the hold that a rollback has put on publishing, and builds.
type ReleasePublishing struct{ reasoned }

func (ReleasePublishing) look(ctx context.Context, o *Operator) (*Plan, error) {
	pointer, _, err := snapshots.LoadPointer(ctx, o.Store)
	if err != nil {
		return nil, fmt.Errorf("release: %w", err)
	}
	p := Preview{Title: "Release and build", Seen: digest(pointer), Effects: []string{"Publishing is not held, so this is an ordinary build."}}
	if pointer.Held {
		p.Question = "Let publishing go on?"
		p.Effects = []string{
			fmt.Sprintf("Publishing is held since version %d, because: %s.", pointer.Version, pointer.Reason),
			"A version is built from the present facts and ledger, and clients get it. Builds go on by themselves from then on.",
		}
	}
	return &Plan{
		entry: auditlog.Intent{Action: auditlog.Release}, Preview: p,
		do: o.builds(builder.Request{Release: true}),
	}, nil
}

// builds returns an action that builds and publishes.
func (o *Operator) builds(build builder.Request) func(context.Context, Request) (Answer, error) {
	return func(ctx context.Context, request Request) (Answer, error) {
		build.At, build.Reason, build.Progress = o.Now(), request.Reason, request.Progress
		outcome, err := o.Build(ctx, build)
		done := Answer{Events: outcome.Events, Record: outcome.Receipt, Receipt: &outcome.Receipt, Text: fmt.Sprintf("Version %d is published.", outcome.Version)}
		if outcome.Unchanged {
			done.Text = fmt.Sprintf("Nothing has changed: version %d is up to date.", outcome.Version)
		}
		for _, fault := range outcome.Damage {
			done.Text += " Damage was repaired: " + view.Ended(fault)
		}
		return done, err
	}
}

// Rollback publishes the content of an earlier version again and holds publishing.
type Rollback struct {
	published

	Version int64 `arg:"" help:"The version whose content becomes current again." placeholder:"V"`
}

// look also works if the pointer or the current version is damaged or gone, because a rollback repairs that.
func (d Rollback) look(ctx context.Context, o *Operator) (*Plan, error) {
	pointer, tag, err := snapshots.LoadPointer(ctx, o.Store)
	if err != nil && !errors.Is(err, snapshots.ErrDamaged) && !errors.Is(err, snapshots.ErrNone) {
		return nil, fmt.Errorf("roll back to version %d: %w", d.Version, err)
	}
	publisher := snapshots.Publisher{Store: o.Store, Signers: o.Sign}
	m, err := publisher.Target(ctx, d.Version)
	if err != nil {
		return nil, fmt.Errorf("roll back to version %d: %w", d.Version, noVersion(err, o.Store, d.Version))
	}
	p := Preview{
		Title: fmt.Sprintf("Roll back to version %d", d.Version), Question: fmt.Sprintf("Give clients version %d again, and hold publishing?", d.Version),
		Effects: []string{
			fmt.Sprintf("Clients get the content of version %d again, which was built for %s.", d.Version, minute(m.BuiltAt)),
			"Publishing is held until an operator releases it. Results, picks and lights out are recorded meanwhile, but clients do not see them.",
		},
		Seen: digest(tag),
	}
	if current, err := snapshots.LoadManifest(ctx, o.Store, pointer.Version); err != nil {
		p.Warnings = []string{view.Ended(fmt.Sprintf("The changes that clients will see are unknown: %v", err))}
	} else {
		for _, change := range snapshots.Differing(current.ByPath(), m.ByPath()) {
			p.Variants = append(p.Variants, change.Path)
		}
	}
	if o.Sign != nil && snapshots.CheckNote(ctx, o.Store, d.Version, o.Sign.Trust()) != nil {
		p.Warnings = append(p.Warnings, fmt.Sprintf("Your version key has not signed version %d, so anyone with write access to the store may have made it. Your key signs its content now: compare the differences first.", d.Version))
	}
	return &Plan{
		entry: auditlog.Intent{Action: auditlog.Rollback, Subject: strconv.FormatInt(d.Version, 10)}, Preview: p,
		do: func(ctx context.Context, request Request) (Answer, error) {
			publisher.Progress = request.Progress
			receipt, err := publisher.Rollback(ctx, d.Version, o.Name, request.Reason, o.Now())
			return Answer{
				Record: receipt, Receipt: &receipt,
				Text: fmt.Sprintf("Version %d has the content of version %d, and publishing is held. Edges follow within a second or two.", receipt.Version, d.Version),
			}, err
		},
	}, nil
}

// LoadManifest is snapshots.LoadManifest with errors that name the available versions.
func LoadManifest(ctx context.Context, store blob.Store, version int64) (snapshots.Manifest, error) {
	m, err := snapshots.LoadManifest(ctx, store, version)
	return m, noVersion(err, store, version)
}

// noVersion names the available versions in the error of a manifest that is missing.
func noVersion(err error, store blob.Store, version int64) error {
	switch {
	case errors.Is(err, snapshots.ErrNone):
		return fmt.Errorf("%s: nothing has been published yet; gridcast build does it", store)
	case errors.Is(err, blob.ErrNotFound) && version > 0:
		return fmt.Errorf("%s has no version %d; gridcast snapshots list shows what there is", store, version)
	}
	return err
}

// Prune removes old versions and the objects that no version needs, or else the whole sandbox.
type Prune struct {
	Keep    int  `default:"50" help:"The number of published versions to keep, besides versions that changed only /live." env:"-"`
	Sandbox bool `form:"-" help:"Remove the sandbox instead, after no scheduler has --sandbox any more. Its keys then get real data." env:"-"`
}

// Run removes what the action names, and lists it. A dry run removes nothing.
func (d Prune) Run(ctx context.Context, store blob.Store, dryRun bool) (snapshots.Pruned, error) {
	if d.Sandbox {
		return snapshots.PruneSandbox(ctx, store, dryRun)
	}
	return snapshots.Prune(ctx, store, d.Keep, time.Now(), dryRun)
}

// Summary counts the objects that a run removes, and the versions that it keeps.
func (d Prune) Summary(pruned snapshots.Pruned, verb string) string {
	text := fmt.Sprintf("%d objects, %d bytes %s", len(pruned.Removed), pruned.Bytes, verb)
	if d.Sandbox {
		return text + "."
	}
	return fmt.Sprintf("%s; %d versions kept.", text, len(pruned.Kept))
}

// sandbox is the preview of the removal of the sandbox.
func (d Prune) sandbox(pruned snapshots.Pruned, now time.Time) Preview {
	p := Preview{Title: "Remove the sandbox", Effects: []string{"There is nothing to remove: the store has no sandbox."}}
	if len(pruned.Removed) == 0 {
		return p
	}
	p.Question = fmt.Sprintf("Remove the sandbox with %d objects for ever?", len(pruned.Removed))
	p.Effects = []string{
		fmt.Sprintf("%d objects below %s, %.1f MiB, are removed for ever. The real world keeps its own.", len(pruned.Removed), snapshots.SandboxFolder, float64(pruned.Bytes)/(1<<20)),
		"Keys of the tier sandbox get real data from every edge within a minute.",
	}
	written := slices.MaxFunc(pruned.Removed, func(a, b blob.Info) int { return a.Modified.Compare(b.Modified) }).Modified
	if ago := now.Sub(written); ago < SandboxRests {
		p.Warnings = []string{fmt.Sprintf("A scheduler wrote to the sandbox %s ago. If one still runs with --sandbox, it makes the sandbox anew.", ago.Round(time.Second))}
	}
	return p
}

// SandboxRests is the time without a write after which no scheduler keeps a sandbox: a weekend lasts an hour, and a
// scheduler writes at the beginning of each.
const SandboxRests = 70 * time.Minute

func (d Prune) look(ctx context.Context, o *Operator) (*Plan, error) {
	if d.Keep < 1 {
		return nil, fmt.Errorf("prune: keep %d versions: enter a number of at least 1", d.Keep)
	}
	pruned, err := d.Run(ctx, o.Store, true)
	if err != nil {
		return nil, err
	}
	removed := view.Each(pruned.Removed, func(object blob.Info) string { return object.Key })
	p, subject := Preview{Title: fmt.Sprintf("Remove all but %d versions and their downloads", d.Keep)}, fmt.Sprintf("all but %d versions", d.Keep)
	switch {
	case d.Sandbox:
		p, subject = d.sandbox(pruned, time.Now()), "sandbox"
	case len(removed) == 0:
		p.Effects = []string{fmt.Sprintf("There is nothing to remove: %d versions are kept, and the rest is younger than a day.", len(pruned.Kept))}
	default:
		p.Question = fmt.Sprintf("Remove %d objects for ever?", len(removed))
		p.Effects = []string{
			fmt.Sprintf("%d objects, %.1f MiB, are removed for ever; %d versions are kept.", len(removed), float64(pruned.Bytes)/(1<<20), len(pruned.Kept)),
			"A version that is removed cannot be rolled back to, and differences from it cannot be shown.",
		}
	}
	p.Seen = digest(removed)
	return &Plan{
		entry: auditlog.Intent{Action: auditlog.Prune, Subject: subject}, Preview: p,
		do: func(ctx context.Context, _ Request) (Answer, error) {
			pruned, err := d.Run(ctx, o.Store, false)
			return Answer{Record: pruned, Text: d.Summary(pruned, "removed")}, err
		},
	}, nil
}

// CheckVersion reads every object of a version again and compares its hash. It changes nothing. If an object
// is wrong, Apply returns the report with the error.
type CheckVersion struct {
	Version int64 `arg:"" optional:"" help:"The version; default: the current one." placeholder:"V"`
}

func (d CheckVersion) look(_ context.Context, o *Operator) (*Plan, error) { //nolint:unparam // an Action; others fail
	title := "Check every object of the current version"
	if d.Version != 0 {
		title = fmt.Sprintf("Check every object of version %d", d.Version)
	}
	return &Plan{
		Preview: Preview{Title: title, Effects: []string{"Every object is read and compared with its hash. Nothing is changed."}},
		do: func(ctx context.Context, request Request) (Answer, error) {
			found, err := snapshots.Verify(ctx, o.Store, d.Version, request.Progress)
			if err != nil {
				return Answer{}, noVersion(err, o.Store, d.Version)
			}
			if len(found.Faults) > 0 {
				return Answer{Record: found}, fmt.Errorf("version %d is damaged: %d of %d objects are wrong: %w; gridcast snapshots repair writes them again",
					found.Version, len(found.Faults), found.Objects, errors.Join(found.Faults...))
			}
			return Answer{Record: found, Text: fmt.Sprintf("Version %d is whole: %d objects, %d bytes read and compared.", found.Version, found.Objects, found.Bytes)}, nil
		},
	}, nil
}

// AuditLedger proves from the store alone that no pick was made late or changed. It changes nothing. If the
// record does not hold, Apply returns the report with the error.
type AuditLedger struct {
	Heads []string `name:"since-head" form:"-" help:"A head noted earlier, the hash of /status or a manifest: it must still be part of the ledger. Repeat for more." placeholder:"HASH"`
}

func (d AuditLedger) look(_ context.Context, o *Operator) (*Plan, error) { //nolint:unparam // an Action; others fail
	return &Plan{
		Preview: Preview{Title: "Audit the ledger", Effects: []string{"The whole record is read from the store and compared with what was published. Nothing is changed."}},
		do: func(ctx context.Context, _ Request) (Answer, error) {
			audit, err := proof.AuditStore(ctx, o.Store, d.Heads...)
			if err != nil {
				return Answer{}, err
			}
			if err := audit.Err(); err != nil {
				return Answer{Record: audit}, err
			}
			return Answer{Record: audit, Text: fmt.Sprintf("The record is whole: %d events in %d files, %d picks, each frozen before its race and served as it was frozen; %d versions agree.",
				audit.Events, audit.Head.Seq, len(audit.Picks), audit.Versions)}, nil
		},
	}, nil
}

// RunJob has a job of the running service run at once, and waits for it.
type RunJob struct {
	Name string `arg:"" form:"job" help:"The name of the job."`
}

// ErrNoJob means that the service has no job of that name.
var ErrNoJob = errors.New("no job of that name")

func (d RunJob) look(_ context.Context, o *Operator) (*Plan, error) {
	if o.Jobs == nil || !slices.ContainsFunc(o.Jobs(), func(s scheduler.JobStatus) bool { return s.Name == d.Name }) {
		return nil, fmt.Errorf("run %q: %w", d.Name, ErrNoJob)
	}
	return &Plan{
		entry:   auditlog.Intent{Action: auditlog.RunJob, Subject: d.Name},
		Preview: Preview{Title: "Run the job " + d.Name, Effects: []string{"It runs once, now or when its turn comes."}},
		do: func(ctx context.Context, request Request) (Answer, error) {
			outcome, err := o.RunJob(d.Name, "asked for by "+request.Actor)
			if err != nil {
				return Answer{}, err
			}
			select {
			case err := <-outcome:
				return Answer{Text: "The job " + d.Name + " has run without an error."}, err
			case <-ctx.Done():
				return Answer{}, ctx.Err()
			}
		},
	}, nil
}

// RaceTime returns the race time of a store without a configured clock. For a real ledger this is now. For a
// simulated ledger only its server knows race time, so RaceTime returns the last recorded instant.
func RaceTime(ctx context.Context, store blob.Store) time.Time {
	l, err := ledger.Load(ctx, store, ledger.AnyKind)
	if err != nil || l.Fold().Kind() != ledger.Simulated {
		return time.Now() // a rollback must work on a damaged ledger
	}
	m, _ := snapshots.LoadManifest(ctx, store, 0) // zero if it cannot be read
	return season.Later(l.Fold().At(), m.BuiltAt)
}

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
	var damaged []string
	for _, document := range []struct {
		key  string
		read func() error
	}{
		{keys.Object, func() error { _, _, err := keys.Load(ctx, store); return err }},
		{PeopleKey, func() error { _, err := LoadPeople(ctx, store); return err }},
		{settings.Key, func() error { _, err := settings.Load(ctx, store); return err }},
	} {
		err := document.read()
		if errors.Is(err, blob.ErrDamaged) { // a second look decides, because the backup's may be older
			err = document.read()
		}
		switch {
		case errors.Is(err, blob.ErrDamaged):
			damaged = append(damaged, document.key)
		case err != nil:
			return Answer{}, err
		}
	}
	restored, err := backup.Restore(ctx, backup.Restoring{
		Store: store, Damaged: damaged, Signers: o.Sign, Progress: request.Progress, Backup: d.From, Builder: o.Name, Above: d.Above, Since: d.Since,
		Own: map[string]func(context.Context) error{keys.Object: func(ctx context.Context) error {
			list, _, err := keys.Load(ctx, d.From)
			if err != nil {
				return err
			}
			above := list.Serial + keysLeap
			if o.SignKeys != nil {
				above = 0 // a signed list counts by the clock
			}
			return keys.Restore(ctx, store, list, above, o.SignKeys)
		}},
	})
	if err != nil {
		return Answer{}, err
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
