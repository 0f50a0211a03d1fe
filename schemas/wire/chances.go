package wire

// ProbabilitiesBody are every starter's chances when the picks were frozen.
//
// Rounds with a pick that was frozen with all chances, in calendar order; empty if there is none.
type ProbabilitiesBody = Success[[]ProbabilityRecord]

// ProbabilityRecord are every starter's chances for one round, as they were frozen; they never change.
type ProbabilityRecord struct {
	SessionKey SessionKey `json:"session_key"`
	GPName     GPName     `json:"gp_name"`
	// Name and version of the model.
	Model string `json:"model"`
	// The knowledge of the starting order: the grid; qualifying alone; or neither, so that form decided.
	Basis string `json:"basis" enum:"grid,qualifying,form"`
	// When the pick was frozen.
	FrozenAt Instant `json:"frozen_at"`
	// The starters, the likeliest winner first. The chances of a win add up to 100, those of a podium to 300, but
	// for the rounding to one decimal.
	Drivers []DriverChance `json:"drivers" minItems:"3"`
	// Those of drivers who have withdrawn since the pick was frozen, or did not start. Their frozen chances stay,
	// and a pick of one of them is a miss. /live and /forecast show the chances of the drivers who start.
	NotStarting []DriverCode `json:"not_starting,omitzero"`
}

// DriverChance are a starter's chances.
type DriverChance struct {
	Driver   DriverCode `json:"driver"`
	DriverID DriverID   `json:"driver_id"`
	// The probability that this driver wins.
	WinPct Percent `json:"win_pct"`
	// The probability that this driver is among the first three.
	PodiumPct Percent `json:"podium_pct"`
	// The probability of each place, the first one first, as many as starters. With dnf_pct they add up to 100
	// exactly; over all starters, those of a place add up to the probability that so many cars finish. Absent,
	// like the fields after it, from picks that were frozen without whole orders.
	Positions []Hundredths `json:"positions,omitzero" minItems:"3"`
	// The probability of a place with points, in the season's scale for a race: the sum of those positions.
	PointsPct *Hundredths `json:"points_pct,omitzero"`
	// The probability that this driver is not classified.
	DNFPct *Hundredths `json:"dnf_pct,omitzero"`
	// The mean points for the place in the race, with two decimals; without sprint and fastest lap.
	ExpectedPoints *Hundredths `json:"expected_points,omitzero" type:"number"`
}

// ForecastBody are the provisional chances of the races to come.
//
// The next race and each race to come, in order of their start; empty if none is known.
type ForecastBody = Success[[]ForecastRecord]

// ForecastRecord are the chances of one race from the facts known now. A forecast is provisional and improves
// through the week. It never counts as a pick: /predictions has the pick, once it is frozen.
type ForecastRecord struct {
	SessionKey SessionKey `json:"session_key"`
	GPName     GPName     `json:"gp_name"`
	// UTC date of the start.
	Date Day `json:"date"`
	// Start of the race; absent while the hour is unknown.
	DateStart Instant `json:"date_start,omitzero"`
	// Name and version of the model.
	Model string `json:"model"`
	// The latest facts of the weekend behind the forecast: the grid, qualifying, the sprint or its qualifying,
	// practice, or none, so that form decided. Form is weak in the first rounds of new rules. Before qualifying the
	// chances of a podium are less sure, and less again for a race after the next.
	Basis Basis `json:"basis"`
	// The race whose starters stand in for the entries of this one; absent once its entries are known.
	EntriesFrom SessionKey `json:"entries_from,omitzero"`
	// The next session from which the forecast learns; absent if no session before the race is to come.
	LearnsNext *ForecastStep `json:"learns_next,omitzero"`
	// The expected podium: the drivers that a pick would have now.
	Podium PickedPodium `json:"podium"`
	// The expected starters, the likeliest winner first. The chances of a win add up to 100, those of a podium to
	// 300, but for the rounding to one decimal.
	Drivers []ForecastChance `json:"drivers" minItems:"3"`
}

// ForecastStep is a session of the weekend that is still to come.
type ForecastStep struct {
	// The session.
	Session string `json:"session" enum:"practice_1,practice_2,practice_3,practice_4,sprint_qualifying,sprint,qualifying"`
	// Its start; absent while the hour is unknown.
	DateStart Instant `json:"date_start,omitzero"`
	// Its end, assumed while the hour is unknown. The forecast learns from it when a source has the outcome, which
	// may be later.
	KnownAt Instant `json:"known_at"`
}

// ForecastChance are an expected starter's chances.
type ForecastChance struct {
	Driver   DriverCode `json:"driver"`
	DriverID DriverID   `json:"driver_id"`
	// The probability that this driver wins.
	WinPct Percent `json:"win_pct"`
	// The probability that this driver is among the first three.
	PodiumPct Percent `json:"podium_pct"`
}

// ForecastHistoryBody are the forecasts of a race that were noted through its week.
//
// The record of the race: of the session key, or without one of the latest race with a noted forecast. Empty if there
// is none.
type ForecastHistoryBody = Success[[]ForecastHistory]

// ForecastHistory is how the forecast of one race moved through its week. The ledger notes each, so that none of them
// changes later. /predictions has the pick.
type ForecastHistory struct {
	SessionKey SessionKey `json:"session_key"`
	GPName     GPName     `json:"gp_name"`
	// The noted forecasts, the earliest first: at most one for each step, and so at most nine.
	Forecasts []NotedForecast `json:"forecasts" minItems:"1" maxItems:"9"`
}

// NotedForecast is a forecast as it was noted.
type NotedForecast struct {
	// The instant from which the ledger has this forecast.
	NotedAt Instant `json:"noted_at"`
	// The step of the week after which it was made: form as the week begins, a session, or the grid.
	Step string `json:"step" enum:"form,practice_1,practice_2,practice_3,practice_4,sprint_qualifying,sprint,qualifying,grid"`
	// The latest facts of the weekend behind it, in the words of /forecast.
	Basis Basis `json:"basis"`
	// Name and version of the model.
	Model string `json:"model"`
	// The starters as expected then, the likeliest winner first.
	Drivers []ForecastChance `json:"drivers" minItems:"3"`
}

// TitleOddsBody are the chances of both championships.
type TitleOddsBody = Success[TitleOdds]

// TitleOdds are the chances of both titles of one season, from simulations of its remaining races that start from
// the verified standings. They follow a verified result within a minute.
type TitleOdds struct {
	// Races with a verified result that the odds start from.
	RacesCounted int `json:"races_counted"`
	// Races simulated; 0: the titles are won.
	RacesRemaining int `json:"races_remaining"`
	// How many times the rest of the season was simulated; 0 if nothing remains.
	Simulations int `json:"simulations"`
	// Every driver who can still be champion by arithmetic, by points and then by places, the likeliest first. A
	// driver may be listed with a chance of 0.0.
	Drivers []DriverOdds `json:"drivers"`
	// Every constructor that can still be champion by arithmetic, the likeliest first.
	Constructors []ConstructorOdds `json:"constructors"`
	// Of the latest season with a result, and of later ones: the odds after each counted round, from 2,000
	// simulations by today's model and results. Each knows nothing of the rounds behind it, so the last may differ
	// from the present odds by two points.
	AfterRounds []RoundOdds `json:"after_rounds,omitzero" minItems:"0"`
}

// RoundOdds are the odds after a round.
type RoundOdds struct {
	SessionKey SessionKey `json:"session_key"`
	GPName     GPName     `json:"gp_name"`
	// The drivers who could still be champion, the likeliest first.
	Drivers []DriverTitle `json:"drivers"`
	// The constructors that could still be champion, the likeliest first.
	Constructors []ConstructorTitle `json:"constructors"`
}

// DriverTitle is a driver's chance of the title.
type DriverTitle struct {
	Driver   DriverCode `json:"driver"`
	DriverID DriverID   `json:"driver_id"`
	// Share of the simulations that this driver wins.
	TitlePct Percent `json:"title_pct"`
}

// ConstructorTitle is a constructor's chance of the title.
type ConstructorTitle struct {
	// Name of the team.
	Team   string `json:"team"`
	TeamID TeamID `json:"team_id"`
	// Share of the simulations that this constructor wins.
	TitlePct Percent `json:"title_pct"`
}

// DriverOdds is a driver who can still be champion by arithmetic.
type DriverOdds struct {
	Driver   DriverCode `json:"driver"`
	DriverID DriverID   `json:"driver_id"`
	// Full name.
	Name string `json:"name"`
	// Points so far.
	Points float64 `json:"points"`
	// Share of the simulations that this driver wins.
	TitlePct Percent `json:"title_pct"`
	// Points at the end of the season: a tenth of the simulations end below.
	PointsLow float64 `json:"points_low"`
	// A tenth of the simulations end above.
	PointsHigh float64 `json:"points_high"`
	// Points at the end of the season with every point that remains. With them the title is possible, or the row
	// would not be listed.
	PointsMost float64 `json:"points_most,omitzero"`
}

// ConstructorOdds is a constructor that can still win the title.
type ConstructorOdds struct {
	// Name of the team.
	Team   string `json:"team"`
	TeamID TeamID `json:"team_id"`
	// Points so far.
	Points float64 `json:"points"`
	// Share of the simulations that this constructor wins.
	TitlePct Percent `json:"title_pct"`
	// Points at the end of the season: a tenth of the simulations end below.
	PointsLow float64 `json:"points_low"`
	// A tenth of the simulations end above.
	PointsHigh float64 `json:"points_high"`
	// Points at the end of the season with every point that remains. With them the title is possible, or the row
	// would not be listed.
	PointsMost float64 `json:"points_most,omitzero"`
}

// TrackRecordBody is how good the forecasts really were.
type TrackRecordBody = Success[TrackRecord]

// TrackRecord are two records that must not be confused.
type TrackRecord struct {
	// The picks that the ledger holds, each frozen before its race. Where /status says that the ledger is
	// simulated, as in a demonstration, they were made in the same way, but after the fact.
	Real Record `json:"real"`
	// Forecasts of today's model for past races, from the facts known before each of them. The model was made with
	// most of these races in sight, and none of these forecasts was ever published.
	Hindsight Record `json:"hindsight"`
}

// Record are scores over races with a verified result.
type Record struct {
	// Races scored.
	Races int `json:"races"`
	// Races for which every driver's chances are known; log-loss and Brier are over these.
	RacesWithChances int `json:"races_with_chances"`
	// The picks; absent without races.
	Picks *Scores `json:"picks,omitzero"`
	// On the same races: the pole sitter wins, and the first three of the grid are the podium.
	Pole *Scores `json:"pole,omitzero"`
	// On the same races: a model that knows the outcome of qualifying alone.
	F0 *Scores `json:"f0,omitzero"`
	// The same by season, where all seasons were asked for.
	Seasons []SeasonRecord `json:"seasons,omitzero" minItems:"0"`
	// The picked winners by the chance they were given, in up to ten groups of equally many races.
	Reliability []ReliabilityBin `json:"reliability,omitzero" minItems:"0"`
	// Of the real record alone: the picks as they were frozen, by their basis. Only picks with all chances count.
	AsFrozen []BasisRecord `json:"as_frozen,omitzero" minItems:"0"`
	// Of the real record alone: the forecasts that the ledger noted through the race weeks, by the facts behind
	// them. Of a race, the last forecast from each kind of facts counts.
	Forecasts []BasisRecord `json:"forecasts,omitzero" minItems:"0"`
	// Of the real record alone: the picks frozen during the races, by checkpoint.
	Live []LiveRecord `json:"live,omitzero" minItems:"0"`
}

// LiveRecord is the part of a record about live picks at a checkpoint, beside simpler picks of the same races.
// Picks from orders by hand have rows of their own.
type LiveRecord struct {
	// Percent of the scheduled distance; 0 is the end of the first lap.
	Percent int `json:"checkpoint_pct" maximum:"90"`
	// True for picks from orders that a person entered.
	ByHand bool `json:"by_hand,omitzero"`
	// Races scored.
	Races int `json:"races" minimum:"1"`
	// The live picks.
	Picks *Scores `json:"picks"`
	// The leader wins: the first three at that moment. It has hits alone.
	Leader *Scores `json:"leader"`
	// The picks frozen before the races.
	Before *Scores `json:"before"`
	// The picked winners by the chance they were given, in up to ten groups of equally many races.
	Reliability []ReliabilityBin `json:"reliability"`
}

// BasisRecord is the part of a record about forecasts from the same kind of facts.
type BasisRecord struct {
	// The latest facts of the weekend behind the forecasts.
	Basis Basis `json:"basis"`
	// Races scored.
	Races int `json:"races" minimum:"1"`
	// Their scores.
	Picks *Scores `json:"picks"`
}

// SeasonRecord is the part of a record about one season.
type SeasonRecord struct {
	// The season.
	Year int `json:"year" minimum:"1950" maximum:"9999"`
	// Races scored.
	Races int     `json:"races" minimum:"1"`
	Picks *Scores `json:"picks"`
	Pole  *Scores `json:"pole,omitzero"`
	// On the same races: a model that knows the outcome of qualifying alone.
	F0 *Scores `json:"f0,omitzero"`
}

// Scores are means over the races.
type Scores struct {
	// Races whose picked winner won.
	WinnerHitPct PercentInterval `json:"winner_hit_pct"`
	// Picked drivers that finished on the podium, in any order, of three per race.
	PodiumPct PercentInterval `json:"podium_pct"`
	// Minus the logarithm of the chance given to the winner, in nats; less is better. Over the races with chances;
	// absent where there are none.
	LogLoss *NumberInterval `json:"log_loss,omitzero"`
	// Sum of the squared errors of all drivers' chances to win, 0 to 2; less is better. Absent where there are
	// none.
	Brier *NumberInterval `json:"brier,omitzero"`
}

// PercentInterval is a percentage with its 95 % bootstrap interval over races.
type PercentInterval struct {
	// The percentage.
	Value Percent `json:"value"`
	// Lower end.
	Low Percent `json:"low"`
	// Upper end.
	High Percent `json:"high"`
}

// NumberInterval is a number with its 95 % bootstrap interval over races, all with three decimals.
type NumberInterval struct {
	// The number.
	Value Thousandths `json:"value"`
	// Lower end.
	Low Thousandths `json:"low"`
	// Upper end.
	High Thousandths `json:"high"`
}

// ReliabilityBin are races whose picked winners were given similar chances.
type ReliabilityBin struct {
	// Races in the group.
	Races int `json:"races" minimum:"1"`
	// Mean chance given to the picked winners.
	SaidPct Percent `json:"said_pct"`
	// Share of them that won.
	WonPct Percent `json:"won_pct"`
	// Lower end of the 95 % interval of won_pct.
	LowPct Percent `json:"low_pct"`
	// Upper end.
	HighPct Percent `json:"high_pct"`
}
