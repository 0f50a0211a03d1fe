package flags

import (
	"errors"
	"fmt"
	"os"
	"time"

	"gridcast/builder/ledger"
	"gridcast/deploy/clock"
	"gridcast/deploy/terminal"
)

// Clock sets race time. A process on another clock than the real one writes only simulated ledgers.
type Clock struct {
	Now       string `help:"Race time at the start of this command, RFC 3339; for a simulated ledger." placeholder:"INSTANT" env:"-"`
	RaceClock string `help:"Race time as RACE@REAL*SPEED, the same for every process; for a simulated ledger." placeholder:"CLOCK"`
}

// Race returns the race clock.
func (f Clock) Race() (clock.Clock, error) {
	switch {
	case f.RaceClock != "" && f.Now != "" && f.RaceClock != os.Getenv("GRIDCAST_RACE_CLOCK"):
		return clock.Clock{}, terminal.Usagef("--now and --race-clock both set race time: give one of them")
	case f.RaceClock != "" && f.Now == "": // a flag beats the environment
		c, err := clock.Parse(f.RaceClock)
		if err != nil {
			return clock.Clock{}, terminal.Usagef("--race-clock: %w", err)
		}
		return c, nil
	case f.Now != "":
		t, err := f.now()
		if err != nil {
			return clock.Clock{}, err
		}
		return clock.At(t, time.Now(), 1)
	default:
		return clock.System(), nil
	}
}

// Instant is the race time of a command that runs once on clock c. With --now it does not move while
// the command runs, so that a repeated command writes the same bytes.
func (f Clock) Instant(c clock.Clock) time.Time {
	if t, err := f.now(); err == nil {
		return t
	}
	return c.Now()
}

func (f Clock) now() (time.Time, error) {
	t, err := time.Parse(time.RFC3339, f.Now)
	if err != nil {
		return time.Time{}, terminal.Usagef("--now %q: must be an instant such as 2024-07-28T12:00:00Z", f.Now)
	}
	return t.UTC(), nil
}

// clockHint names the flags that help if a ledger is not of the kind of the race clock.
func clockHint(err error, kind ledger.Kind) error {
	switch {
	case !errors.Is(err, ledger.ErrKind):
		return err
	case kind == ledger.Real:
		return fmt.Errorf("%w; set race time with --race-clock, to the value of the server, or with --now", err)
	default:
		return fmt.Errorf("%w; leave out --now and --race-clock", err)
	}
}

// LedgerKind is the kind of ledger that a process on clock c may write.
func LedgerKind(c clock.Clock) ledger.Kind {
	if c.IsSystem() {
		return ledger.Real
	}
	return ledger.Simulated
}
