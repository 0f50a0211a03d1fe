package wire

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"time"
)

// Countdown is the stored form of /next-race: the coming rounds in order of start, finished
// but for the two values that depend on the instant of a request.
type Countdown struct {
	Rounds []CountdownRound `json:"rounds"`
}

// CountdownRound is the body of /next-race before the start of one round.
type CountdownRound struct {
	Start Instant   `json:"start"` // whole second; assumed where the hour is unknown
	Parts [3]string `json:"parts"` // before seconds_to_lights, between, and after generated_at
}

// NewCountdownRound renders the body of race, whose seconds are left open.
func NewCountdownRound(race NextRace) (CountdownRound, error) {
	start := time.Time(race.DateStart)
	if start.IsZero() || start.Nanosecond() != 0 {
		return CountdownRound{}, fmt.Errorf("countdown to %s: start %v is not a whole second", race.Name, start)
	}
	// JSON escapes a quote within a string, so the name of a race cannot contain a field's name with
	// its quotes, colon and value.
	const open = math.MaxInt64
	race.SecondsToLights = open
	body, err := Marshal(Wrap(race, time.Unix(0, 0)))
	if err != nil {
		return CountdownRound{}, fmt.Errorf("countdown to %s: %w", race.Name, err)
	}
	seconds := `"seconds_to_lights":`
	before, rest, found := bytes.Cut(body, []byte(seconds+strconv.Itoa(open)))
	generated := `"generated_at":"`
	between, after, found2 := bytes.Cut(rest, []byte(generated+Instant(time.Unix(0, 0)).String()))
	if !found || !found2 {
		return CountdownRound{}, fmt.Errorf("countdown to %s: body without its open values: %s", race.Name, body)
	}
	return CountdownRound{
		Start: race.DateStart,
		Parts: [3]string{string(before) + seconds, string(between) + generated, string(after)},
	}, nil
}

// Next returns the first round that starts after now, which is race time, or nil.
func (c *Countdown) Next(now time.Time) *CountdownRound {
	for i := range c.Rounds {
		if time.Time(c.Rounds[i].Start).After(now) {
			return &c.Rounds[i]
		}
	}
	return nil
}

// Append appends the body as of now, which is race time before the start. The instant is
// rounded down to a whole second, so that date_start - generated_at == seconds_to_lights >= 1.
func (r *CountdownRound) Append(dst []byte, now time.Time) []byte {
	second := now.Unix()
	dst = append(dst, r.Parts[0]...)
	dst = strconv.AppendInt(dst, time.Time(r.Start).Unix()-second, 10)
	dst = append(dst, r.Parts[1]...)
	dst = time.Unix(second, 0).UTC().AppendFormat(dst, InstantLayout)
	return append(dst, r.Parts[2]...)
}

// ParseCountdown reads the stored form and checks that the rounds are in order and that each
// gives a valid body.
func ParseCountdown(data []byte) (*Countdown, error) {
	var c Countdown
	if err := json.Unmarshal(data, &c); err != nil {
		return nil, fmt.Errorf("parse countdown: %w", err)
	}
	for i := range c.Rounds {
		r := &c.Rounds[i]
		start := time.Time(r.Start)
		if i > 0 && start.Before(time.Time(c.Rounds[i-1].Start)) {
			return nil, fmt.Errorf("parse countdown: round %d starts at %s, before the one before it", i, r.Start)
		}
		var body Success[NextRace]
		if err := json.Unmarshal(r.Append(nil, start.Add(-time.Second)), &body); err != nil {
			return nil, fmt.Errorf("parse countdown: round %d: %w", i, err)
		}
		if body.Data.SecondsToLights != 1 || !time.Time(body.Data.DateStart).Equal(start) {
			return nil, fmt.Errorf("parse countdown: round %d: body starts at %s with %d seconds to go, want %s with 1",
				i, body.Data.DateStart, body.Data.SecondsToLights, r.Start)
		}
	}
	return &c, nil
}
