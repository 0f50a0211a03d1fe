package predict_test

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"gridcast/builder/predict"
	"gridcast/builder/season"
	"gridcast/deploy/must"
)

// TestChancesAreMillionthsThatAddUp checks forecasts of all models, of weekends with all kinds of
// missing facts.
func TestChancesAreMillionthsThatAddUp(t *testing.T) {
	must.Long(t, "learns from all seasons")
	a := embedded(t)
	for _, name := range predict.Names {
		m := must.Get(predict.ByName(name))(t)
		rng := rand.New(rand.NewPCG(1, 2))
		for _, year := range []int{2009, 2017, 2023} {
			s, _ := a.AsOf(time.Date(year+1, 1, 1, 0, 0, 0, 0, time.UTC)).Season(year)
			drawn := make([]int, 8)
			for i := range drawn {
				drawn[i] = rng.IntN(len(s.Rounds))
			}
			slices.Sort(drawn) // a model that goes back in a season learns it again
			for _, i := range drawn {
				gp := s.Rounds[i].GrandPrix
				v := changed(atGrid(t, a, year, gp), year, gp, func(r *season.Round) { maim(rng, r) })
				f := forecast(t, m, v, year, gp)
				win, podium := 0, 0
				for _, c := range f.Candidates {
					w, p := wholeMillionths(t, c.Win), wholeMillionths(t, c.Podium)
					win, podium = win+w, podium+p
					if p < w || p > 1e6 {
						t.Errorf("%s %d %s: %+v", name, year, gp, c)
					}
					if c.Places == nil {
						continue
					}
					total, front := wholeMillionths(t, c.Out), 0
					for place, chance := range c.Places {
						total += wholeMillionths(t, chance)
						if place < 3 {
							front += wholeMillionths(t, chance)
						}
					}
					if len(c.Places) != len(f.Candidates) || total != 1e6 || c.Places[0] != c.Win || front < p-3 || front > p+3 {
						t.Errorf("%s %d %s: the places add up to %d millionths, the first three to %d: %+v", name, year, gp, total, front, c)
					}
				}
				if win != 1e6 || podium != min(3, len(f.Candidates))*1e6 {
					t.Errorf("%s %d %s: %d candidates have %d millionths of a win and %d of a podium", name, year, gp, len(f.Candidates), win, podium)
				}
				if n := min(3, len(f.Candidates)); slices.Contains(f.Podium[:n], "") || n == 3 && (f.Podium[0] == f.Podium[1] || f.Podium[0] == f.Podium[2] || f.Podium[1] == f.Podium[2]) {
					t.Errorf("%s %d %s: picked %v", name, year, gp, f.Podium)
				}
				if f.Podium[0] != f.Candidates[0].Driver {
					t.Errorf("%s %d %s: picked %v, not the likeliest", name, year, gp, f.Winner())
				}
				least := 1.0 // of the podium chances of the picked second and third
				for _, c := range f.Candidates[1:] {
					if slices.Contains(f.Podium[1:], c.Driver) {
						least = min(least, c.Podium)
					}
				}
				for _, c := range f.Candidates[1:] {
					if !slices.Contains(f.Podium[1:], c.Driver) && c.Podium > least {
						t.Errorf("%s %d %s: picked %v, and %v has a larger chance of a podium", name, year, gp, f.Podium, c)
					}
				}
			}
		}
	}
}

// wholeMillionths returns the chance in millionths and fails if it is between two of them.
func wholeMillionths(t *testing.T, chance float64) int {
	t.Helper()
	n := math.Round(chance * 1e6)
	must.Hold(t, n/1e6 == chance, "the chance %v is no whole number of millionths", chance)
	return int(n)
}

// maim removes sessions, rows and times from a weekend, and lists a driver twice.
func maim(rng *rand.Rand, r *season.Round) {
	if rng.IntN(2) == 0 {
		r.Grid = nil
	}
	if rng.IntN(3) == 0 {
		r.Qualifying = nil
	}
	if rng.IntN(3) == 0 {
		r.Practice = [4][]season.TimedLap{}
	}
	if n := len(r.Qualifying); n > 0 {
		r.Qualifying = slices.Delete(r.Qualifying, 0, rng.IntN(n))
		r.Qualifying = append(r.Qualifying, r.Qualifying[0])
		r.Qualifying[0].Segments, r.Qualifying[0].Time = [3]time.Duration{}, 0
	}
	if n := len(r.Grid); n > 0 {
		r.Grid = slices.Delete(r.Grid, 0, rng.IntN(n))
		r.Grid = append(r.Grid, r.Grid[0])
	}
}

// TestBasisIsSaid: the basis of a forecast follows the sessions of the weekend.
func TestBasisIsSaid(t *testing.T) {
	must.Long(t, "learns many times")
	a := embedded(t)
	for _, tc := range []struct {
		change func(*season.Round)
		want   predict.Order
	}{
		{func(*season.Round) {}, predict.FromGrid},
		{noGrid, predict.FromQualifying},
		{func(r *season.Round) { noGrid(r); noQualifying(r) }, predict.FromForm},
	} {
		f := forecast(t, ofEmbedded, changed(atGrid(t, a, 2023, "italy"), 2023, "italy", tc.change), 2023, "italy")
		must.Hold(t, f.Basis.Order == tc.want, "got the basis %s, want %s", f.Basis.Order, tc.want)
		checkChances(t, f, 20)
	}
}

// acrossProcessors is the SHA-256 of all chances and picks of two seasons on amd64, from each of the
// three bases. Every processor must give the same:
//
//	GOARCH=arm64 go test -c -o predict.test ./builder/predict
//	qemu-aarch64 predict.test -test.run SameBytes
const acrossProcessors = "ea226bcf3f9343fd4e7259de1e80880005bdb2a3917efd6f1d19a38af6dc168b"

func TestSameBytesOnEveryProcessor(t *testing.T) {
	must.Long(t, "learns from all seasons")
	a := embedded(t)
	m := predict.NewV2(predict.DefaultParams())
	h := sha256.New()
	n := 0
	for _, year := range []int{2014, 2023} {
		s, _ := a.AsOf(time.Date(year+1, 1, 1, 0, 0, 0, 0, time.UTC)).Season(year)
		for i := range s.Rounds {
			gp := s.Rounds[i].GrandPrix
			for _, change := range []func(*season.Round){func(*season.Round) {}, noGrid, func(r *season.Round) { noGrid(r); noQualifying(r) }} {
				f := forecast(t, m, changed(atGrid(t, a, year, gp), year, gp, change), year, gp)
				for _, c := range f.Candidates {
					h.Write([]byte(c.Driver))
					for _, chance := range append([]float64{c.Win, c.Podium, c.Out}, c.Places...) {
						h.Write(binary.BigEndian.AppendUint64(nil, math.Float64bits(chance)))
						n++
					}
				}
				for _, d := range f.Podium {
					h.Write([]byte(d))
				}
			}
		}
	}
	got := hex.EncodeToString(h.Sum(nil))
	must.Hold(t, got == acrossProcessors, "the chances of two seasons (%d numbers) are not those of amd64: got %s", n, got)
}
