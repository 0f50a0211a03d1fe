package matrix_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gridcast/builder/predict/matrix"
	"gridcast/deploy/must"
)

// TestKnownValues uses matrices whose factors are whole numbers. Nothing is rounded, so every number must be
// exact.
func TestKnownValues(t *testing.T) {
	a := []float64{
		4, 12, -16,
		0, 37, -43, // below the diagonal is not read
		0, 0, 98,
	}
	l, ok := matrix.Cholesky(a, 3)
	if want := [][]float64{{2, 0, 0}, {6, 1, 0}, {-8, 5, 3}}; !ok || !slices.EqualFunc(want, rowsOf(l), slices.Equal) {
		t.Fatalf("Cholesky: got %v %v, want %v", rowsOf(l), ok, want)
	}
	b := []float64{2, 4, 7, 13, -3, -2} // L times the matrix below
	l.Solve(b, 2)
	want := []float64{1, 2, 1, 1, 0, 3}
	must.Hold(t, slices.Equal(b, want), "Solve of two columns: got %v, want %v", b, want)
	x := []float64{4 + 2*12 - 3*16, 12 + 2*37 - 3*43, -16 - 2*43 + 3*98} // a times 1, 2, 3
	l.SolveBoth(x)
	if want := []float64{1, 2, 3}; !slices.Equal(x, want) {
		t.Errorf("SolveBoth: got %v, want %v", x, want)
	}
	must.Equal(t, "Dot", 12.0, matrix.Dot([]float64{1, 2, 3}, []float64{4, -5, 6}))
	y := []float64{1, 2}
	matrix.AddScaled(y, -2, []float64{3, 4})
	if want := []float64{-5, -6}; !slices.Equal(y, want) {
		t.Errorf("AddScaled: got %v, want %v", y, want)
	}
	g := []float64{10, 1, 0, 20}
	matrix.SubtractGram(g, []float64{1, 2, 3, -1, 0, 2}, 2) // of three rows
	if want := []float64{0, 2, 2, 11}; !slices.Equal(g, want) {
		t.Errorf("SubtractGram: got %v, want %v", g, want)
	}
}

func TestNotPositiveDefinite(t *testing.T) {
	for name, a := range map[string][]float64{
		"negative":      {-1, 0, 0, 1},
		"zero":          {0, 0, 0, 0},
		"indefinite":    {1, 2, 2, 1},
		"singular":      {1, 1, 1, 1},
		"not a number":  {math.NaN(), 0, 0, 1},
		"infinite":      {1, 0, 0, math.Inf(1)},
		"off diagonal":  {1, math.NaN(), 0, 1},
		"out of bounds": {1, 1e200, 1e200, 1},
	} {
		if l, ok := matrix.Cholesky(a, 2); ok {
			t.Errorf("%s: got %v", name, rowsOf(l))
		}
	}
	_, ok := matrix.Cholesky(nil, 0)
	must.Hold(t, ok, "the empty matrix is refused")
}

// TestProperties takes random positive definite matrices of every size up to 40, well and badly
// conditioned. LLᵀ must give the matrix, a solution must solve its system, and SubtractGram must
// agree with the plain definition.
func TestProperties(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for n := 1; n <= 40; n++ {
		k := 1 + rng.IntN(2*n)
		w := make([]float64, k*n)
		for i := range w {
			w[i] = rng.NormFloat64() * math.Pow(10, float64(rng.IntN(4)))
		}
		a := make([]float64, n*n)
		for i := range n {
			a[i*n+i] = .5
		}
		most := 0.0 // the largest element, to which rounding is proportional
		for i := range n {
			for j := range n {
				for r := range k {
					a[i*n+j] += w[r*n+i] * w[r*n+j]
				}
				most = max(most, math.Abs(a[i*n+j]))
			}
		}
		near := func(what string, got, want, scale float64) {
			t.Helper()
			if !(math.Abs(got-want) <= 1e-13*float64(n+k)*scale) {
				t.Errorf("%s of %d rows: got %v, want %v", what, n, got, want)
			}
		}
		l, ok := matrix.Cholesky(a, n)
		if !ok {
			t.Fatalf("a positive definite matrix of %d rows is refused", n)
		}
		for i := range n {
			for j := range n {
				near("LLᵀ", matrix.Dot(l.Row(i), l.Row(j)), a[i*n+j], most)
			}
			for _, above := range l.Row(i)[i+1:] {
				if above != 0 {
					t.Fatalf("L of %d rows is not triangular: %v", n, rowsOf(l))
				}
			}
		}
		b := make([]float64, 3*n)
		for i := range b {
			b[i] = rng.NormFloat64()
		}
		x := slices.Clone(b)
		l.Solve(x, 3)
		for i := range n {
			for c := range 3 {
				sum, size := 0.0, 1.0
				for j := range n {
					sum += l.Row(i)[j] * x[j*3+c]
					size += math.Abs(l.Row(i)[j] * x[j*3+c])
				}
				near("residual of LX = B", sum, b[i*3+c], size)
			}
		}
		v := slices.Clone(b[:n])
		l.SolveBoth(v)
		for i := range n {
			size := 1.0
			for j := range n {
				size += math.Abs(v[j]) * most
			}
			near("residual of LLᵀx = b", matrix.Dot(a[i*n:(i+1)*n], v), b[i], size)
		}
		rest := slices.Clone(a)
		matrix.SubtractGram(rest, w, n)
		for i := range n {
			for j := range n {
				want := 0.0
				if i == j {
					want = .5
				}
				near("A - WᵀW", rest[i*n+j], want, most)
				if rest[i*n+j] != rest[j*n+i] {
					t.Errorf("A - WᵀW of %d rows is not symmetric at %d, %d", n, i, j)
				}
			}
		}
	}
}

// TestProductsAreRounded uses a product, (1+ε)(1-ε) = 1-ε², that rounds to 1. A processor that fuses it with
// the sum gets -ε² instead of 0. On amd64 the compiler hardly ever fuses; on arm64 it does
// so wherever it may:
//
//	GOARCH=arm64 go test -c -o matrix.test ./builder/predict/matrix && qemu-aarch64 matrix.test
func TestProductsAreRounded(t *testing.T) {
	up, down := 1+0x1p-30, 1-0x1p-30
	must.Equal(t, "Dot", 0.0, matrix.Dot([]float64{-1, up}, []float64{1, down}))
	y := []float64{-1}
	if matrix.AddScaled(y, up, []float64{down}); y[0] != 0 {
		t.Errorf("AddScaled: got %v, want 0", y[0])
	}
	for _, k := range []int{1, 4} { // rows: the last one alone, and four at once
		w := make([]float64, 2*k)
		w[2*k-2], w[2*k-1] = up, down
		a := []float64{0, 1, 0, 0}
		if matrix.SubtractGram(a, w, 2); a[1] != 0 {
			t.Errorf("SubtractGram of %d rows: got %v, want 0", k, a[1])
		}
	}
	l, ok := matrix.Cholesky([]float64{1, up, down, 0, 4, 1, 0, 0, 4}, 3)
	if !ok || l.Row(2)[1] != 0 {
		t.Errorf("Cholesky: got %v %v, want 0 in the last row", rowsOf(l), ok)
	}
	b := []float64{down, 1} // L is 1 and up, sqrt(4 - up²)
	l, _ = matrix.Cholesky([]float64{1, up, 0, 4}, 2)
	if l.Solve(b, 1); b[1] != 0 {
		t.Errorf("Solve: got %v, want 0", b[1])
	}
}

func rowsOf(l matrix.Lower) [][]float64 {
	var rows [][]float64
	for i := range l.N {
		rows = append(rows, l.Row(i))
	}
	return rows
}
