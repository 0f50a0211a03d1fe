package console

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"gridcast/builder/almanac"
	"gridcast/scheduler/cadence"
)

// clockTime is an instant as the tables show it.
func clockTime(t time.Time) string {
	if t.IsZero() {
		return "–"
	}
	return t.UTC().Format("2 Jan 2006 15:04:05")
}

// reasonWords are the reasons of the schedule for people.
var reasonWords = map[string]string{
	string(cadence.PollWeek):        "the daily poll",
	string(cadence.PollWeekend):     "the poll on a race weekend",
	string(cadence.PollAwaiting):    "a grid or a result is awaited",
	string(cadence.GridKnown):       "the grid should be known",
	string(cadence.QualifyingStood): "qualifying has not changed for two hours",
	string(cadence.FreezeLatest):    "the last moment for a pick",
	string(cadence.LightsOut):       "lights out",
	string(cadence.RaceWindowEnd):   "the race is over",
	string(cadence.YearTurn):        "the year turns",
	string(cadence.CalendarKnown):   "the calendar of next season",
	string(cadence.Nightly):         "every night",
}

// describe replaces codes in the reason of a build or a job, such as "lights_out 2024022", by words.
func describe(reason string, names map[int64]string) string {
	fields := strings.Fields(reason)
	for i, field := range fields {
		if words, ok := reasonWords[field]; ok {
			fields[i] = words
			continue
		}
		if key, err := strconv.ParseInt(field, 10, 64); err == nil && i > 0 && names[key] != "" {
			fields[i] = "(" + names[key] + ")"
		}
	}
	return strings.Join(fields, " ")
}

// Say describes a reason with the names of rounds.
func (p *page) Say(reason any) string { return describe(fmt.Sprint(reason), p.names) }

// SayRound returns the name of a round, or its key if the page does not know it.
func (p *page) SayRound(key int64) string {
	if name := p.names[key]; name != "" {
		return name
	}
	return strconv.FormatInt(key, 10)
}

func roundNames(a *almanac.Almanac) map[int64]string {
	names := map[int64]string{}
	for _, y := range a.Years {
		for _, r := range y.Rounds {
			names[r.Session] = r.Facts.Name
		}
	}
	return names
}
