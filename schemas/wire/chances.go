package wire

// ProbabilityRecord is one record of /probabilities: the whole distribution that a pick was
// frozen with.
type ProbabilityRecord struct {
	SessionKey int64          `json:"session_key"`
	GPName     string         `json:"gp_name"`
	Model      string         `json:"model"` // name and version
	Basis      string         `json:"basis"` // grid, qualifying or form
	FrozenAt   Instant        `json:"frozen_at"`
	Drivers    []DriverChance `json:"drivers"` // the likeliest winner first
	// NotStarting has the codes of those of Drivers who have withdrawn since, or did not start.
	NotStarting []string `json:"not_starting,omitzero"`
}

// DriverChance holds a starter's chances. Positions and the fields after it are absent from picks that were frozen
// without them. Positions and DNFPct add up to 100 exactly.
type DriverChance struct {
	Driver         string       `json:"driver"` // three-letter code
	DriverID       string       `json:"driver_id"`
	WinPct         Percent      `json:"win_pct"`
	PodiumPct      Percent      `json:"podium_pct"`
	Positions      []Hundredths `json:"positions,omitzero"` // of each place, the first one first
	PointsPct      *Hundredths  `json:"points_pct,omitzero"`
	DNFPct         *Hundredths  `json:"dnf_pct,omitzero"`
	ExpectedPoints *Hundredths  `json:"expected_points,omitzero"`
}

// ForecastRecord is one record of /forecast: the provisional chances of a coming race, from the facts known now.
type ForecastRecord struct {
	SessionKey  int64            `json:"session_key"`
	GPName      string           `json:"gp_name"`
	Date        string           `json:"date"`                  // UTC date of the start
	DateStart   Instant          `json:"date_start,omitzero"`   // absent while the hour is unknown
	Model       string           `json:"model"`                 // name and version
	Basis       string           `json:"basis"`                 // grid, qualifying, sprint, practice or form
	EntriesFrom int64            `json:"entries_from,omitzero"` // session key of the race whose starters stand in for unknown entries
	LearnsNext  *ForecastStep    `json:"learns_next,omitzero"`  // absent if no session is to come
	Podium      Podium           `json:"podium"`                // expected
	Drivers     []ForecastChance `json:"drivers"`               // the likeliest winner first
}

// ForecastStep is the next session from which a forecast learns.
type ForecastStep struct {
	Session   string  `json:"session"`
	DateStart Instant `json:"date_start,omitzero"` // absent while the hour is unknown
	KnownAt   Instant `json:"known_at"`            // its end, assumed while the hour is unknown
}

// ForecastChance holds an expected starter's chances.
type ForecastChance struct {
	Driver    string  `json:"driver"` // three-letter code
	DriverID  string  `json:"driver_id"`
	WinPct    Percent `json:"win_pct"`
	PodiumPct Percent `json:"podium_pct"`
}

// ForecastHistory is one record of /forecast-history: the forecasts of a race that the service noted through its week.
type ForecastHistory struct {
	SessionKey int64           `json:"session_key"`
	GPName     string          `json:"gp_name"`
	Forecasts  []NotedForecast `json:"forecasts"` // the earliest first; at most one for each step
}

// NotedForecast is a forecast as the ledger has it since an instant.
type NotedForecast struct {
	NotedAt Instant          `json:"noted_at"`
	Step    string           `json:"step"`    // form, grid, or the session after which it was made
	Basis   string           `json:"basis"`   // as in ForecastRecord
	Model   string           `json:"model"`   // name and version
	Drivers []ForecastChance `json:"drivers"` // the likeliest winner first
}

// TitleOdds is the body of /title-odds. Low and high are the 10th and 90th percentile of the
// points at the end of the season.
type TitleOdds struct {
	RacesCounted   int               `json:"races_counted"`   // with a verified result, and no gap before them
	RacesRemaining int               `json:"races_remaining"` // 0: the titles are won
	Simulations    int               `json:"simulations"`     // seasons simulated; 0 if none remains
	Drivers        []DriverOdds      `json:"drivers"`         // contenders, the likeliest first
	Constructors   []ConstructorOdds `json:"constructors"`
	AfterRounds    []RoundOdds       `json:"after_rounds,omitzero"` // of the latest season with a result, and of later ones
}

// RoundOdds are the odds after a round.
type RoundOdds struct {
	SessionKey   int64              `json:"session_key"`
	GPName       string             `json:"gp_name"`
	Drivers      []DriverTitle      `json:"drivers"` // contenders, the likeliest first
	Constructors []ConstructorTitle `json:"constructors"`
}

// DriverTitle is a driver's chance of the title.
type DriverTitle struct {
	Driver   string  `json:"driver"` // three-letter code
	DriverID string  `json:"driver_id"`
	TitlePct Percent `json:"title_pct"`
}

// ConstructorTitle is a constructor's chance of the title.
type ConstructorTitle struct {
	Team     string  `json:"team"`
	TeamID   string  `json:"team_id"`
	TitlePct Percent `json:"title_pct"`
}

// DriverOdds are the odds of a driver. A driver without an arithmetical chance has none.
type DriverOdds struct {
	Driver     string  `json:"driver"` // three-letter code
	DriverID   string  `json:"driver_id"`
	Name       string  `json:"name"`
	Points     float64 `json:"points"`
	TitlePct   Percent `json:"title_pct"`
	PointsLow  float64 `json:"points_low"`
	PointsHigh float64 `json:"points_high"`
	PointsMost float64 `json:"points_most,omitzero"` // with every point that remains
}

// ConstructorOdds is a constructor that can still win the title.
type ConstructorOdds struct {
	Team       string  `json:"team"`
	TeamID     string  `json:"team_id"`
	Points     float64 `json:"points"`
	TitlePct   Percent `json:"title_pct"`
	PointsLow  float64 `json:"points_low"`
	PointsHigh float64 `json:"points_high"`
	PointsMost float64 `json:"points_most,omitzero"`
}

// TrackRecord is the body of /track-record.
type TrackRecord struct {
	Real      Record `json:"real"`      // picks of the ledger, frozen before the start
	Hindsight Record `json:"hindsight"` // forecasts of today's model, from the facts known then
}

// Record scores forecasts of races with a verified result. Log-loss and Brier need every driver's
// chances, so they cover only the races that have them.
type Record struct {
	Races            int              `json:"races"`
	RacesWithChances int              `json:"races_with_chances"`
	Picks            *Scores          `json:"picks,omitzero"` // absent without races
	Pole             *Scores          `json:"pole,omitzero"`  // the pole sitter wins, on the same races
	F0               *Scores          `json:"f0,omitzero"`    // a model of the outcome of qualifying alone
	Seasons          []SeasonRecord   `json:"seasons,omitzero"`
	Reliability      []ReliabilityBin `json:"reliability,omitzero"`

	// Of the real record alone: the picks as frozen, and the forecasts noted through the race week, each by the
	// facts behind them.
	AsFrozen  []BasisRecord `json:"as_frozen,omitzero"`
	Forecasts []BasisRecord `json:"forecasts,omitzero"`
	Live      []LiveRecord  `json:"live,omitzero"` // the picks during the races, by checkpoint
}

// LiveRecord is the part of a record about live picks at a checkpoint, beside simpler picks of the same races.
type LiveRecord struct {
	Percent     int              `json:"checkpoint_pct"`   // 0 is the end of the first lap
	ByHand      bool             `json:"by_hand,omitzero"` // made from orders that a person entered
	Races       int              `json:"races"`
	Picks       *Scores          `json:"picks"`
	Leader      *Scores          `json:"leader"` // the first three at that moment
	Before      *Scores          `json:"before"` // the picks before the race
	Reliability []ReliabilityBin `json:"reliability"`
}

// BasisRecord is the part of a record about forecasts from the same kind of facts.
type BasisRecord struct {
	Basis string  `json:"basis"` // grid, qualifying, sprint, practice or form
	Races int     `json:"races"`
	Picks *Scores `json:"picks"`
}

// SeasonRecord is the part of a record about one season.
type SeasonRecord struct {
	Year  int     `json:"year"`
	Races int     `json:"races"`
	Picks *Scores `json:"picks"`
	Pole  *Scores `json:"pole,omitzero"`
	F0    *Scores `json:"f0,omitzero"`
}

// Scores are means over races, each with its 95 % bootstrap interval.
type Scores struct {
	WinnerHitPct PercentInterval `json:"winner_hit_pct"`
	PodiumPct    PercentInterval `json:"podium_pct"`
	LogLoss      *NumberInterval `json:"log_loss,omitzero"` // nats per race
	Brier        *NumberInterval `json:"brier,omitzero"`    // 0 to 2
}

// PercentInterval is a percentage and its interval.
type PercentInterval struct {
	Value Percent `json:"value"`
	Low   Percent `json:"low"`
	High  Percent `json:"high"`
}

// NumberInterval is a number and its interval.
type NumberInterval struct {
	Value Thousandths `json:"value"`
	Low   Thousandths `json:"low"`
	High  Thousandths `json:"high"`
}

// ReliabilityBin compares forecast and outcome of picked winners, for races of similar confidence.
// Low and high are the 95 % interval of WonPct.
type ReliabilityBin struct {
	Races   int     `json:"races"`
	SaidPct Percent `json:"said_pct"`
	WonPct  Percent `json:"won_pct"`
	LowPct  Percent `json:"low_pct"`
	HighPct Percent `json:"high_pct"`
}
