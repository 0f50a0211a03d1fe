// Package matrix is the linear algebra of the model: sums, Cholesky's factorisation and the solution of
// linear systems, for dense matrices of at most some hundred rows.
//
// A matrix is a slice of its rows, one after the other. Each sum runs from left to right, and
// each product is rounded before the addition. Without that the compiler may fuse the two on one
// processor and not on another, and the chances would differ between processors. The explicit
// conversions float64(x * y) forbid the fusion (Go specification, "Floating-point operators").
package matrix

import (
	"math"
	"slices"
)

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

// AddRows adds DᵀX to dst: row i of x times d[i] for each i, from the first row on. The rows are as long
// as dst.
func AddRows(dst, d, x []float64) { addRows(dst, d, x, len(dst), 0) }

// addRows is AddRows for the columns from first of rows that are n long.
func addRows(dst, d, x []float64, n, first int) {
	part := func(i int) []float64 { return x[i*n+first:][:len(dst)] }
	i := 0
	// Take four rows at once, so that an element of dst is loaded and stored once for four
	// products; the order of the additions stays the same.
	for ; i+4 <= len(d); i += 4 {
		x0, x1, x2, x3 := part(i), part(i+1), part(i+2), part(i+3)
		d0, d1, d2, d3 := d[i], d[i+1], d[i+2], d[i+3]
		for j, v := range dst {
			dst[j] = v + float64(d0*x0[j]) + float64(d1*x1[j]) + float64(d2*x2[j]) + float64(d3*x3[j])
		}
	}
	for ; i < len(d); i++ {
		AddScaled(dst, d[i], part(i))
	}
}

// AddGram adds XᵀDX to the upper triangle of the n by n matrix a. x has n columns, and d holds the
// elements of the diagonal matrix D.
func AddGram(a, d, x []float64, n int) {
	var few [32]float64 // on the stack
	column := append(few[:0], d...)
	for j := range n {
		for i, v := range d {
			column[i] = float64(v * x[i*n+j])
		}
		addRows(a[j*n+j:(j+1)*n], column, x, n, j)
	}
}

// SubtractGram subtracts WᵀW from the upper triangle of the n by n matrix a, and copies that triangle
// to the lower one: a stays exactly symmetric. w has n columns.
func SubtractGram(a, w []float64, n int) {
	AddGram(a, slices.Repeat([]float64{-1}, len(w)/n), w, n)
	for i := range n {
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
	less := make([]float64, 0, l.N)
	for i := range l.N {
		row, x := l.Row(i), b[i*columns:(i+1)*columns]
		less = less[:0]
		for _, v := range row[:i] {
			less = append(less, -v)
		}
		addRows(x, less, b, columns, 0)
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
