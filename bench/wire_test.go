// The shipped daemon with usual clients: the built binary, and redis-cli, go-redis and
// rueidis with their default options.

package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"
)

// typeInto runs redis-cli once and returns its output.
func typeInto(t *testing.T, d *daemon, words ...string) string {
	t.Helper()
	host, port, err := net.SplitHostPort(d.address)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), startTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, "redis-cli", append([]string{"-h", host, "-p", port, "--no-raw"}, words...)...)
	output, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("redis-cli %q: %v\n%s", words, err, output)
	}
	return strings.TrimRight(string(output), "\n")
}

// expect runs a command and requires the whole answer to match.
func expect(t *testing.T, d *daemon, pattern string, words ...string) []string {
	t.Helper()
	answer := typeInto(t, d, words...)
	match := regexp.MustCompile(`(?s)\A` + pattern + `\z`).FindStringSubmatch(answer)
	if match == nil {
		t.Fatalf("redis-cli %s answers\n%s\nwant a match of %s", strings.Join(words, " "), answer, pattern)
	}
	return match
}

// grantShown is a token of 27 characters, a validity below 30 s and a fence.
const grantShown = `1\) "([0-9A-Za-z_-]{27})"\n2\) \(integer\) [12]?\d{4}\n3\) \(integer\) [1-9]\d*`

func TestRedisCLI_LocksExtendsAndReleases(t *testing.T) {
	needCLI(t)
	onBothKinds(t, func(t *testing.T, d *daemon) {
		expect(t, d, `PONG`, "PING")
		token := expect(t, d, grantShown, "DLOCK", "invoices", "30000")[1]
		expect(t, d, `\(nil\)`, "DLOCK", "invoices", "30000")
		expect(t, d, `\(integer\) 0`, "DUNLOCK", "invoices", "not-the-token")
		expect(t, d, `\(integer\) 3\d{4}`, "DEXTEND", "invoices", token, "40000")
		expect(t, d, `\(nil\)`, "DEXTEND", "invoices", "not-the-token", "40000")
		expect(t, d, `\(integer\) 1`, "DUNLOCK", "invoices", token)
		expect(t, d, `\(integer\) 0`, "DUNLOCK", "invoices", token)
		expect(t, d, `\(nil\)`, "DEXTEND", "invoices", token, "40000")
		expect(t, d, `\(error\) ERR .*ttl.*`, "DLOCK", "invoices", "soon")
	})
}

func TestRedisCLI_SpeaksTheThirdProtocol(t *testing.T) {
	needCLI(t)
	onBothKinds(t, func(t *testing.T, d *daemon) {
		token := expect(t, d, grantShown, "-3", "DLOCK", "invoices", "30000")[1]
		expect(t, d, `\(nil\)`, "-3", "DLOCK", "invoices", "30000")
		expect(t, d, `\(integer\) 1`, "-3", "DUNLOCK", "invoices", token)
		expect(t, d, `.*"server" => "redis".*"proto" => \(integer\) 3.*`, "-3", "HELLO", "3")
		expect(t, d, `.*"server".*"proto"\n *\d+\) \(integer\) 2.*`, "HELLO", "2")
	})
}

func TestGoRedis_WorksWithItsDefaults(t *testing.T) {
	onBothKinds(t, func(t *testing.T, d *daemon) {
		ctx := t.Context()
		client := redis.NewClient(&redis.Options{Addr: d.address})
		defer client.Close()
		if pong, err := client.Ping(ctx).Result(); err != nil || pong != "PONG" {
			t.Fatalf("PING: %q, %v", pong, err)
		}
		token := goRedisLock(t, client, "invoices")
		if err := client.Do(ctx, "DLOCK", "invoices", 30000).Err(); !errors.Is(err, redis.Nil) {
			t.Errorf("a second DLOCK: %v, want nil", err)
		}
		if left, err := client.Do(ctx, "DEXTEND", "invoices", token, 40000).Int64(); err != nil || left <= 30000 || left > 40000 {
			t.Errorf("DEXTEND: %d, %v", left, err)
		}
		if n, err := client.Do(ctx, "DUNLOCK", "invoices", token).Int64(); err != nil || n != 1 {
			t.Errorf("DUNLOCK: %d, %v", n, err)
		}
		goRedisPipeline(t, client)
		goRedisSelect(t, client)
	})
}

func goRedisLock(t *testing.T, client redis.Cmdable, key string) (token string) {
	t.Helper()
	doer := client.(interface {
		Do(context.Context, ...any) *redis.Cmd
	})
	return tokenOf(t, doer.Do(t.Context(), "DLOCK", key, 30000))
}

// tokenOf expects a grant: token, validity, fence.
func tokenOf(t *testing.T, cmd *redis.Cmd) string {
	t.Helper()
	grant, err := cmd.Slice()
	if err != nil || len(grant) != 3 {
		t.Fatalf("%v: %v", cmd, err)
	}
	token, isText := grant[0].(string)
	validity, isNumber := grant[1].(int64)
	if fence, ok := grant[2].(int64); !isText || !isNumber || !ok || validity <= 0 || validity > 30000 || fence <= 0 {
		t.Fatalf("%v: want a token, a validity above 0 and a fence above 0", cmd)
	}
	return token
}

func goRedisPipeline(t *testing.T, client *redis.Client) {
	t.Helper()
	const n = 100
	pipe := client.Pipeline()
	for i := range n {
		pipe.Do(t.Context(), "DLOCK", fmt.Sprintf("page:%d", i), 30000)
	}
	grants, err := pipe.Exec(t.Context())
	if err != nil || len(grants) != n {
		t.Fatalf("a pipeline of %d DLOCK: %d answers, %v", n, len(grants), err)
	}
	for i, cmd := range grants {
		pipe.Do(t.Context(), "DUNLOCK", fmt.Sprintf("page:%d", i), tokenOf(t, cmd.(*redis.Cmd)))
	}
	releases, err := pipe.Exec(t.Context())
	if err != nil {
		t.Fatalf("a pipeline of %d DUNLOCK: %v", n, err)
	}
	for _, cmd := range releases {
		if released, err := cmd.(*redis.Cmd).Int64(); err != nil || released != 1 {
			t.Errorf("%v: want 1", cmd)
		}
	}
}

// goRedisSelect: databases are apart from each other.
func goRedisSelect(t *testing.T, client *redis.Client) {
	t.Helper()
	goRedisLock(t, client, "orders")
	conn := client.Conn()
	defer conn.Close()
	if err := conn.Select(t.Context(), 1).Err(); err != nil {
		t.Fatalf("SELECT 1: %v", err)
	}
	goRedisLock(t, conn, "orders")
	if err := conn.Select(t.Context(), 0).Err(); err != nil {
		t.Fatalf("SELECT 0: %v", err)
	}
	if err := conn.Do(t.Context(), "DLOCK", "orders", 30000).Err(); !errors.Is(err, redis.Nil) {
		t.Errorf("DLOCK of a key locked in database 0: %v, want nil", err)
	}
}

func TestRueidis_WorksWithItsDefaults(t *testing.T) {
	onBothKinds(t, func(t *testing.T, d *daemon) {
		ctx := t.Context()
		client, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{d.address}})
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
		if pong, err := client.Do(ctx, client.B().Ping().Build()).ToString(); err != nil || pong != "PONG" {
			t.Fatalf("PING: %q, %v", pong, err)
		}
		token := rueidisToken(t, client.Do(ctx, dlock(client, "invoices")))
		if err := client.Do(ctx, dlock(client, "invoices")).Error(); !rueidis.IsRedisNil(err) {
			t.Errorf("a second DLOCK: %v, want nil", err)
		}
		extend := client.B().Arbitrary("DEXTEND").Keys("invoices").Args(token, "40000").Build()
		if left, err := client.Do(ctx, extend).AsInt64(); err != nil || left <= 30000 || left > 40000 {
			t.Errorf("DEXTEND: %d, %v", left, err)
		}
		if n, err := client.Do(ctx, dunlock(client, "invoices", token)).AsInt64(); err != nil || n != 1 {
			t.Errorf("DUNLOCK: %d, %v", n, err)
		}
		rueidisPipeline(t, client)
		rueidisSelect(t, client)
	})
}

func dlock(client rueidis.CoreClient, key string) rueidis.Completed {
	return client.B().Arbitrary("DLOCK").Keys(key).Args("30000").Build()
}

func dunlock(client rueidis.CoreClient, key, token string) rueidis.Completed {
	return client.B().Arbitrary("DUNLOCK").Keys(key).Args(token).Build()
}

func rueidisToken(t *testing.T, result rueidis.RedisResult) string {
	t.Helper()
	grant, err := result.ToArray()
	if err != nil || len(grant) != 3 {
		t.Fatalf("DLOCK: %v, %v", grant, err)
	}
	token, err := grant[0].ToString()
	if err != nil {
		t.Fatalf("the token of a grant: %v", err)
	}
	return token
}

func rueidisPipeline(t *testing.T, client rueidis.Client) {
	t.Helper()
	var locks, releases rueidis.Commands
	for i := range 100 {
		locks = append(locks, dlock(client, fmt.Sprintf("page:%d", i)))
	}
	for i, result := range client.DoMulti(t.Context(), locks...) {
		releases = append(releases, dunlock(client, fmt.Sprintf("page:%d", i), rueidisToken(t, result)))
	}
	for _, result := range client.DoMulti(t.Context(), releases...) {
		if n, err := result.AsInt64(); err != nil || n != 1 {
			t.Errorf("DUNLOCK in a pipeline: %d, %v", n, err)
		}
	}
}

func rueidisSelect(t *testing.T, client rueidis.Client) {
	t.Helper()
	rueidisToken(t, client.Do(t.Context(), dlock(client, "orders")))
	own, release := client.Dedicate()
	defer release()
	if err := own.Do(t.Context(), own.B().Select().Index(1).Build()).Error(); err != nil {
		t.Fatalf("SELECT 1: %v", err)
	}
	rueidisToken(t, own.Do(t.Context(), dlock(own, "orders")))
}

func TestDaemon_DrainsAndExitsWithZeroOnTheFirstSignal(t *testing.T) {
	onBothKinds(t, func(t *testing.T, d *daemon) {
		c := dialDaemon(t, d)
		if r, err := c.do("DLOCK", "invoices", "30000"); err != nil || r.Kind != '*' {
			t.Fatalf("DLOCK: %c, %v", r.Kind, err)
		}
		if err := d.process.signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		waitGone(t, d)
		if d.process.err != nil {
			t.Errorf("the daemon ended with %v, want exit code 0", d.process.err)
		}
		if _, err := c.read(); err == nil {
			t.Error("the connection was not closed")
		}
	})
}

// A client that does not read its replies keeps the drain waiting; without the
// second signal the daemon would go on, and then exit with 0.
//
// Such a client is cut off after ten seconds and the drain is over. So a machine
// that needs more than that for the second signal has several tries; a daemon
// that ignores the signal exits with 0 in all of them.
func TestDaemon_ExitsAtOnceOnTheSecondSignal(t *testing.T) {
	const tries = 5
	for range tries {
		switch d := twoSignals(t); d.process.cmd.ProcessState.ExitCode() {
		case 1:
			return
		case 0: // the drain was over before
		default:
			t.Fatalf("the daemon ended with %v, want exit code 1", d.process.err)
		}
	}
	t.Errorf("the daemon ended with exit code 0 in %d tries, want 1", tries)
}

// twoSignals sends a daemon that cannot end its drain a second signal, and
// returns it when it is gone.
func twoSignals(t *testing.T) *daemon {
	t.Helper()
	d := launch(t, "--embedded", "3", "--drain-timeout", "10m")
	fillReplies(t, d)
	if err := d.process.signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	err := d.process.waitFor("refusing new clients", func() bool {
		conn, err := net.Dial("tcp", d.address)
		if err == nil {
			conn.Close()
		}
		return err != nil
	})
	select {
	case <-d.process.exited: // on a busy machine its replies may have fitted after all
		return d
	default:
	}
	if err != nil {
		t.Fatal(err)
	}
	_ = d.process.signal(syscall.SIGTERM) // the drain may end just now
	waitGone(t, d)
	return d
}

// fillReplies sends without reading until the daemon executes nothing more of this
// client, however often another one is answered.
func fillReplies(t *testing.T, d *daemon) {
	t.Helper()
	const still = 20 // replies to another client in a row
	c, other := dialDaemon(t, d), dialDaemon(t, d)
	c.queue("ECHO", strings.Repeat("x", 32<<10))
	echo, sent, sending := c.out, new(atomic.Int64), make(chan struct{})
	go func() {
		defer close(sending)
		for {
			n, err := c.conn.Write(echo)
			if sent.Add(int64(n)); err != nil {
				return
			}
		}
	}()
	t.Cleanup(func() { c.close(); <-sending })
	end := time.Now().Add(startTimeout)
	for unchanged, before, left := 0, executed(t, other), sent.Load(); unchanged < still; {
		now, leaves := executed(t, other), sent.Load()
		if unchanged++; now != before+1 || leaves != left || now <= still+2 { // INFO itself is one
			unchanged = 0
		}
		before, left = now, leaves
		if time.Now().After(end) {
			t.Fatalf("the daemon still executes: %d commands, %d bytes sent", now, leaves)
		}
	}
}

// executed is how many commands the daemon has executed.
func executed(t *testing.T, c *respConn) int {
	t.Helper()
	info, err := c.do("INFO", "stats")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(info.Text, "total_commands_processed:")
	line, _, _ := strings.Cut(rest, "\r\n")
	n, err := strconv.Atoi(line)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func dialDaemon(t *testing.T, d *daemon) *respConn {
	t.Helper()
	c, err := dialRESP(t.Context(), d.address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.close)
	return c
}

func waitGone(t *testing.T, d *daemon) {
	t.Helper()
	select {
	case <-d.process.exited:
	case <-time.After(startTimeout):
		t.Fatalf("the daemon still runs after %v", startTimeout)
	}
}
