//go:build race

package redlock

// The race detector makes everything several times slower.
const raceDetector = true
