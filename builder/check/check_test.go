package check_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"gridcast/builder/check/checktest"
	"gridcast/builder/render"
	"gridcast/builder/testseason"
	"gridcast/deploy/golden"
	"gridcast/deploy/must"
	"gridcast/schemas/catalog"
	"gridcast/schemas/wire"
)

// rendered is a version of two short seasons as of 1 July 2024, with the pick and the revised result of the Austrian
// round, session 2024011. The golden test of builder checks a version of all embedded seasons.
func rendered(t *testing.T) (catalog.Known, map[string][]byte) {
	t.Helper()
	now := time.Date(2024, 7, 1, 12, 0, 0, 0, time.UTC)
	w := testseason.New(t, testseason.Config{Weekend: testseason.Austria, Until: testseason.Revised})
	a := w.Almanac(now)
	bodies := map[string][]byte{}
	for _, v := range render.Variants(a) {
		body := must.Get(render.Body(a, v, now))(t)
		bodies[v.Path()] = body
	}
	return render.Known(a), bodies
}

func nothing(string) bool    { return false }
func everything(string) bool { return true }

func TestWholeVersionPasses(t *testing.T) {
	known, bodies := rendered(t)
	must.Succeed(t, "Err", checktest.Err(checktest.Bodies(known, bodies, nothing)))
}

// TestFaults breaks one document of a small version after the other. The golden file has the faults: the
// path of each document at fault and the sentence.
func TestFaults(t *testing.T) {
	replace := func(path, old, new string) func(map[string][]byte) {
		return func(bodies map[string][]byte) {
			body := bytes.Replace(bodies[path], []byte(old), []byte(new), 1)
			must.Require(t, !bytes.Equal(body, bodies[path]), "%q is not in %s: %s", old, path, body)
			bodies[path] = body
		}
	}
	var got strings.Builder
	for _, row := range []struct {
		name    string
		edit    func(w *world, s *smallSeason) // s is the season 2025
		replace func(bodies map[string][]byte) // after rendering
		trusted func(path string) bool         // nil: all documents
	}{
		{name: "nothing is wrong", trusted: nothing},

		// Calendar.
		{name: "a finished round without a winner", edit: func(_ *world, s *smallSeason) { s.calendar[0].Winner, s.picks[0].Result.Winner = "", "" }},
		{name: "a round to come with a winner", edit: func(_ *world, s *smallSeason) { s.calendar[2].Winner = "ANN" }},
		{name: "another status in the overview", edit: func(_ *world, s *smallSeason) {
			s.overview = func(o *wire.Overview) { o.Rounds[2].Status = wire.Live }
		}},
		{name: "the overview lacks a pick", edit: func(_ *world, s *smallSeason) {
			s.overview = func(o *wire.Overview) { o.Rounds[0].Prediction = nil }
		}},
		{name: "other points in the overview", edit: func(_ *world, s *smallSeason) {
			s.overview = func(o *wire.Overview) { o.Drivers[1].Standing.Points = 19 }
		}},
		{name: "the overview lacks a driver and a pair", edit: func(_ *world, s *smallSeason) {
			s.overview = func(o *wire.Overview) { o.Drivers, o.TeamMates = o.Drivers[:2], o.TeamMates[:0] }
		}},
		{name: "a session key used in two seasons", edit: func(w *world, _ *smallSeason) { w.seasons[2024].calendar[0].SessionKey = 2025001 }},

		// Results and weekends against the calendar.
		{name: "another winner than the calendar", edit: func(_ *world, s *smallSeason) { s.results[0].Race[0].Driver = "BOB" }},
		{name: "a shared win counts for the first row", edit: func(_ *world, s *smallSeason) { s.results[0].Race[1].Position = 1 }},
		{name: "a round without a weekend", edit: func(_ *world, s *smallSeason) { s.weekends = s.weekends[:2] }},
		{name: "a weekend without a round", edit: func(w *world, s *smallSeason) {
			s.calendar, w.coming, s.picks = s.calendar[:2], nil, s.picks[:1]
		}},
		{name: "another start of the race", edit: func(_ *world, s *smallSeason) { s.weekends[2].Sessions[0].DateStart = wire.Instant(renderedAt) }},
		{name: "another status of the race", edit: func(_ *world, s *smallSeason) { s.weekends[2].Sessions[0].Status = wire.Live }},
		{name: "another status of the weekend", edit: func(_ *world, s *smallSeason) { s.weekends[2].Status = wire.Live }},
		{name: "another circuit", edit: func(_ *world, s *smallSeason) { s.weekends[2].Circuit.Name = "Track" }},
		{name: "the race is not the last session", edit: func(_ *world, s *smallSeason) { s.weekends[2].Sessions[0].Session = "sprint" }},

		// Predictions.
		{name: "a pick of an unknown session", edit: func(_ *world, s *smallSeason) { s.picks[1].SessionKey = 2025004 }},
		{name: "a pick with another winner than the calendar", edit: func(_ *world, s *smallSeason) { s.picks[0].Result.Winner = "BOB" }},
		{name: "a pick without the result of its race", edit: func(_ *world, s *smallSeason) { s.picks[0].Result = nil }},
		{name: "a picked winner who is not first", edit: func(_ *world, s *smallSeason) { s.picks[1].Prediction.Winner = "CAY" }},
		{name: "first and second are one driver", edit: func(_ *world, s *smallSeason) { s.picks[1].Prediction.Podium.P2 = "BOB" }},
		{name: "first and third are one driver", edit: func(_ *world, s *smallSeason) { s.picks[1].Prediction.Podium.P3 = "BOB" }},
		{name: "second and third are one driver", edit: func(_ *world, s *smallSeason) { s.picks[1].Prediction.Podium.P3 = "ANN" }},
		{name: "a podium of one driver", edit: func(_ *world, s *smallSeason) { s.picks[1].Prediction.Podium = wire.Podium{P1: "BOB"} }},

		// Accuracy.
		{name: "accuracy of a season", edit: func(_ *world, s *smallSeason) { s.accuracy.RacesEvaluated = 2 }},
		{name: "accuracy of all seasons", edit: func(w *world, _ *smallSeason) { w.accuracy.PreRace.WinnerHitRatePct = 500 }},
		{name: "more live picks than evaluated races", edit: func(_ *world, s *smallSeason) { s.accuracy.Live.RacesEvaluated = 2 }},
		{name: "live picks that hit in no race", edit: func(_ *world, s *smallSeason) { s.accuracy.Live.PodiumAccuracyPct = 333 }},
		{name: "a missed winner counts in both", edit: func(w *world, s *smallSeason) {
			s.picks[0].Prediction.Winner, s.picks[0].Prediction.Podium = "BOB", wire.Podium{P1: "BOB", P2: "DAN"}
			s.chances[0].Drivers[1].WinPct, s.chances[0].Drivers[0].WinPct = 600, 300
			s.accuracy.PreRace = wire.HitRates{PodiumAccuracyPct: 333}
			w.accuracy.PreRace = wire.HitRates{WinnerHitRatePct: 500, PodiumAccuracyPct: 667}
		}},

		// Probabilities.
		{name: "a driver twice among the chances", edit: func(_ *world, s *smallSeason) { s.chances[0].Drivers[2].Driver = "BOB" }},
		{name: "a win is likelier than a podium", edit: func(_ *world, s *smallSeason) { s.chances[0].Drivers[0].PodiumPct = 500 }},
		{name: "chances to win above one", edit: func(_ *world, s *smallSeason) { s.chances[0].Drivers[2].WinPct = 110 }},
		{name: "chances to win below one", edit: func(_ *world, s *smallSeason) { s.chances[0].Drivers[2].WinPct = 90 }},
		{name: "chances of a podium above three", edit: func(_ *world, s *smallSeason) { s.chances[0].Drivers[2].PodiumPct = 1010 }},
		{name: "chances of a podium below three", edit: func(_ *world, s *smallSeason) { s.chances[0].Drivers[2].PodiumPct = 990 }},
		{name: "chances that are off by rounding", edit: func(_ *world, s *smallSeason) {
			s.chances[0].Drivers[2].WinPct, s.chances[0].Drivers[2].PodiumPct = 102, 998
		}},
		{name: "places that add up", edit: func(_ *world, s *smallSeason) { withPlaces(s) }},
		{name: "places that add up to less than one", edit: func(_ *world, s *smallSeason) { withPlaces(s).Positions[2] = 999 }},
		{name: "another chance of the first place than to win", edit: func(_ *world, s *smallSeason) {
			c := withPlaces(s)
			c.Positions[0], c.Positions[1] = 5900, 3100
		}},
		{name: "places of fewer starters", edit: func(_ *world, s *smallSeason) { c := withPlaces(s); c.Positions = c.Positions[:2] }},
		{name: "places without the chance of not finishing", edit: func(_ *world, s *smallSeason) { withPlaces(s).DNFPct = nil }},
		{name: "another chance than the prediction", edit: func(_ *world, s *smallSeason) { s.picks[0].Prediction.ConfidencePct = 610 }},
		{name: "chances without a prediction", edit: func(_ *world, s *smallSeason) { s.chances[0].SessionKey = 2025002 }},

		// Title odds.
		{name: "a better chance stands below", edit: func(_ *world, s *smallSeason) { s.odds.Drivers[0].TitlePct, s.odds.Drivers[1].TitlePct = 300, 700 }},
		{name: "fewer points at the end than now", edit: func(_ *world, s *smallSeason) { s.odds.Constructors[0].PointsLow = 24 }},
		{name: "the lower bound is above the upper", edit: func(_ *world, s *smallSeason) { s.odds.Constructors[0].PointsLow = 51 }},
		{name: "more points at the end than remain", edit: func(_ *world, s *smallSeason) { s.odds.Constructors[0].PointsMost = 49 }},
		{name: "title chances below one", edit: func(_ *world, s *smallSeason) { s.odds.Drivers[1].TitlePct = 200 }},
		{name: "title chances above one", edit: func(_ *world, s *smallSeason) { s.odds.Drivers[1].TitlePct = 400 }},
		{name: "no constructor can win", edit: func(_ *world, s *smallSeason) { s.odds.Constructors = nil }},

		// Forecasts.
		{name: "a better chance of a win stands below", edit: func(w *world, _ *smallSeason) { w.forecast.Drivers[0].WinPct, w.forecast.Drivers[1].WinPct = 300, 600 }},
		{name: "a podium less likely than the win", edit: func(w *world, _ *smallSeason) { w.forecast.Drivers[0].PodiumPct = 500 }},
		{name: "chances of a win above one", edit: func(w *world, _ *smallSeason) { w.forecast.Drivers[2].WinPct = 110 }},
		{name: "the expected winner is not the likeliest", edit: func(w *world, _ *smallSeason) { w.forecast.Podium.P1 = "BOB" }},

		// Standings.
		{name: "more points in a lower position", edit: func(_ *world, s *smallSeason) { s.drivers[1].Points = 26 }},
		{name: "positions out of order", edit: func(_ *world, s *smallSeason) { s.teams[0].Position = 9 }},
		{name: "a position after rows without one", edit: func(_ *world, s *smallSeason) { s.drivers[1], s.drivers[2] = s.drivers[2], s.drivers[1] }},
		{name: "a driver twice in the standings", edit: func(_ *world, s *smallSeason) { s.drivers[2].Driver = "BOB" }},
		{name: "a constructor ranked twice", edit: func(_ *world, s *smallSeason) { s.teams[2].Position = 3 }},

		// Documents about no single season.
		// Statistics against the documents that they count.
		{name: "progress that ends with other points", edit: func(_ *world, s *smallSeason) { s.progress[1].Rounds[0].Points = 17 }},
		{name: "progress without a driver", edit: func(_ *world, s *smallSeason) { s.progress = s.progress[1:] }},
		{name: "progress of a constructor with another position", edit: func(_ *world, s *smallSeason) { s.teamwise[0].Rounds[0].Position = 2 }},
		{name: "a pair with another count of qualifyings", edit: func(_ *world, s *smallSeason) {
			s.pairs[0].First.QualifyingAhead, s.pairs[0].Second.QualifyingAhead = 0, 1
		}},
		{name: "a pair with more races than rounds", edit: func(_ *world, s *smallSeason) { s.pairs[0].First.RaceAhead, s.pairs[0].RaceRounds = 1, 1 }},
		{name: "a career with a win too many", edit: func(_ *world, s *smallSeason) { s.careers[1].Wins = 1 }},
		{name: "a career is missing", edit: func(_ *world, s *smallSeason) { s.careers = s.careers[:1] }},

		{name: "a change of an unknown round", edit: func(w *world, _ *smallSeason) { w.changes[0].SessionKey = 2025009 }},
		{name: "a driver who returns without a withdrawal", edit: func(w *world, _ *smallSeason) {
			w.changes = append([]wire.Change{{SessionKey: w.changes[0].SessionKey, GPName: w.changes[0].GPName, Kind: wire.DriverReturned, At: w.changes[0].At, By: "builder", Driver: "ANN", DriverID: "ann"}}, w.changes...)
		}},
		{name: "a code twice on the grid", edit: func(w *world, _ *smallSeason) { w.grid[1].Driver = "ANN" }},
		{name: "a coming race is missing", edit: func(w *world, _ *smallSeason) { w.coming = nil }},
		{name: "a coming race of unknown hour may be missing", edit: func(w *world, s *smallSeason) {
			s.calendar[2].DateStart, s.weekends[2].Sessions[0].DateStart, w.coming = wire.Instant{}, wire.Instant{}, nil
		}},
		{name: "a countdown that is no JSON", replace: replace("next-race", "{", "")},

		// Form.
		{name: "a document of a season is missing", replace: func(bodies map[string][]byte) { delete(bodies, "calendar/2025") }},
		{name: "a document of a session is missing", replace: func(bodies map[string][]byte) { delete(bodies, "results/session/2025001") }},
		{name: "a document about no season is missing", replace: func(bodies map[string][]byte) { delete(bodies, "drivers") }},
		{name: "a list that is no JSON", replace: replace("results/2025", "{", "")},
		{name: "a session that is no JSON", replace: replace("results/session/2025001", "{", "")},
		{name: "the session differs from the list", replace: replace("predictions/session/2025001", `"confidence_pct":60.0`, `"confidence_pct":61.0`)},
		{name: "a field that the schema does not have", replace: replace("drivers", `"number":`, `"numero":`), trusted: nothing},
		{name: "a field of a season that the schema does not have", replace: replace("calendar/2025", `"round":`, `"rund":`), trusted: nothing},
		{name: "a name that is a number, in list and session", replace: func(bodies map[string][]byte) {
			replace("results/2025", `"gp_name":"Grand Prix 1"`, `"gp_name":7`)(bodies)
			replace("results/session/2025001", `"gp_name":"Grand Prix 1"`, `"gp_name":7`)(bodies)
		}, trusted: nothing},
		{name: "a space between two records", replace: replace("weekends/2025", `},{"session_key":2025002`, `}, {"session_key":2025002`), trusted: nothing},
		{name: "an envelope of another service", replace: replace("weekends/session/2025001", "gridcast-v1", "gridcast-v2"), trusted: nothing},
		{name: "a session that the list does not have", replace: func(bodies map[string][]byte) {
			bodies["results/session/2025003"] = bytes.Replace(bodies["results/session/2025001"], []byte("2025001"), []byte("2025003"), 1)
		}, trusted: nothing},
		{name: "a path that no request has", replace: func(bodies map[string][]byte) { bodies["nothing"] = bodies["drivers"] }, trusted: nothing},
		{name: "a countdown without its holes", replace: func(bodies map[string][]byte) {
			bodies["next-race"] = []byte(`{"rounds":[{"start":"2025-06-22T13:00:00+00:00","parts":["{","",""]}]}`)
		}, trusted: nothing},
		{name: "a countdown that breaks the schema once completed", replace: replace("next-race", `\"country\"`, `\"land\"`), trusted: nothing},
		{name: "a countdown that is no countdown", replace: replace("next-race", `"rounds"`, `"runden"`), trusted: nothing},
	} {
		w := newWorld(t)
		if row.edit != nil {
			row.edit(w, w.seasons[2025])
		}
		bodies := w.bodies(t)
		if row.replace != nil {
			row.replace(bodies)
		}
		if row.trusted == nil {
			row.trusted = everything
		}
		fmt.Fprintf(&got, "%s\n", row.name)
		if err := checktest.Err(checktest.Bodies(known, bodies, row.trusted)); err != nil {
			fmt.Fprintf(&got, "\t%s\n", strings.ReplaceAll(err.Error(), "\n", "\n\t"))
		}
	}
	golden.File(t, "testdata/faults.txt", got.String())
}

// withPlaces gives the first driver of a season's chances a chance of every place, and returns them.
func withPlaces(s *smallSeason) *wire.DriverChance {
	c := &s.chances[0].Drivers[0]
	points, out, expected := wire.Hundredths(10_000), wire.Hundredths(0), wire.Hundredths(2190)
	c.Positions, c.PointsPct, c.DNFPct, c.ExpectedPoints = []wire.Hundredths{6000, 3000, 1000}, &points, &out, &expected
	return c
}
