// Package fleet measures a publish: its size, its time until an edge serves the version, and the load of many edges on
// one store. Its measurements are tests, because each also holds a promise. GRIDCAST_MEASURE=1 runs them in full size.
package fleet
