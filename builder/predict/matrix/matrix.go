// Package matrix is the linear algebra of the model: sums, Cholesky's factorisation and the solution of
// linear systems, for dense matrices of at most some hundred rows.
//
// A matrix is a slice of its rows, one after the other. Each sum runs from left to right, and
// each product is rounded before the addition. Without that the compiler may fuse the two on one
// processor and not on another, and the chances would differ between processors. The explicit
// conversions float64(x * y) forbid the fusion (Go specification, "Floating-point operators").
package matrix

import "math"

// Dot returns the scalar product of x and y, which are equally long.
func Dot(x, y []float64) float64 {
	y = y[:len(x)]
	sum := 0.0
	for i, v := range x {
		sum += float64(v * y[i])
	}
	return sum
}

// AddScaled adds by·x to dst, which are equally long.
func AddScaled(dst []float64, by float64, x []float64) {
	dst = dst[:len(x)]
	for i, v := range x {
		dst[i] += float64(by * v)
	}
}

// SubtractGram subtracts WᵀW from the upper triangle of the n by n matrix a, and copies that triangle
// to the lower one: a stays exactly symmetric. w has n columns.
func SubtractGram(a, w []float64, n int) {
	k := len(w) / n
	part := func(r, i int) []float64 { return w[r*n+i : (r+1)*n] } // of row r, from column i
	for i := range n {
		row := a[i*n+i : (i+1)*n]
		r := 0
		// Take four rows of w at once, so that an element of a is loaded and stored once for four
		// products; the order of the additions stays the same.
		for ; r+4 <= k; r += 4 {
			w0, w1, w2, w3 := part(r, i)[:len(row)], part(r+1, i)[:len(row)], part(r+2, i)[:len(row)], part(r+3, i)[:len(row)]
			b0, b1, b2, b3 := w0[0], w1[0], w2[0], w3[0]
			for j, v := range row {
				row[j] = v - float64(b0*w0[j]) - float64(b1*w1[j]) - float64(b2*w2[j]) - float64(b3*w3[j])
			}
		}
		for ; r < k; r++ {
			AddScaled(row, -w[r*n+i], part(r, i))
		}
		for j := range i {
			a[i*n+j] = a[j*n+i]
		}
	}
}

// Lower is a lower triangular matrix of N rows with a positive diagonal; the elements above the
// diagonal are 0.
type Lower struct {
	N    int
	rows []float64
}

// Cholesky returns the L with a = LLᵀ of the symmetric n by n matrix a. It reads only the upper
// triangle, and reports false if a is not positive definite. See Golub and Van Loan, Matrix
// Computations, algorithm 4.2.1.
func Cholesky(a []float64, n int) (Lower, bool) {
	l := Lower{n, make([]float64, n*n)}
	for i := range n {
		row := l.Row(i)
		for j := range i {
			above := l.Row(j)
			row[j] = (a[j*n+i] - Dot(row[:j], above[:j])) / above[j]
		}
		pivot := a[i*n+i] - Dot(row[:i], row[:i])
		if !(pivot > 0) || math.IsInf(pivot, 1) { // false for NaN too
			return Lower{}, false
		}
		row[i] = math.Sqrt(pivot)
	}
	return l, true
}

// Row returns row i, of N numbers. It is a part of l, not a copy.
func (l Lower) Row(i int) []float64 { return l.rows[i*l.N : (i+1)*l.N] }

// Solve replaces the N by columns matrix b by the X with LX = b; a vector has one column.
func (l Lower) Solve(b []float64, columns int) {
	for i := range l.N {
		row, x := l.Row(i), b[i*columns:(i+1)*columns]
		for k, v := range row[:i] {
			AddScaled(x, -v, b[k*columns:(k+1)*columns])
		}
		for j := range x {
			x[j] /= row[i]
		}
	}
}

// SolveBoth replaces the vector b by the x with LLᵀx = b.
func (l Lower) SolveBoth(b []float64) {
	l.Solve(b, 1)
	// Lᵀx = b from the last row to the first: each known x is subtracted from the rows above.
	for i := l.N - 1; i >= 0; i-- {
		row := l.Row(i)
		b[i] /= row[i]
		AddScaled(b[:i], -b[i], row[:i])
	}
}
