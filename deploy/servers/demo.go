package servers

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"gridcast/builder"
	"gridcast/builder/ledger"
	"gridcast/builder/live"
	"gridcast/builder/season"
	"gridcast/deploy/flags"
	"gridcast/deploy/sandbox"
	"gridcast/deploy/service"
	"gridcast/deploy/terminal"
	"gridcast/edge"
	"gridcast/edge/keys"
	"gridcast/snapshots/blob"
	"gridcast/snapshots/clock"
)

const (
	// ReplayVerifiesAfter is how long after a race a replay verifies its result: about as long as an
	// operator takes.
	ReplayVerifiesAfter = time.Hour

	demoFolder = ".var/demo"
	demoToken  = ".var/demo-operator-token" //nolint:gosec // a file's name

	// demoLead is the race time from the start of the demo to the end of qualifying.
	demoLead = 75 * time.Minute
	// demoVerifiesAfter is how long the visitor has to verify the result, in real time, before it
	// verifies itself.
	demoVerifiesAfter = 10 * time.Minute
	// demoSlowest and demoFastest bound the speed, so that no time of the demo is under a second or overflows.
	demoSlowest, demoFastest = 0.1, 100_000
	// demoSeasons is the number of earlier seasons with picks.
	demoSeasons = 5
	// demoRoundsAfter is the number of rounds that follow the weekend.
	demoRoundsAfter = 2
)

// Weekend is a race weekend that a demo replays.
type Weekend struct {
	Year  int
	Round season.Round
}

// DemoWeekend chooses a late weekend of the first season with known session times: demoRoundsAfter rounds follow it.
func DemoWeekend(a *season.Archive) (Weekend, error) {
	for _, year := range a.Facts().Seasons {
		if n := len(year.Rounds) - 1 - demoRoundsAfter; n >= 0 && !year.Rounds[n].Provisional() {
			return Weekend{year.Year, year.Rounds[n]}, nil
		}
	}
	return Weekend{}, errors.New("the archive has no race weekend with known session times to replay")
}

func (c *Serve) runDemo(ctx context.Context, s *terminal.Streams) error {
	for _, flag := range []string{"store", "new-store", "operator-token-file", "start-page", "now", "race-clock"} {
		if s.Given[flag] {
			return terminal.Usagef("--demo sets --%s itself; leave it out", flag)
		}
	}
	if !(c.DemoSpeed >= demoSlowest && c.DemoSpeed <= demoFastest) { // refuses NaN too
		return terminal.Usagef("--demo-speed %v: must be at least %v and at most %v", c.DemoSpeed, demoSlowest, demoFastest)
	}
	if err := c.choosePorts(ctx, s); err != nil {
		return err
	}
	store, release, err := demoStore(ctx)
	if err != nil {
		return err
	}
	defer release()
	stored, err := flags.ReadArchive(c.Archive)
	if err != nil {
		return err
	}
	w, err := DemoWeekend(stored.Archive)
	if err != nil {
		return err
	}
	begin := w.Round.GridKnownAt().Add(-demoLead)
	b, err := c.buildPast(ctx, s, store, w, begin)
	if err != nil {
		return err
	}
	client, err := demoKeys(ctx, store)
	if err != nil {
		return err
	}
	// Built before the race clock starts, so that the weekend begins when it can be watched.
	if _, err := b.Build(ctx, builder.Request{At: begin, Reason: "demo", Progress: s.Progress}); err != nil {
		return err
	}
	race, err := clock.At(begin, time.Now(), c.DemoSpeed)
	if err != nil {
		return err
	}
	c.OperatorTokenFile, c.startKey, c.StartPage = demoToken, client[0].key, edge.Shown // the key of a trial: a sandbox answers its own
	c.laps = recordedLaps(stored.Archive)
	open := func(context.Context) (*builder.Builder, error) { return b, nil }
	return c.serve(ctx, s, store, race, open, func(ctx context.Context, address, console string) {
		banner{
			address: address, console: console, operatorListen: c.OperatorListen, sandbox: c.Sandbox, store: store,
			race: race, weekend: w, keys: client, verifiesAfter: c.AutoVerifyAfter,
		}.show(ctx, s)
	})
}

// buildPast opens the builder of the demo, and settles the picks and results of the seasons before the weekend.
func (c *Serve) buildPast(ctx context.Context, s *terminal.Streams, store blob.Store, w Weekend, begin time.Time) (*builder.Builder, error) {
	if c.AutoVerifyAfter == 0 {
		c.AutoVerifyAfter = time.Duration(float64(demoVerifiesAfter) * c.DemoSpeed)
	}
	b, err := c.On(ctx, s, store, ledger.Simulated, season.BeginsAt(w.Year-demoSeasons))
	if err != nil {
		return nil, err
	}
	facts, err := b.Facts(ctx)
	if err != nil {
		return nil, err
	}
	past := b.Policy // verifies earlier results without the visitor
	past.AutoVerifyAfter = ReplayVerifiesAfter
	if err := past.Replay(ctx, b.Ledger, facts, begin, s.Progress); err != nil {
		return nil, err
	}
	return b, sandbox.ShowEarlier(ctx, b, facts, begin)
}

// show prints the banner, and after the race that its result waits for the visitor.
func (d banner) show(ctx context.Context, s *terminal.Streams) {
	s.Printf("%s", d)
	if d.console == "" {
		return
	}
	select {
	case <-time.After(time.Until(d.race.Real(d.weekend.Round.ResultKnownAt()))):
		s.Printf("%s", terminal.Lines(d.raceOver()))
	case <-ctx.Done():
	}
}

// recordedLaps makes the laps of the races of an archive.
func recordedLaps(a *season.Archive) service.Laps {
	return func(race live.Fixture) (all []live.Observation) {
		for _, year := range a.Facts().Seasons {
			for i := range year.Rounds {
				if r := &year.Rounds[i]; r.StartsAt().Equal(race.Start) {
					all = append(all, sandbox.Order(race.Session, r)...)
				}
			}
		}
		return all
	}
}

// choosePorts takes another free port for each default port that is in use. It fails on a port in use
// that the caller named, before the demo spends time on a store.
func (c *Serve) choosePorts(ctx context.Context, s *terminal.Streams) error {
	for _, p := range []struct {
		flag    string
		address *string
	}{{"listen", &c.Listen}, {"operator-listen", &c.OperatorListen}} {
		if *p.address == "" {
			continue
		}
		listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", *p.address)
		if errors.Is(err, syscall.EADDRINUSE) && !flags.Given(s, p.flag) {
			host, _, _ := net.SplitHostPort(*p.address)
			if listener, err = (&net.ListenConfig{}).Listen(ctx, "tcp", net.JoinHostPort(host, "0")); err == nil {
				_, _ = fmt.Fprintf(s.Err, "%s is in use: the demo takes %s; --%s chooses another address\n", *p.address, listener.Addr(), p.flag)
				*p.address = listener.Addr().String()
			}
		}
		if err != nil {
			return fmt.Errorf("listen on %s: %w; choose another address with --%s", *p.address, err, p.flag)
		}
		defer func() { _ = listener.Close() }() // at the end, so that no port is chosen twice; serve opens it again
	}
	return nil
}

// demoStore creates an empty store, and locks out other demos until release is called.
func demoStore(ctx context.Context) (store blob.Store, release func(), err error) {
	if err := os.MkdirAll(filepath.Dir(demoFolder), 0o750); err != nil {
		return nil, nil, fmt.Errorf("demo: %w", err)
	}
	lock, err := os.OpenFile(demoFolder+".lock", os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, nil, fmt.Errorf("demo: %w", err)
	}
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return nil, nil, errors.Join(fmt.Errorf("demo: another one runs in %s; stop it first", demoFolder), lock.Close())
	}
	release = func() { _ = lock.Close() } // the lock goes with the file
	if err := os.RemoveAll(demoFolder); err != nil {
		release()
		return nil, nil, fmt.Errorf("demo: %w", err)
	}
	store, err = (&flags.Storage{Store: "dir:" + demoFolder}).Open(ctx)
	if err != nil {
		release()
		return nil, nil, err
	}
	return store, release, nil
}

// demoKeys creates a key of each tier, in the order of their limits.
func demoKeys(ctx context.Context, store blob.Store) (created []demoKey, err error) {
	err = keys.Update(ctx, store, func(d *keys.List) error {
		created = nil // Update may call this again
		for _, tier := range []string{"trial", "standard", "pro", "sandbox"} {
			_, key, err := d.Create(keys.Request{Name: "demo " + tier, Tier: tier}, time.Now())
			if err != nil {
				return err
			}
			created = append(created, demoKey{tier, keys.DefaultTiers()[tier], key})
		}
		return nil
	})
	return created, err
}

type demoKey struct {
	tier  string
	limit int // requests per minute
	key   string
}

// banner tells the visitor of a demo the addresses and keys, and the events to come.
type banner struct {
	address, console string // URLs; without a console the second is empty
	operatorListen   string
	sandbox          bool
	store            blob.Store
	race             clock.Clock
	weekend          Weekend
	keys             []demoKey
	verifiesAfter    time.Duration // in race time
}

func (d banner) String() string {
	var console, clients, events, requests strings.Builder
	if d.console != "" {
		fmt.Fprintf(&console, "  console  %s  (sign in with the token in %s)\n", d.console, demoToken)
	}
	if d.sandbox {
		fmt.Fprintf(&console, "  sandbox  %s/docs/sandbox  (another weekend every hour, for the last key)\n", d.address)
	}
	for _, k := range d.keys {
		fmt.Fprintf(&clients, "  %-8s %4d  %s\n", k.tier, k.limit, k.key)
	}
	for _, event := range d.weekend.events(d.verifiesAfter) {
		wait := time.Until(d.race.Real(event.at)).Round(time.Second)
		fmt.Fprintf(&events, "  %s UTC  in %-8s %s\n", event.at.Format("2006-01-02 15:04"), wait, event.what)
	}
	for _, path := range []string{"next-race", "standings", "standings?type=constructors&year=2012", "predictions", "live", "accuracy", "calendar", "drivers"} {
		fmt.Fprintf(&requests, "  curl -s -H 'X-API-Key: %s' '%s/api/v1/%s'\n", d.keys[2].key, d.address, path)
	}
	return fmt.Sprintf(`
gridcast serves %[1]s

  docs     %[1]s/docs
  status   %[1]s/status
%[2]s  store    %[3]s  (%[4]s snapshots list --store dir:%[5]s)

Keys, one for each tier, with their requests per minute:

%[6]s
It is %[7]s UTC of the %[8]s, and a real second lasts %[9]g.
What will happen:

%[10]s
Paste one of these:

%[11]s
Or act as its operator, in another terminal here:

  export GRIDCAST_STORE=dir:%[5]s GRIDCAST_RACE_CLOCK='%[12]s'
  export GRIDCAST_OPERATOR_TOKEN_FILE=%[13]s GRIDCAST_OPERATOR_LISTEN=%[14]s
  %[4]s rounds list
  %[4]s results list

Ctrl-C ends it.
`, d.address, &console, d.store, os.Args[0], demoFolder, &clients, d.race.Now().Format("Monday 2 January 2006, 15:04"), d.weekend.Round.Name, d.race.Speed(),
		&events, &requests, d.race, demoToken, d.operatorListen)
}

func (d banner) raceOver() string {
	return fmt.Sprintf("\nThe %s is over, and its result waits for you: verify it at\n\n  %s/#waiting  (sign in with the token in %s)\n\nOtherwise it is verified automatically in %s.\n",
		d.weekend.Round.Name, d.console, demoToken, time.Duration(float64(d.verifiesAfter)/d.race.Speed()).Round(time.Second))
}

type demoEvent struct {
	at   time.Time
	what string
}

func (w Weekend) events(verifiesAfter time.Duration) []demoEvent {
	return []demoEvent{
		{w.Round.GridKnownAt(), "qualifying has ended: the pick is frozen and in /next-race"},
		{w.Round.StartsAt(), "lights out: /live shows each lap, made from grid, stops and result"},
		{w.Round.ResultKnownAt(), "the race is over: its result waits for you to verify it, in the console"},
		{w.Round.ResultKnownAt().Add(verifiesAfter), "the result is verified automatically unless you did it: standings, predictions and accuracy follow"},
	}
}
