package laps

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"gridcast/builder/names"
	"gridcast/builder/season"
)

// dateSlack is the largest difference between the two sources' dates of a race. One has local dates, and
// has one race a week early.
const dateSlack = 8 * 24 * time.Hour

// Read reads the races of the folder that the archive knows, with the archive's drivers and
// pit stops. It finds a driver by name among the starters of the race.
func Read(dir string, archive *season.Archive) ([]*Race, error) {
	races := map[string]*Race{}
	rounds := map[string]*season.Round{}
	numbered := roundsByNumber(archive)
	err := eachRow(dir, "races", []string{"raceId", "year", "round", "date"}, func(row []string) error {
		date, err := time.Parse(time.DateOnly, row[3])
		if err != nil {
			return err
		}
		r, ok := numbered[row[1]+"/"+row[2]]
		if !ok || r.Date.Sub(date).Abs() > dateSlack {
			return nil
		}
		race := &Race{Year: date.Year(), GrandPrix: r.GrandPrix, Completed: map[season.DriverID][]time.Duration{}, Stops: map[season.DriverID][]int{}}
		for _, s := range r.PitStops {
			race.Stops[s.Driver] = append(race.Stops[s.Driver], s.Lap)
		}
		rounds[row[0]], races[row[0]] = r, race
		return nil
	})
	if err != nil {
		return nil, err
	}
	people := map[string]string{}
	err = eachRow(dir, "drivers", []string{"driverId", "forename", "surname"}, func(row []string) error {
		people[row[0]] = row[1] + " " + row[2]
		return nil
	})
	if err != nil {
		return nil, err
	}
	facts := archive.Facts()
	if err := readLaps(dir, races, rounds, people, facts.Drivers); err != nil {
		return nil, err
	}
	var list []*Race
	for i := range facts.Seasons {
		for j := range facts.Seasons[i].Rounds {
			for id, r := range rounds {
				if r == &facts.Seasons[i].Rounds[j] && len(races[id].Completed) > 0 {
					list = append(list, races[id])
				}
			}
		}
	}
	return list, nil
}

// readLaps adds up the lap times, which the file holds in order of race and lap.
func readLaps(dir string, races map[string]*Race, rounds map[string]*season.Round, people map[string]string, drivers map[season.DriverID]season.Driver) error {
	known := map[[2]string]season.DriverID{}
	return eachRow(dir, "lap_times", []string{"raceId", "driverId", "lap", "milliseconds"}, func(row []string) error {
		race, ok := races[row[0]]
		if !ok {
			return nil
		}
		key := [2]string{row[0], row[1]}
		driver, ok := known[key]
		if !ok {
			driver = starter(people[row[1]], rounds[row[0]], drivers)
			if driver == "" {
				return fmt.Errorf("%d %s: no starter %q", race.Year, race.GrandPrix, people[row[1]])
			}
			known[key] = driver
		}
		lap, err := strconv.Atoi(row[2])
		if err != nil {
			return err
		}
		ms, err := strconv.Atoi(row[3])
		if err != nil {
			return err
		}
		laps := race.Completed[driver]
		if lap != len(laps)+1 {
			return fmt.Errorf("%d %s: %s: lap %d follows lap %d", race.Year, race.GrandPrix, driver, lap, len(laps))
		}
		at := time.Duration(ms) * time.Millisecond
		if len(laps) > 0 {
			at += laps[len(laps)-1]
		}
		race.Completed[driver] = append(laps, at)
		return nil
	})
}

// roundsByNumber returns the rounds of the archive by year/number.
func roundsByNumber(archive *season.Archive) map[string]*season.Round {
	rounds := map[string]*season.Round{}
	facts := archive.Facts()
	for i := range facts.Seasons {
		s := &facts.Seasons[i]
		for j := range s.Rounds {
			rounds[fmt.Sprintf("%d/%d", s.Year, s.Rounds[j].Number)] = &s.Rounds[j]
		}
	}
	return rounds
}

// starter returns the driver of that name in the race. If the sources spell the name
// differently, it returns the only driver of that surname.
func starter(name string, r *season.Round, drivers map[season.DriverID]season.Driver) season.DriverID {
	want := plain(name)
	var same []season.DriverID
	for _, res := range r.Results {
		has := plain(drivers[res.Driver].Name)
		if has == want {
			return res.Driver
		}
		if surname(has) == surname(want) || strings.HasPrefix(has, want) || strings.HasPrefix(want, has) {
			same = append(same, res.Driver)
		}
	}
	if len(same) == 1 {
		return same[0]
	}
	return ""
}

func surname(name string) string { return name[strings.LastIndex(name, " ")+1:] }

// plain folds a name to lower-case letters without accents.
func plain(name string) string { return strings.ReplaceAll(names.Slug(name), "-", " ") }
