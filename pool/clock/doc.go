// Package clock measures time: the daemon's own, and a master's as the daemon estimates it.
// It sends nothing and stores nothing.
//
// Files in reading order:
//   - clock.go, boottime_linux.go, boottime_other.go: the daemon's time, which counts suspends, and the
//     numbers from which fences are drawn;
//   - estimate.go: the offset of a master's clock, with a bound of its error.
package clock
