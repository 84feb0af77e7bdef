// Package chaos runs redlockd and redis-server as processes, lets every fault happen to
// them that may happen, and checks what their clients received. It is tests alone.
//
// A stand is the masters, of one group or several, the daemons and a relay between each of
// them. A fault is a row of a table. The nemesis draws faults by their weights. A workload
// is what some clients request and must receive. A mix is the stand, faults and workloads
// of one run.
//
// One run: load and faults for a while; everything healed, every master votes again; load
// without faults: all clients are served, nothing of theirs is left on the masters, no
// client waits, no lease is renewed, the daemons are as small as a new one, and all checks
// pass. A seed repeats a run as far as processes and networks allow.
//
// No fault allows an error in what is promised without condition. What is promised while a
// daemon runs and reaches a quorum may fail where the log of faults (allowederrors_test.go)
// or the kernel (machine_test.go) shows that it did not.
//
// Reading order: chaos_test.go (with all variables of the environment), run_test.go,
// stand_test.go, nemesis_test.go, faults_test.go, workloads_test.go; the other files are
// one workload, one kind of fault or one check each; mutants_test.go, searches_test.go.
package chaos
