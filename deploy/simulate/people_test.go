package simulate_test

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"gridcast/builder/almanac"
	"gridcast/deploy/operator"
	"gridcast/edge/keys"
	"gridcast/snapshots"
)

// actions returns the operator of a scheduler that runs, nil if none does.
func (w *world) actions() *operator.Operator {
	for _, i := range w.random.Perm(len(w.schedulers)) {
		if r := w.schedulers[i].now; r != nil && r.actions.Load() != nil && r.service.Load() != nil {
			return r.actions.Load()
		}
	}
	return nil
}

// do has an operator act, and waits for the answer.
func (w *world) do(o *operator.Operator, action operator.Action, force bool) (operator.Answer, error) {
	ctx, cancel := context.WithTimeout(w.t.Context(), 90*time.Second)
	defer cancel()
	answer, err := o.Do(ctx, action, operator.Request{Actor: "operator:ann", Reason: "as the seed wants", Force: force})
	points.met(w, err)
	fields, _ := json.Marshal(action) // a restore has none that JSON knows
	w.note("action %T %s: %v", action, fields, err)
	return answer, err
}

// createKey makes a key. If the answer is lost, nobody knows the key.
func (w *world) createKey(tier string) {
	o := w.actions()
	if o == nil {
		return
	}
	answer, err := w.do(o, operator.CreateKey{Client: "client of " + tier, Tier: tier}, false)
	if k, ok := answer.Record.(keys.StoredKey); ok && err == nil {
		w.clients.keys = append(w.clients.keys, &client{id: k.ID, secret: answer.Secret, tier: tier, created: time.Now(), changed: time.Now()})
	}
}

// operate has an operator do one thing of many.
func (w *world) operate() {
	o := w.actions()
	if o == nil {
		return
	}
	force := w.random.IntN(8) == 0
	round := w.someRound(o)
	switch w.random.IntN(26) {
	case 0, 1, 2:
		_, _ = w.do(o, operator.VerifyResults{}, false)
	case 3:
		if round != nil {
			_, _ = w.do(o, operator.VerifyResult{Key: round.Session}, force)
		}
	case 4, 5:
		if round != nil {
			driver := string(field[w.random.IntN(len(field))])
			_, _ = w.do(o, operator.CorrectResult{Key: round.Session, Classification: operator.Classification{Disqualify: []string{driver}}}, force)
		}
	case 6:
		if round != nil {
			_, _ = w.do(o, operator.MoveRound{Key: round.Session, Start: round.Start.Add(time.Duration(w.random.IntN(9)-4) * 30 * time.Minute)}, force)
		}
	case 7:
		if round != nil {
			_, _ = w.do(o, operator.ReleaseRound{Key: round.Session}, force)
		}
	case 8:
		if round != nil && w.random.IntN(3) == 0 {
			_, _ = w.do(o, operator.CancelRound{Key: round.Session}, force)
		}
	case 9:
		if round != nil && w.random.IntN(3) == 0 {
			_, _ = w.do(o, operator.PostponeRound{Key: round.Session}, force)
		}
	case 10, 11:
		if round != nil {
			_, _ = w.do(o, operator.ReinstateRound{Key: round.Session}, force)
		}
	case 12:
		w.rollback(o)
	case 13, 14:
		_, _ = w.do(o, operator.ReleasePublishing{}, false)
	case 15:
		w.createKey([]string{"trial", "standard", "pro"}[w.random.IntN(3)])
	case 16, 17:
		w.changeKey(o)
	case 18:
		_, _ = w.do(o, operator.Prune{Keep: 1 + w.random.IntN(20)}, false)
	case 19:
		_, _ = w.do(o, operator.Repair{}, false)
	case 20:
		_, _ = w.do(o, operator.AuditLedger{}, false)
	case 21:
		after := time.Duration(w.random.IntN(5)) * time.Hour
		_, _ = w.do(o, operator.ChangeSettings{AutoVerifyAfter: &after}, false)
	case 22:
		w.blunder(o, round)
	case 24, 25:
		w.backUp(o)
	case 23:
		if round != nil {
			_, _ = w.do(o, operator.EnterResult{Key: round.Session, Order: operator.Codes{"VER", "NOR", "LEC", "SAI", "PIA", "PER"}}, force)
		}
	}
}

// blunder has an operator ask for something that is not there.
func (w *world) blunder(o *operator.Operator, round *almanac.Round) {
	switch w.random.IntN(4) {
	case 0:
		_, _ = w.do(o, operator.RevokeKey{ID: "000000000000"}, false)
	case 1:
		_, _ = w.do(o, operator.Rollback{Version: 100_000}, false)
	case 2:
		_, _ = w.do(o, operator.VerifyResult{Key: 2024999}, false)
	case 3:
		if round != nil {
			_, _ = w.do(o, operator.MoveRound{Key: round.Session, Start: round.Start.Add(time.Millisecond)}, true)
		}
	}
}

func (w *world) rollback(o *operator.Operator) {
	pointer, _, err := snapshots.LoadPointer(w.t.Context(), w.disk)
	if err == nil && pointer.Version > 1 {
		_, _ = w.do(o, operator.Rollback{Version: max(1, pointer.Version-1-w.random.Int64N(6))}, false)
	}
}

// changeKey revokes or rotates a key.
func (w *world) changeKey(o *operator.Operator) {
	if len(w.clients.keys) == 0 {
		return
	}
	k := w.clients.keys[w.random.IntN(len(w.clients.keys))]
	k.revoking, k.changed = true, time.Now()
	ends := func(at time.Time) {
		if k.revoked.IsZero() || at.Before(k.revoked) {
			k.revoked = at
		}
	}
	if w.random.IntN(3) > 0 {
		if _, err := w.do(o, operator.RevokeKey{ID: k.id}, false); err == nil {
			ends(time.Now())
		}
		return
	}
	grace := time.Duration(w.random.IntN(3)) * time.Minute
	answer, err := w.do(o, operator.RotateKey{ID: k.id, Grace: operator.Span(grace)}, false)
	if next, ok := answer.Record.(keys.StoredKey); ok && err == nil {
		ends(time.Now().Add(grace + time.Second)) // the list has whole seconds
		w.clients.keys = append(w.clients.keys, &client{id: next.ID, secret: answer.Secret, tier: k.tier, created: time.Now(), changed: time.Now()})
	}
}

// someRound returns a round of the week.
func (w *world) someRound(o *operator.Operator) *almanac.Round {
	ctx, cancel := context.WithTimeout(w.t.Context(), 30*time.Second)
	defer cancel()
	a, err := o.Almanac(ctx)
	if err != nil {
		points.met(w, err)
		return nil
	}
	rounds := slices.DeleteFunc(slices.Collect(a.All()), func(r *almanac.Round) bool { return r.Year != 2024 || r.Session == 0 })
	if len(rounds) == 0 {
		return nil
	}
	return rounds[w.random.IntN(len(rounds))]
}

// feed sends a line of the running race, sometimes a wrong one.
func (w *world) feed() {
	o := w.actions()
	if o == nil {
		return
	}
	ctx, cancel := context.WithTimeout(w.t.Context(), 30*time.Second)
	defer cancel()
	session, err := o.LiveSession(ctx)
	if err != nil {
		points.met(w, err)
		return
	}
	r, err := o.Round(ctx, session)
	if err != nil {
		return
	}
	now := w.now()
	since := now.Sub(r.Start)
	if since < -time.Hour || since > 3*time.Hour {
		return
	}
	lap := max(1, int(since/(90*time.Second)))
	line := map[string]any{"session_key": session, "at": now.UTC().Format(time.RFC3339)}
	switch kind := w.random.IntN(14); {
	case since < 0 || kind == 0:
		line["phase"] = "started"
	case kind == 1:
		line["phase"] = "suspended"
	case kind == 2:
		line["phase"] = "resumed"
	case lap > r.Facts.ScheduledLaps:
		line["phase"] = "over"
	case kind == 3:
		line["lap"], line["cars"] = lap, []any{map[string]any{"driver": "nobody"}}
	case kind == 4:
		line["lap"], line["cars"] = lap+40, w.cars()
	case kind == 5:
		line["at"] = now.Add(time.Hour).UTC().Format(time.RFC3339)
		line["lap"], line["cars"] = lap, w.cars()
	default:
		line["lap"], line["laps"], line["cars"] = lap, r.Facts.ScheduledLaps, w.cars()
	}
	text, _ := json.Marshal(line)
	_, _, err = o.ObserveLines(ctx, strings.NewReader(string(text)), "feed", func(_ int, err error) { points.met(w, err) })
	points.met(w, err)
	w.note("feed %s", text)
}

func (w *world) cars() []any {
	var cars []any
	gap := 0
	for _, i := range w.random.Perm(len(field)) {
		cars = append(cars, map[string]any{"driver": field[i], "gap_ms": gap})
		gap += 500 + w.random.IntN(5000)
	}
	return cars
}
