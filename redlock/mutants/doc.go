// Package mutants is the product with one fault in it, many times. A simulation and a run
// of real processes must notice each fault: a check that finds nothing proves nothing. It
// is support for tests; no shipped package imports it, but the text that it builds instead does.
//
// Reading order: mutant.go, build.go, active.go; the rows table.go, rules.go, mode.go,
// wait.go, dropin.go, change.go, window.go; results.go.
package mutants
