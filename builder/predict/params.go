package predict

// Params are the constants of Ranked. Gaps are in percent of a lap or race time; lower is faster.
// Standard deviations have the same unit. The constants were chosen on the seasons up to 2024. The
// log-loss is flat around them: a third more or less of any constant of Pace changes it by less than
// 0.005.
type Params struct {
	// FirstSeason begins the history if the predicted season is at least Warmup seasons later. Otherwise
	// the history begins with the archive. The log-loss of 2010 to 2024 differs by 0.0002 between a
	// history from 1950 and one from 1992.
	FirstSeason, Warmup int

	Pace        PaceParams
	Rating      RatingParams
	Form        FormParams
	Fit         FitParams
	Mixture     MixtureParams // from the grid or from qualifying
	FormMixture MixtureParams // from neither; the third expert is missing
}

// PaceParams are the constants of the Kalman filter that follows the pace of every car and
// driver, each in qualifying (q) and in the race (r).
type PaceParams struct {
	Correlation float64 // between the q and r part of every change

	CarStart, DriverStart         float64 // sd of a new car or driver
	NewCarPenalty                 float64 // added to the mean of the known cars for a new car
	FirstCar                      float64 // pace of the first cars of a history
	NewDriver                     float64 // pace of a new driver
	CarWinter, CarRulesWinter     float64 // sd added to a car before a season, under old and under new rules
	DriverWinter                  float64 // the same for a driver
	CarKeeps, DriverKeeps         float64 // share of the distance to the mean that survives the winter
	CarWeek, DriverWeek           float64 // sd of the change from race to race
	CarWeekend, DriverWeekend     float64 // sd of the effect of one weekend
	WeekendInRace                 float64 // share of the weekend's effect that reaches the race
	ForgetAfter                   int     // seasons of absence after which a car or driver is dropped
	Practice, Qualifying, Sprint  float64 // sd of one session's observation
	SprintQualifying              float64
	Race, FastestLap              float64
	Outlier                       float64 // residual, in sd, from which an observation counts less
	CapQualifying, CapRace        float64 // larger gaps are cut to it
	GridAdvantage                 float64 // race gap per ln(grid slot) due to the slot alone
	Spread                        float64 // power to which race gaps are scaled to a common spread
	RuleYears                     []int   // seasons with new rules for the cars
	SessionOffset                 float64 // variance of a session's common offset: large, as it means nothing
	MinTimes, MinLaps, MinUpdated int     // fewest practice or sprint times, fastest laps, and starters of a usable session
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
	CrashPrior, CrashPriorRaces       float64 // retirements by the driver's fault
	RetiredPrior, RetiredPriorRaces   float64 // starts that were not classified

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

// Window is the number of seasons that a fit learns from, and the age at which a race counts half.
type Window struct {
	Seasons  int
	HalfLife float64
}

// MixtureParams are the constants of V2. The order of the experts is that of Weights.
type MixtureParams struct {
	Usual    Weights // at the start of a season; the weights tend to it
	NewRules Weights // at the start of a season with new rules
	Rate     float64 // power of a winner's chance by which an expert's weight is multiplied
	Keeps    float64 // share that a race leaves of the weights; the rest is Usual
}

// ruleYears are the seasons with new rules for cars. The list was fixed before its effect was measured.
// A season joins it when its rules are announced, never because of its results.
var ruleYears = []int{
	1998, // track 2.0 to 1.8 m, grooved tyres: https://formula1.com/en/latest/article/re-writing-the-f1-rulebook-part-3-narrow-cars-find-their-groove.5YeEtrJfLako8UUG6Smgo4
	2005, // a quarter less downforce, one set of tyres a race, engines for two: https://en.wikipedia.org/wiki/Formula_One_regulations#History
	2006, // V8 of 2.4 l for V10 of 3.0 l: https://en.wikipedia.org/wiki/Formula_One_regulations#History
	2009, // new wings, slick tyres, KERS: https://en.wikipedia.org/wiki/Formula_One_regulations#History
	2011, // adjustable rear wing, no double diffuser, KERS again, new tyres: http://www.formula1.com/news/headlines/2010/12/11603.html
	2014, // turbo hybrid V6 of 1.6 l: http://en.espn.co.uk/f1/motorsport/page/3710.html
	2017, // track 1.8 to 2.0 m, wider tyres: https://formula1.com/en/latest/article/re-writing-the-f1-rulebook-part-3-narrow-cars-find-their-groove.5YeEtrJfLako8UUG6Smgo4
	2022, // ground effect, 18-inch wheels: https://www.independent.co.uk/sport/motor-racing/formula1/f1-rule-changes-2022-season-b2001185.html
	2026, // active aerodynamics, half of the power electric: https://gpfans.com/us/f1-news/1022256/fia-announce-sweeping-f1-2026-rule-changes
}

// DefaultParams returns the constants of the published model.
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
			RuleYears:     ruleYears,
			SessionOffset: 100, MinTimes: 8, MinLaps: 6, MinUpdated: 4,
		},
		Rating: RatingParams{DriverStep: .05, TeamStep: .10, Places: 6, DriverKeeps: .95, TeamKeeps: .60},
		Form: FormParams{
			HalfLife: 10, WinterKeeps: .7,
			FinishPrior: -2.3, FinishPriorRaces: 1.5,
			TeamMatePrior: -.1, TeamMatePriorRaces: 4, TeamMateClip: 1.5,
			CrashPrior: .08, CrashPriorRaces: 6, RetiredPrior: .2, RetiredPriorRaces: 6,
			ChampionshipPriorRaces: 3, CapQualifying: 6, CapPractice: 5,
		},
		Fit: FitParams{
			StageWeights: []float64{1, .6, .4}, Penalty: 10,
			Windows:  []Window{{18, 6}, {10, 3}},
			MinRaces: 10,
		},
		Mixture:     MixtureParams{Usual: Weights{.85, .10, .05}, NewRules: Weights{.10, .80, .10}, Rate: .5, Keeps: .88},
		FormMixture: MixtureParams{Usual: Weights{.85, .15}, NewRules: Weights{.10, .90}, Rate: .5, Keeps: .88},
	}
}
