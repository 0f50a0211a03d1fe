package portable_test

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"math"
	"math/rand/v2"
	"testing"

	"gridcast/builder/predict/portable"
	"gridcast/deploy/must"
)

// TestSameBitsEverywhere holds the bits of many results to a digest that was made on amd64. make arm64 runs the test
// there.
func TestSameBitsEverywhere(t *testing.T) {
	const want = "8dbcebebc1501cdf27037d79ab928daceb72a616da00479fe1aa723c7f1190d7"
	r, h := rand.New(rand.NewPCG(1, 2)), sha256.New()
	for range 100_000 {
		x := float64(r.IntN(1<<40)-1<<39) / (1 << 34)
		for _, y := range []float64{portable.Exp(x), portable.Exp2(x), portable.Log(math.Abs(x)), portable.Pow(math.Abs(x), 1.7)} {
			_ = binary.Write(h, binary.LittleEndian, math.Float64bits(y))
		}
	}
	got := hex.EncodeToString(h.Sum(nil))
	must.Hold(t, got == want, "got other bits than on amd64: the digest is %s, want %s", got, want)
}

func TestNearlyMath(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	near := func(name string, x, got, want float64) {
		t.Helper()
		if math.Abs(got-want) > 4e-16*math.Abs(want) {
			t.Errorf("%s(%v): got %v, want %v", name, x, got, want)
		}
	}
	for range 100_000 {
		x := r.NormFloat64() * 10
		near("Exp", x, portable.Exp(x), math.Exp(x))
		near("Exp2", x, portable.Exp2(x), math.Exp2(x))
		near("Log", math.Abs(x), portable.Log(math.Abs(x)), math.Log(math.Abs(x)))
	}
	for _, x := range []float64{0, 1, -1, math.Inf(1), math.Inf(-1), 710, -750, math.Copysign(0, -1)} {
		near("Exp", x, portable.Exp(x), math.Exp(x))
		if got, want := portable.Log(x), math.Log(x); got != want && !(math.IsNaN(got) && math.IsNaN(want)) {
			t.Errorf("Log(%v): got %v, want %v", x, got, want)
		}
	}
	must.Hold(t, math.IsNaN(portable.Exp(math.NaN())) && math.IsNaN(portable.Log(math.NaN())), "of no number there is a number")
}

// TestDraws checks the moments of the draws, and their bits.
func TestDraws(t *testing.T) {
	const want = "38ffb4f7232110d9ba811c240fb7f5488b82e6e2a6a30e80ca16a18da026978a"
	r, h := rand.NewPCG(5, 6), sha256.New()
	normals := make([]float64, 100_001)
	portable.Normals(r, 2, normals)
	var sum, squares, waits float64
	for _, x := range normals {
		wait := portable.Exponential(portable.Uniform(r))
		sum, squares, waits = sum+x, squares+float64(x*x), waits+wait
		_ = binary.Write(h, binary.LittleEndian, []float64{x, wait})
	}
	n := float64(len(normals))
	if mean, variance := sum/n, squares/n; math.Abs(mean) > .02 || math.Abs(variance-4) > .05 || math.Abs(waits/n-1) > .01 {
		t.Errorf("got the mean %v, the variance %v and the waiting time %v; want 0, 4 and 1", mean, variance, waits/n)
	}
	got := hex.EncodeToString(h.Sum(nil))
	must.Hold(t, got == want, "got other bits than on amd64: the digest is %s, want %s", got, want)
}
