// Package doctor checks a server and reports the state of the running service.
package doctor

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"gridcast/builder/archive"
	"gridcast/builder/ingest"
	"gridcast/builder/ledger"
	"gridcast/builder/proof"
	"gridcast/builder/settings"
	"gridcast/deploy/auditlog"
	"gridcast/deploy/flags"
	"gridcast/deploy/operator"
	"gridcast/deploy/terminal"
	"gridcast/edge"
	"gridcast/edge/keys"
	"gridcast/edge/limit/redislimit"
	"gridcast/scheduler/probe"
	"gridcast/scheduler/webhook"
	"gridcast/snapshots"
	"gridcast/snapshots/blob"
	"gridcast/snapshots/blob/dirblob"
	"gridcast/snapshots/blob/s3blob"
)

// Doctor checks everything that a server with the same flags depends on. It writes one object of its
// own to the store and removes it.
type Doctor struct {
	flags.Builder
	flags.Edge
	flags.Console
	flags.Sources
	flags.Webhooks
	Role string `arg:"" optional:"" help:"Which server: ${enum}." enum:"serve,edge,scheduler" default:"serve"`
}

// Health is the outcome of a check.
type Health string

// The outcomes of a check.
const (
	Good    Health = "ok"
	Note    Health = "note"    // not wrong, but worth knowing
	Problem Health = "PROBLEM" // keeps the server from its work
)

// Finding is a row of doctor --json.
type Finding struct {
	Check string `json:"check"`
	State Health `json:"state"`
	Text  string `json:"text"`
	Fix   string `json:"mend,omitzero"` // the command that helps
}

// doctor runs the checks and collects their findings.
type doctor struct {
	*Doctor

	store    blob.Store // nil if it cannot be read
	real     bool       // the clock is the real one, so the ledger must be real too
	version  string     // of this program
	findings []Finding
}

// checkTimeout bounds one check over the network.
const checkTimeout = 10 * time.Second

// Run prints the findings, and fails if one is a problem.
func (c *Doctor) Run(ctx context.Context, s *terminal.Streams) error {
	d := &doctor{Doctor: c, version: s.Version}
	cfg := d.configuration()
	if len(s.Unread) > 0 {
		d.found("environment", Problem, "gridcast serve --help   # lists every variable", "no command reads %s: is the name misspelt?", strings.Join(s.Unread, ", "))
	}
	d.openStore(ctx)
	if d.store != nil {
		d.owner(ctx)
		d.writes(ctx)
		d.storeClock(ctx)
		d.ledger(ctx, d.published(ctx))
		if c.Role != "edge" {
			d.documents(ctx)
			d.sandbox(ctx)
		}
		d.sources(ctx)
		d.keys(ctx, cfg)
		d.signatures(ctx, cfg)
	}
	if c.Role != "scheduler" {
		d.redis(ctx)
		d.certificate(time.Now())
	}
	if c.Role != "edge" {
		d.token()
		d.webhooks(ctx)
		d.promises(ctx)
	}
	d.disk()
	d.files(cfg)
	d.ports(ctx)
	problems := 0
	for _, f := range d.findings {
		if f.State == Problem {
			problems++
		}
	}
	printFindings(s, d.findings)
	if problems > 0 {
		return fmt.Errorf("doctor: %d of %d checks found a problem", problems, len(d.findings))
	}
	return nil
}

func printFindings(s *terminal.Streams, findings []Finding) {
	if s.PrintedJSON(findings) {
		return
	}
	rows := make([][]any, len(findings))
	var fix strings.Builder
	for i, f := range findings {
		rows[i] = []any{f.Check, string(f.State), f.Text}
		if f.Fix != "" {
			fmt.Fprintf(&fix, "  %-12s %s\n", f.Check, f.Fix)
		}
	}
	s.PrintTable([]any{"check", "state", "found"}, rows)
	if fix.Len() > 0 {
		s.Printf("\nCommands that help:\n\n%s", terminal.Lines(fix.String()))
	}
}

func (d *doctor) found(check string, state Health, fix, format string, args ...any) {
	d.findings = append(d.findings, Finding{check, state, fmt.Sprintf(format, args...), fix})
}

func (d *doctor) failed(check, fix string, err error) {
	d.found(check, Problem, fix, "%s", oneLine(err))
}

// configuration checks the flags and the environment as the server does at its start.
func (d *doctor) configuration() edge.Config {
	cfg, edgeErr := d.Config()
	clock, clockErr := d.Race()
	d.real = clockErr == nil && clock.IsSystem()
	_, policyErr := d.Policy()
	_, sourceErr := d.Upstreams(d.real, d.version)
	if err := errors.Join(edgeErr, clockErr, policyErr, sourceErr); err != nil {
		d.failed("configuration", "gridcast "+d.Role+" --help", err)
	} else {
		d.found("configuration", Good, "", "as gridcast %s reads it", d.Role)
	}
	return cfg
}

// quoted is a text as one argument of a command that a person pastes.
func quoted(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }

func oneLine(err error) string { return strings.ReplaceAll(err.Error(), "\n", "; ") }

func (d *doctor) openStore(ctx context.Context) {
	if err := d.Lost(ctx, d.Storage); err != nil {
		if lost, ok := errors.AsType[*flags.LostError](err); ok && lost.Source != lost.Store {
			d.failed("store", "gridcast doctor --store "+quoted(lost.Source), err)
			return
		}
		d.failed("store", fmt.Sprintf("gridcast store restore BACKUP --store %s --cache-dir %s   # or mount the disk; deploy/docs/store-lost.md", quoted(d.Store), quoted(d.CacheDir)), err)
		return
	}
	path, inFolder := strings.CutPrefix(d.Store, "dir:")
	if _, err := os.Lstat(path); inFolder && errors.Is(err, fs.ErrNotExist) && d.Role != "edge" {
		d.found("store", Problem, "gridcast build --store "+quoted(d.Store)+"   # begins a new one; or mount the disk of the one you had", "%s does not exist: a wrong path, or a disk that is not mounted?", d.Store)
		return
	}
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	store, err := d.OpenToRead(ctx)
	if err == nil {
		_, _, err = snapshots.LoadPointer(ctx, store)
	}
	switch {
	case err == nil, errors.Is(err, snapshots.ErrNone), errors.Is(err, snapshots.ErrDamaged):
		d.store = store
		d.found("store", Good, "", "%s can be read", store)
	default:
		d.failed("store", d.fixStore(err), err)
	}
}

func (d *doctor) fixStore(err error) string {
	if path, ok := strings.CutPrefix(d.Store, "dir:"); ok {
		switch {
		case errors.Is(err, syscall.ENOSPC):
			return "gridcast snapshots prune --store " + quoted(d.Store)
		case errors.Is(err, fs.ErrPermission):
			return fixOwner(path)
		case d.Role == "edge":
			return "gridcast build --store " + quoted(d.Store)
		}
		return "ls -ld " + quoted(path)
	}
	u, parseErr := url.Parse(d.Store)
	if parseErr != nil || strings.Contains(d.Store, "@") { // a command would show the credentials
		return ""
	}
	endpoint := u.Query().Get("endpoint")
	aws := "aws s3api"
	if endpoint != "" {
		aws = fmt.Sprintf("aws --endpoint-url %s s3api", endpoint)
	}
	switch {
	case errors.Is(err, s3blob.ErrNoBucket):
		return fmt.Sprintf("%s create-bucket --bucket %s", aws, u.Host)
	case errors.Is(err, s3blob.ErrCredentials):
		return "export AWS_ACCESS_KEY_ID=… AWS_SECRET_ACCESS_KEY=…   # rights: deploy/docs/s3.md"
	}
	return fmt.Sprintf("curl -sS -o /dev/null -w '%%{http_code}\\n' %s", endpoint)
}

// fixOwner returns the command for a store with files that this user may not use: as its owner, if it is another, else
// a command that makes the store its owner's.
func fixOwner(path string) string {
	owner := dirblob.OwnerOf(path)
	switch {
	case owner == nil:
		return "ls -ld " + quoted(path)
	case owner.UID != os.Geteuid() && os.Geteuid() != 0:
		return fmt.Sprintf("runuser -u %s -- gridcast doctor   # the store belongs to this user", owner)
	}
	return fmt.Sprintf("chown -R %s: %s   # as root", owner, quoted(path))
}

// owner checks that one user owns the whole folder of a store.
func (d *doctor) owner(ctx context.Context) {
	path, inFolder := strings.CutPrefix(d.Store, "dir:")
	if !inFolder {
		return
	}
	switch count, first, err := dirblob.Foreign(ctx, path); {
	case err != nil:
		d.failed("owner", fixOwner(path), err)
	case count > 0:
		d.found("owner", Problem, fmt.Sprintf("chown -R %s: %s   # as root", dirblob.OwnerOf(path), quoted(path)),
			"%d files and folders belong to another user than the store, for example %s: the service may not be able to write", count, first)
	}
}

// writes checks the rights to write, and that the storage honours both conditions of a write.
func (d *doctor) writes(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, 3*checkTimeout) // writers race in many rounds
	defer cancel()
	store := d.store
	if strings.HasPrefix(d.Store, "dir:") {
		if d.Role == "edge" {
			return // an edge only reads the folder
		}
		var err error
		if store, err = d.Open(ctx); err != nil {
			d.failed("rights", d.fixStore(err), err)
			return
		}
	}
	d.conditions(ctx, store)
}

func (d *doctor) conditions(ctx context.Context, store blob.Store) {
	rounds := blob.Rounds
	if d.Role == "edge" {
		rounds = 0 // it writes nothing
	}
	probed := blob.Probe(ctx, store, rounds)
	switch {
	case d.Role == "edge" && errors.Is(probed.Write, s3blob.ErrCredentials):
		d.found("rights", Good, "", "reader: it may read but not write, which is right for an edge")
		return
	case probed.Write != nil:
		d.found("rights", Problem, d.fixStore(probed.Write), "it may read, but not write: %s", oneLine(probed.Write))
		return
	case probed.Delete != nil:
		d.found("rights", Problem, d.fixStore(probed.Delete), "it may write, but not delete: %s", oneLine(probed.Delete))
	case d.Role == "edge":
		d.found("rights", Note, "", "writer: an edge needs only to read; deploy/docs/s3.md has the policy of a reader")
	default:
		d.found("rights", Good, "", "writer: it may read and write")
	}
	if d.Role != "edge" {
		d.condition("create-once", "the storage refuses to replace an existing object", probed.Create)
		d.condition("swap", "the storage refuses to replace an object that changed meanwhile", probed.Swap)
	}
	if d.Role != "edge" && probed.Create == nil && probed.Swap == nil && probed.Delete == nil { // else writers did not race
		d.condition("at-once", fmt.Sprintf("of simultaneous writes one wins, in %d of %d rounds", blob.Rounds, blob.Rounds), probed.Race)
	}
}

func (d *doctor) condition(check, honoured string, err error) {
	switch {
	case err == nil:
		d.found(check, Good, "", "%s", honoured)
	case errors.Is(err, blob.ErrUnconditional):
		d.found(check, Problem, "", "%s. No builder can publish safely there: use a storage that honours it", oneLine(err))
	default:
		d.failed(check, d.fixStore(err), err)
	}
}

func (d *doctor) storeClock(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	c, ok := d.store.(blob.Clock)
	if !ok {
		d.found("clock", Note, "", "a folder has no clock of its own to compare with")
		return
	}
	at, within, err := c.StoreTime(ctx)
	if err != nil {
		d.failed("clock", "timedatectl status", err)
		return
	}
	off := time.Since(at)
	if off.Abs() > ledger.MaxAhead+within {
		d.found("clock", Problem, "timedatectl set-ntp true", "this machine is %s off the storage's clock; beyond %s the builder freezes no pick",
			off.Round(time.Second/10), ledger.MaxAhead)
		return
	}
	d.found("clock", Good, "", "within %s of the storage's", max(within, off.Abs()).Round(time.Second/10))
}

// published checks the published version and returns its number; 0 if there is none.
func (d *doctor) published(ctx context.Context) int64 {
	base, err := snapshots.LoadBase(ctx, d.store, nil)
	if err != nil {
		d.failed("version", "gridcast snapshots repair --store "+quoted(d.Store), err)
		return 0
	}
	pointer := base.Pointer
	if !base.Empty() {
		d.objects(ctx)
	}
	lost := false
	if base.Empty() {
		_, err := snapshots.LoadHistory(ctx, d.store)
		lost = err == nil
	}
	switch {
	case lost:
		d.found("version", Problem, "gridcast snapshots repair --store "+quoted(d.Store), "%s is lost: running edges go on with their version, and none can start", snapshots.PointerKey)
	case base.Empty() && d.Role == "edge":
		d.found("version", Problem, "gridcast build --store "+quoted(d.Store), "nothing is published: an edge has nothing to serve")
	case base.Empty():
		d.found("version", Note, "", "nothing is published yet: the first start builds version 1")
	case pointer.Held:
		d.found("version", Note, "gridcast build --release --reason … --store "+quoted(d.Store), "version %d is held: %s", pointer.Version, pointer.Reason)
	case d.real && base.Manifest.OverdueBy(time.Now()) > 0:
		d.found("version", Note, "gridcast rebuild --wait", "version %d is overdue since %s: does a scheduler run?", pointer.Version, terminal.Time(base.Manifest.DueAt))
	default:
		d.found("version", Good, "", "version %d, built for %s", pointer.Version, terminal.Time(base.Manifest.BuiltAt))
	}
	return pointer.Version
}

// objectsTimeout bounds the reading of all objects of a version.
const objectsTimeout = 2 * time.Minute

func (d *doctor) objects(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, objectsTimeout)
	defer cancel()
	found, err := snapshots.Verify(ctx, d.store, 0, nil)
	if err == nil && len(found.Faults) > 0 {
		err = fmt.Errorf("%d of %d are damaged: %w", len(found.Faults), found.Objects, found.Faults[0])
	}
	if err != nil {
		d.failed("objects", "gridcast snapshots repair --store "+quoted(d.Store), err)
		return
	}
	d.found("objects", Good, "", "%d of the current version are whole", found.Objects)
}

// documents reads the other documents that builders and operators need. Each row has the command that helps.
func (d *doctor) documents(ctx context.Context) {
	at := " --store " + quoted(d.Store)
	restore := "gridcast store restore BACKUP" + at + "   # keeps the files that are whole; deploy/docs/store-lost.md"
	const copied = "; a running scheduler puts the copy back within 30 seconds"
	for _, document := range []struct {
		check, fix string
		read       func(context.Context) error
	}{
		{"archive", "gridcast archive list" + at + "   # then gridcast archive use SHA, archive import, or store restore BACKUP", func(ctx context.Context) error {
			_, err := archive.NewStore(d.store).Load(ctx)
			return err
		}},
		{"settings", "gridcast settings set --model v2" + at + "   # and every other setting that you had" + copied, func(ctx context.Context) error {
			_, err := settings.Load(ctx, d.store)
			return err
		}},
		{"audit log", "gridcast rebuild --reason 'a damaged audit log' " + at + "   # its line records the damage", func(ctx context.Context) error {
			log, err := auditlog.Load(ctx, d.store)
			if err == nil && len(log.Unnoted()) > 0 {
				err = errors.New(log.Unnoted()[0].String())
			}
			return err
		}},
		{"facts log", restore, func(ctx context.Context) error {
			_, err := ingest.LoadFactsLog(ctx, d.store)
			return err
		}},
		{"operators", restore + copied, func(ctx context.Context) error {
			_, err := operator.LoadPeople(ctx, d.store)
			return err
		}},
	} {
		reading, cancel := context.WithTimeout(ctx, checkTimeout)
		err := document.read(reading)
		cancel()
		if document.check == "archive" && errors.Is(err, blob.ErrNotFound) {
			if _, empty := archive.NewStore(d.store).InUse(ctx); errors.Is(empty, blob.ErrNotFound) {
				continue // the first build imports one
			}
		}
		if err != nil {
			d.failed(document.check, document.fix, err)
		}
	}
}

// sandbox notes a sandbox that no scheduler keeps.
func (d *doctor) sandbox(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	for info, err := range d.store.List(ctx, snapshots.SandboxFolder+snapshots.PointerKey) {
		if err == nil && time.Since(info.Modified) > operator.SandboxRests {
			d.found("sandbox", Note, "gridcast snapshots prune --sandbox --store "+quoted(d.Store)+"   # or start a scheduler with --sandbox",
				"written last %s: no scheduler keeps it, and its keys get old data", terminal.Ago(time.Now(), info.Modified))
		}
	}
}

func (d *doctor) ledger(ctx context.Context, version int64) {
	if _, err := ledger.Load(ctx, d.store, ledger.AnyKind); errors.Is(err, ledger.ErrNotOpened) && version == 0 {
		d.found("ledger", Note, "", "the store has none yet: the first build opens one")
		return
	}
	done, err := (&operator.Operator{Store: d.store}).Do(ctx, operator.AuditLedger{}, operator.Request{})
	audit, _ := done.Record.(proof.Audit)
	switch {
	case err != nil:
		d.failed("ledger", "gridcast ledger audit --store "+quoted(d.Store), err)
	case d.Role != "edge" && (audit.Kind == ledger.Real) != d.real:
		d.found("ledger", Problem, "unset GRIDCAST_RACE_CLOCK   # or another --store", "the ledger is %s, and this clock writes only the other kind", audit.Kind)
	default:
		d.found("ledger", Good, "", "%s, audited: %d events, %d picks", audit.Kind, audit.Events, len(audit.Picks))
	}
}

func (d *doctor) sources(ctx context.Context) {
	sources, err := d.Upstreams(d.real, d.version)
	if err != nil || d.Role == "edge" {
		return
	}
	if len(sources) == 0 {
		d.found("sources", Note, "", "none: facts come only by import and by hand")
	}
	for _, source := range sources {
		state, err := ingest.LoadPollState(ctx, d.store, source.Name())
		switch {
		case err != nil:
			d.found("sources", Problem, "gridcast source pull --store "+quoted(d.Store), "%s: %s", source.Name(), oneLine(err))
		case state.Gate != "":
			d.found("sources", Problem, "gridcast source check --store "+quoted(d.Store)+"   # and accept the pending changes, if they are right", "%s: %s", source.Name(), state.Problem())
		case state.Problem() != "":
			d.found("sources", Problem, "gridcast source pull --store "+quoted(d.Store), "%s: %s", source.Name(), state.Problem())
		case state.Polled.IsZero():
			d.found("sources", Note, "gridcast source pull --store "+quoted(d.Store), "%s was never polled", source.Name())
		case len(state.Held) > 0:
			d.found("sources", Note, "gridcast source check --store "+quoted(d.Store), "%s answers; %d changes wait for an operator", source.Name(), len(state.Held))
		default:
			d.found("sources", Good, "", "%s answered %s", source.Name(), terminal.Ago(time.Now(), state.Answered))
		}
	}
}

// soon is the remaining life of a key or certificate below which doctor mentions it.
const soon = 14 * 24 * time.Hour

func (d *doctor) keys(ctx context.Context, cfg edge.Config) {
	document, _, err := keys.Load(ctx, d.store)
	create := "gridcast keys create --name 'Example Media' --tier standard --store " + quoted(d.Store)
	if err != nil {
		d.failed("keys", "gridcast store restore BACKUP --store "+quoted(d.Store)+"   # if no running scheduler puts the copy back within 30 seconds; deploy/docs/store-lost.md", err)
		return
	}
	active, ending := 0, 0
	var unknown []string
	for _, k := range document.Keys {
		if !k.Active(time.Now()) {
			continue
		}
		active++
		if !k.Active(time.Now().Add(soon)) {
			ending++
		}
		if _, ok := cfg.Tiers[k.Tier]; !ok && !slices.Contains(unknown, k.Tier) {
			unknown = append(unknown, k.Tier)
		}
	}
	switch {
	case len(unknown) > 0:
		d.found("keys", Problem, fmt.Sprintf("export GRIDCAST_TIER='%s=120'   # for every process", unknown[0]), "the edge refuses keys of the tiers %s, because its configuration lacks them", strings.Join(unknown, ", "))
	case active == 0:
		d.found("keys", Problem, create, "no key is active: the edge refuses every request")
	case ending > 0:
		d.found("keys", Note, "gridcast keys list --store "+quoted(d.Store), "%d active, %d of them for less than 14 days", active, ending)
	default:
		d.found("keys", Good, "", "%d active", active)
	}
}

func (d *doctor) redis(ctx context.Context) {
	if d.Redis == "" {
		d.found("redis", Note, "", "none: each edge counts for itself, so N edges allow N times the limit")
		return
	}
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	cfg, err := d.Edge.RedisConfig(slog.New(slog.DiscardHandler))
	ahead := time.Duration(0)
	if err == nil {
		ahead, err = redislimit.Check(ctx, cfg)
	}
	if err != nil {
		host, port := "HOST", "6379"
		if u, err := url.Parse(d.Redis); err == nil && u.Host != "" {
			host, port = u.Hostname(), cmp.Or(u.Port(), port)
		}
		d.failed("redis", fmt.Sprintf("redis-cli -h %s -p %s ping   # the rights of its user: deploy/docs/redis.md", host, port), err)
		return
	}
	d.found("redis", Good, "", "answers and counts; its clock is %s off", ahead.Abs().Round(time.Millisecond))
}

func (d *doctor) certificate(now time.Time) {
	if d.TLSCert == "" {
		d.found("certificate", Note, "", "none: a proxy in front must speak TLS")
		return
	}
	show := fmt.Sprintf("openssl x509 -noout -subject -dates -in %s", d.TLSCert)
	pair, err := tls.LoadX509KeyPair(d.TLSCert, d.TLSKey)
	if err != nil {
		d.failed("certificate", show, err)
		return
	}
	leaf := pair.Leaf
	renew := fmt.Sprintf("certbot renew   # or put a new one at %s: the edge reads it without a restart", d.TLSCert)
	switch {
	case now.After(leaf.NotAfter):
		d.found("certificate", Problem, renew, "expired at %s", terminal.Time(leaf.NotAfter))
	case now.Before(leaf.NotBefore):
		d.found("certificate", Problem, show, "not valid before %s", terminal.Time(leaf.NotBefore))
	case now.Add(soon).After(leaf.NotAfter):
		d.found("certificate", Note, renew, "expires at %s", terminal.Time(leaf.NotAfter))
	default:
		d.found("certificate", Good, "", "for %s until %s", strings.Join(leaf.DNSNames, ", "), terminal.Time(leaf.NotAfter))
	}
}

// token checks that only its owner can read the operator's token.
func (d *doctor) token() {
	if d.OperatorListen == "" {
		return
	}
	var unusable error
	info, err := os.Stat(d.OperatorTokenFile)
	if err == nil { // otherwise Token would create the file
		_, unusable = d.Console.Token()
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		d.found("token", Note, "", "%s does not exist yet: the first start creates it", d.OperatorTokenFile)
	case err != nil:
		d.failed("token", "ls -l "+d.OperatorTokenFile, err)
	case unusable != nil:
		d.failed("token", again(unusable, "without a copy remove it: the next start creates a new one", d.OperatorTokenFile), unusable)
	case info.Mode().Perm()&0o077 != 0:
		d.found("token", Problem, "chmod 600 "+quoted(d.OperatorTokenFile), "others on this machine can read %s", d.OperatorTokenFile)
	default:
		d.found("token", Good, "", "only its owner can read %s", d.OperatorTokenFile)
	}
}

// promises checks that the scheduler can measure the promised figures.
func (d *doctor) promises(ctx context.Context) {
	if d.Role == "scheduler" && len(d.Edges) == 0 {
		d.found("promises", Note, "export GRIDCAST_EDGES=HOST:PORT   # the --admin-listen of each edge", "no edge is named, so the availability of none is measured")
	}
	if d.store == nil {
		return
	}
	rules, err := settings.Load(ctx, d.store)
	switch {
	case err != nil: // the check of the settings reports it
	case rules.PublicAddress == "":
		d.found("promises", Note, "gridcast settings set --public-address https://api.example.com --store "+quoted(d.Store), "no public address is set, so its availability is not measured")
	default:
		if _, fault := probe.Ask(ctx, rules.PublicAddress); fault != "" {
			d.found("promises", Note, "curl -sS -i "+rules.PublicAddress+"/status", "%s does not answer as an edge does: %s", rules.PublicAddress, fault)
			return
		}
		d.found("promises", Good, "", "%s answers, and the scheduler measures it", rules.PublicAddress)
	}
}

// webhooks checks that receivers get their messages.
func (d *doctor) webhooks(ctx context.Context) {
	sender, err := d.Sender(nil)
	if err != nil {
		d.failed("webhooks", fmt.Sprintf("(umask 077; openssl rand -base64 32 >%s)   # or restore the earlier file: another master changes every secret", d.WebhookMasterFile), err)
		return
	}
	if info, err := os.Stat(d.WebhookMasterFile); err == nil && info.Mode().Perm()&0o077 != 0 {
		d.found("webhooks", Problem, "chmod 600 "+quoted(d.WebhookMasterFile), "others on this machine can read %s, and sign as gridcast", d.WebhookMasterFile)
	}
	if d.WebhookInsecureLoopback {
		d.found("webhooks", Problem, "unset GRIDCAST_WEBHOOK_INSECURE_LOOPBACK", "messages may go to this machine itself, which is for tests and demonstrations only")
	}
	if d.store == nil {
		return
	}
	list, err := (&operator.Operator{Store: d.store, Webhooks: sender}).ListWebhooks(ctx)
	show := "gridcast webhooks list --store " + quoted(d.Store)
	count := map[webhook.Condition]int{}
	for _, h := range list {
		count[h.State]++
	}
	switch {
	case err != nil:
		d.failed("webhooks", show, err)
	case len(list) == 0:
		d.found("webhooks", Note, "", "none: no receiver hears of new versions")
	case sender.Master() == "":
		d.found("webhooks", Problem, "export GRIDCAST_WEBHOOK_MASTER_FILE=FILE   # the file in use when they were added", "%d, and no master to sign with: none of them gets messages", len(list))
	case count[webhook.Unsigned] > 0:
		d.found("webhooks", Problem, "gridcast webhooks rotate ID   # or give this process the earlier master", "%d of %d belong to another master and get no messages", count[webhook.Unsigned], len(list))
	case count[webhook.GivenUp] > 0 || count[webhook.Failing] > 0:
		d.found("webhooks", Note, show, "%d, of which %d fail and %d were given up", len(list), count[webhook.Failing], count[webhook.GivenUp])
	default:
		d.found("webhooks", Good, "", "%d, of which %d are paused", len(list), count[webhook.Paused])
	}
}

// minFree is the least free space: room for several versions and years of ledger.
const minFree = 256 << 20

func (d *doctor) disk() {
	places := map[string]string{}
	if path, ok := strings.CutPrefix(d.Store, "dir:"); ok {
		places[path] = "gridcast snapshots prune --store " + quoted(d.Store)
	}
	if d.CacheDir != "" && d.Role != "scheduler" {
		places[d.CacheDir] = "df -h " + quoted(d.CacheDir)
	}
	for _, path := range slices.Sorted(maps.Keys(places)) {
		fix := places[path]
		free, err := dirblob.Free(path)
		if err != nil {
			d.found("disk", Problem, fix, "%s: %s", path, oneLine(err))
			continue
		}
		if free < minFree {
			d.found("disk", Problem, fix, "%s: %d MB free, want %d", path, free>>20, minFree>>20)
			continue
		}
		d.found("disk", Good, "", "%s: %.1f GB free", path, float64(free)/1e9)
	}
}

// minFiles is the number of open files that the process needs besides its connections.
const minFiles = 1024

// files checks that the edge may open as many connections as configured.
func (d *doctor) files(cfg edge.Config) {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		d.failed("files", "ulimit -n", err)
		return
	}
	want := uint64(minFiles)
	if d.Role != "scheduler" {
		want += uint64(cfg.MaxConnections)
	}
	fix := fmt.Sprintf("ulimit -n %d   # LimitNOFILE= in a unit of systemd", want)
	switch {
	case limit.Max < minFiles:
		d.found("files", Problem, fix, "%d files may be open at once", limit.Max)
	case limit.Max < want:
		d.found("files", Note, fix, "%d files may be open at once, so fewer than %d connections", limit.Max, cfg.MaxConnections)
	default:
		d.found("files", Good, "", "%d may be open at once", limit.Max)
	}
}

// ports checks that each port is free, or taken by a running gridcast.
func (d *doctor) ports(ctx context.Context) {
	listen := []struct{ name, address string }{{"port", d.Listen}, {"admin port", d.AdminListen}, {"operator port", d.OperatorListen}}
	switch d.Role {
	case "edge":
		listen = listen[:2]
	case "scheduler":
		listen = listen[1:]
	}
	for _, l := range listen {
		if l.address == "" {
			continue
		}
		host, number, err := net.SplitHostPort(l.address)
		if err != nil {
			d.found(l.name, Problem, "gridcast "+d.Role+" --help", "%q: want host:port", l.address)
			continue
		}
		if ip := net.ParseIP(host); l.name != "port" && (host == "" || ip != nil && !ip.IsLoopback() && !ip.IsPrivate()) {
			d.found(l.name, Note, "", "%s is open to every network: keep it behind a firewall", l.address)
		}
		listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", l.address)
		switch {
		case err == nil:
			_ = listener.Close()
			d.found(l.name, Good, "", "%s is free", l.address)
		case errors.Is(err, syscall.EADDRINUSE) && d.answers(ctx, l.name, host, number):
			d.found(l.name, Good, "", "%s is taken by a running gridcast", l.address)
		case errors.Is(err, syscall.EADDRINUSE):
			d.found(l.name, Problem, fmt.Sprintf("ss -ltnp 'sport = :%s'", number), "%s is taken by another program", l.address)
		case errors.Is(err, syscall.EACCES):
			d.found(l.name, Problem, "setcap cap_net_bind_service=+ep $(command -v gridcast)", "%s: this user may not listen on that port", l.address)
		default:
			d.failed(l.name, "ip address", err)
		}
	}
}

// answers reports whether a gridcast listens on a port of this machine.
func (d *doctor) answers(ctx context.Context, name, host, number string) bool {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	scheme := "http"
	if name == "port" && d.TLSCert != "" {
		scheme = "https"
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("%s://%s/healthz", scheme, net.JoinHostPort(host, number)), nil)
	if err != nil {
		return false
	}
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true}} //nolint:gosec // G402: any certificate will do
	response, err := client.Do(request)
	if err != nil {
		return false
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(response.Body, 64))
	return err == nil && response.StatusCode == http.StatusOK && strings.Contains(string(body), "ok")
}
