// Command bench measures redlockd beside other locks: on the same masters, in the same
// minute, scenario after scenario, round by round. On a shared machine absolute figures
// vary by a factor of two, but the ratios within a round hardly do. So read the ratios.
//
//	go run . [-quick] [-rounds 5] [-seconds 2] [-only REGEXP] [-masters 5] [-dir DIR]
//
// Reading order:
//   - main.go, scenario.go: the command line, and what a scenario is;
//   - testbed.go, master.go, daemon.go, process.go: the processes that scenarios use;
//   - load.go, histogram.go, meter.go: the load, its latencies and its cost;
//   - measurements.go, figures.go: the results of all rounds;
//   - report.go, acceptance.go, charts.go, chart.go: the page, its targets and its charts;
//   - redsync.go, engine.go, multiplexed.go, connections.go and the other files: one kind
//     of scenario each.
package main
