// The runs of lock libraries, and the commands that start their programs.

package main

import "strings"

// lockRuns in the order of the table.
func lockRuns() []run {
	var all []run
	for _, language := range [][]run{pythonLocks(), nodeLocks(), goLocks(), javaLocks(), rustLocks(), phpLocks(), recordedLocks()} {
		all = append(all, language...)
	}
	for i := range all {
		all[i].locks = true
	}
	return all
}

func pythonLocks() []run {
	var all []run
	for _, library := range []string{"redis-py", "redis-py-asyncio", "python-redis-lock", "pottery", "aioredlock", "redlock-ng"} {
		environment := "python-locks"
		if library == "redlock-ng" { // needs an older redis-py
			environment = "python-locks-ng"
		}
		all = append(all, run{library: library, as: "lock library", command: []string{
			"{built}/" + environment + "/bin/python", "-B", "{programs}/python-locks/locks.py", library}})
	}
	return all
}

func nodeLocks() []run {
	var all []run
	for _, library := range []string{"redlock4", "redlock5", "redlock-universal", "redis-semaphore"} {
		all = append(all, run{
			library: library, as: "lock library, ioredis",
			command: []string{"node", "{programs}/node-locks/locks.js", library},
			environ: []string{"NODE_PATH={built}/node-locks/node_modules"},
		})
	}
	return all
}

func goLocks() []run {
	program := func(library, as, remark string, arguments ...string) run {
		return run{library: library, as: "lock library, " + as, remark: remark, command: append([]string{"{built}/go-locks/locks"}, arguments...)}
	}
	tests := program("rueidislock", "its own tests", "all of them, unmodified but for the address", "tests", "{built}/go-locks/rueidislock.test")
	tests.suite = true
	return []run{
		program("redsync", "go-redis", "", "redsync"),
		program("redislock", "go-redis", "", "redislock"),
		program("rueidislock", "client tracking", "renews by itself: nothing of it expires", "rueidislock"),
		program("rueidislock", "DisableCache", "renews by itself: nothing of it expires", "rueidislock-polling"),
		tests,
	}
}

// notRecognised is how the refusal of a script begins.
func notRecognised(sha, why string) string {
	return "ERR script " + sha + " is not a recognised lock script: " + why
}

func javaLocks() []run {
	program := func(library, as, argument, remark string) run {
		return run{library: library, as: "lock library, " + as, remark: remark, command: []string{
			"java", "-Xshare:auto", "-XX:TieredStopAtLevel=1", "-cp", "{built}/java-locks/classes:{built}/java-locks/dependency/*", "Locks", argument}}
	}
	redisson := func(dir, as, argument string) run {
		return run{library: "Redisson RLock", as: "lock library, " + as, remark: "also RFencedLock, RSpinLock, RedissonMultiLock", command: []string{
			"java", "-Xshare:auto", "-XX:TieredStopAtLevel=1", "-cp", "{built}/" + dir + "/classes:{built}/" + dir + "/dependency/*", "RedissonLocks", argument}}
	}
	return []run{
		program("ShedLock", "Lettuce", "shedlock", "does not compare when it deletes, its default"),
		program("ShedLock", "Lettuce, safeUpdate", "shedlock-safe", ""),
		program("Spring RedisLockRegistry", "Lettuce", "spring", ""),
		program("Spring RedisLockRegistry", "Lettuce, PUB_SUB_LOCK", "spring-pubsub", ""),
		redisson("java-redisson3", "3", "default"),
		redisson("java-redisson", "4", "default"),
		redisson("java-redisson", "4, RESP3", "protocol-3"),
	}
}

func rustLocks() []run {
	return []run{{library: "rslock", as: "lock library, redis-rs", command: []string{"{built}/rust-locks/debug/locks"}}}
}

// phpLocks are Debian's packages, since packagist.org cannot be taken for granted.
func phpLocks() []run {
	program := func(library, as, argument, lacks string) run {
		return run{
			library: library, as: strings.TrimSuffix("lock library, "+as, ", "), lacks: lacks, remark: "Debian's package",
			command: []string{"php", "{programs}/php-locks/locks.php", argument},
		}
	}
	symfony := program("Symfony Lock", "phpredis", "symfony", "")
	symfony.refusal = notRecognised("c481d49b4a48e48a9eeacd5d51655b5fcbb19925", "line 2: it calls 'TIME'")
	return []run{
		program("Laravel", "phpredis", "laravel-phpredis", "extend"),
		program("Laravel", "predis", "laravel-predis", "extend"),
		program("php-lock", "phpredis", "php-lock-phpredis", "extend"),
		program("php-lock", "predis", "php-lock-predis", "extend"),
		symfony,
	}
}

// recordedLocks are those that no registry of a bare machine has.
func recordedLocks() []run {
	return []run{
		{library: "redlock-rb", as: "lock library, redis-client", recorded: "redlock-rb.txt"},
		{library: "redlock.rb", as: "lock library, redis-rb", recorded: "redlock-rb-antirez.txt", lacks: "extend"},
		{library: "php-lock", as: "lock library, 3, phpredis", recorded: "php-lock-3.txt", lacks: "extend"},
		{library: "php-redis-lock", as: "lock library, php-redis-client", recorded: "php-redis-lock.txt"},
		{library: "Redis::DistLock", as: "lock library, Redis.pm", recorded: "redis-distlock.txt", remark: "its extend does not compare"},
		{library: "Deno-Redlock", as: "lock library", recorded: "deno-redlock.txt"},
		{library: "redis-plus-plus", as: "lock library", recorded: "redis-plus-plus.txt"},
	}
}
