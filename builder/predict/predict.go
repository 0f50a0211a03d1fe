// Package predict picks the winner and the podium of a race from the facts known before it.
//
// A Model is a pure function of a season.View: the same view gives the same pick on every machine,
// independent of earlier predictions. A model may cache work between calls if the key is the facts that
// the work used. Models are safe for concurrent use.
//
// NewV2 makes the model of the published picks; ByName makes the models that can replace it. The
// baselines are GridFrequency, Pole, Leader and PreviousWinner; deploy/lab/backtest compares them.
package predict

import (
	"errors"
	"fmt"
	"slices"
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

	// Predict returns the forecast for the round from the facts in v about it and about earlier races.
	// It ignores a result of the round itself and of later ones. The error wraps ErrNoRound or
	// ErrNobody.
	Predict(v *season.View, year int, round season.GrandPrixID) (Forecast, error)
}

// Names are the models for the service's picks, the default first.
var Names = []string{"v2", "r2", "grid-frequency"}

// ByName returns the model of that name with the default constants. The error lists all names.
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

// Forecast holds the chances of every candidate, most probable first, and the pick made from them. All
// chances are whole millionths, so that they and the picks are the same on every processor.
type Forecast struct {
	Candidates []Candidate
	Podium     [3]season.DriverID // Podium[0] is the picked winner; empty where there are fewer candidates
	Basis      Basis
}

// Pickable returns why the forecast gives no pick, nil if it gives one.
func (f *Forecast) Pickable() error {
	if !slices.Contains(f.Podium[:], "") {
		return nil
	}
	number := map[int]string{1: "one driver", 2: "two drivers"}[len(f.Candidates)]
	return fmt.Errorf("no pick can be made of %s, because a podium has three", number)
}

// Candidate is a starter with chances in [0, 1].
type Candidate struct {
	Driver season.DriverID
	Win    float64 // adds up to 1 over the candidates
	Podium float64 // adds up to 3, or to the number of candidates; never below Win

	// Places holds the chance of each place, as many as candidates: the first is Win, the first three add
	// up to Podium but for rounding. With Out, the chance of not being classified, they add up to 1. Models
	// without a forecast of the whole order leave them out.
	Places []float64
	Out    float64
}

// Basis describes the inputs of a forecast.
type Basis struct {
	Order    Order                // the best known starting order
	Races    int                  // earlier races behind the probabilities
	From, To int                  // their first and last season, 0 without races
	Missing  []season.SessionKind // sessions without times; Practice1 stands for all practice
}

// Order is the kind of a starting order.
type Order string

// The starting orders, best first.
const (
	FromGrid       Order = "grid"       // the starting grid
	FromQualifying Order = "qualifying" // no grid yet: the order of qualifying
	FromForm       Order = "form"       // neither: the order of the championship
)

// Winner returns the picked winner with his chances.
func (f Forecast) Winner() Candidate {
	for _, c := range f.Candidates {
		if c.Driver == f.Podium[0] {
			return c
		}
	}
	return Candidate{}
}
