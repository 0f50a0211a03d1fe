// Package predict makes the service's picks: from what was known before a race, who wins and
// who stands on the podium.
//
// A Model is a pure function of a season.View: the same view gives the same pick on every
// machine, whatever was predicted before. A model may remember work between calls, but only
// keyed by the facts it was done from. Models are safe for concurrent use.
//
// NewV2 makes the model whose picks are published; ByName those that can take its place.
// GridFrequency, Pole, Leader and PreviousWinner are the baselines it is measured against, see
// package backtest.
package predict

import (
	"errors"
	"fmt"
	"strings"

	"gridcast/builder/season"
)

// Errors of Predict and Outlook.
var (
	ErrNoRound = errors.New("round is not in the view")
	ErrNobody  = errors.New("no grid, entries or earlier race to choose from")
	ErrNoForm  = errors.New("too few earlier races to learn form from") // of Outlook alone
)

// Model predicts one race.
type Model interface {
	// Name identifies the model and its version in every frozen pick.
	Name() string

	// Predict returns the forecast for the round from what v shows of it and of the races
	// before it. A result of the round itself, or of a later one, is not looked at. The error
	// wraps ErrNoRound or ErrNobody.
	Predict(v *season.View, year int, round season.GrandPrixID) (Forecast, error)
}

// Names are the models that can make the service's picks, the default first.
var Names = []string{"v2", "r2", "grid-frequency"}

// ByName returns the model of that name, with the default constants; the error says which names
// there are.
func ByName(name string) (Model, error) {
	switch name {
	case "v2":
		return NewV2(DefaultParams()), nil
	case "r2":
		return NewR2(DefaultParams()), nil
	case "grid-frequency":
		return GridFrequency(), nil
	}
	return nil, fmt.Errorf("model %q: must be one of %s", name, strings.Join(Names, ", "))
}

// Forecast is a probability of winning for every candidate, most probable first, and the pick
// made from it. All chances are whole millionths, so that they, and what is decided on them, are
// the same on every processor.
type Forecast struct {
	Candidates []Candidate
	Podium     [3]season.DriverID // Podium[0] is the picked winner; empty where there are fewer candidates
	Basis      Basis
}

// Candidate is a driver who will start, with chances in [0, 1].
type Candidate struct {
	Driver season.DriverID
	Win    float64 // adds up to 1 over the candidates
	Podium float64 // adds up to 3, or to as many as there are; never below Win
}

// Basis says what a forecast was made from.
type Basis struct {
	Order    Order                // what is known of the starting order
	Races    int                  // earlier races that the probabilities were learnt from
	From, To int                  // their first and last season, 0 without races
	Missing  []season.SessionKind // sessions without times; Practice1 stands for all practice
}

// Order says how good the knowledge of the starting order was.
type Order string

// The starting orders, best first.
const (
	FromGrid       Order = "grid"       // the starting grid
	FromQualifying Order = "qualifying" // no grid yet: the order of qualifying
	FromForm       Order = "form"       // neither: the order of the championship
)

// Winner is the picked winner and the probability that he wins.
func (f Forecast) Winner() Candidate {
	for _, c := range f.Candidates {
		if c.Driver == f.Podium[0] {
			return c
		}
	}
	return Candidate{}
}
