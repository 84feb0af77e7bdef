// Package counter serves the commands of ids: DNEXTID (dnextid.go), and what shows,
// deletes and sets counters (dids.go). The commands are in rows.go.
package counter
