// The runs: all programs with their variants, and the commands that start them.

package main

import (
	"path/filepath"
	"slices"
	"strings"
)

// run is one library in one version, one way of use and one protocol.
type run struct {
	library  string
	as       string   // what distinguishes it from the library's other runs
	protocol string   // that the connection must end up with: 2 or 3
	command  []string // {programs} is proxy/interop, {built} where .ci/interop built, {examples} and {clients} are in commands
	environ  []string
	recorded string // a file in recorded/ instead of a command
	remark   string // for the table
	locks    bool   // a lock library that takes the daemon for one Redis, see locks.go
	example  bool   // a program of commands/examples, see examples.go
	cluster  bool   // the library's cluster mode, over two daemons
	suite    bool   // of lock libraries: the tests that it has itself
	lacks    string // a step of lock libraries that it has no call for
	refusal  string // how the error begins by which the daemon refuses it

	prints []exampleLine // the lines of an example
	alone  bool          // an example that waits for no lock
}

func (r run) name() string {
	if r.locks || r.example {
		return r.library + " " + r.as
	}
	return strings.TrimSpace(r.library + " " + r.as + " resp" + r.protocol)
}

func placed(text string, o options) string {
	commands := filepath.Join(o.programs, "..", "..", "commands")
	return strings.NewReplacer("{programs}", o.programs, "{built}", o.built, "{examples}", filepath.Join(commands, "examples"), "{clients}", filepath.Join(commands, "clients")).Replace(text)
}

// runs in the order of the table.
func runs() []run {
	var all []run
	for _, language := range [][]run{cRuns(), goRuns(), pythonRuns(), nodeRuns(), javaRuns(), rustRuns(), scriptRuns(), recordedRuns(), clusterRuns(), lockRuns(), exampleRuns(), readmeRuns(), recipeRuns()} {
		all = append(all, language...)
	}
	return all
}

func cRuns() []run {
	return []run{
		{library: "redis-cli", as: "default", protocol: "2", command: []string{"bash", "{programs}/shell-redis-cli/story.sh", "2"}},
		{library: "redis-cli", as: "-3", protocol: "3", command: []string{"bash", "{programs}/shell-redis-cli/story.sh", "3"}},
		{library: "hiredis", as: "default", protocol: "2", command: []string{"{built}/c-hiredis/story"}},
	}
}

func goRuns() []run {
	program := func(library, dir, as, protocol string) run {
		return run{library: library, as: as, protocol: protocol, command: []string{"{built}/" + dir + "/story", as}}
	}
	return []run{
		program("go-redis", "go-goredis", "default", "3"),
		program("go-redis", "go-goredis", "protocol-2", "2"),
		program("rueidis", "go-rueidis", "default", "3"),
		program("rueidis", "go-rueidis", "disable-cache", "3"),
		program("rueidis", "go-rueidis", "always-resp2", "2"),
		program("redigo", "go-redigo", "default", "2"),
	}
}

func pythonRuns() []run {
	var all []run
	for _, v := range []struct{ version, as, protocol string }{
		{"4", "default", "2"},
		{"5", "default", "2"}, {"5", "protocol-3", "3"},
		{"8", "default", "3"}, {"8", "protocol-2", "2"},
	} {
		for _, kind := range []string{"sync", "asyncio"} {
			all = append(all, run{
				library: "redis-py", as: v.version + " " + kind + " " + v.as, protocol: v.protocol,
				command: []string{"{built}/python-redis-" + v.version + "/bin/python", "-B", "{programs}/python-redis/" + kind + "_story.py", v.as},
			})
		}
	}
	return all
}

func nodeRuns() []run {
	var all []run
	for _, v := range []struct{ library, dir, version, as, protocol string }{
		{"ioredis", "node-ioredis", "4", "default", "2"},
		{"ioredis", "node-ioredis", "5", "default", "2"},
		{"ioredis", "node-ioredis", "6", "default", "3"},
		{"ioredis", "node-ioredis", "6", "protocol-2", "2"},
		{"node-redis", "node-redis", "4", "default", "2"},
		{"node-redis", "node-redis", "5", "default", "2"},
		{"node-redis", "node-redis", "5", "protocol-3", "3"},
		{"node-redis", "node-redis", "6", "default", "3"},
		{"node-redis", "node-redis", "6", "protocol-2", "2"},
	} {
		all = append(all, run{
			library: v.library, as: v.version + " " + v.as, protocol: v.protocol,
			command: []string{"node", "{programs}/" + v.dir + "/story.js", v.version, v.as},
			environ: []string{"NODE_PATH={built}/" + v.dir + "/node_modules"},
		})
	}
	return all
}

func javaRuns() []run {
	program := func(library, as, protocol string) run {
		dir := "{built}/java-" + strings.ToLower(library)
		return run{
			library: library, as: as, protocol: protocol,
			command: []string{"java", "-Xshare:auto", "-XX:TieredStopAtLevel=1", "-cp", dir + "/classes:" + dir + "/dependency/*", library + "Story", as},
		}
	}
	return []run{
		program("Jedis", "default", "3"),
		program("Jedis", "protocol-2", "2"),
		program("Jedis", "legacy-class", "2"),
		program("Lettuce", "default", "3"),
		program("Lettuce", "protocol-2", "2"),
		program("Redisson", "default", "2"),
		program("Redisson", "protocol-3", "3"),
	}
}

func rustRuns() []run {
	program := func(as, protocol string) run {
		return run{library: "redis-rs", as: as, protocol: protocol, command: []string{"{built}/rust-redis/debug/story", as}}
	}
	return []run{program("sync", "2"), program("sync-protocol-3", "3"), program("async-manager", "2"), program("async-manager-protocol-3", "3")}
}

func scriptRuns() []run {
	return []run{
		{library: "phpredis", as: "default", protocol: "2", command: []string{"php", "{programs}/php-phpredis/story.php"}},
		{library: "predis", as: "default", protocol: "2", command: []string{"php", "{programs}/php-predis/story.php"}, remark: "Debian's package"},
		{library: "redis-rb", as: "default", protocol: "2", command: []string{"ruby", "{programs}/ruby-redis/story.rb"}, remark: "Debian's package"},
		{library: "Redis.pm", as: "default", protocol: "2", command: []string{"perl", "{programs}/perl-redis/story.pl"}, remark: "Debian's package"},
	}
}

// recordedRuns are libraries that Debian has in older versions only, whose own
// registries (packagist.org, rubygems.org) cannot be taken for granted.
func recordedRuns() []run {
	return []run{
		{library: "predis", as: "3 default", protocol: "2", recorded: "predis-3.txt"},
		{library: "predis", as: "3 protocol-3", protocol: "3", recorded: "predis-3-protocol-3.txt"},
		{library: "redis-rb", as: "6 default", protocol: "3", recorded: "redis-rb-6.txt"},
		{library: "redis-client (Ruby)", as: "default", protocol: "3", recorded: "redis-client.txt"},
	}
}

// clusterRuns are programs of the runs above, with the argument cluster.
func clusterRuns() []run {
	var all []run
	for _, v := range []struct {
		base run
		as   string
	}{
		{cRuns()[1], "-3 -c"},
		{goRuns()[0], "cluster"}, {goRuns()[2], "cluster"},
		{pythonRuns()[6], "8 sync cluster"}, {pythonRuns()[7], "8 asyncio cluster"},
		{nodeRuns()[2], "6 cluster"}, {nodeRuns()[7], "6 cluster"},
		{javaRuns()[0], "cluster"}, {javaRuns()[3], "cluster"},
		{rustRuns()[0], "cluster"},
	} {
		r := v.base
		r.as, r.cluster = v.as, true
		r.command = append(slices.Clone(r.command[:len(r.command)-1]), "cluster")
		all = append(all, r)
	}
	return all
}
