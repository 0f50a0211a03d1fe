package score

import "gridcast/builder/predict/score"

// resamples and seed are those of CalibratedECE.
const (
	resamples = 2000
	seed      = 2010
)

// Metrics sums up the scores of a model. Percentages are of 100, log-loss is in nats per race.
type Metrics struct {
	WinnerHitPct   float64 `json:"winner_hit_pct"`
	PodiumPct      float64 `json:"podium_pct"`       // picked drivers on the podium, any order
	ExactPodiumPct float64 `json:"exact_podium_pct"` // picked drivers in their picked place
	LogLoss        float64 `json:"log_loss"`
	Brier          float64 `json:"brier"`
	PodiumBrier    float64 `json:"podium_brier"` // of the chances of a podium, 0 to 6
	ECEPct         float64 `json:"ece_pct"`      // expected calibration error of the picked winner's chance

	PointsBrier float64 `json:"points_brier,omitzero"` // of the chances of the first ten places; like RPS of whole orders alone
	RPS         float64 `json:"rps,omitzero"`          // ranked probability score, 0 to 1
	// PlacesLogScore is the log-loss of every candidate's place, nats per race; no chance counts below 1e-6.
	PlacesLogScore float64 `json:"places_log_score,omitzero"`
	FinishesOnZero int     `json:"finishes_on_zero,omitzero"` // classified in a place that is published as 0.00 %
	Finishes       int     `json:"finishes,omitzero"`         // classified candidates
	ECEDriversPct  float64 `json:"ece_drivers_pct"`           // expected calibration error of every driver's podium chance

	Intervals *Intervals `json:"intervals,omitempty"`
}

// Intervals are those of Metrics.
type Intervals struct {
	WinnerHitPct   Interval `json:"winner_hit_pct"`
	PodiumPct      Interval `json:"podium_pct"`
	ExactPodiumPct Interval `json:"exact_podium_pct"`
	LogLoss        Interval `json:"log_loss"`
	Brier          Interval `json:"brier"`
	PodiumBrier    Interval `json:"podium_brier"`
	ECEPct         Interval `json:"ece_pct"`
}

// NewMetrics sums up the scores, with intervals. The interval of a calibration error is moved by the bootstrap's own bias:
// drawing races twice makes any forecaster look worse calibrated.
func NewMetrics(scores []Score) Metrics {
	sorted := byConfidence(scores)
	var table []Bin
	add := func(times []int) Metrics {
		m := sum(sorted, times)
		if len(sorted) > 0 {
			table = tally(table[:0], sorted, times)
			m.ECEPct = 100 * calibrationError(table)
		}
		return m
	}
	m := add(once(len(sorted)))
	if len(scores) == 0 {
		return m
	}
	m.ECEDriversPct = 100 * calibrationError(PodiumReliability(scores))
	var drawn [7][]float64
	for times := range score.Draws(len(scores)) {
		d := add(times)
		for k, v := range [7]float64{d.WinnerHitPct, d.PodiumPct, d.ExactPodiumPct, d.LogLoss, d.Brier, d.PodiumBrier, d.ECEPct} {
			drawn[k] = append(drawn[k], v)
		}
	}
	m.Intervals = &Intervals{
		score.Middle(drawn[0]), score.Middle(drawn[1]), score.Middle(drawn[2]),
		score.Middle(drawn[3]), score.Middle(drawn[4]), score.Middle(drawn[5]), corrected(drawn[6], m.ECEPct),
	}
	return m
}

// sum sums up the scores, which are sorted by confidence, each as often as times says. It leaves out the calibration.
func sum(sorted []Score, times []int) Metrics {
	var m Metrics
	n := 0.0
	for i := range sorted {
		if times[i] == 0 {
			continue
		}
		s, w := &sorted[i], float64(times[i])
		n += w
		m.WinnerHitPct += float64(w * indicator(s.Hit))
		m.PodiumPct += w * float64(s.Podium) / 3
		m.ExactPodiumPct += w * float64(s.Exact) / 3
		m.LogLoss += float64(w * s.LogLoss)
		m.Brier += float64(w * s.Brier)
		m.PodiumBrier += float64(w * s.PodiumBrier)
		m.PointsBrier += float64(w * s.PointsBrier)
		m.RPS += float64(w * s.RPS)
		m.PlacesLogScore += float64(w * s.PlacesLogScore)
		m.FinishesOnZero += times[i] * s.FinishesOnZero
		m.Finishes += times[i] * s.Finishes
	}
	if n == 0 {
		return m
	}
	m.WinnerHitPct *= 100 / n
	m.PodiumPct *= 100 / n
	m.ExactPodiumPct *= 100 / n
	m.LogLoss /= n
	m.Brier /= n
	m.PodiumBrier /= n
	m.PointsBrier /= n
	m.RPS /= n
	m.PlacesLogScore /= n
	return m
}

// corrected returns the middle 95 % of the values, moved so that their mean is the estimate; it
// holds the estimate always. None of them is negative.
func corrected(values []float64, estimate float64) Interval {
	mean := 0.0
	for _, v := range values {
		mean += v / float64(len(values))
	}
	i := score.Middle(values)
	return Interval{max(0, i[0]-mean+estimate), max(0, i[1]-mean+estimate)}
}

func indicator(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
