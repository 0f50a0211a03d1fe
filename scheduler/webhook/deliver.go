package webhook

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/big"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"gridcast/schemas/catalog"
	"gridcast/schemas/wire"
	"gridcast/snapshots"
	"gridcast/snapshots/blob"
	"gridcast/snapshots/notes"
)

// schedule holds the wait after each failure in a row, as Standard Webhooks recommends:
// 75 hours and 35 minutes in all. If the attempt after the last wait fails
// too, the Deliverer pauses the hook.
var schedule = []time.Duration{
	5 * time.Second, 5 * time.Minute, 30 * time.Minute, 2 * time.Hour, 5 * time.Hour,
	10 * time.Hour, 14 * time.Hour, 20 * time.Hour, 24 * time.Hour,
}

// longestWait is the longest wait that a receiver can ask for with Retry-After.
const longestWait = 24 * time.Hour

// maxChanges is the largest number of changes in a message. A longer list helps no receiver more than "everything".
const maxChanges = 500

const (
	// pollEvery is the time between two reads of the store for versions of other processes.
	pollEvery = 5 * time.Second
	// settleTime is the time between noticing a version and notifying receivers. Edges poll once a
	// second, and a receiver should find the version there. One message covers all versions
	// within this time.
	settleTime = 3 * time.Second
	// claimTime is the life of a claim, longer than any attempt.
	claimTime = attemptTime + 45*time.Second
	// recordTime bounds the recording of an attempt during a stop.
	recordTime = 5 * time.Second
	// concurrent is the number of attempts at the same time. Hanging receivers delay others only if
	// there are more of them.
	concurrent = 16
)

// Deliverer delivers notifications of published versions. Call Run once, Published from any goroutine.
type Deliverer struct {
	store   blob.Store
	signers *notes.Signers
	sender  *Sender
	pausing Pausing
	log     *slog.Logger
	owner   string // of claims
	nudge   chan struct{}
	metrics *metrics

	// Only Run's goroutine uses the following.
	hooks     []*hookState // in order of creation
	tag       blob.Tag     // of the document that holds the hooks
	pointer   snapshots.Pointer
	noticed   time.Time // the instant at which pointer was read
	manifests map[int64]version
	ended     chan attempted // one value for each running attempt; buffered for all
	complaint string         // the last error of the store that was logged
}

// hookState is Run's state of a hook.
type hookState struct {
	hook        Hook
	state       Delivery
	tag         blob.Tag
	loaded      bool
	sent        bool   // an attempt is running
	loggedFault string // the last logged fault of the hook
}

// attempted is the end of an attempt.
type attempted struct {
	*hookState
	err error // the error of recording it
}

// Pausing records that a Deliverer gives up a hook, and calls pause. pause fails if the hook has changed meanwhile.
type Pausing func(ctx context.Context, h Hook, why string, pause func() error) error

// NewDeliverer returns a deliverer, and registers its metrics. With signers, the version keys of the scheduler,
// receivers hear of no version that none of the keys has signed; signers may be nil.
func NewDeliverer(store blob.Store, signers *notes.Signers, sender *Sender, pausing Pausing, log *slog.Logger, registry prometheus.Registerer) *Deliverer {
	return &Deliverer{
		store: store, signers: signers, sender: sender, pausing: pausing, log: log, owner: rand.Text(), nudge: make(chan struct{}, 1),
		metrics: newMetrics(registry), manifests: map[int64]version{}, ended: make(chan attempted, concurrent),
	}
}

// Published reports that there is a new version, so that Run notices it at once. It never waits.
func (d *Deliverer) Published() {
	select {
	case d.nudge <- struct{}{}:
	default: // Run reads the store anyway
	}
}

// Run delivers until ctx ends, and then waits until the running attempts are recorded. It cancels
// them, and the next run of a Deliverer repeats them.
func (d *Deliverer) Run(ctx context.Context) {
	under := 0 // running attempts
	for ctx.Err() == nil {
		for len(d.ended) > 0 {
			a := <-d.ended
			under--
			a.sent, a.loaded = false, false
			d.complain(a.hookState, a.err)
		}
		began, wait := d.poll(ctx, concurrent-under)
		under += began
		select {
		case <-ctx.Done():
		case <-d.nudge:
		case <-time.After(wait):
		}
	}
	for ; under > 0; under-- {
		<-d.ended
	}
}

// complain logs a fault of a hook, each fault once.
func (d *Deliverer) complain(k *hookState, err error) {
	text := ""
	if err != nil {
		text = err.Error()
	}
	if text != "" && text != k.loggedFault {
		d.log.Warn("webhook is not notified", "webhook", k.hook.ID, "err", text)
	}
	k.loggedFault = text
}

// poll starts up to free due attempts. It returns their number, and the time until there is
// more to do. It reads the store and waits for no receiver.
func (d *Deliverer) poll(ctx context.Context, free int) (began int, wait time.Duration) {
	wait = pollEvery
	if err := d.refresh(ctx); err != nil {
		if text := err.Error(); text != d.complaint && ctx.Err() == nil {
			d.complaint = text
			d.log.Warn("webhooks wait", "err", err)
		}
		return 0, wait
	}
	d.complaint = ""
	now := time.Now().UTC()
	type turn struct {
		at time.Time
		*hookState
	}
	var turns []turn
	for _, k := range d.hooks {
		at, ok := d.due(ctx, k)
		switch {
		case ok && at.After(now):
			wait = min(wait, at.Sub(now))
		case ok:
			turns = append(turns, turn{at, k})
		}
	}
	// The hook that has waited longest comes first, so that hanging receivers come after untried
	// ones. Without a free place the end of an attempt calls poll again.
	slices.SortStableFunc(turns, func(a, b turn) int { return a.at.Compare(b.at) })
	for _, t := range turns {
		if began == free || ctx.Err() != nil {
			break
		}
		started, err := d.start(ctx, t.hookState, now)
		if started {
			began++
		}
		if ctx.Err() == nil {
			d.complain(t.hookState, err)
		}
	}
	d.metrics.show(d.hooks, d.pointer, d.sender.Master(), now)
	return began, wait
}

// refresh reads the hooks and the published pointer.
func (d *Deliverer) refresh(ctx context.Context) error {
	read, tag, err := document(d.store).Load(ctx)
	if err != nil {
		return fmt.Errorf("load webhooks: %w", err)
	}
	if tag != d.tag {
		d.tag = tag
		known := d.hooks
		d.hooks = nil
		for _, h := range read.Hooks {
			k := &hookState{}
			if i := slices.IndexFunc(known, func(k *hookState) bool { return k.hook.ID == h.ID }); i >= 0 {
				k = known[i]
			}
			k.hook = h
			d.hooks = append(d.hooks, k)
		}
	}
	if len(d.hooks) == 0 {
		return nil
	}
	pointer, _, err := snapshots.LoadPointer(ctx, d.store)
	if err != nil && !errors.Is(err, snapshots.ErrNone) {
		return err
	}
	if pointer.Version != d.pointer.Version {
		if d.signers != nil && pointer.Version != 0 {
			if err := snapshots.CheckNote(ctx, d.store, pointer.Version, d.signers.Trust()); err != nil {
				return err
			}
		}
		d.pointer, d.noticed = pointer, time.Now()
	}
	for _, k := range d.hooks {
		if !k.loaded && !k.sent && k.hook.Paused.IsZero() {
			if k.state, k.tag, err = deliveryOf(d.store, k.hook).Load(ctx); err != nil {
				return err
			}
			k.loaded = true
		}
	}
	return nil
}

// due returns the known instant of the next attempt for a hook; it may be past. A hook
// that is to be paused is due.
func (d *Deliverer) due(ctx context.Context, k *hookState) (time.Time, bool) {
	h, s := k.hook, k.state
	resumed := s.Resumed != h.Resumed // failures before a resumption do not count
	switch {
	case !h.Paused.IsZero() || k.sent || !k.loaded || h.Master != d.sender.Master():
		return time.Time{}, false
	case s.GiveUp != "" && !resumed:
		d.giveUp(ctx, k)
		return time.Time{}, false
	case s.Told >= d.pointer.Version:
		return time.Time{}, false
	}
	at := d.noticed.Add(settleTime)
	if !resumed && s.Next.After(at) {
		at = s.Next
	}
	if s.Owner != "" && s.Until.After(at) {
		at = s.Until // another Deliverer has it, or died with it
	}
	return at, true
}

// giveUp pauses a hook, unless an operator has resumed or paused it meanwhile.
func (d *Deliverer) giveUp(ctx context.Context, k *hookState) {
	h, why := k.hook, k.state.GiveUp
	given := func(hooks []Hook) (*Hook, error) {
		now, err := Find(hooks, h.ID)
		if err == nil && (now.Resumed != h.Resumed || !now.Paused.IsZero()) {
			err = errors.New("it was paused or resumed meanwhile")
		}
		return now, err
	}
	hooks, err := Load(ctx, d.store)
	if err == nil {
		if _, changed := given(hooks); changed != nil {
			return // another scheduler or an operator was first
		}
		err = d.pausing(ctx, h, why, func() error {
			return Update(ctx, d.store, func(hooks *[]Hook) error {
				now, err := given(*hooks)
				if err == nil {
					now.Pause(why, true)
				}
				return err
			})
		})
	}
	if err != nil {
		d.complain(k, fmt.Errorf("pause it: %w", err)) // and poll again
		return
	}
	d.log.Warn("webhook paused", "webhook", h.ID, "reason", why)
	d.Published() // so that Run polls again
}

// start starts an attempt: it claims the message in the store and sends it in a goroutine.
// It records changes outside the receiver's endpoints as delivered.
func (d *Deliverer) start(ctx context.Context, k *hookState, now time.Time) (started bool, err error) {
	h, s := k.hook, k.state
	s.Attempts = slices.Clone(s.Attempts)
	if s.Resumed != h.Resumed {
		s.Resumed, s.Failures, s.Failing, s.GiveUp = h.Resumed, 0, time.Time{}, ""
	}
	if s.Pending != nil && s.Pending.Version != d.pointer.Version {
		s.Tried, s.Pending = append(slices.Clone(s.Tried), s.Pending.Version), nil
	}
	if s.Pending == nil {
		s.Pending = &Message{ID: "msg_" + rand.Text(), Version: d.pointer.Version, Previous: s.Told, At: d.pointer.At.UTC()}
	}
	data, err := d.changes(ctx, h, *s.Pending, s.Tried)
	if err != nil {
		return false, err
	}
	unwanted := data.Complete && len(data.Changes) == 0
	if unwanted {
		s.accepted()
	} else {
		s.Owner, s.Until = d.owner, now.Add(claimTime)
	}
	tag, err := deliveryOf(d.store, h).Swap(ctx, k.tag, s)
	if err != nil {
		k.loaded = false // another Deliverer was first, or the store failed: read the state again
		if errors.Is(err, blob.ErrConflict) {
			d.Published()
			return false, nil
		}
		return false, err
	}
	k.state, k.tag = s, tag
	if unwanted {
		return false, nil
	}
	body, err := wire.Marshal(wire.Webhook[wire.PublishedData]{Type: wire.WebhookPublished, Timestamp: wire.Instant(s.Pending.At), Data: data})
	if err != nil {
		return false, err
	}
	k.sent = true
	go func() {
		d.ended <- attempted{k, d.attempt(ctx, h, s.Pending.ID, body)}
		d.Published() // so that Run polls again
	}()
	return true, nil
}

// accepted records that the receiver has everything up to the pending message.
func (s *Delivery) accepted() {
	s.Told, s.Pending, s.Tried, s.Failures, s.Failing, s.Next, s.GiveUp = s.Pending.Version, nil, nil, 0, time.Time{}, time.Time{}, ""
}

// attempt sends a claimed message and records the outcome.
func (d *Deliverer) attempt(ctx context.Context, h Hook, message string, body []byte) (err error) {
	defer func() {
		if value := recover(); value != nil { // a panic here must not end the publishing process
			d.log.Error("BUG: panic while a webhook is sent", "webhook", h.ID, "panic", value, "stack", string(debug.Stack()))
			err = fmt.Errorf("BUG: %v", value)
		}
	}()
	began := time.Now()
	a := d.sender.send(ctx, h, message, body)
	now, broken := time.Now(), ctx.Err() != nil
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordTime)
	defer cancel()
	s, err := deliveryOf(d.store, h).Update(ctx, func(s *Delivery) error {
		if s.Owner != d.owner || s.Pending == nil || s.Pending.ID != message {
			return errClaimLost
		}
		s.Owner, s.Until = "", time.Time{}
		if !broken { // otherwise attempt returns the claim, and the next run of a Deliverer sends the same message
			s.record(a, began, now)
		}
		return nil
	})
	switch {
	case errors.Is(err, errClaimLost):
		return nil
	case err != nil:
		return err
	case !broken:
		line := s.Attempts[len(s.Attempts)-1]
		d.metrics.deliveries.WithLabelValues(string(a.outcome)).Inc()
		log := d.log
		if !line.Retry.IsZero() {
			log = log.With("retry_at", line.Retry)
		}
		log.Info("webhook sent", "webhook", h.ID, "outcome", a.outcome, "status", a.status, "message", message, "version", line.Version, "attempt", line.Number)
	}
	return nil
}

// errClaimLost means that the hook was removed, or that the claim ran out and another
// Deliverer took it.
var errClaimLost = errors.New("the claim is lost")

// record records an attempt.
func (s *Delivery) record(a answer, began, now time.Time) {
	line := a.attempt(s.Pending.ID, began, now)
	line.Version, line.Number = s.Pending.Version, s.Failures+1
	if a.outcome == Delivered {
		s.accepted()
	} else {
		if s.Failures == 0 {
			s.Failing = line.At
		}
		s.Failures++
		switch {
		case a.outcome == Gone:
			s.GiveUp = "the receiver answered 410: it wants nothing any more"
		case s.Failures > len(schedule):
			s.GiveUp = fmt.Sprintf("nothing was accepted since %s, %d attempts: %s", s.Failing.Format("2 January 2006 15:04 UTC"), s.Failures, a.detail)
		default:
			wait := schedule[s.Failures-1]
			jitter, err := rand.Int(rand.Reader, big.NewInt(int64(wait/10))) // so that receivers that failed together are not tried together again
			if err != nil {
				panic("BUG: crypto/rand: " + err.Error())
			}
			wait += time.Duration(jitter.Int64())
			s.Next = now.Add(max(wait, a.retryAfter)).UTC().Truncate(time.Millisecond)
			line.Retry = s.Next
		}
	}
	s.remember(line)
}

// attempt is the line of an attempt in the log, the first one of a test.
func (a answer) attempt(message string, began, now time.Time) Attempt {
	return Attempt{
		At: began.UTC().Truncate(time.Millisecond), Message: message, Number: 1,
		Outcome: a.outcome, Status: a.status, Millis: now.Sub(began).Milliseconds(), Detail: a.detail,
	}
}

func (s *Delivery) remember(line Attempt) {
	s.Attempts = append(s.Attempts, line)
	s.Attempts = s.Attempts[max(0, len(s.Attempts)-shownAttempts):]
}

// Test sends a test message once, and records it in the hook's log. It also works for a
// paused hook. The error is an error of the store, or the lack of a master.
func Test(ctx context.Context, store blob.Store, sender *Sender, h Hook) (Attempt, error) {
	if h.Master != sender.Master() {
		return Attempt{}, fmt.Errorf("test webhook %s: %w", h.ID, MasterError(h, sender))
	}
	id, began := "msg_"+rand.Text(), time.Now()
	body, err := wire.Marshal(wire.Webhook[wire.TestData]{Type: wire.WebhookTest, Timestamp: wire.Instant(began), Data: wire.TestData{Webhook: h.ID}})
	if err != nil {
		return Attempt{}, err
	}
	a := sender.send(ctx, h, id, body)
	if err := ctx.Err(); err != nil {
		return Attempt{}, err
	}
	line := a.attempt(id, began, time.Now())
	_, err = deliveryOf(store, h).Update(ctx, func(s *Delivery) error {
		s.remember(line)
		return nil
	})
	return line, err
}

// MasterError returns the reason why messages of a hook cannot be signed.
func MasterError(h Hook, s *Sender) error {
	if s.Master() == "" {
		return ErrNoMaster
	}
	return fmt.Errorf("its secret is of another master (%s) than the one given (%s): give that one, or gridcast webhooks rotate %s", h.Master, s.Master(), h.ID)
}

// changes lists the changes for a hook's receiver, since the last accepted message and since each tried version. The
// answer to such a message may be lost, so that the receiver has documents that are now as they were before it.
func (d *Deliverer) changes(ctx context.Context, h Hook, m Message, tried []int64) (wire.PublishedData, error) {
	data := wire.PublishedData{
		Version: m.Version, Previous: m.Previous, PublishedAt: wire.Instant(m.At), Changes: []wire.WebhookVariant{},
	}
	after, err := d.read(ctx, m.Version)
	if err != nil {
		return data, err
	}
	listed := map[string]bool{}
	for _, version := range slices.Concat([]int64{m.Previous}, tried) {
		before, err := d.read(ctx, version)
		switch {
		case errors.Is(err, blob.ErrNotFound), errors.Is(err, snapshots.ErrDamaged):
			data.Changes = []wire.WebhookVariant{}
			return data, nil // the manifest was removed or lost, so the changes are unknown
		case err != nil:
			return data, err
		}
		for _, change := range snapshots.Differing(before.entries, after.entries) {
			v := wire.WebhookVariant{Path: change.Path, Change: string(change.Kind)}
			lap := v.Path == livePath && change.Kind == snapshots.Changed && after.turn != "" && after.turn == before.turn
			if listed[change.Path] || !address(&v) || !h.wants(v.Endpoint, lap) {
				continue
			}
			listed[change.Path] = true
			if tag := after.entries[change.Path].ETag; tag != "" {
				v.ETag = `"` + tag + `"`
			}
			data.Changes = append(data.Changes, v)
		}
	}
	data.Complete = len(data.Changes) <= maxChanges
	if !data.Complete {
		data.Changes = []wire.WebhookVariant{}
	}
	return data, nil
}

// address replaces the stored path of a variant by the request for it. It returns
// false for a variant without a request.
func address(v *wire.WebhookVariant) bool {
	for _, f := range catalog.Feeds {
		if f.Stored == v.Path {
			v.Endpoint, v.Path = strings.TrimPrefix(f.Path, "/"), f.Path
			return true
		}
	}
	variant, err := catalog.ParsePath(v.Path)
	if err != nil || variant.SessionKey == catalog.NoSession {
		return false
	}
	v.Endpoint = string(variant.Endpoint)
	v.Path, v.Query, _ = strings.Cut(variant.Target(), "?")
	return true
}

// version holds the parts of a published version that changes compares.
type version struct {
	entries map[string]snapshots.ManifestEntry // by path
	turn    string                             // of the running race, equal until something but a lap happens; empty: unknown
}

// livePath is the path of the running race in a version.
var livePath = catalog.Variant{Endpoint: catalog.Live}.Path()

// read loads the version with a number.
func (d *Deliverer) read(ctx context.Context, number int64) (version, error) {
	if kept, ok := d.manifests[number]; ok {
		return kept, nil
	}
	if number == 0 { // nothing was delivered: 0 would mean the current version
		return version{}, blob.ErrNotFound
	}
	m, err := snapshots.LoadManifest(ctx, d.store, number)
	if err != nil {
		return version{}, err
	}
	if len(d.manifests) >= 3 { // most hooks need the same two manifests
		clear(d.manifests)
	}
	v := version{entries: m.ByPath()}
	if e, ok := v.entries[livePath]; ok {
		if v.turn, err = turnOf(ctx, d.store, e); err != nil {
			return version{}, err
		}
	}
	d.manifests[number] = v
	return v, nil
}

// turnOf describes the running race without its laps: its state, and which live picks are made or missed.
func turnOf(ctx context.Context, store blob.Store, e snapshots.ManifestEntry) (string, error) {
	body, err := e.Read(ctx, store)
	if errors.Is(err, blob.ErrNotFound) || errors.Is(err, snapshots.ErrDamaged) {
		return "", nil // then receivers get one message too many
	}
	var race wire.Success[wire.LiveRace]
	if err != nil || json.Unmarshal(body, &race) != nil {
		return "", err
	}
	made := []string{fmt.Sprint(race.Data.SessionKey, race.Data.State, race.Data.Provisional)}
	for _, c := range race.Data.Checkpoints {
		made = append(made, c.Status)
	}
	return strings.Join(made, " "), nil
}

// metrics are the metrics of all hooks.
type metrics struct {
	deliveries *prometheus.CounterVec
	hooks      *prometheus.GaugeVec
	backlog    prometheus.Gauge
	oldest     prometheus.Gauge
}

func newMetrics(registry prometheus.Registerer) *metrics {
	m := &metrics{
		deliveries: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "gridcast_webhook_deliveries_total", Help: "Attempts to deliver a message to a webhook, by outcome.",
		}, []string{"outcome"}),
		hooks: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "gridcast_webhooks", Help: "Webhooks by condition.",
		}, []string{"state"}),
		backlog: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "gridcast_webhook_backlog", Help: "Webhooks that are not paused and have yet to be notified of the published version.",
		}),
		oldest: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "gridcast_webhook_failing_seconds", Help: "For how long the webhook has failed that has failed longest and is not paused; 0: none fails.",
		}),
	}
	registry.MustRegister(m.deliveries, m.hooks, m.backlog, m.oldest)
	for _, o := range outcomes {
		m.deliveries.WithLabelValues(string(o))
	}
	m.show(nil, snapshots.Pointer{}, "", time.Time{})
	return m
}

// show sets the gauges.
func (m *metrics) show(hooks []*hookState, pointer snapshots.Pointer, master string, now time.Time) {
	count := make(map[Condition]int, len(conditions))
	backlog, oldest := 0, time.Duration(0)
	for _, k := range hooks {
		condition := k.hook.Condition(k.state, master)
		count[condition]++
		if condition == Failing {
			oldest = max(oldest, now.Sub(k.state.Failing))
		}
		if k.hook.Paused.IsZero() && k.loaded && k.state.Told < pointer.Version {
			backlog++
		}
	}
	for _, condition := range conditions {
		m.hooks.WithLabelValues(string(condition)).Set(float64(count[condition]))
	}
	m.backlog.Set(float64(backlog))
	m.oldest.Set(oldest.Seconds())
}
