// Package predict makes the service's picks: from what was known before a race, who wins and
// who stands on the podium. Models are pure functions of a season.View; the same view gives
// the same pick on every machine.
package predict

import "gridcast/builder/season"

// Model predicts one race.
type Model interface {
	// Name identifies the model and its version in every frozen pick.
	Name() string

	// Predict returns the forecast for the round from what v shows, which must not hold its
	// result. It returns an error only if there is nobody to choose from.
	Predict(v *season.View, year int, round season.GrandPrixID) (Forecast, error)
}

// Forecast is a probability of winning for every candidate, most probable first, and the pick
// made from it.
type Forecast struct {
	Candidates []Candidate
	Podium     [3]season.DriverID // Podium[0] is the picked winner
}

// Candidate is a driver who will start and his chances, each in [0, 1].
type Candidate struct {
	Driver season.DriverID
	Win    float64 // sums to 1 over the candidates
	Podium float64 // sums to 3
}
