package predict

import "gridcast/builder/season"

// Places is places, and WithOrders withOrders.
var (
	Places     = places
	WithOrders = withOrders
)

// The slow cars of places.
const (
	SlowShare = slowShare
	SlowRate  = slowRate
)

// Pace is the estimated pace of a car or a driver, in percent. Lower is faster.
type Pace struct {
	Team             season.TeamID   // first of its lineage; empty for a driver
	Driver           season.DriverID // empty for a car
	Qualifying, Race float64
}

// Paces returns the paces before a weekend.
func (m *Ranked) Paces(v *season.View, year int, round season.GrandPrixID) (paces []Pace, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now, err := m.open(v, year, round)
	if err != nil {
		return nil, err
	}
	p := now.state.pace
	for i, e := range p.entities {
		paces = append(paces, Pace{e.car, e.driver, p.mean[2*i], p.mean[2*i+1]})
	}
	return paces, nil
}

var featureNames = [features]string{
	"grid slot", "pole", "qualifying gap", "race pace", "qualifying pace", "driver rating", "team rating", "team-mate form",
	"finish form", "practice gap", "team points", "leads", "crashes", "smallest qualifying gap",
	"race pace before qualifying", "qualifying pace before qualifying", "race pace before the weekend", "qualifying pace before the weekend",
	"place in qualifying", "first in qualifying", "retirements",
}

// String returns the name of the feature.
func (f Feature) String() string { return featureNames[f] }
