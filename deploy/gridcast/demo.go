package main

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
	"gridcast/builder/archive"
	"gridcast/builder/ledger"
	"gridcast/builder/season"
	"gridcast/deploy/clock"
	"gridcast/edge/keys"
	"gridcast/snapshots/blob"
)

const (
	demoFolder = ".var/demo"
	demoToken  = ".var/demo-operator-token" //nolint:gosec // a file's name

	// demoLead is how long before the end of qualifying the demo begins, in race time.
	demoLead = 75 * time.Minute
	// demoVerifiesAfter is how long the demo waits for its visitor to verify the result, in real
	// time, before it does it by itself.
	demoVerifiesAfter = 10 * time.Minute
	// demoSeasons is how many seasons before the demo's have picks.
	demoSeasons = 5
	// demoRoundsAfter is how many rounds follow the demo's weekend.
	demoRoundsAfter = 2
)

// weekend is the one that a demo replays.
type weekend struct {
	year  int
	round season.Round
}

// demoWeekend chooses the latest weekend of known hours that has rounds after it.
func demoWeekend(a *season.Archive) (weekend, error) {
	for _, year := range a.Facts().Seasons {
		if n := len(year.Rounds) - 1 - demoRoundsAfter; n >= 0 && !year.Rounds[n].Provisional() {
			return weekend{year.Year, year.Rounds[n]}, nil
		}
	}
	return weekend{}, errors.New("the archive has no race weekend of known hours to replay")
}

// runDemo serves a replayed weekend from a store that is made for it.
func (c *serveCmd) runDemo(ctx context.Context, s *streams) error {
	if c.Now != "" || c.RaceClock != "" {
		return usageError{errors.New("--demo sets race time itself; leave out --now and --race-clock")}
	}
	if c.DemoSpeed <= 0 || c.DemoSpeed > clock.MaxSpeed {
		return usageError{fmt.Errorf("--demo-speed %v: must be above 0 and at most %v", c.DemoSpeed, float64(clock.MaxSpeed))}
	}
	// To make the store takes a while: what would keep it from being served is said before.
	for flag, address := range map[string]string{"--listen": c.Listen, "--operator-listen": c.OperatorListen} {
		if address == "" {
			continue
		}
		listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
		if err != nil {
			return fmt.Errorf("listen on %s: %w; choose another address with %s", address, err, flag)
		}
		_ = listener.Close() // it is opened again to serve
	}
	store, release, err := demoStore(ctx)
	if err != nil {
		return err
	}
	defer release()
	a, err := c.demoArchive()
	if err != nil {
		return err
	}
	w, err := demoWeekend(a)
	if err != nil {
		return err
	}
	begin := w.round.GridKnownAt().Add(-demoLead)
	if c.AutoVerifyAfter == 0 {
		c.AutoVerifyAfter = time.Duration(float64(demoVerifiesAfter) * c.DemoSpeed)
	}
	b, err := c.builderOn(ctx, s, store, ledger.Simulated, builder.ReplayFrom(w.year-demoSeasons))
	if err != nil {
		return err
	}
	facts, err := b.Facts(ctx)
	if err != nil {
		return err
	}
	bar := newBar(s.err)
	past := b.Policy // whose results nobody is asked about
	past.AutoVerifyAfter = replayVerifiesAfter
	err = past.Replay(ctx, b.Ledger, facts, begin, bar.show)
	bar.finish()
	if err != nil {
		return err
	}
	client, err := demoKeys(ctx, store)
	if err != nil {
		return err
	}
	// Built before the race clock starts, so that the weekend begins when it can be watched.
	bar = newBar(s.err)
	_, err = b.Build(ctx, builder.Request{At: begin, Reason: "demo", Progress: bar.show})
	bar.finish()
	if err != nil {
		return err
	}
	race, err := clock.At(begin, time.Now(), c.DemoSpeed)
	if err != nil {
		return err
	}
	c.OperatorTokenFile, c.startKey = demoToken, client[len(client)-1].key // the sandbox's
	open := func(context.Context) (*builder.Builder, error) { return b, nil }
	return c.serve(ctx, s, store, race, open, func(address, console string) error {
		s.printBanner(address, c.OperatorListen, console, store, race, w, client, c.AutoVerifyAfter)
		if console == "" {
			return nil
		}
		return c.awaitVisitor(ctx, s, race, w, console)
	})
}

// awaitVisitor says when the race is over where its result is to be verified.
func (c *serveCmd) awaitVisitor(ctx context.Context, s *streams, race clock.Clock, w weekend, console string) error {
	select {
	case <-time.After(time.Until(race.Real(w.round.ResultKnownAt()))):
	case <-ctx.Done():
		return nil
	}
	s.printf("\nThe %s is over, and its result waits for you: verify it at\n\n  %s/#waiting  (sign in with the token in %s)\n\nIf nobody does, it is verified by itself in %s.\n",
		w.round.Name, console, demoToken, time.Duration(float64(c.AutoVerifyAfter)/race.Speed()).Round(time.Second))
	return nil
}

func (c *serveCmd) demoArchive() (*season.Archive, error) {
	if c.Archive == "" {
		return archive.Embedded()
	}
	a, _, err := archive.ReadFile(c.Archive)
	return a, err
}

// demoStore makes an empty store and keeps other demos out of it until release is called.
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
	store, err = (&storeFlags{Store: "dir:" + demoFolder}).open(ctx)
	if err != nil {
		release()
		return nil, nil, err
	}
	return store, release, nil
}

// demoKeys creates a key of each tier, in the order of their limits.
func demoKeys(ctx context.Context, store blob.Store) ([]demoKey, error) {
	var created []demoKey
	for _, tier := range []string{"trial", "standard", "pro", "sandbox"} {
		err := keys.Update(ctx, store, func(d *keys.List) error {
			_, key, err := d.Create(keys.Request{Name: "demo " + tier, Tier: tier}, time.Now())
			created = append(created, demoKey{tier, keys.DefaultTiers()[tier], key})
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return created, nil
}

type demoKey struct {
	tier  string
	limit int // requests per minute
	key   string
}

// self is the program as somebody can type it here.
func self() string {
	path, err := os.Executable()
	if err != nil {
		return "gridcast"
	}
	here, err := os.Getwd()
	if err != nil {
		return path
	}
	if relative, err := filepath.Rel(here, path); err == nil && !strings.HasPrefix(relative, "..") {
		return "./" + relative
	}
	return path
}

// printBanner says where everything is and what will happen when.
func (s *streams) printBanner(address, operators, console string, store blob.Store, race clock.Clock, w weekend, client []demoKey, verifiesAfter time.Duration) {
	var b strings.Builder
	line := func(format string, args ...any) { _, _ = fmt.Fprintf(&b, format+"\n", args...) }
	now := race.Now()
	line("")
	line("gridcast serves %s", address)
	line("")
	line("  docs     %s/docs", address)
	line("  status   %s/status", address)
	if console != "" {
		line("  console  %s  (sign in with the token in %s)", console, demoToken)
	}
	line("  store    %s  (%s snapshots list --store %s)", store, self(), "dir:"+demoFolder)
	line("")
	line("Keys, one for each tier, with their requests per minute:")
	line("")
	for _, k := range client {
		line("  %-8s %4d  %s", k.tier, k.limit, k.key)
	}
	line("")
	line("It is %s UTC of the %s, and a real second lasts %g.", now.Format("Monday 2 January 2006, 15:04"), w.round.Name, race.Speed())
	line("What will happen:")
	line("")
	for _, event := range w.events(verifiesAfter) {
		wait := time.Until(race.Real(event.at)).Round(time.Second)
		line("  %s UTC  in %-8s %s", event.at.Format("2006-01-02 15:04"), wait, event.what)
	}
	line("")
	line("Paste one of these:")
	line("")
	for _, path := range []string{"next-race", "standings", "standings?type=constructors&year=2012", "predictions", "accuracy", "calendar", "drivers"} {
		line("  curl -s -H 'X-API-Key: %s' '%s/api/v1/%s'", client[2].key, address, path)
	}
	line("")
	line("Or decide as its operator, in another terminal here:")
	line("")
	line("  export GRIDCAST_STORE=dir:%s GRIDCAST_RACE_CLOCK='%s'", demoFolder, race)
	line("  export GRIDCAST_OPERATOR_TOKEN_FILE=%s GRIDCAST_OPERATOR_LISTEN=%s", demoToken, operators)
	line("  %s rounds list", self())
	line("  %s results list", self())
	line("")
	line("Ctrl-C ends it.")
	s.printf("%s", b.String())
}

type demoEvent struct {
	at   time.Time
	what string
}

func (w weekend) events(verifiesAfter time.Duration) []demoEvent {
	return []demoEvent{
		{w.round.GridKnownAt(), "qualifying has ended: the pick is frozen and in /next-race"},
		{w.round.StartsAt(), "lights out: /calendar says live, /next-race counts down to the next round"},
		{w.round.ResultKnownAt(), "the race is over: its result waits for you to verify it, in the console"},
		{w.round.ResultKnownAt().Add(verifiesAfter), "the result is verified by itself, if you did not: standings, predictions and accuracy follow"},
	}
}
