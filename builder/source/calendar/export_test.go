package calendar

import "gridcast/builder/season"

// Titles returns a function that finds the Grand Prix of a title, and whether it claims to be the race.
func Titles(k Known) func(title string, year int) (season.GrandPrixID, bool) {
	l, err := newLexicon(k, nil)
	if err != nil {
		panic(err)
	}
	return func(title string, year int) (season.GrandPrixID, bool) {
		return l.find(title, "", year).gp, l.claims(title) != noClaim
	}
}
