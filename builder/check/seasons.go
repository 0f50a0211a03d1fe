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
	sums    map[int][sha256.Size]byte  // of all bodies of a season
	checked map[int]bool               // it has passed before
	records map[catalog.Variant][]byte // by endpoint and session key; of seasons that have not
	shells  sync.Map                   // those whose schema has been checked, as text
}

// passed are the sums of the seasons that have passed in this process.
var passed struct {
	sync.Mutex
	sums map[[sha256.Size]byte]bool
}

// mostPassed is how many are kept: every season, changed a hundred times.
const mostPassed = 10_000

func seasonsOf(bodies map[string][]byte) *seasons {
	s := &seasons{
		year: make(map[string]int, len(bodies)), sums: map[int][sha256.Size]byte{}, checked: map[int]bool{},
		records: map[catalog.Variant][]byte{},
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
	for year, list := range paths {
		group.Go(func() error {
			h := sha256.New()
			for _, path := range list {
				sum := sha256.Sum256(bodies[path])
				_, _ = h.Write(append(sum[:], path...))
			}
			sum := [sha256.Size]byte(h.Sum(nil))
			passed.Lock()
			checked := passed.sums[sum]
			passed.Unlock()
			var records map[catalog.Variant][]byte
			if !checked {
				records = recordsOf(year, bodies)
			}
			mu.Lock()
			defer mu.Unlock()
			s.sums[year], s.checked[year] = sum, checked
			maps.Copy(s.records, records)
			return nil
		})
	}
	_ = group.Wait()
	return s
}

// recordsOf splits the lists of a season into their records, as they stand there.
func recordsOf(year int, bodies map[string][]byte) map[catalog.Variant][]byte {
	records := map[catalog.Variant][]byte{}
	for _, endpoint := range []catalog.Name{catalog.Predictions, catalog.Probabilities, catalog.Results, catalog.Weekends} {
		var list struct {
			Data []json.RawMessage `json:"data"`
		}
		if json.Unmarshal(bodies[catalog.Variant{Endpoint: endpoint, Year: year}.Path()], &list) != nil {
			continue // its schema says why
		}
		for _, record := range list.Data {
			digits, ok := bytes.CutPrefix(record, []byte(`{"session_key":`))
			end := bytes.IndexAny(digits, ",}")
			if !ok || end < 0 {
				continue
			}
			if key, err := strconv.ParseInt(string(digits[:end]), 10, 64); err == nil {
				records[catalog.Variant{Endpoint: endpoint, SessionKey: key}] = record
			}
		}
	}
	return records
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
	const opening, closing = `{"ok":true,"data":[`, `],"meta":`
	rest, isList := bytes.CutPrefix(body, []byte(opening))
	rest, same := bytes.CutPrefix(rest, s.records[v])
	if !isList || !same || len(s.records[v]) == 0 || !bytes.HasPrefix(rest, []byte(closing)) {
		return nil, false
	}
	return append([]byte(opening), rest...), true
}

// remember notes that all seasons have passed.
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
