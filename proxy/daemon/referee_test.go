package daemon

// referee_test.go: code written for one Redis, where redis-server says what the answers are.

import (
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"redlockd/pool/faulty"
)

// reply sends a command and returns the whole reply: lists in brackets, errors by their first word.
// A word in quotes may have spaces.
func (c *client) reply(t *testing.T, line string) string {
	t.Helper()
	words := regexp.MustCompile(`"[^"]*"|\S+`).FindAllString(line, -1)
	fmt.Fprintf(c, "*%d\r\n", len(words))
	for _, word := range words {
		word = strings.Trim(word, `"`)
		fmt.Fprintf(c, "$%d\r\n%s\r\n", len(word), word)
	}
	return c.rest(t, c.line(t))
}

func (c *client) rest(t *testing.T, head string) string {
	t.Helper()
	n, _ := strconv.Atoi(head[1:])
	switch {
	case head == "*-1", head == "$-1":
		return "nil"
	case head[0] == '-':
		word, _, _ := strings.Cut(head, " ")
		return word
	case head[0] == '$':
		text := make([]byte, n+2)
		if _, err := io.ReadFull(c.replies, text); err != nil {
			t.Fatal(err)
		}
		return fmt.Sprintf("%q", text[:n])
	case head[0] == '*':
		var items []string
		for range n {
			items = append(items, c.rest(t, c.line(t)))
		}
		return "[" + strings.Join(items, " ") + "]"
	}
	return head
}

// refereed plays the lines of each story at a redis-server and at two daemons of one group, and wants
// the same replies. Lines begin with the connection that sends them: "a", "b" (of the other daemon);
// "~" before it asks until the replies agree, for what ends a moment later.
func refereed(t *testing.T, stories map[string]string) {
	servers := faulty.StartGroup(t, 5)
	bootstrapGroup(t, servers)
	redis := faulty.Start(t).Addr()
	one, two := serveHere(t, addresses(servers)), serveHere(t, addresses(servers))
	dial(t, one).ready(t)
	dial(t, two).ready(t)
	for name, story := range stories {
		t.Run(name, func(t *testing.T) {
			real := map[string]*client{"a": dial(t, redis), "b": dial(t, redis)}
			ours := map[string]*client{"a": dial(t, one), "b": dial(t, two)}
			if got := real["a"].ask(t, "FLUSHALL"); got != "+OK" {
				t.Fatal(got)
			}
			key := strings.Map(func(r rune) rune {
				if r == ' ' || r == ',' {
					return '-'
				}
				return r
			}, name)
			for _, line := range strings.Split(strings.TrimSpace(story), "\n") {
				line = strings.ReplaceAll(strings.TrimSpace(line), "KEY", key)
				asks := strings.HasPrefix(line, "~")
				who, words, _ := strings.Cut(strings.TrimPrefix(line, "~"), " ")
				if asks {
					got, want := "", ""
					eventually(t, words+" replies as Redis", func() bool {
						got, want = ours[who].reply(t, words), real[who].reply(t, words)
						return got == want
					}, func() string { return got + ", Redis " + want })
				} else if want, got := real[who].reply(t, words), ours[who].reply(t, words); got != want {
					t.Errorf("%s: %s, Redis replies %s", line, got, want)
				}
			}
		})
	}
}

func TestReferee_ALeaseEndsEarlierIfItsClientSaysSo(t *testing.T) {
	t.Parallel()
	ends := map[string]string{}
	for _, end := range []string{
		"PEXPIRE KEY 5", "PEXPIRE KEY 1", "PEXPIRE KEY 0", "PEXPIRE KEY -7", "EXPIRE KEY 0", "PEXPIRE KEY 5 LT", "PEXPIRE KEY 5 XX", "PEXPIRE KEY 0 LT", "EXPIRE KEY 0 XX",
		"SET KEY next-000001 XX PX 5", "SET KEY mine-000001 XX PX 5",
		"SET KEY - PX 1", "SET KEY mine-000001 PX 5", "SET KEY mine-000001 PXAT 1000", "SET KEY x XX PXAT 1000", `SET KEY "" PX 1`,
	} {
		ends["ends by "+end] = "a SET KEY mine-000001 NX PX 60000\na SET KEY other-00001 NX PX 60000\nb " + end + "\n~a GET KEY\na SET KEY other-00001 NX PX 60000"
	}
	refereed(t, ends)
}

// IFEQ came with Redis 8.4.
func TestDropIn_SETIFEQEndsALeaseEarlier(t *testing.T) {
	t.Parallel()
	c := dial(t, serveHere(t, nil, "--embedded", "3"))
	c.ready(t)
	for _, end := range []string{"PX 5 IFEQ mine", "PXAT 1000 IFEQ mine", "PX 5 IFDEQ DIGEST"} {
		c.types(t, "SET k mine NX PX 60000", "+OK")
		end = strings.Replace(end, "DIGEST", strings.Trim(c.reply(t, "DIGEST k"), `"`), 1)
		c.types(t, "SET k mine "+end, "+OK")
		got := ""
		eventually(t, end+" ends the lease", func() bool { got = c.reply(t, "GET k"); return got == "nil" }, func() string { return got })
	}
	c.types(t, "SET k mine NX PX 60000", "+OK", "SET k mine PX 30000 IFEQ mine", "+OK")
	if left, _ := strconv.Atoi(c.ask(t, "PTTL k")[1:]); left > 30000 {
		t.Errorf("%d ms are left, asked for were 30000", left)
	}
}

func TestReferee_EXPIREWithConditions(t *testing.T) {
	t.Parallel()
	stories := map[string]string{"errors": `
		a PEXPIRE KEY 5000 NX XX
		a PEXPIRE KEY 5000 NX GT
		a PEXPIRE KEY 5000 GT LT
		a PEXPIRE KEY 5000 FOO
		a EXPIRE KEY x GT
		a EXPIRE KEY 9223372036854775807 LT`,
	}
	for _, when := range []string{"NX", "XX", "GT", "LT", "XX GT", "xx lt"} {
		for _, ms := range []string{"20000", "50000", "0"} {
			stories[when+" "+ms] = "a PEXPIRE KEY " + ms + " " + when + "\na SET KEY mine-000001 NX PX 35000\nb PEXPIRE KEY " + ms + " " + when +
				"\nb EXPIRE KEY 58 GT\nb EXPIRE KEY 20 GT\nb EXPIRE KEY 50 LT\nb EXPIRE KEY 20 LT\nb EXPIRE KEY 50 LT\na GET KEY"
		}
	}
	refereed(t, stories)
}

const compareAndDelete = `"if redis.call('get',KEYS[1])==ARGV[1] then return redis.call('del',KEYS[1]) else return 0 end"`

func TestReferee_EXECComparesWhatWasWatched(t *testing.T) {
	t.Parallel()
	stories := map[string]string{}
	for name, meanwhile := range map[string]string{
		"nothing":                      "",
		"another watched key is taken": "b SET {KEY}2 x-0000001 NX PX 5000",
		"it is released":               "b DEL KEY",
		"lost and taken by another":    "b DEL KEY\nb SET KEY other-00001 NX PX 60000",
		"taken anew, same value":       "b DEL KEY\nb SET KEY mine-000001 NX PX 60000",
		"taken anew, here":             "a DEL KEY\na SET KEY mine-000001 NX PX 60000",
		"prolonged":                    "b PEXPIRE KEY 60000",
		"shortened":                    "b PEXPIRE KEY 40000",
		"prolonged by its owner":       "a PEXPIRE KEY 60000",
		"another value":                "b SET KEY other-00001 XX PX 50000",
		"unwatched":                    "b PEXPIRE KEY 40000\na UNWATCH",
		"discarded":                    "b PEXPIRE KEY 40000\na MULTI\na DISCARD",
	} {
		for _, change := range []string{"DEL KEY", "UNLINK KEY", "PEXPIRE KEY 50000", "EXPIRE KEY 30", "PEXPIRE KEY 5", "PEXPIRE KEY 0", "PSETEX KEY 50000 mine-000001", "SETEX KEY 50 next-000001",
			"SET KEY next-000001 PX 50000", "SET KEY2 other-00001 NX PX 9000", "EVAL " + compareAndDelete + " 1 KEY mine-000001", "PTTL none", ""} {
			if blind := strings.Contains(change, "SETEX") || strings.HasPrefix(change, "SET KEY "); blind && (name == "unwatched" || name == "discarded") {
				continue // it compares with nothing
			}
			stories[name+", "+change[:min(len(change), 16)]] = "a SET KEY mine-000001 NX PX 50000\na WATCH KEY {KEY}2\na GET KEY\n" + meanwhile + "\na MULTI\na " + change + "\na EXEC\n~b GET KEY\nb GET {KEY}2\na EXEC"
		}
	}
	for name, meanwhile := range map[string]string{"nothing": "", "taken": "b SET KEY other-00001 NX PX 60000"} {
		for _, change := range []string{"DEL KEY", "PEXPIRE KEY 5000", "PSETEX KEY 50000 mine-000001", "SET KEY mine-000001 EX 50", "SET KEY mine-000001 NX PX 5000"} {
			stories["free, then "+name+", "+change[:6]] = "a WATCH KEY\na GET KEY\n" + meanwhile + "\na MULTI\na " + change + "\na EXEC\nb GET KEY"
		}
	}
	for name, story := range stories {
		lines := strings.Split(story, "\n")
		lines = slices.DeleteFunc(lines, func(line string) bool { return line == "" || line == "a " })
		stories[name] = strings.Join(lines, "\n")
	}
	refereed(t, stories)
}

func TestReferee_OneCommandIsATransaction(t *testing.T) {
	t.Parallel()
	refereed(t, map[string]string{
		"SET NX":        "a MULTI\na SET KEY token-000001 NX PX 9000\na EXEC\nb SET KEY token-000002 NX PX 9000\nb MULTI\nb SET KEY token-000002 NX PX 9000\nb EXEC\na GET KEY",
		"a release":     "a SET KEY token-000001 NX PX 9000\nb MULTI\nb EVAL " + compareAndDelete + " 1 KEY token-000002\nb EXEC\na MULTI\na EVAL " + compareAndDelete + " 1 KEY token-000001\na EXEC\nb GET KEY",
		"PSETEX":        "a SET KEY token-000001 NX PX 9000\na WATCH KEY\na GET KEY\na MULTI\na PSETEX KEY 50000 token-000001\na EXEC\nb GET KEY",
		"DEL, no WATCH": "a SET KEY token-000001 NX PX 9000\nb MULTI\nb DEL KEY\nb EXEC\na GET KEY",
		"DEL, no GET":   "a SET KEY token-000001 NX PX 9000\nb WATCH KEY\nb MULTI\nb DEL KEY\nb EXEC\na GET KEY",
		"several":       "a SET KEY token-000001 NX PX 9000\nb MULTI\nb DEL KEY {KEY}2 KEY\nb EXEC\na GET KEY",
		"a wrong one":   "a MULTI\na PEXPIRE KEY x\na EXEC\na MULTI\na PEXPIRE KEY\na EXEC",
	})
}

func TestReferee_ManyKeysOfOneCommand(t *testing.T) {
	t.Parallel()
	var many strings.Builder
	for i := range 300 {
		fmt.Fprintf(&many, " {KEY}%d", i)
	}
	story := ""
	for _, i := range []int{0, 63, 64, 128, 299} {
		story += fmt.Sprintf("a SET {KEY}%d token-000001 NX PX 50000\n", i)
	}
	refereed(t, map[string]string{"many": story + "b EXISTS" + many.String() + "\nb EXISTS" + many.String() + " {KEY}64\nb DEL" + many.String() + "\nb UNLINK" + many.String() + "\na EXISTS" + many.String()})
}

// Shapes of scripts in public code. What they do becomes redlockd's own operations, and the replies are
// those of Redis, in each state of the key.
func TestReferee_ScriptsAnswerAsTheirAuthorsExpect(t *testing.T) {
	t.Parallel()
	stories := map[string]string{}
	story := func(name, text, call string) {
		play := ""
		for _, state := range []string{
			"DEL KEY", "SET KEY token-000001 NX PX 60000", "SET KEY token-000001 NX PX 20000", "SET KEY another-0001 NX PX 60000",
		} {
			play += "a DEL KEY\na " + state + "\n" + strings.ReplaceAll("b EVAL \""+text+"\" "+call, "TOKEN", "token-000001") + "\na GET KEY\na EXISTS KEY\n"
		}
		stories[name] = play
	}
	story("text answer", "if redis.call('get',KEYS[1]) == ARGV[1] then return tostring(redis.call('del',KEYS[1]) == 1) else return 'false' end", "1 KEY TOKEN")
	story("no answer", "local key, id = KEYS[1], ARGV[1] if redis.call('get', key) == id then redis.call('del', key) end", "1 KEY TOKEN")
	story("token and time in KEYS", "if redis.call('GET', KEYS[1]) == KEYS[3] then return redis.call('SET', KEYS[1], KEYS[3], 'PX', KEYS[2], 'XX') end return 0", "3 KEY 5000 TOKEN")
	story("optional lease", "local n = redis.call('setnx', KEYS[1], ARGV[1]) local ms = tonumber(ARGV[2]) if n == 1 and ms > 0 then redis.call('pexpire', KEYS[1], ms) end return n", "1 KEY TOKEN 5000")
	story("persist elsewhere", "if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end if ARGV[2] ~= '-1' then redis.call('EXPIRE', KEYS[1], ARGV[2]) else redis.call('PERSIST', KEYS[1]) end return 1", "1 KEY TOKEN 9")
	story("seconds added", "if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end local left = redis.call('TTL', KEYS[1]) if left < 0 then return 0 end redis.call('EXPIRE', KEYS[1], left + ARGV[2]) return 1", "1 KEY TOKEN 5")
	story("free counts as released", "local v = redis.call('get', KEYS[1]) if v == ARGV[1] then redis.call('del', KEYS[1]) return 1 end if not v then return 1 end return 0", "1 KEY TOKEN")
	story("status table", "local r = redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) if r and r.ok == 'OK' then return 1 end return 0", "1 KEY TOKEN 5000")
	story("take and tell", "redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) return redis.call('GET', KEYS[1])", "1 KEY TOKEN 5000")
	story("only if longer", "if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end if redis.call('PTTL', KEYS[1]) < tonumber(ARGV[2]) then redis.call('PEXPIRE', KEYS[1], ARGV[2]) end return 1", "1 KEY TOKEN 30000")
	story("GT", "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('PEXPIRE', KEYS[1], ARGV[2], 'GT') end return -1", "1 KEY TOKEN 30000")
	story("LT", "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('PEXPIRE', KEYS[1], ARGV[2], 'LT') end return -1", "1 KEY TOKEN 30000")
	story("three answers", "local v = redis.call('get', KEYS[1]) if not v then return -1 end if v ~= ARGV[1] then return 0 end return redis.call('del', KEYS[1])", "1 KEY TOKEN")
	story("error reply", "local v = redis.call('get', KEYS[1]) if v and v ~= ARGV[1] then return redis.error_reply('-BUSYLOCK by another') end return redis.call('set', KEYS[1], ARGV[1], 'PX', ARGV[2])", "1 KEY TOKEN 5000")
	refereed(t, stories)
}

// What Lua and an evaluator see differently changes nothing on the masters: such texts are refused, and
// the daemon's other keys stay. The masters see no text but redlockd's own.
func TestDropIn_NoTextOfAClientRunsOnAMaster(t *testing.T) {
	t.Parallel()
	servers := faulty.StartGroup(t, 3)
	one := dial(t, serveHere(t, addresses(servers), "--bootstrap"))
	one.ready(t)
	one.types(t, "SET victim somebody NX PX 60000", "+OK", "SET k token-000001 NX PX 60000", "+OK")
	var watchers []*client
	for _, s := range servers {
		w := dial(t, s.Addr())
		if got := w.ask(t, "MONITOR"); got != "+OK" {
			t.Fatal(got)
		}
		watchers = append(watchers, w)
	}
	const harmless = "if redis.call('get',KEYS[1]) == ARGV[1] then return redis.call('pexpire',KEYS[1],ARGV[2]) end return 0"
	texts := []string{harmless, "return redis.call('get', KEYS[1])", "if redis.call('set',KEYS[1],ARGV[1],'NX','PX',ARGV[2]) then return 'CLIENTTEXT' end return 0"}
	for _, condition := range []string{
		"tostring(-0) == '0'", "tostring(100000000000000) == '100000000000000'", "1e14 .. '' == '100000000000000'", "string.format('%d', 3) == '3'",
		"9007199254740993 == 9007199254740992", "(function() return true end)()", "#{[redis.call('set','x','1')]=1} == 0", "({1, n = redis.call('del','victim')})[1] == 1",
		"2^53 + 1 == 2^53", "tostring(0/0) == 'nan'", "('x'):rep(2) == 'xx'", "pcall(redis.call, 'del', 'victim')", "not --[[ ]] redis.call('del','victim')",
	} {
		texts = append(texts, "if "+condition+" then "+harmless+" else redis.call('del','victim') return 1 end")
	}
	for _, text := range texts {
		one.reply(t, "EVAL \""+text+"\" 1 k token-000001 30000")
	}
	if got := one.reply(t, "GET victim"); got != `"somebody"` {
		t.Errorf("the victim is %s", got)
	}
	one.types(t, "DUNLOCK k token-000001", ":1")
	for i, w := range watchers {
		if got := dial(t, servers[i].Addr()).ask(t, "ECHO the-end"); got != "$7" {
			t.Fatal(got)
		}
		n := 0
		for line := w.line(t); !strings.Contains(line, "the-end"); line = w.line(t) {
			n++
			if strings.Contains(line, "CLIENTTEXT") || strings.Contains(line, "tostring") || strings.Contains(strings.ToUpper(line), "\"EVAL\"") || strings.Contains(line, "victim") && strings.Contains(line, "del") {
				t.Errorf("master %d received %s", i, line)
			}
		}
		if n == 0 {
			t.Errorf("nothing was seen of master %d", i)
		}
	}
}

// A client that is told that it has the lock really has it.
func TestDropIn_OfManyClientsOneIsToldThatItHasTheLock(t *testing.T) {
	t.Parallel()
	servers := faulty.StartGroup(t, 5)
	bootstrapGroup(t, servers)
	one, two := serveHere(t, addresses(servers)), serveHere(t, addresses(servers))
	for _, text := range []string{
		"if redis.call('set',KEYS[1],ARGV[1],'NX','PX',ARGV[2]) then return -1 end return redis.call('pttl',KEYS[1])",
		"redis.call('set',KEYS[1],ARGV[1],'NX','PX',ARGV[2]) return true",
		"redis.call('set',KEYS[1],ARGV[1],'NX','PX',ARGV[2]) return redis.call('pttl',KEYS[1]) == -1",
	} {
		c := dial(t, one)
		c.ready(t)
		if got := c.reply(t, "EVAL \""+text+"\" 1 k token-000001 20000"); got != "-ERR" {
			t.Errorf("%s: %s", text, got)
		}
	}
	const take = "if redis.call('set',KEYS[1],ARGV[1],'NX','PX',ARGV[2]) then return 'mine' end return redis.call('pttl',KEYS[1])"
	dial(t, two).ready(t)
	for round := range 10 {
		key := fmt.Sprint("race-", round)
		var clients []*client
		for i := range 8 {
			clients = append(clients, dial(t, []string{one, two}[i%2]))
		}
		for i, c := range clients {
			c.send(t, "EVAL %q 1 %s token-00000%d 20000", take, key, i)
		}
		winner := ""
		for i, c := range clients {
			if got := c.rest(t, c.line(t)); got == `"mine"` {
				if winner != "" {
					t.Errorf("%s: two were told that they have it", key)
				}
				winner = fmt.Sprint("token-00000", i)
			}
		}
		if winner != "" {
			clients[0].types(t, "DUNLOCK "+key+" "+winner, ":1")
		}
	}
}

// Redisson with one slot for all its channels: the subscription changes its channel while locks are taken and
// released, through this daemon and another one, and no release is missed.
func TestDropIn_ASubscriptionThatChangesItsChannelMissesNoRelease(t *testing.T) {
	t.Parallel()
	servers := faulty.StartGroup(t, 3)
	bootstrapGroup(t, servers)
	one, two := serveHere(t, addresses(servers)), serveHere(t, addresses(servers))
	waiter, sub := dial(t, one), dial(t, one)
	holders := []*client{dial(t, one), dial(t, two)}
	for _, holder := range holders {
		holder.ready(t)
	}
	const taken, waits = "nil", ":"
	say := func(c *client, want, format string, args ...any) {
		t.Helper()
		if got := c.reply(t, fmt.Sprintf(format, args...)); !strings.HasPrefix(got, want) {
			t.Fatalf("%s: %s, want %s", fmt.Sprintf(format, args...), got, want)
		}
	}
	take := "EVALSHA 149c5a8bf18676fd99e9e6e24923bd64d9b62f94 1 %s 30000 owner-%d:1"
	leave := "EVALSHA 6866459238a13a701d42f4971f12d9f3a50e2442 3 %s redisson_lock__channel:{%[1]s} latch 0 30000 owner-%[2]d:1 publish 3000"
	warm := dial(t, one) // events of another daemon come from about a second after the first subscription
	warm.reply(t, "SUBSCRIBE dlock:warm")
	eventually(t, "events of the other daemon arrive", func() bool {
		holders[1].types(t, "DUNLOCK warm "+holders[1].lock(t, "warm"), ":1")
		return warm.hasReply(t)
	}, func() string { return "" })
	warm.reply(t, "UNSUBSCRIBE dlock:warm") // nobody subscribes to anything from here on, but for sub
	warm.Close()
	for i := range 12 {
		key, holder := fmt.Sprint("lock-", i%3), holders[i%2]
		say(holder, taken, take, key, 1)
		say(waiter, waits, take, key, 2)
		say(sub, "", "SUBSCRIBE redisson_lock__channel:{%s}", key)
		say(waiter, waits, take, key, 2)
		say(holder, ":1", leave, key, 1)
		if got, want := sub.rest(t, sub.line(t)), fmt.Sprintf(`["message" "redisson_lock__channel:{%s}" "0"]`, key); got != want {
			t.Fatalf("round %d: received %s, want %s", i, got, want)
		}
		say(waiter, taken, take, key, 2)
		say(sub, "[\"unsubscribe\"", "UNSUBSCRIBE redisson_lock__channel:{%s}", key)
		say(waiter, ":1", leave, key, 2)
	}
}
