package ledger

import (
	"errors"
	"fmt"

	"gridcast/builder/season"
)

// keysPerYear is the number of session keys of a year, year*1000+1 to year*1000+999.
const keysPerYear = 999

// AssignKeys returns keys for the rounds without one, in the order of the calendar. The key of a round is
// year*1000 + n. n is the round's number when it is first seen, or the next free number above. Rounds with a free
// number of their own come first, so that the result depends on the calendar alone. The error names the seasons without
// a free number, and the keys are those of the others.
func AssignKeys(s *Fold, seasons []season.Season) (all []KeyAssignment, err error) {
	for _, year := range seasons {
		keys, full := assignYear(s, year)
		all, err = append(all, keys...), errors.Join(err, full)
	}
	return all, err
}

func assignYear(s *Fold, year season.Season) ([]KeyAssignment, error) {
	var keys []KeyAssignment
	numbers := map[season.GrandPrixID]int{}
	used := map[int64]bool{sessionKey(year.Year, 0): true} // no round has the number 0
	free := func(n int) bool {
		key := sessionKey(year.Year, n)
		_, known := s.records[key]
		return YearOf(key) == year.Year && !known && !used[key]
	}
	for _, r := range year.Rounds {
		if _, known := s.Key(year.Year, r.GrandPrix); known {
			continue
		}
		numbers[r.GrandPrix] = r.Number
		a := KeyAssignment{Year: year.Year, GrandPrix: r.GrandPrix}
		if free(r.Number) {
			a.Session = sessionKey(year.Year, r.Number)
			used[a.Session] = true
		}
		keys = append(keys, a)
	}
	for i := range keys {
		if keys[i].Session != 0 {
			continue
		}
		n := max(1, numbers[keys[i].GrandPrix])
		for n <= keysPerYear && !free(n) {
			n++
		}
		if n > keysPerYear {
			return nil, fmt.Errorf("assign a session key to %s of %d: no number above that of the round is free", keys[i].GrandPrix, year.Year)
		}
		keys[i].Session = sessionKey(year.Year, n)
		used[keys[i].Session] = true
	}
	return keys, nil
}

func sessionKey(year, n int) int64 { return int64(year)*1000 + int64(n) }

// YearOf is the season of a session key.
func YearOf(session int64) int { return int(session / 1000) }

// checkKeys: a key belongs to its year, and neither the key nor the round is assigned yet.
func (s *Fold) checkKeys(keys []KeyAssignment) error {
	seenKeys, seenRounds := map[int64]bool{}, map[roundID]bool{}
	for _, k := range keys {
		round := roundID{k.Year, k.GrandPrix}
		if k.GrandPrix == "" || k.Session < sessionKey(k.Year, 1) || k.Session > sessionKey(k.Year, keysPerYear) {
			return fmt.Errorf("%d is no key for %q of %d", k.Session, k.GrandPrix, k.Year)
		}
		if holder, ok := s.records[k.Session]; ok || seenKeys[k.Session] {
			if ok {
				return fmt.Errorf("key %d is that of %s of %d for ever", k.Session, holder.GrandPrix, holder.Year)
			}
			return fmt.Errorf("key %d is assigned twice", k.Session)
		}
		if key, ok := s.keys[round]; ok {
			return fmt.Errorf("%s of %d has key %d for ever", k.GrandPrix, k.Year, key)
		}
		if seenRounds[round] {
			return fmt.Errorf("%s of %d is given two keys", k.GrandPrix, k.Year)
		}
		seenKeys[k.Session], seenRounds[round] = true, true
	}
	return nil
}
