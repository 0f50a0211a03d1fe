package console

import (
	"context"
	"encoding/json"
	"time"

	"gridcast/schemas/catalog"
	"gridcast/schemas/wire"
)

// raceView is the running race as published, for the form of an order by hand.
type raceView struct {
	wire.LiveRace

	Stale   bool
	NextLap int
	Next    *wire.LiveCheckpoint // the next live pick; nil: there is none
}

// Seen is the instant of the latest observation.
func (r *raceView) Seen() time.Time { return time.Time(r.ObservedAt) }

// collectRace reads the published race while it may be observed.
func (c *Console) collectRace(ctx context.Context, p *page) error {
	base, err := c.loadBase(ctx)
	if err != nil {
		return nil //nolint:nilerr // the part about versions says so
	}
	entry, ok := base.Entry(catalog.Variant{Endpoint: catalog.Live}.Path())
	if !ok {
		return nil
	}
	var now wire.Success[wire.LiveRace]
	body, err := base.Body(ctx, entry)
	if err == nil {
		err = json.Unmarshal(body, &now)
	}
	if err != nil || now.Data.SessionKey == 0 || !c.Operator.MayObserve(ctx, now.Data.SessionKey) {
		return err
	}
	until := time.Time(now.Data.ValidUntil)
	p.Race = &raceView{LiveRace: now.Data, NextLap: now.Data.Lap + 1, Stale: !until.IsZero() && p.RaceTime.After(until)}
	for i := range p.Race.Checkpoints {
		if p.Race.Next == nil && p.Race.Checkpoints[i].Status == wire.CheckpointPending {
			p.Race.Next = &p.Race.Checkpoints[i]
		}
	}
	return nil
}
