// Package work serves the commands of work: an attempt and its reply (dwork.go), its end
// and its extension (dworkdone.go), and what is known of a piece of work (dworkinfo.go).
// The commands are in rows.go.
package work
