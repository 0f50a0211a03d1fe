package predict

// Params are the constants of R2. Gaps are in percent of a lap or race time, lower is faster;
// standard deviations are in the same unit. They were chosen on the seasons up to 2024 and are
// flat: moving any constant of Pace by a third changes the log-loss by less than 0.005.
type Params struct {
	// FirstSeason is where the history begins, if the predicted season is at least Warmup
	// seasons later; else it begins with the archive. Beginning in 1950 or in 1992 changes the
	// log-loss of 2010 to 2024 by 0.0002.
	FirstSeason, Warmup int

	Pace   PaceParams
	Rating RatingParams
	Form   FormParams
	Fit    FitParams
}

// PaceParams are the constants of the Kalman filter that follows the pace of every car and
// driver, each in qualifying (q) and in the race (r).
type PaceParams struct {
	Correlation float64 // between the q and r part of every change

	CarStart, DriverStart         float64 // sd of a car or driver never seen
	NewCarPenalty                 float64 // a new car is this much slower than the mean of those held
	FirstCar                      float64 // where the first cars of all start
	NewDriver                     float64 // where a new driver starts
	CarWinter, CarRulesWinter     float64 // sd added to a car before a season, under old and under new rules
	DriverWinter                  float64 // the same for a driver
	CarKeeps, DriverKeeps         float64 // share of the distance to the mean that survives the winter
	CarWeek, DriverWeek           float64 // sd of the change from race to race
	CarWeekend, DriverWeekend     float64 // sd of what is true of one weekend only
	WeekendInRace                 float64 // share of the weekend's effect that reaches the race
	ForgetAfter                   int     // seasons after which somebody not seen is dropped
	Practice, Qualifying, Sprint  float64 // sd of one session's observation
	SprintQualifying              float64
	Race, FastestLap              float64
	Outlier                       float64 // residual, in sd, from which an observation counts less
	CapQualifying, CapRace        float64 // largest gap that is believed
	GridAdvantage                 float64 // race gap per ln(grid slot) that is owed to the slot
	Spread                        float64 // power to which race gaps are scaled to a common spread
	RuleYears                     []int   // seasons with new rules for the cars
	SessionOffset                 float64 // variance of a session's common offset: large, as it means nothing
	MinTimes, MinLaps, MinUpdated int     // fewest practice or sprint times, fastest laps, and starters of a session that is used
}

// RatingParams are the constants of the online Plackett-Luce rating from finishing orders.
type RatingParams struct {
	DriverStep, TeamStep   float64 // step along the gradient after each race
	Places                 int     // places that count
	DriverKeeps, TeamKeeps float64 // share kept over the winter
}

// FormParams are the constants of the exponentially weighted means of a driver's races.
// A prior is a value and its weight in races.
type FormParams struct {
	HalfLife    float64 // in races
	WinterKeeps float64 // share of the weight that survives the winter

	FinishPrior, FinishPriorRaces     float64 // -ln(finishing position)
	TeamMatePrior, TeamMatePriorRaces float64 // difference of it to the team-mate
	TeamMateClip                      float64
	CrashPrior, CrashPriorRaces       float64 // retirements that are not the car's fault

	ChampionshipPriorRaces float64 // weight of last season's share of a team's points
	CapQualifying          float64 // largest gap to the best qualifying time, %
	CapPractice            float64 // largest gap to the best practice time, %
}

// FitParams are the constants of the Plackett-Luce fits.
type FitParams struct {
	StageWeights []float64 // of the first places
	Penalty      float64   // half of it times the squared standardised coefficients is added to the loss
	Windows      []Window
	MinRaces     int // fewer races to learn from: the grid-slot table predicts
}

// Window is how many seasons a fit learns from and after how many a race counts half.
type Window struct {
	Seasons  int
	HalfLife float64
}

// DefaultParams are those of the published model.
func DefaultParams() Params {
	return Params{
		FirstSeason: 1985, Warmup: 8,
		Pace: PaceParams{
			Correlation: .85,
			CarStart:    .9, DriverStart: .35, NewCarPenalty: .6, FirstCar: 1.5, NewDriver: .1,
			CarWinter: .40, CarRulesWinter: .80, DriverWinter: .08,
			CarKeeps: .60, DriverKeeps: .95, ForgetAfter: 2,
			CarWeek: .10, DriverWeek: .02,
			CarWeekend: .22, DriverWeekend: .15, WeekendInRace: .80,
			Practice: .60, Qualifying: .35, SprintQualifying: 1.3 * .35, Sprint: .55,
			Race: .55, FastestLap: .80,
			Outlier: 1.5, CapQualifying: 4, CapRace: 3, GridAdvantage: .10, Spread: .5,
			RuleYears:     []int{1998, 2005, 2006, 2009, 2011, 2014, 2017, 2022, 2026},
			SessionOffset: 100, MinTimes: 8, MinLaps: 6, MinUpdated: 4,
		},
		Rating: RatingParams{DriverStep: .05, TeamStep: .10, Places: 6, DriverKeeps: .95, TeamKeeps: .60},
		Form: FormParams{
			HalfLife: 10, WinterKeeps: .7,
			FinishPrior: -2.3, FinishPriorRaces: 1.5,
			TeamMatePrior: -.1, TeamMatePriorRaces: 4, TeamMateClip: 1.5,
			CrashPrior: .08, CrashPriorRaces: 6,
			ChampionshipPriorRaces: 3, CapQualifying: 6, CapPractice: 5,
		},
		Fit: FitParams{
			StageWeights: []float64{1, .6, .4}, Penalty: 10,
			Windows:  []Window{{18, 6}, {10, 3}},
			MinRaces: 10,
		},
	}
}
