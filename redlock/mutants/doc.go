// Package mutants is the product with one fault in it, many times. A simulation and a run
// of real processes must notice each fault: a check that finds nothing proves nothing. It
// is support for tests; no shipped package imports it.
//
// Reading order: mutant.go, build.go; the rows table.go, mode.go, wait.go, dropin.go;
// results.go.
package mutants
