package predict

// Feature is one of the numbers by which the starters of a race are compared. More is better.
// Only differences within a race matter, so a feature that is missing for all is set to 0.
type Feature int

// The features. Gaps are in percent of a lap.
const (
	GridSlot            Feature = iota // -ln of the grid slot; the pit lane counts as the last one
	OnPole                             // 1 for the first slot: what -ln overstates
	QualifyingGap                      // -sqrt of the gap to the best of the last segment he set a time in
	RacePace                           // -(expected race gap to the best starter), from the pace filter
	QualifyingPace                     // the same for qualifying
	DriverRating                       // driver's part of the online rating of finishing orders
	TeamRating                         // team's part
	TeamMateForm                       // recent -ln(finish) above the team-mate's
	FinishForm                         // recent -ln(finish)
	PracticeGap                        // -(smallest gap to the best of a practice session)
	TeamPoints                         // sqrt of the team's points, in wins per race, with last season's as prior
	Leads                              // 1 for the championship leader
	Crashes                            // -(recent rate of retirements that are not the car's fault)
	SmallestGap                        // -(smallest gap of a qualifying segment)
	PriorRacePace                      // RacePace before qualifying: practice and form alone
	PriorQualifyingPace                // QualifyingPace before qualifying
	features
)

var featureNames = [features]string{
	"grid slot", "pole", "qualifying gap", "race pace", "qualifying pace", "driver rating", "team rating", "team-mate form",
	"finish form", "practice gap", "team points", "leads", "crashes", "smallest qualifying gap",
	"race pace before qualifying", "qualifying pace before qualifying",
}

// String returns the name of the feature.
func (f Feature) String() string { return featureNames[f] }

// The sets of features that are fitted.
var (
	// essential is the small set.
	essential = []Feature{GridSlot, QualifyingGap, OnPole, RacePace, QualifyingPace, DriverRating, TeamRating, TeamMateForm}
	// general is the large set: more of the record, less sure weights.
	general = []Feature{
		GridSlot, QualifyingGap, OnPole, FinishForm, PracticeGap, TeamMateForm, TeamPoints, Leads, TeamRating,
		Crashes, SmallestGap, RacePace, QualifyingPace, DriverRating,
	}
	// formOnly is what is known before qualifying.
	formOnly = []Feature{PriorRacePace, PriorQualifyingPace, DriverRating, TeamRating, TeamMateForm}
)

// row holds the features of one starter.
type row [features]float64
