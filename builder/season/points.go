package season

// scale is the points for the first places from a season on.
type scale struct {
	from   int
	points []float64
}

var (
	raceScales = []scale{ // the latest first
		{2010, []float64{25, 18, 15, 12, 10, 8, 6, 4, 2, 1}},
		{2003, []float64{10, 8, 6, 5, 4, 3, 2, 1}},
		{1991, []float64{10, 6, 4, 3, 2, 1}},
		{1961, []float64{9, 6, 4, 3, 2, 1}},
		{1960, []float64{8, 6, 4, 3, 2, 1}},
		{0, []float64{8, 6, 4, 3, 2}},
	}
	sprintScales = []scale{
		{2022, []float64{8, 7, 6, 5, 4, 3, 2, 1}},
		{2021, []float64{3, 2, 1}},
	}
)

// Scale returns the points for the first places of a race or a sprint of a season, over the full distance and
// without the point for the fastest lap. It is nil for a sprint of a season that had none. Callers must not
// change it.
func Scale(year int, sprint bool) []float64 {
	of := raceScales
	if sprint {
		of = sprintScales
	}
	for _, scale := range of {
		if year >= scale.from {
			return scale.points
		}
	}
	return nil
}
