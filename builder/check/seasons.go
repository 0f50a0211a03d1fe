package check

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"maps"
	"runtime"
	"slices"
	"strconv"
	"sync"

	"golang.org/x/sync/errgroup"

	"gridcast/schemas/catalog"
)

// seasons are the bodies of a version by season, with what saves work on them: which seasons have
// passed before, and the records of the season's lists, which the bodies of one session repeat.
type seasons struct {
	year    map[string]int             // of a path; 0: of all seasons, or of none
	checked map[int]bool               // it has passed before
	sums    [][sha256.Size]byte        // of all bodies of each season, and of the records of those that have not passed
	records map[catalog.Variant][]byte // by endpoint and session key; of seasons that have not
	lists   map[string][]byte          // by path: a list of such a season without the records that have passed
	shells  sync.Map                   // those whose schema has been checked, as text
}

// passed are the sums of the seasons, and of the records of their lists, that have passed in this process.
var passed struct {
	sync.Mutex
	sums map[[sha256.Size]byte]bool
}

// mostPassed is how many are kept: every record since 1950, ten times.
const mostPassed = 50_000

func hasPassed(sum [sha256.Size]byte) bool {
	passed.Lock()
	defer passed.Unlock()
	return passed.sums[sum]
}

func seasonsOf(bodies map[string][]byte) *seasons {
	s := &seasons{
		year: make(map[string]int, len(bodies)), checked: map[int]bool{},
		records: map[catalog.Variant][]byte{}, lists: map[string][]byte{},
	}
	paths := map[int][]string{}
	for _, path := range slices.Sorted(maps.Keys(bodies)) {
		v, err := catalog.ParsePath(path)
		if err != nil {
			continue // its schema is not known either
		}
		year := v.Season()
		if s.year[path] = year; year > 0 {
			paths[year] = append(paths[year], path)
		}
	}
	var (
		mu    sync.Mutex // guards s
		group errgroup.Group
	)
	group.SetLimit(runtime.GOMAXPROCS(0))
	for year, ofYear := range paths {
		group.Go(func() error {
			h := sha256.New()
			for _, path := range ofYear {
				sum := sha256.Sum256(bodies[path])
				_, _ = h.Write(append(sum[:], path...))
			}
			sum := [sha256.Size]byte(h.Sum(nil))
			checked := hasPassed(sum)
			var lists []list
			if !checked {
				lists = listsOf(year, bodies)
			}
			mu.Lock()
			defer mu.Unlock()
			s.checked[year], s.sums = checked, append(s.sums, sum)
			for _, l := range lists {
				maps.Copy(s.records, l.records)
				s.lists[l.path], s.sums = l.rest, append(s.sums, l.sums...)
			}
			return nil
		})
	}
	_ = group.Wait()
	return s
}

// list is the body of a season's list, and the records in it as they stand there.
type list struct {
	path    string
	records map[catalog.Variant][]byte // by session key
	sums    [][sha256.Size]byte        // of the records and their endpoint
	rest    []byte                     // the body without the records that have passed
}

// A list, and the body of one session, is its records between these two, and what follows.
const opening, closing = `{"ok":true,"data":[`, `],"meta":`

// listsOf splits the lists of a season into their records. One that is written otherwise than all are
// is left out: its schema says why.
func listsOf(year int, bodies map[string][]byte) (all []list) {
	for _, endpoint := range []catalog.Name{catalog.Predictions, catalog.Probabilities, catalog.Results, catalog.Weekends} {
		l := list{path: catalog.Variant{Endpoint: endpoint, Year: year}.Path(), records: map[catalog.Variant][]byte{}}
		body := bodies[l.path]
		var content struct {
			Data []json.RawMessage `json:"data"`
		}
		if json.Unmarshal(body, &content) != nil {
			continue
		}
		var records, fresh [][]byte
		for _, record := range content.Data {
			sum := sha256.Sum256(append([]byte(endpoint+" "), record...))
			records, l.sums = append(records, record), append(l.sums, sum)
			if !hasPassed(sum) {
				fresh = append(fresh, record)
			}
			digits, ok := bytes.CutPrefix(record, []byte(`{"session_key":`))
			end := bytes.IndexAny(digits, ",}")
			if !ok || end < 0 {
				continue
			}
			if key, err := strconv.ParseInt(string(digits[:end]), 10, 64); err == nil {
				l.records[catalog.Variant{Endpoint: endpoint, SessionKey: key}] = record
			}
		}
		comma := []byte(",")
		rest, same := bytes.CutPrefix(body, append([]byte(opening), bytes.Join(records, comma)...))
		if !same || !bytes.HasPrefix(rest, []byte(closing)) {
			continue
		}
		l.rest = slices.Concat([]byte(opening), bytes.Join(fresh, comma), rest)
		all = append(all, l)
	}
	return all
}

// sound says whether a body is of a season that has passed before as it is.
func (s *seasons) sound(path string) bool { return s.checked[s.year[path]] }

// shell returns what is left of the body of one session without its record, if that is byte by byte the
// one of the season's list: a body whose list is empty. What is wrong with the record is wrong with the
// list.
func (s *seasons) shell(path string, body []byte) (shell []byte, ok bool) {
	v, err := catalog.ParsePath(path)
	if err != nil || v.SessionKey <= 0 {
		return nil, false
	}
	rest, isList := bytes.CutPrefix(body, []byte(opening))
	rest, same := bytes.CutPrefix(rest, s.records[v])
	if !isList || !same || len(s.records[v]) == 0 || !bytes.HasPrefix(rest, []byte(closing)) {
		return nil, false
	}
	return append([]byte(opening), rest...), true
}

// remember notes that all seasons have passed, and with them all records.
func (s *seasons) remember() {
	passed.Lock()
	defer passed.Unlock()
	if passed.sums == nil || len(passed.sums) > mostPassed {
		passed.sums = map[[sha256.Size]byte]bool{}
	}
	for _, sum := range s.sums {
		passed.sums[sum] = true
	}
}
