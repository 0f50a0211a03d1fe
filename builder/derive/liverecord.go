package derive

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"gridcast/builder/almanac"
	"gridcast/builder/picks"
	"gridcast/builder/predict"
	"gridcast/builder/predict/score"
	"gridcast/builder/season"
	"gridcast/schemas/wire"
)

// livePick holds the scores of a live pick, and of two simpler picks of the same race: the first three at that moment, and
// the pick before the race.
type livePick struct {
	Percent int         `json:"checkpoint_pct"`
	ByHand  bool        `json:"by_hand,omitzero"` // a person entered the order
	Pick    score.Score `json:"pick"`
	Leader  score.Score `json:"leader"`
	Before  score.Score `json:"before"`
}

// scoreLive scores the live picks of a verified race. A pick whose observation is gone has no score; the audit names it.
func (w *work) scoreLive(ctx context.Context, r *almanac.Round, podium season.Podium) ([]livePick, error) {
	if len(r.Record.Live) == 0 || r.Pick == nil {
		return nil, nil
	}
	h := sha256.New()
	h.Write(fmt.Appendln(nil, format, r.Pick.EventID, podium))
	for i := range r.Record.Live {
		h.Write(fmt.Appendln(nil, r.Record.Live[i].EventID))
	}
	made, err := w.memo(hex.EncodeToString(h.Sum(nil)[:16]), func() (made memo, err error) {
		tape, err := w.observed.Refresh(ctx, r.Session)
		if err != nil {
			return made, err
		}
		for i := range r.Record.Live {
			p := &r.Record.Live[i]
			seen := tape.UpTo(p.Observation.SHA256)
			if seen == nil {
				continue
			}
			order := seen.Observations[len(seen.Observations)-1]
			leading := predict.Forecast{Candidates: []predict.Candidate{{Driver: w.ledger.Driver(order.Cars[0].Driver), Win: 1}}}
			for place := range min(len(order.Cars), len(leading.Podium)) {
				leading.Podium[place] = w.ledger.Driver(order.Cars[place].Driver)
			}
			made.Live = append(made.Live, livePick{
				Percent: p.Checkpoint, ByHand: order.Hand, Pick: score.Of(picks.Frozen(p), podium),
				Leader: score.Of(leading, podium), Before: score.Of(picks.Frozen(r.Pick), podium),
			})
		}
		return made, nil
	})
	return made.Live, err
}

// liveRecords sums up the live picks of races by checkpoint. Picks from orders by hand have rows of their own.
func liveRecords(races []scored) (records []wire.LiveRecord) {
	for _, percent := range predict.Checkpoints {
		for _, byHand := range []bool{false, true} {
			var picks, leader, before []score.Score
			for _, race := range races {
				for _, p := range race.live {
					if p.Percent == percent && p.ByHand == byHand {
						picks, leader, before = append(picks, p.Pick), append(leader, p.Leader), append(before, p.Before)
					}
				}
			}
			if len(picks) > 0 {
				records = append(records, wire.LiveRecord{
					Percent: percent, ByHand: byHand, Races: len(picks), Picks: wireScores(picks, picks), Leader: wireScores(leader, nil),
					Before: wireScores(before, before), Reliability: wireBins(picks),
				})
			}
		}
	}
	return records
}
