package operator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"gridcast/builder/almanac"
	"gridcast/builder/live"
	"gridcast/builder/render"
	"gridcast/builder/running"
	"gridcast/builder/season"
	"gridcast/deploy/auditlog"
	"gridcast/deploy/view"
	"gridcast/schemas/wire"
)

// SetOrder enters the order of a running race at the end of a lap, or a phase, as a person sees it. The order counts
// instead of the order of any source until a person releases it. It needs no reason, because a race leaves no time for one.
type SetOrder struct {
	Key     int64  `arg:"" form:"session" help:"Session key of the round, from rounds list."`
	Lap     int    `help:"Laps that the leader has completed." placeholder:"N" env:"-"`
	Order   Codes  `help:"The first drivers in running order, by code: NOR,VER,LEC. The others follow as they were." placeholder:"CODES" env:"-"`
	Out     Codes  `help:"Drivers out of the race, by code." placeholder:"CODES" env:"-"`
	Phase   string `help:"A phase of the race instead of an order: ${enum}." enum:",started,suspended,resumed,over" default:"" env:"-"`
	Release bool   `help:"Let the orders of the source count again." env:"-"`
}

func (d SetOrder) look(ctx context.Context, o *Operator) (*Plan, error) {
	r, tape, err := o.running(ctx, d.Key)
	if err != nil {
		return nil, err
	}
	race := running.RaceOf(r, o.Ledger.Fold(), tape)
	seen, p := live.Observation{Session: d.Key, Hand: true}, Preview{Seen: digest(tape.Head)}
	aside := ""
	switch {
	case d.Release && d.Phase == "" && d.Lap == 0:
		seen.Released, p.Title = true, "Release the order of the "+label(r)
		if !race.Hand {
			return nil, fmt.Errorf("release the order of the %s: no order by hand counts", label(r))
		}
	case d.Phase != "" && !d.Release && d.Lap == 0:
		seen.Phase, p.Title = live.Phase(d.Phase), fmt.Sprintf("Set the %s to %s", label(r), d.Phase)
	case d.Lap > 0 && !d.Release && d.Phase == "" && d.Lap >= race.Lap:
		seen.Lap, p.Title = d.Lap, fmt.Sprintf("Enter the order of the %s after lap %d", label(r), d.Lap)
		if seen.Cars, err = d.cars(race); err != nil {
			return nil, err
		}
		for i, c := range seen.Cars[:min(3, len(seen.Cars))] {
			p.Effects = append(p.Effects, fmt.Sprintf("P%d %s", i+1, r.Driver(c.Driver).Name))
		}
		if heard := tape.Heard(); heard != nil {
			aside = fmt.Sprintf(" The lines of %s no longer count, until you release the order: gridcast live set %d --release", heard.Source, d.Key)
		}
	case d.Lap > 0 && d.Lap < race.Lap:
		return nil, fmt.Errorf("enter the order of the %s: lap %d has been observed; give --lap %d or a later one", label(r), race.Lap, race.Lap)
	default:
		return nil, errors.New("give a lap with its order, a phase, or a release")
	}
	return &Plan{
		entry: auditlog.Intent{Action: auditlog.SetOrder, Subject: strconv.FormatInt(d.Key, 10)}, Preview: p,
		do: func(ctx context.Context, request Request) (Answer, error) {
			seen.At, seen.Source = o.Now(), request.Actor
			seen.Received = seen.At
			_, news, err := o.observed().Append(ctx, running.Fixture(r), seen)
			if err == nil && !news {
				err = ErrStale
			}
			return Answer{Text: p.Title + ": done." + aside, Unpublished: "a person's order", Record: seen}, err
		},
	}, nil
}

// cars returns the whole running order: the given drivers, then the others as they were, then those who are out.
func (d SetOrder) cars(race *running.Race) ([]live.Car, error) {
	find := func(codes Codes) (ids []season.DriverID, err error) {
		for _, code := range codes {
			id, err := findCar(race.Round, code)
			if err != nil {
				return nil, err
			}
			ids = append(ids, id)
		}
		return ids, nil
	}
	order, err := find(d.Order)
	if err != nil {
		return nil, err
	}
	out, err := find(d.Out)
	if err != nil {
		return nil, err
	}
	before := view.Each(running.Fixture(race.Round).Grid, func(driver season.DriverID) live.Car { return live.Car{Driver: driver} })
	if latest := race.Latest(); latest != nil {
		before = latest.Cars
	}
	for _, c := range before {
		switch {
		case slices.Contains(order, c.Driver) || slices.Contains(out, c.Driver):
		case c.Out:
			out = append(out, c.Driver)
		default:
			order = append(order, c.Driver)
		}
	}
	return append(
		view.Each(order, func(id season.DriverID) live.Car { return live.Car{Driver: id} }),
		view.Each(out, func(id season.DriverID) live.Car { return live.Car{Driver: id, Out: true} })...), nil
}

// findCar returns a driver of the round by code, id or number of the car.
func findCar(r *almanac.Round, text string) (season.DriverID, error) {
	if number, err := strconv.Atoi(text); err == nil {
		for _, e := range r.Facts.Entries {
			if e.Number == number && number != 0 { // 0: the number of the entry is unknown
				return e.Driver, nil
			}
		}
		return "", fmt.Errorf("car %d does not race in the %s", number, label(r))
	}
	return r.FindDriver(strings.TrimSpace(text))
}

func (o *Operator) observed() *live.Log {
	if o.Observed != nil {
		return o.Observed
	}
	return &live.Log{Store: o.Store}
}

// running returns the round of /live with its observations. It fails if session names another round, or if nothing may be
// observed now. Session 0 stands for any round.
func (o *Operator) running(ctx context.Context, session int64) (*almanac.Round, *live.Tape, error) {
	r, now, err := o.liveRound(ctx)
	if err != nil {
		return nil, nil, err
	}
	tape, err := o.watched(ctx, r, now)
	switch {
	case session == 0 || r.Session == session:
		return r, tape, err
	case err != nil:
		return nil, nil, fmt.Errorf("no race runs now, so nothing is observed of %d; gridcast rounds list shows the starts", session)
	}
	return nil, nil, fmt.Errorf("%d is not the race that runs: %d is, the %s", session, r.Session, label(r))
}

// watched returns the observations of a round. It fails if nothing may be observed of it at now.
func (o *Operator) watched(ctx context.Context, r *almanac.Round, now time.Time) (*live.Tape, error) {
	switch {
	case r.Result != nil:
		return nil, fmt.Errorf("the result of the %s is verified: nothing more is observed", label(r))
	case now.Before(r.Start.Add(-running.WatchedBefore)) || now.After(r.Start.Add(running.WatchedStopped+running.Watched)):
		return nil, fmt.Errorf("nothing is observed of the %s now: lights out is at %s", label(r), minute(r.Start))
	}
	tape, err := o.observed().Refresh(ctx, r.Session)
	if until := running.WatchedUntil(r, tape); err == nil && now.After(until) {
		err = fmt.Errorf("nothing is observed of the %s since %s, because its time was over", label(r), minute(until))
	}
	return tape, err
}

// RunningRace is a race that may be observed now, with every observed lap, and what its sources last sent.
type RunningRace struct {
	wire.LiveRace

	Heard *live.Observation // the latest line of a source; nil: none has sent one
	Aside bool              // a person's order counts instead of the source's
	Held  string            // the line that waits for a second one or for a person, and why
	Doubt string            // why no chances follow from the latest line
}

// Running returns the race that may be observed now; false: there is none.
func (o *Operator) Running(ctx context.Context) (RunningRace, bool) {
	r, tape, err := o.running(ctx, 0)
	if err != nil {
		return RunningRace{}, false
	}
	race := running.RaceOf(r, o.Ledger.Fold(), tape)
	now := RunningRace{LiveRace: render.Timeline(race, o.Now()), Heard: tape.Heard(), Aside: race.Hand, Held: race.Held}
	if m := race.Latest(); m != nil && !m.Complete() {
		now.Doubt = fmt.Sprintf("The line of lap %d names too few running cars: it shows no chances.", m.Lap)
	}
	return now, true
}

// Recording returns the observations of a race, and whether no more are expected: the race is over, its result is
// verified, it is off, or the time for them has passed.
func (o *Operator) Recording(ctx context.Context, session int64) (*live.Tape, bool, error) {
	v, r, err := o.roundNow(ctx, session)
	if err != nil {
		return nil, false, err
	}
	tape, err := o.observed().Refresh(ctx, session)
	if err != nil {
		return nil, false, err
	}
	ended := live.Reduce(tape.Observations, running.Fixture(r)).State == live.Ended
	return tape, ended || r.Result != nil || r.Off() || v.At.After(running.WatchedUntil(r, tape)), nil
}

// LiveSession is the session key of the round of /live.
func (o *Operator) LiveSession(ctx context.Context) (int64, error) {
	r, _, err := o.liveRound(ctx)
	if err != nil {
		return 0, err
	}
	return r.Session, nil
}

// liveRound returns the round of /live now, and the instant.
func (o *Operator) liveRound(ctx context.Context) (*almanac.Round, time.Time, error) {
	v, err := o.known(ctx)
	if err != nil {
		return nil, time.Time{}, err
	}
	if r := running.Round(v, o.Ledger.Fold()); r != nil {
		return r, v.At, nil
	}
	return nil, v.At, errors.New("no race is near: nothing can be observed before the pick of a race is frozen")
}

// Observe stores an observation as received now, and reports whether it is new. source is the sender of an observation
// that names none. Without a source the observation comes from a recording and may be by hand. The audit log leaves
// observations out, because they have a log of their own.
func (o *Operator) Observe(ctx context.Context, seen live.Observation, source string) (bool, error) {
	news, err := o.observe(ctx, seen, source)
	o.count(news, err)
	if news && o.RunJob != nil { // else a running service finds it within a second
		_, runErr := o.RunJob("build", "the race goes on")
		err = cmp.Or(err, runErr)
	}
	return news, err
}

func (o *Operator) observe(ctx context.Context, seen live.Observation, source string) (bool, error) {
	r, _, err := o.running(ctx, seen.Session)
	if err != nil {
		return false, err
	}
	if err := seen.Resolve(func(text string) (season.DriverID, error) { return findCar(r, text) }); err != nil {
		return false, err
	}
	if source != "" && (seen.Hand || seen.Released) {
		return false, errors.New("by_hand and released belong to orders of people: gridcast live set enters one")
	}
	if source != "" {
		seen.Source = cmp.Or(seen.Source, source)
	}
	seen.Received = o.Now().Truncate(time.Millisecond)
	_, news, err := o.observed().Append(ctx, running.Fixture(r), seen)
	return news, err
}

// The outcomes of a line of a source.
const (
	LineStored   = "stored"
	LineRepeated = "repeated"
	LineHeld     = "held" // stored, but it does not count, or not fully
	LineRefused  = "refused"
)

func (o *Operator) count(news bool, err error) {
	if o.Lines == nil {
		return
	}
	switch {
	case errors.Is(err, live.ErrHeld):
		o.Lines(LineHeld)
	case err != nil:
		o.Lines(LineRefused)
	case news:
		o.Lines(LineStored)
	default:
		o.Lines(LineRepeated)
	}
}

// ObserveLines stores the observations of a feed, one a line, until ctx ends. It returns the number of lines and the number
// of new observations. It passes each faulty line to fault and goes on with the next.
func (o *Operator) ObserveLines(ctx context.Context, feed io.Reader, source string, fault func(line int, err error)) (lines, news int, err error) {
	err = live.Lines(feed, func(n int, seen live.Observation, err error) error {
		lines++
		fresh := false
		if err == nil {
			fresh, err = o.Observe(ctx, seen, source)
		} else {
			o.count(false, err)
		}
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			fault(n, err)
		case fresh:
			news++
		}
		return nil
	})
	return lines, news, err
}
