// Package wire holds the Go structs whose JSON is the public API: the envelope, the body of
// every endpoint and the error body. Field order is the order on the wire. A value that is
// not known is absent: optional fields carry omitzero, and no struct ever yields null.
package wire

import (
	"bytes"
	"encoding/json"
	"math"
	"reflect"
	"slices"
	"strconv"
	"time"
)

// API names the service and the major version of the contract in every success envelope.
const API = "gridcast-v1"

// Success is the envelope of every 200 body.
type Success[T any] struct {
	OK   bool `json:"ok"`
	Data T    `json:"data"`
	Meta Meta `json:"meta"`
}

// Meta names the contract of a body and the instant at which its bytes were first rendered.
type Meta struct {
	API         string  `json:"api"`
	GeneratedAt Instant `json:"generated_at"`
}

// Wrap puts data into the success envelope. A nil slice becomes an empty array: no rows are
// [], never null.
func Wrap[T any](data T, generatedAt time.Time) Success[T] {
	if rows := reflect.ValueOf(&data).Elem(); rows.Kind() == reflect.Slice && rows.IsNil() {
		rows.Set(reflect.MakeSlice(rows.Type(), 0, 0))
	}
	return Success[T]{OK: true, Data: data, Meta: Meta{API: API, GeneratedAt: Instant(generatedAt)}}
}

// DriverStanding is one row of /standings?type=drivers. Wins and podiums count race results
// of the season; the team is that of the driver's latest race.
type DriverStanding struct {
	Position   int     `json:"position,omitzero"` // absent if unranked
	Driver     string  `json:"driver"`            // three-letter code, unique within the season
	Name       string  `json:"name"`
	Team       string  `json:"team"`
	TeamColour string  `json:"team_colour,omitzero"` // #RRGGBB, upper case
	Points     float64 `json:"points"`
	Wins       int     `json:"wins"`
	Podiums    int     `json:"podiums"`
}

// ConstructorStanding is one row of /standings?type=constructors. Engine is present only in
// seasons that rank one chassis with different engines apart.
type ConstructorStanding struct {
	Position   int     `json:"position,omitzero"` // absent if unranked
	Team       string  `json:"team"`
	Engine     string  `json:"engine,omitzero"`
	TeamColour string  `json:"team_colour,omitzero"` // #RRGGBB, upper case
	Points     float64 `json:"points"`
	Wins       int     `json:"wins"`
	Podiums    int     `json:"podiums"`
}

// Status is the state of a round; see the state table of the contract.
type Status string

// The states of a round.
const (
	Scheduled      Status = "scheduled"
	Live           Status = "live"
	AwaitingResult Status = "awaiting_result"
	Finished       Status = "finished"
	Postponed      Status = "postponed"
	Cancelled      Status = "cancelled"
)

// CalendarEntry is one round of /calendar.
type CalendarEntry struct {
	Round      int     `json:"round"`
	SessionKey int64   `json:"session_key"`
	GPName     string  `json:"gp_name"`
	Circuit    string  `json:"circuit"`
	Locality   string  `json:"locality"`
	Country    string  `json:"country"`             // of the circuit
	Date       string  `json:"date"`                // YYYY-MM-DD, UTC day of the start
	DateStart  Instant `json:"date_start,omitzero"` // absent if the hour is unknown
	Sprint     bool    `json:"sprint"`              // the weekend has a sprint
	Status     Status  `json:"status"`              //
	Winner     string  `json:"winner,omitzero"`     // code; present if and only if finished
}

// Driver is one entry of /drivers, the current grid.
type Driver struct {
	Driver      string `json:"driver"` // three-letter code
	Name        string `json:"name"`
	FirstName   string `json:"first_name"`
	LastName    string `json:"last_name"`
	Number      int    `json:"number"` // the one on the car
	Team        string `json:"team"`
	TeamColour  string `json:"team_colour,omitzero"`
	HeadshotURL string `json:"headshot_url,omitzero"`
	Country     string `json:"country"` // ISO 3166-1 alpha-3
}

// Podium names the codes on the first three places; a place without a driver is absent.
type Podium struct {
	P1 string `json:"p1,omitzero"`
	P2 string `json:"p2,omitzero"`
	P3 string `json:"p3,omitzero"`
}

// Prediction is a frozen pick; Winner equals Podium.P1.
type Prediction struct {
	Winner        string  `json:"winner"`
	ConfidencePct Percent `json:"confidence_pct"` // probability that Winner wins
	Podium        Podium  `json:"podium"`
}

// Result is a verified race result.
type Result struct {
	Winner string `json:"winner"`
	Podium Podium `json:"podium"`
}

// PredictionRecord is one row of /predictions. Result and WinnerHit are absent until a
// verified result exists.
type PredictionRecord struct {
	SessionKey int64      `json:"session_key"`
	GPName     string     `json:"gp_name"`
	Prediction Prediction `json:"prediction"`
	Result     *Result    `json:"result,omitzero"`
	WinnerHit  *bool      `json:"winner_hit,omitzero"`
}

// NextRace is the data of /next-race. SecondsToLights is at least 1 and equals DateStart
// minus the envelope's generated_at.
type NextRace struct {
	Name            string      `json:"name"`
	Circuit         string      `json:"circuit"`
	Country         string      `json:"country"`
	DateStart       Instant     `json:"date_start"`
	Provisional     bool        `json:"provisional,omitzero"` // true while no source names the hour
	SecondsToLights int64       `json:"seconds_to_lights"`
	Prediction      *Prediction `json:"prediction,omitzero"` // absent until published
}

// Accuracy is the data of /accuracy.
type Accuracy struct {
	RacesEvaluated int          `json:"races_evaluated"` // frozen pre-race pick and verified result
	PreRace        HitRates     `json:"pre_race"`
	Live           LiveHitRates `json:"live"` // over the evaluated races with a live pick at half distance
}

// HitRates are percentages over the scored races: hits / races, and picked drivers that
// finished on the podium, in any order, / (3 x races).
type HitRates struct {
	WinnerHitRatePct  Percent `json:"winner_hit_rate_pct"`
	PodiumAccuracyPct Percent `json:"podium_accuracy_pct"`
}

// LiveHitRates are the HitRates of live picks and their number of races. Without that number, 0.0 of no race reads
// like 0.0 of many.
type LiveHitRates struct {
	RacesEvaluated    int     `json:"races_evaluated"` // the evaluated races with a live pick
	WinnerHitRatePct  Percent `json:"winner_hit_rate_pct"`
	PodiumAccuracyPct Percent `json:"podium_accuracy_pct"`
}

// Instant is a timestamp of the contract: RFC 3339 in UTC, whole seconds, with a numeric
// offset, never Z.
type Instant time.Time

// InstantLayout is the layout of Instant for package time.
const InstantLayout = "2006-01-02T15:04:05+00:00"

// IsZero reports whether the instant is unknown.
func (i Instant) IsZero() bool { return time.Time(i).IsZero() }

// String formats the instant as it stands on the wire.
func (i Instant) String() string { return time.Time(i).UTC().Format(InstantLayout) }

// MarshalJSON implements json.Marshaler.
func (i Instant) MarshalJSON() ([]byte, error) { return []byte(`"` + i.String() + `"`), nil }

// UnmarshalJSON implements json.Unmarshaler; it takes any RFC 3339 timestamp.
func (i *Instant) UnmarshalJSON(b []byte) error {
	var t time.Time
	if err := t.UnmarshalJSON(b); err != nil {
		return err
	}
	*i = Instant(t.UTC())
	return nil
}

// Percent is a percentage in tenths, so that it prints with exactly one decimal.
type Percent int

// PercentOf returns 100 * part / whole rounded half up to one decimal, and 0 if whole is 0.
func PercentOf(part, whole int) Percent {
	if whole == 0 {
		return 0
	}
	return Percent((2000*part + whole) / (2 * whole))
}

// PercentFrom returns the percentage of a probability in [0, 1], half up to one decimal.
func PercentFrom(probability float64) Percent {
	return Percent(math.Floor(float64(probability*1000) + 0.5))
}

// String returns the percentage with one decimal, without a sign.
func (p Percent) String() string { return strconv.FormatFloat(float64(p)/10, 'f', 1, 64) }

// MarshalJSON implements json.Marshaler.
func (p Percent) MarshalJSON() ([]byte, error) { return []byte(p.String()), nil }

// UnmarshalJSON implements json.Unmarshaler.
func (p *Percent) UnmarshalJSON(b []byte) error { return unmarshal(b, 10, p) }

// Hundredths is a number that prints with exactly two decimals.
type Hundredths int

// PercentagesOf returns the percentages of parts in millionths. Their sum is that of the parts: the parts with the
// largest loss by rounding down are rounded up.
func PercentagesOf(parts []int) []Hundredths {
	const unit = 100 // millionths in a hundredth of a percent
	percentages, order, left := make([]Hundredths, len(parts)), make([]int, len(parts)), unit/2
	for i, part := range parts {
		percentages[i], order[i] = Hundredths(part/unit), i
		left += part % unit
	}
	slices.SortStableFunc(order, func(a, b int) int { return parts[b]%unit - parts[a]%unit })
	for _, i := range order[:min(left/unit, len(order))] {
		percentages[i]++
	}
	return percentages
}

// MarshalJSON implements json.Marshaler.
func (n Hundredths) MarshalJSON() ([]byte, error) {
	return strconv.AppendFloat(nil, float64(n)/100, 'f', 2, 64), nil
}

// UnmarshalJSON implements json.Unmarshaler.
func (n *Hundredths) UnmarshalJSON(b []byte) error { return unmarshal(b, 100, n) }

// Thousandths is a number that prints with exactly three decimals.
type Thousandths int

// ThousandthsOf rounds half up.
func ThousandthsOf(x float64) Thousandths { return Thousandths(math.Floor(float64(x*1000) + 0.5)) }

// MarshalJSON implements json.Marshaler.
func (n Thousandths) MarshalJSON() ([]byte, error) {
	return strconv.AppendFloat(nil, float64(n)/1000, 'f', 3, 64), nil
}

// UnmarshalJSON implements json.Unmarshaler.
func (n *Thousandths) UnmarshalJSON(b []byte) error { return unmarshal(b, 1000, n) }

// unmarshal reads a number that prints as a count of parts of a unit.
func unmarshal[N ~int](b []byte, unit float64, n *N) error {
	f, err := strconv.ParseFloat(string(b), 64)
	if err == nil {
		*n = N(math.Round(f * unit))
	}
	return err
}

// Marshal is the one way a body becomes bytes: UTF-8, no HTML escaping, no trailing newline.
func Marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}
