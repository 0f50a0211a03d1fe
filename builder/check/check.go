// Package check is the gate in front of publishing. It reads the rendered bytes as a client does, and
// refuses documents that break the contract or contradict one another. It shares no code with the
// renderer, so that one mistake cannot pass twice. It is a pure function of the documents.
//
// Read judges the documents of one season. Version judges a whole version by the verdicts on its seasons,
// so a caller can keep the verdict on a season whose documents do not change.
package check

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-json-experiment/json"

	"gridcast/schemas"
	"gridcast/schemas/catalog"
	"gridcast/schemas/wire"
)

// Faults are the faults of documents, by path.
type Faults map[string]error

func (f Faults) add(path string, err error) { f[path] = errors.Join(f[path], inWords(err)) }

// inWords describes a value of the wrong type without the types of Go. The decoder draws the words of its own errors
// by lot in each process, so that nobody compares them.
func inWords(err error) error {
	if wrong, ok := errors.AsType[*json.SemanticError](err); ok {
		return fmt.Errorf("the value at %q must not be a JSON %s", cmp.Or(wrong.JSONPointer, "/"), wrong.JSONKind)
	}
	return err
}

// Season is the verdict on the documents of one season, and the part of them that Version compares with
// other documents. Read makes it.
type Season struct {
	Year   int
	Faults Faults

	readable bool // every document is there and has the right form
	calendar []wire.CalendarEntry
	picks    []wire.PredictionRecord
}

// Read checks the documents of one season, by path: that none is missing, each against its schema, and
// then against each other. A document that contradicts another is at fault if it is made from the other:
// predictions are held to the calendar, and the document of one session to the list of its season.
// Documents for which trusted returns true have passed their schema before.
func Read(year int, bodies map[string][]byte, trusted func(path string) bool) Season {
	r := reader{bodies: bodies, trusted: trusted, faults: Faults{}, contents: map[string]any{}}
	var lists, sessions []string
	for path := range bodies {
		if v, err := catalog.ParsePath(path); err == nil && v.SessionKey > 0 {
			sessions = append(sessions, path)
		} else {
			lists = append(lists, path)
		}
	}
	of := func(endpoint catalog.Name) catalog.Variant { return catalog.Variant{Endpoint: endpoint, Year: year} }
	r.promised(catalog.Known{Seasons: []int{year}, Current: year}, year)
	r.schemas(lists)
	c := content{
		year:     year,
		drivers:  decode[[]wire.DriverStanding](&r, catalog.Variant{Endpoint: catalog.Standings, Type: catalog.DriversType, Year: year}),
		teams:    decode[[]wire.ConstructorStanding](&r, catalog.Variant{Endpoint: catalog.Standings, Type: catalog.ConstructorsType, Year: year}),
		calendar: decode[[]wire.CalendarEntry](&r, of(catalog.Calendar)),
		picks:    decode[[]wire.PredictionRecord](&r, of(catalog.Predictions)),
		chances:  decode[[]wire.ProbabilityRecord](&r, of(catalog.Probabilities)),
		accuracy: decode[wire.Accuracy](&r, of(catalog.Accuracy)),
		results:  decode[[]wire.ResultRecord](&r, of(catalog.Results)),
		weekends: decode[[]wire.Weekend](&r, of(catalog.Weekends)),
		overview: decode[wire.Overview](&r, of(catalog.Overview)),
	}
	alike := map[string]bool{}
	if len(r.faults) == 0 {
		compareSessionsOf(&r, alike, catalog.Predictions, c.picks, func(p wire.PredictionRecord) int64 { return p.SessionKey })
		compareSessionsOf(&r, alike, catalog.Probabilities, c.chances, func(p wire.ProbabilityRecord) int64 { return p.SessionKey })
		compareSessionsOf(&r, alike, catalog.Results, c.results, func(p wire.ResultRecord) int64 { return p.SessionKey })
		compareSessionsOf(&r, alike, catalog.Weekends, c.weekends, func(w wire.Weekend) int64 { return w.SessionKey })
	}
	r.schemas(slices.DeleteFunc(slices.Clone(sessions), func(path string) bool { return alike[path] }))
	c.statistics = r.statistics(year, sessions)
	s := Season{Year: year, Faults: r.faults, readable: len(r.faults) == 0, calendar: c.calendar, picks: c.picks}
	if s.readable { // else a comparison could only repeat the faults
		c.contradictions(r.faults)
	}
	return s
}

// Version checks the documents that are about no single season or are derived, by path: that none is
// missing, each against its schema, and then against the seasons, which are also compared with one
// another. It returns these faults together with the ones of the seasons.
func Version(k catalog.Known, seasons []Season, bodies map[string][]byte, trusted func(path string) bool) Faults {
	r := reader{bodies: bodies, trusted: trusted, faults: Faults{}, contents: map[string]any{}}
	r.promised(k, 0)
	r.schemas(slices.Collect(maps.Keys(bodies)))
	readable := len(r.faults) == 0
	for i := range seasons {
		maps.Copy(r.faults, seasons[i].Faults)
		readable = readable && seasons[i].readable
	}
	if readable {
		r.contradictions(seasons)
	}
	return r.faults
}

// reader reads documents and notes their faults.
type reader struct {
	bodies   map[string][]byte
	trusted  func(path string) bool
	faults   Faults
	contents map[string]any // by path, of the documents that have passed their schema
}

// promised notes each document about the season of a year, or about no single season if year is 0, that k
// promises and that is missing. Derived documents may come with a later version.
func (r *reader) promised(k catalog.Known, year int) {
	for _, v := range catalog.All(k, nil) {
		if _, ok := r.bodies[v.Path()]; !ok && v.Season() == year && !v.Endpoint.Derived() {
			r.faults.add(v.Path(), errors.New("was not rendered"))
		}
	}
}

// schemas checks documents against their schema unless they are trusted.
func (r *reader) schemas(paths []string) {
	var (
		mu    sync.Mutex // guards r.faults and r.contents
		group sync.WaitGroup
		next  atomic.Int64
	)
	for range runtime.GOMAXPROCS(0) { // and not for each document, because the stack of a decoder grows by copies
		group.Go(func() {
			for i := next.Add(1) - 1; i < int64(len(paths)); i = next.Add(1) - 1 {
				path := paths[i]
				if r.trusted(path) {
					continue
				}
				content, err := Body(path, r.bodies[path])
				mu.Lock()
				if r.contents[path] = content; err != nil {
					r.faults.add(path, err)
				}
				mu.Unlock()
			}
		})
	}
	group.Wait()
}

// decode returns the data of a document. It notes a fault unless the document has one already.
func decode[T any](r *reader, v catalog.Variant) T {
	path := v.Path()
	envelope, ok := r.contents[path].(wire.Success[T])
	if ok {
		return envelope.Data
	}
	if err := json.Unmarshal(r.bodies[path], &envelope); err != nil && r.faults[path] == nil {
		r.faults.add(path, err)
	}
	return envelope.Data
}

// compareSessionsOf compares the document of each session with its record in the season's list, byte by
// byte. It notes the paths of equal documents in alike: the schema of the list covers them.
func compareSessionsOf[T any](r *reader, alike map[string]bool, endpoint catalog.Name, list []T, keyOf func(T) int64) {
	for _, record := range list {
		path := catalog.Variant{Endpoint: endpoint, SessionKey: keyOf(record)}.Path()
		body, ok := r.bodies[path]
		if !ok {
			r.faults.add(path, errors.New("was not rendered"))
			continue
		}
		var envelope struct {
			Meta wire.Meta `json:"meta"`
		}
		// The meta comes last. Its faults, and those of the rest, are differences.
		_ = json.Unmarshal(append([]byte("{"), body[max(0, bytes.LastIndex(body, []byte(`"meta":`))):]...), &envelope)
		want, err := wire.Marshal(wire.Success[[]T]{OK: true, Data: []T{record}, Meta: envelope.Meta})
		if err != nil || !bytes.Equal(body, want) {
			r.faults.add(path, cmp.Or(json.Unmarshal(body, &envelope), err, fmt.Errorf("got %s, the season's list has %s", body, want)))
			continue
		}
		alike[path] = envelope.Meta.API == wire.API && !envelope.Meta.GeneratedAt.IsZero()
	}
}

// Body checks one document by itself, and returns its content, nil for a countdown. The error does not name the path.
func Body(path string, body []byte) (content any, err error) {
	variant, err := catalog.ParsePath(path)
	if err != nil {
		return nil, err
	}
	if variant.Endpoint == catalog.NextRace {
		return nil, countdownSchema(variant, body)
	}
	return schemas.Decode(variant, body)
}

// countdownSchema validates the document of each coming round as the edge completes it.
func countdownSchema(v catalog.Variant, body []byte) error {
	c, err := wire.ParseCountdown(body)
	if err != nil {
		return err
	}
	for _, r := range c.Rounds {
		completed := r.Append(nil, time.Time(r.Start).Add(-time.Second))
		if _, err := schemas.Decode(v, completed); err != nil {
			return fmt.Errorf("round at %s: %w", r.Start, err)
		}
	}
	return nil
}
