// Probe: the facts that a server reports before its admission, and whether it is fit to be a master.

package admission

import (
	"cmp"
	"fmt"
	"strconv"

	"redlockd/pool/clock"
	"redlockd/pool/wire"
)

// ServerInfo has what a server reports about itself before it is admitted.
type ServerInfo struct {
	ClientID int64
	RunID    string
	Evicted  string // evicted_keys
	Version  string
	Volatile string // why it is not durable, "" if it is
	Commands int64  // that this process has counted
	Policy   string // maxmemory-policy
	Redlockd bool   // it is a daemon
	Est      clock.Estimate
}

// Unfit is a reason not to let a reachable server vote; it stays until the
// operator changes something.
type Unfit struct {
	reason string
	ahead  int64 // µs by which its clock was ahead, if that is the reason
}

func (e *Unfit) Error() string { return e.reason }

func Unfitf(format string, args ...any) error { return &Unfit{reason: fmt.Sprintf(format, args...)} }

// Probe reads the identity and the clock of a server; it writes nothing.
func Probe(link wire.Link, clock clock.Clock) (ServerInfo, error) {
	replies, err := wire.Ask(link, wire.Words("CLIENT", "ID"), wire.Words("INFO"), wire.Words("CONFIG", "GET", "*append*"))
	if err != nil {
		return ServerInfo{}, err
	}
	if err := replies[1].Err; err != nil {
		return ServerInfo{}, Unfitf("INFO is refused (%v): allow the commands of the documented ACL", err)
	}
	if err := replies[0].Err; err != nil {
		return ServerInfo{}, Unfitf("CLIENT ID is refused (%v): allow the commands of the documented ACL", err)
	}
	info := replies[1].Str
	f := ServerInfo{
		ClientID: replies[0].Int,
		RunID:    wire.InfoField(info, "run_id"),
		Evicted:  wire.InfoField(info, "evicted_keys"),
		Version:  versionOf(info),
		Volatile: Volatile(replies[2], info),
		Commands: Processed(info),
		Policy:   wire.InfoField(info, "maxmemory_policy"),
		Redlockd: isRedlockd(info),
	}
	if err := checkFitness(info); err != nil {
		return f, err
	}
	return f, f.ReadClock(link, clock)
}

// ReadClock takes the most precise of three samples.
func (s *ServerInfo) ReadClock(link wire.Link, ours clock.Clock) error {
	for range 3 {
		sent := ours.Now()
		reply, err := wire.AskOne(link, "TIME")
		received := ours.Now()
		if err != nil {
			return err
		}
		us, ok := wire.ParseTime(reply)
		if !ok {
			return Unfitf("TIME is not answered: %s", wire.FirstError(reply))
		}
		var one clock.Estimate
		one.Sample(sent, received, us)
		if !s.Est.Known || one.Err < s.Est.Err {
			s.Est = one
		}
	}
	return nil
}

// emptyReplica is the advice for a server that is a copy of another one.
const emptyReplica = "they do not replicate (REPLICAOF NO ONE, then restart it empty: its memory may lack writes that its master acknowledged)"

// clusterNode tells why a node of a Redis Cluster cannot vote.
const clusterNode = "; a node of a Redis Cluster may lose a lock when a replica takes over or a slot moves: start a server with cluster-enabled no; for more masters than those of one group see [[group]] in the configuration file"

func isRedlockd(info string) bool { return wire.InfoField(info, "redlockd_version") != "" }

// checkFitness refuses servers on which a lock could silently disappear.
func checkFitness(info string) error {
	if isRedlockd(info) {
		return Unfitf("is a redlockd: masters are the Redis or Valkey servers that keep its locks; list those instead of a daemon")
	}
	if !atLeast(wire.InfoField(info, "redis_version"), 6, 2) { // every Valkey reports 7.2.4 here
		return Unfitf("version %s: Redis 6.2 or later, or Valkey 7.2 or later, is needed", versionOf(info))
	}
	if mode := cmp.Or(wire.InfoField(info, "redis_mode"), wire.InfoField(info, "server_mode")); mode != "standalone" { // the latter is Valkey's, from 8.0 on
		return Unfitf("runs in %s mode: masters are independent standalone servers%s", mode, map[bool]string{true: clusterNode}[mode == "cluster"])
	}
	if role := wire.InfoField(info, "role"); role != "master" {
		return Unfitf("is a %s: masters are independent, %s", role, emptyReplica)
	}
	if policy := wire.InfoField(info, "maxmemory_policy"); policy != "noeviction" {
		return Unfitf("maxmemory-policy is %s: it may evict a lock; CONFIG SET maxmemory-policy noeviction", policy)
	}
	return nil
}

func versionOf(info string) string {
	if version := wire.InfoField(info, "valkey_version"); version != "" {
		return "valkey " + version
	}
	return wire.InfoField(info, "redis_version")
}

// configRefused is the reason why nothing is known of a server's durability.
const configRefused = "CONFIG GET refused"

// Durable reports whether the server has on disk what it answers: what CONFIG answers, or the
// operator's assurance where CONFIG is forbidden.
func (s *ServerInfo) Durable(assured bool) bool {
	return s.Volatile == "" || assured && s.Volatile == configRefused
}

// Volatile returns the reason why a server may not have on disk whatever it answered;
// "" if there is none. Where CONFIG is forbidden nothing is known.
func Volatile(config wire.Reply, info string) string {
	if config.Err != nil {
		return configRefused
	}
	values := map[string]string{}
	for i := 0; i+1 < len(config.Items); i += 2 {
		values[config.Items[i].Str] = config.Items[i+1].Str
	}
	for _, want := range [][2]string{{"appendonly", "yes"}, {"appendfsync", "always"}, {"no-appendfsync-on-rewrite", "no"}} {
		if values[want[0]] != want[1] {
			return want[0] + " " + values[want[0]]
		}
	}
	if status := wire.InfoField(info, "aof_last_write_status"); status != "ok" {
		return "aof_last_write_status " + status
	}
	// Switched on at run time: the file does not hold the whole memory yet.
	if wire.InfoField(info, "aof_base_size") == "0" && (wire.InfoField(info, "aof_rewrite_in_progress") == "1" || wire.InfoField(info, "aof_rewrite_scheduled") == "1") {
		return "the first rewrite of its append-only file is under way"
	}
	return ""
}

func atLeast(version string, major, minor int) bool {
	var a, b int
	n, _ := fmt.Sscanf(version, "%d.%d", &a, &b)
	return n == 2 && (a > major || a == major && b >= minor)
}

// Processed is total_commands_processed of INFO's text.
func Processed(info string) int64 {
	n, _ := strconv.ParseInt(wire.InfoField(info, "total_commands_processed"), 10, 64)
	return n
}
