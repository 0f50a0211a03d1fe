// Package portable computes exponentials and logarithms with the same bits on every processor. Package math does not
// promise that: it uses assembly, and a compiler may join a product and a sum into one operation that rounds once. An
// explicit conversion to float64 rounds each product, which the language forbids to join.
//
// Algorithms and constants are those of FreeBSD's e_exp.c and e_log.c, which come with this notice: Copyright (C) 1993,
// 2004 by Sun Microsystems, Inc. All rights reserved. Permission to use, copy, modify, and distribute this software is
// freely granted, provided that this notice is preserved.
package portable

import (
	"math"
	"math/rand/v2"
)

const (
	ln2Hi = 6.93147180369123816490e-01 // has so many zeros at its end that its product with an exponent is exact
	ln2Lo = 1.90821492927058770002e-10
)

// Exp returns e**x with an error below one unit in the last place.
func Exp(x float64) float64 {
	x = float64(x) // the caller's product, if this function is inlined
	switch {
	case math.IsNaN(x):
		return x
	case x > 7.09782712893383973096e+02:
		return math.Inf(1)
	case x < -7.45133219101941108420e+02:
		return 0
	}
	k := math.Floor(float64(x*math.Log2E) + .5)
	return exp(x-float64(k*ln2Hi), float64(k*ln2Lo), k)
}

// Exp2 returns 2**x for x between -1000 and 1000.
func Exp2(x float64) float64 {
	x = float64(x) // the caller's product, if this function is inlined
	k := math.Floor(x + .5)
	return exp(float64((x-k)*ln2Hi), -float64((x-k)*ln2Lo), k)
}

// exp returns e**(hi-lo) * 2**k.
func exp(hi, lo, k float64) float64 {
	r := hi - lo
	t := float64(r * r)
	p := -2.77777777770155933842e-03 + float64(t*(6.61375632143793436117e-05+float64(t*(-1.65339022054652515390e-06+float64(t*4.13813679705723846039e-08)))))
	c := r - float64(t*(1.66666666666666657415e-01+float64(t*p)))
	y := 1 - ((lo - float64(r*c)/(2-c)) - hi) // between .7 and 1.5
	if -1021 <= k && k <= 1022 {
		return y * math.Float64frombits(uint64(1023+int(k))<<52) // as Ldexp, in a third of the time
	}
	return math.Ldexp(y, int(k))
}

// Log returns the natural logarithm of x with an error below one unit in the last place.
func Log(x float64) float64 {
	bits, below := math.Float64bits(x), 0
	if bits-1<<52 >= (2047-1)<<52 { // not a positive normal number
		switch {
		case math.IsNaN(x) || math.IsInf(x, 1):
			return x
		case x < 0:
			return math.NaN()
		case x == 0:
			return math.Inf(-1)
		}
		bits, below = math.Float64bits(x*(1<<52)), 52
	}
	// The exponent e for which m = x / 2**e lies between root and 2*root. The processor would mispredict a branch at root.
	const root = 0x3FE6A09E667F3BCD // the bits of math.Sqrt2/2
	e := int64(bits-root) >> 52
	m := math.Float64frombits(bits - uint64(e)<<52)
	f, k := m-1, float64(int(e)-below)
	s := f / (2 + f)
	s2 := float64(s * s)
	s4 := float64(s2 * s2)
	odd := 6.666666666666735130e-01 + float64(s4*(2.857142874366239149e-01+float64(s4*(1.818357216161805012e-01+float64(s4*1.479819860511658591e-01)))))
	even := 3.999999999940941908e-01 + float64(s4*(2.222219843214978396e-01+float64(s4*1.531383769920937332e-01)))
	rest := float64(s2*odd) + float64(s4*even)
	half := float64(.5 * f * f)
	return float64(k*ln2Hi) - ((half - (float64(s*(half+rest)) + float64(k*ln2Lo))) - f)
}

// Pow returns x**y for positive x.
func Pow(x, y float64) float64 { return Exp(float64(y * Log(x))) }

// Normals fills a slice with draws from the normal distribution with the mean 0 and a standard deviation (G. Marsaglia's
// polar method).
func Normals(r *rand.PCG, deviation float64, into []float64) {
	for i := 0; i < len(into); {
		x, y := 2*Uniform(r)-1, 2*Uniform(r)-1
		s := float64(x*x) + float64(y*y)
		if s >= 1 || s == 0 {
			continue
		}
		by := float64(deviation * math.Sqrt(-2*Log(s)/s))
		into[i] = float64(x * by)
		if i++; i < len(into) {
			into[i] = float64(y * by)
			i++
		}
	}
}

// Uniform returns a draw between 0 and 1, the one of rand.Rand.Float64 without the call through an interface.
func Uniform(r *rand.PCG) float64 { return float64(r.Uint64()<<11>>11) / (1 << 53) }

// Exponential returns the draw from the exponential distribution with the mean 1 that belongs to a uniform one.
func Exponential(uniform float64) float64 { return -Log(1 - float64(uniform)) }
