package chaos

// searches_test.go: the table of searches for mutants. Each search is a mix in which an
// event happens often that is rare in the mixes of long runs; a daemon without a fault
// passes it.

import (
	"slices"
	"time"
)

func crowded(t trade, clients int) trade { t.clients = clients; return t }

// links, some and named are the faults of a search.
func links(plan) []fault { return networkFaults() }

func some(faults ...func() []fault) func(plan) []fault {
	return func(plan) []fault {
		var all []fault
		for _, f := range faults {
			all = append(all, f()...)
		}
		return all
	}
}

func named(names ...string) func(plan) []fault {
	return func(plan) []fault {
		return slices.DeleteFunc(allFaults(plan{durable: true, clocks: true}), func(f fault) bool { return !slices.Contains(names, f.name) })
	}
}

// searches is the table: a mix, the pace of its faults, a round, and a timeout.
func searches() []search {
	const quick, slowly = 40 * time.Millisecond, 250 * time.Millisecond
	small := plan{masters: 3, daemons: 3}
	creeping := plan{masters: 3, daemons: 3, clocks: true}
	longKept := plan{masters: 3, daemons: 2, keep: 30 * time.Second}
	return []search{
		{mix{"links", small, trades(), links}, quick, 20 * time.Second, 0},
		{mix{"forgetting", plan{masters: 3, daemons: 2}, []trade{locksTrade(), worksTrade()}, some(flushes)}, slowly, 0, 0},
		{mix{"forgetting within a flush", plan{masters: 3, daemons: 2}, []trade{crowded(holdersTrade(), 48)}, some(flushesWithin)}, time.Second, 0, 0},
		{mix{"ids that are forgotten", plan{masters: 3, daemons: 2}, []trade{{"ids", 8, newIdleCounters}}, some(idleFaults)}, quick, 0, 0},
		{mix{"high ids", plan{masters: 3, daemons: 2}, []trade{{"ids", 8, newHighCounters}}, links}, slowly, 10 * time.Second, 0},
		{mix{"works that are forgotten", longKept, []trade{crowded(worksTrade(), 24)}, some(forgottenSlowly)}, quick, 0, 0},
		{mix{"works", small, []trade{crowded(worksTrade(), 24)}, links}, quick, 20 * time.Second, 0},
		{mix{"holders that are forgotten", small, []trade{holdersTrade()}, some(majorityFlushes)}, quick, 0, 0},
		{mix{"holders", small, []trade{holdersTrade()}, links}, quick, 20 * time.Second, 0},
		{mix{"holders and memory", plan{masters: 3, daemons: 2}, []trade{holdersTrade()}, some(memoryFaults, networkFaults)}, quick, 0, 0},
		{mix{"replicas", plan{masters: 3, daemons: 2}, []trade{holdersTrade()}, func(p plan) []fault {
			return append(networkFaults(), named("a master that was a replica")(p)...)
		}}, quick, 0, 0},
		{mix{"latecomers", small, []trade{latecomersTrade()}, links}, slowly, 20 * time.Second, 0},
		{mix{"rare latecomers", small, []trade{{"latecomers", 16, newRareLatecomers}}, links}, slowly, 20 * time.Second, 0},
		{mix{"slow daemons", small, []trade{crowded(latecomersTrade(), 24)}, some(slowness)}, quick, 20 * time.Second, 0},
		{mix{"steps unseen", plan{masters: 3, daemons: 2, clocks: true}, []trade{holdersTrade()}, some(unseenSteps, networkFaults)}, quick, 0, 0},
		{mix{"oversleeping", plan{masters: 3, daemons: 2, clocks: true}, []trade{crowded(locksTrade(), 12), latecomersTrade()}, some(oversleeping)}, quick, 0, 0},
		{mix{"one server twice", plan{masters: 3, daemons: 2, aliased: true}, []trade{locksTrade()}, named()}, quick, 10 * time.Second, 0},
		{mix{"clocks", plan{masters: 3, daemons: 2, durable: true, clocks: true}, []trade{crowded(locksTrade(), 24)}, some(clockFaults)}, quick, 0, 0},
		{mix{"clocks that creep", creeping, []trade{crowded(latecomersTrade(), 24)}, some(creepingFaults)}, quick, 0, 0},
		{mix{"fences of clocks ahead", creeping, []trade{crowded(locksTrade(), 24)}, some(clocksAhead)}, quick, 0, 0},
		{mix{"tidiness", plan{masters: 3, daemons: 3, maxLease: longLease}, []trade{tidyTrade()}, named(
			"a slow link", "a link that holds the answers", "a link that holds the questions", "a link that holds everything", "a cut link")}, quick, 4 * time.Second, 3},
		{mix{"tidiness in peace", plan{masters: 3, daemons: 2, maxLease: longLease}, []trade{tidyTrade()}, named()}, quick, 2 * time.Second, 3},
		{mix{"readers", small, []trade{crowded(readersTrade(), 16)}, links}, quick, 20 * time.Second, 0},
		{mix{"readers in peace", small, []trade{crowded(readersTrade(), 16)}, named()}, quick, 10 * time.Second, 0},
		{mix{"permits", small, []trade{crowded(permitsTrade(), 16)}, links}, quick, 20 * time.Second, 0},
		{mix{"permits in peace", small, []trade{crowded(permitsTrade(), 32)}, named()}, quick, 10 * time.Second, 0},
		{mix{"delays in peace", small, []trade{crowded(delaysTrade(), 16)}, named()}, quick, 10 * time.Second, 0},
		{mix{"levels", small, []trade{crowded(levelsTrade(), 16)}, links}, quick, 20 * time.Second, 0},
		{mix{"several in peace", small, []trade{crowded(severalTrade(), 16)}, named()}, quick, 10 * time.Second, 0},
		{mix{"several groups", plan{masters: 3, groups: 2, daemons: 3}, []trade{crowded(severalTrade(), 16)}, named("FLUSHALL", "a cut link")}, slowly, 20 * time.Second, 0},
		{mix{"waiting", small, []trade{crowded(waitingTrade(), 12)}, named()}, quick, 10 * time.Second, 0},
		{mix{"waiters", small, []trade{waitersTrade(2 * time.Second)}, named()}, quick, 20 * time.Second, 0},
		{mix{"waiters of lazy masters", plan{masters: 3, daemons: 3, lazy: true}, []trade{waitersTrade(2 * time.Second)}, named()}, quick, 20 * time.Second, 0},
		{mix{"waiters without announcements", small, []trade{waitersTrade(7 * time.Second)}, named("clients killed", "a cut link")}, slowly, 20 * time.Second, 0},
		{mix{"waiters in a queue", small, []trade{waitersTrade(2*time.Second, "FAIR")}, named()}, quick, 20 * time.Second, 0},
		{mix{"holding", small, []trade{crowded(holdingTrade(), 10)}, named()}, quick, 10 * time.Second, 0},
		{mix{"holding with faults", small, []trade{crowded(holdingTrade(), 10)}, some(networkFaults, daemonFaults)}, slowly, 10 * time.Second, 0},
		{mix{"fair", small, []trade{crowded(fairTrade(), 16)}, named()}, quick, 10 * time.Second, 0},
		{mix{"long queues", small, []trade{{"fair", 16, newLongFair}}, named()}, quick, 20 * time.Second, 0},
		{mix{"readers that are forgotten", plan{masters: 3, daemons: 2}, []trade{crowded(readersTrade(), 16)}, some(flushes, networkFaults)}, quick, 0, 0},
		{mix{"drop-in commands while clocks creep", creeping, []trade{locksTrade(), crowded(dropInTrade(), 24)}, some(creepingFaults)}, quick, 0, 0},
		{mix{"tidy drop-in commands in peace", plan{masters: 3, daemons: 3, maxLease: longLease}, []trade{tidyWordsTrade()}, named()}, quick, 2 * time.Second, 3},
		{mix{"equal values", small, []trade{alikeTrade()}, named()}, quick, 20 * time.Second, 0},
		{mix{"owners", small, []trade{ownersTrade()}, named()}, quick, 20 * time.Second, 0},
		{mix{"cycles", small, []trade{cyclesTrade()}, named()}, quick, 20 * time.Second, 0},
		{mix{"queues of daemons that end", small, []trade{waitersTrade(2*time.Second, "FAIR")}, named("a daemon that drains and comes back")}, 2 * time.Second, 0, 0},
		{mix{"drop-in commands", small, []trade{locksTrade(), crowded(dropInTrade(), 16)}, links}, quick, 20 * time.Second, 0},
		{mix{"drop-in commands that are forgotten", plan{masters: 3, daemons: 2}, []trade{locksTrade(), crowded(dropInTrade(), 16)}, some(flushes)}, slowly, 0, 0},
	}
}

// where returns the search for a mutant.
func where(name string) string {
	for _, at := range []struct {
		search string
		names  []string
	}{
		{"forgetting", []string{"seal", "identity", "xx", "age"}},
		{"forgetting within a flush", []string{"seal-last"}},
		{"holders that are forgotten", []string{"quarantined-absence", "repeat-absence"}},
		{"holders and memory", []string{"undo-guard", "mark"}},
		{"holders", []string{"token-queue"}},
		{"latecomers", []string{"repair", "revive"}},
		{"rare latecomers", []string{"re-create", "false-one"}},
		{"slow daemons", []string{"elapsed"}},
		{"clocks", []string{"invalidate", "clock", "step-all", "step-last", "step-unwatched", "step-creep"}},
		{"steps unseen", []string{"step-offline"}},
		{"oversleeping", []string{"late"}},
		{"one server twice", []string{"distinct"}},
		{"clocks that creep", []string{"margin"}},
		{"fences of clocks ahead", []string{"low-end", "fence-vote"}},
		{"links", []string{"gt", "quorum", "twice", "owner", "prefetch", "shorten"}},
		{"tidiness", []string{"undo-all", "pending-release", "kill", "rest", "repair-lapsed", "multi-undo"}},
		{"tidiness in peace", []string{"multi-hold", "left-grant"}},
		{"ids that are forgotten", []string{"trust", "adopt"}},
		{"high ids", []string{"doubles"}},
		{"works that are forgotten", []string{"work-age", "orphan"}},
		{"works", []string{"unfenced-end", "done-once", "attempt-taken", "attempt-max", "extend-superseded", "result-any"}},
		{"replicas", []string{"promoted"}},
		{"readers in peace", []string{"read-written", "write-read", "reader-ends", "reader-leaves", "upgrade-ends", "caller-clock"}},
		{"readers", []string{"upgrade-undo", "unupgrade", "downgrade-any", "downgrade-late"}},
		{"permits in peace", []string{"one-seal", "counted-permits", "permit-taken", "permit-ends", "permit-leaves"}},
		{"permits", []string{"permit-slot"}},
		{"delays in peace", []string{"delay", "delay-named", "keep"}},
		{"levels", []string{"levels-apart"}},
		{"several in peace", []string{"multi-some"}},
		{"several groups", []string{"joint-fence"}},
		{"waiting", []string{"left", "arrival"}},
		{"waiters", []string{"hinted", "time-over"}},
		{"waiters of lazy masters", []string{"expiry-timer"}},
		{"waiters in a queue", []string{"dequeue", "dead", "refresh-left"}},
		{"waiters without announcements", []string{"poll"}},
		{"holding", []string{"renew-released", "renew-max", "drain-join"}},
		{"holding with faults", []string{"renew-lost", "paused", "drain-way", "drain-release"}},
		{"queues of daemons that end", []string{"drain-queue"}},
		{"owners", []string{"own-lease", "unpurged", "multi-extend"}},
		{"cycles", []string{"cycle-join", "cycle-refused", "cycle-own", "cycle-queue", "cycle-over"}},
		{"fair", []string{"tail", "fair-look", "fair-first", "refresh-left", "dequeue", "dead", "barging", "barging-readers"}},
		{"drop-in commands", []string{"vote-class", "drop-class", "script-revive", "script-pending", "retake-own", "delete-all", "replace-any", "short-repeat", "one-view", "script-shortens", "shorten-any", "uneven"}},
		{"drop-in commands while clocks creep", []string{"swap-shortens"}},
		{"tidy drop-in commands in peace", []string{"swap-undo"}},
		{"equal values", []string{"equal"}},
		{"long queues", []string{"refresh-none"}},
		{"readers that are forgotten", []string{"one-kind"}},
		{"drop-in commands that are forgotten", []string{"quarantined-view"}},
	} {
		if slices.Contains(at.names, name) {
			return at.search
		}
	}
	return "links"
}

// beyond names what a mutant needs that this package does not have; "" if it has all.
func beyond(name string) string {
	switch name {
	case "kill":
		return "bytes of a connection that arrive when its successor's have"
	case "rolled-back", "no-records", "durable-then":
		return "a disk that has not got what its master answered"
	case "evicted", "evicted-look":
		return "keys that are evicted: until the next look their locks may be granted again"
	}
	return ""
}
