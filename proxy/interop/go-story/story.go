// Package story runs the story of proxy/interop through any Go client of Redis: its
// requests, the expected replies, and the lines that the driver reads.
package story

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"runtime/debug"
	"strings"
	"time"
)

// Nil is how a Library tells that the library answered its nil.
var Nil = errors.New("nil")

// Client is one client of the library. Values are string, int64 and []any.
type Client interface {
	// Do sends one command; the error is Nil, the library's own for an error
	// reply, or that of the connection.
	Do(ctx context.Context, args ...string) (any, error)
	// Pipeline sends many commands before it reads the first reply.
	Pipeline(ctx context.Context, commands [][]string) ([]any, error)
	Close() error
}

// Library makes clients with the library's defaults, changed only as the
// program's variant says. An empty password is none.
type Library struct {
	Module   string // its import path, as in go.mod
	Connect  func(ctx context.Context, address, password string) (Client, error)
	IsServer func(error) bool // an error reply, not a fault of the connection
}

var errSkipped = errors.New("the daemon has none")

// teller is one telling of the story.
type teller struct {
	library Library
	client  Client
	key     string
	answers *bufio.Scanner
	token   string
	fence   int64
}

// Tell plays all steps and ends the process.
func Tell(library Library) {
	t := &teller{library: library, key: os.Getenv("REDLOCKD_KEY"), answers: bufio.NewScanner(os.Stdin)}
	fmt.Println("library", version(library.Module))
	ctx := context.Background()
	if os.Getenv("REDLOCKD_ROLLING") != "" {
		t.roll(ctx)
		return
	}
	for _, step := range []struct {
		name string
		play func(context.Context) error
	}{
		{"connect", t.connect}, {"ping", t.ping}, {"password", t.password}, {"dlock", t.dlock},
		{"taken", t.taken}, {"dunlock", t.dunlock}, {"dextend", t.dextend}, {"dnextid", t.dnextid},
		{"error", t.errorReply}, {"pipeline", t.pipeline}, {"dmlock", t.dmlock}, {"wait", t.turn}, {"reconnect", t.reconnect}, {"close", t.close},
	} {
		limited, cancel := context.WithTimeout(ctx, 60*time.Second)
		err := step.play(limited)
		cancel()
		switch {
		case errors.Is(err, errSkipped):
			fmt.Println("skip", step.name, err)
		case err != nil:
			fmt.Println("fail", step.name, strings.ReplaceAll(err.Error(), "\n", " "))
			os.Exit(1)
		default:
			fmt.Println("ok", step.name)
		}
	}
}

func version(module string) string {
	build, _ := debug.ReadBuildInfo()
	for _, m := range build.Deps {
		if m.Path == module {
			return strings.TrimPrefix(m.Version, "v")
		}
	}
	return "unknown"
}

func (t *teller) connect(ctx context.Context) (err error) {
	if t.client, err = t.library.Connect(ctx, os.Getenv("REDLOCKD_ADDR"), ""); err != nil {
		return err
	}
	return t.expect(ctx, "hello", "ECHO", "hello")
}

var resp = regexp.MustCompile(`resp=([23])`)

func (t *teller) ping(ctx context.Context) error {
	if err := t.expect(ctx, "PONG", "PING"); err != nil {
		return err
	}
	info, err := t.client.Do(ctx, "CLIENT", "INFO")
	if err != nil {
		return err
	}
	found := resp.FindStringSubmatch(fmt.Sprint(info))
	if found == nil {
		return fmt.Errorf("CLIENT INFO %v", info)
	}
	fmt.Println("protocol", found[1])
	return nil
}

func (t *teller) password(ctx context.Context) error {
	password, address := os.Getenv("REDLOCKD_PASSWORD"), os.Getenv("REDLOCKD_PASSWORD_ADDR")
	if password == "" {
		return errSkipped
	}
	right, err := t.library.Connect(ctx, address, password)
	if err != nil {
		return err
	}
	defer right.Close()
	if got, err := right.Do(ctx, "PING"); err != nil || got != "PONG" {
		return fmt.Errorf("PING with the right password: %v, %w", got, err)
	}
	wrong, err := t.library.Connect(ctx, address, "wrong")
	if err == nil { // this library connects when it is first used
		defer wrong.Close()
		_, err = wrong.Do(ctx, "PING")
	}
	if err == nil || !strings.Contains(err.Error(), "WRONGPASS") && !strings.Contains(err.Error(), "NOAUTH") {
		return fmt.Errorf("a wrong password: %w", err)
	}
	return nil
}

func (t *teller) dlock(ctx context.Context) (err error) {
	t.token, t.fence, err = t.grant(ctx, 30000)
	return err
}

func (t *teller) taken(ctx context.Context) error {
	return t.expect(ctx, nil, "DLOCK", t.key, "30000")
}

func (t *teller) dunlock(ctx context.Context) error {
	if err := t.expect(ctx, int64(0), "DUNLOCK", t.key, "not-the-token"); err != nil {
		return err
	}
	return t.expect(ctx, int64(1), "DUNLOCK", t.key, t.token)
}

func (t *teller) dextend(ctx context.Context) error {
	token, fence, err := t.grant(ctx, 20000)
	if err != nil {
		return err
	}
	if fence <= t.fence {
		return fmt.Errorf("the fence does not rise: %d, %d", t.fence, fence)
	}
	validity, err := t.client.Do(ctx, "DEXTEND", t.key, token, "40000")
	if n, ok := validity.(int64); err != nil || !ok || n <= 30000 || n > 40000 {
		return fmt.Errorf("DEXTEND: %#v, %w", validity, err)
	}
	if err := t.expect(ctx, nil, "DEXTEND", t.key, "not-the-token", "40000"); err != nil {
		return err
	}
	return t.expect(ctx, int64(1), "DUNLOCK", t.key, token)
}

func (t *teller) dnextid(ctx context.Context) error {
	last := int64(0)
	for range 2 {
		id, err := t.client.Do(ctx, "DNEXTID", t.key)
		n, ok := id.(int64)
		if err != nil || !ok || n <= last {
			return fmt.Errorf("after id %d: %#v, %w", last, id, err)
		}
		last = n
	}
	return nil
}

func (t *teller) errorReply(ctx context.Context) error {
	got, err := t.client.Do(ctx, "DLOCK", t.key, "5")
	if err == nil || errors.Is(err, Nil) || !t.library.IsServer(err) || !strings.Contains(err.Error(), "ttl '5'") {
		return fmt.Errorf("a ttl of 5 ms: %v, %w", got, err)
	}
	return t.expect(ctx, "PONG", "PING")
}

func (t *teller) pipeline(ctx context.Context) error {
	grants, err := t.client.Pipeline(ctx, t.hundred("DLOCK", "30000", "TOKEN", "interop-token"))
	if err != nil || len(grants) != 100 {
		return fmt.Errorf("%d grants, %w", len(grants), err)
	}
	for _, g := range grants {
		if parts, ok := g.([]any); !ok || len(parts) != 3 || parts[0] != "interop-token" {
			return fmt.Errorf("grant %#v", g)
		}
	}
	released, err := t.client.Pipeline(ctx, t.hundred("DUNLOCK", "interop-token"))
	if err != nil || len(released) != 100 {
		return fmt.Errorf("%d releases, %w", len(released), err)
	}
	for _, r := range released {
		if r != int64(1) {
			return fmt.Errorf("release %#v", r)
		}
	}
	return nil
}

// hundred is a word for a hundred keys.
func (t *teller) hundred(word string, rest ...string) [][]string {
	commands := make([][]string, 100)
	for i := range commands {
		commands[i] = append([]string{word, fmt.Sprintf("%s:%d", t.key, i)}, rest...)
	}
	return commands
}

// dmlock takes two keys, which are not in one slot.
func (t *teller) dmlock(ctx context.Context) error {
	one, two := t.key+":a", t.key+":b"
	token, _, err := t.granted(ctx, 30000, "DMLOCK", "30000", "2", one, two)
	if err != nil {
		return err
	}
	return t.expect(ctx, int64(2), "DMUNLOCK", token, "2", one, two)
}

// turn waits until a lock expires.
func (t *teller) turn(ctx context.Context) error {
	if _, _, err := t.grant(ctx, 100); err != nil {
		return err
	}
	token, _, err := t.grant(ctx, 30000, "WAIT", "20000")
	if err != nil {
		return err
	}
	return t.expect(ctx, int64(1), "DUNLOCK", t.key, token)
}

// reconnect accepts errors of the connection until the daemon is back, or until the client has
// found the other daemons of a cluster.
func (t *teller) reconnect(ctx context.Context) error {
	if err := t.wait(cmp.Or(os.Getenv("REDLOCKD_OUTAGE"), "restart")); err != nil {
		return err
	}
	for range 200 {
		if t.pipeline(ctx) == nil {
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	token, _, err := t.grant(ctx, 30000)
	if err != nil {
		return err
	}
	return t.expect(ctx, int64(1), "DUNLOCK", t.key, token)
}

func (t *teller) close(context.Context) error {
	if err := t.client.Close(); err != nil {
		return err
	}
	return t.wait("gone")
}

// wait has the driver do something.
func (t *teller) wait(what string) error {
	fmt.Println("wait", what)
	if !t.answers.Scan() || t.answers.Text() != what {
		return fmt.Errorf("the driver did not answer %s", what)
	}
	return nil
}

// expect: nil stands for the library's nil.
func (t *teller) expect(ctx context.Context, wanted any, args ...string) error {
	got, err := t.client.Do(ctx, args...)
	if errors.Is(err, Nil) {
		got, err = nil, nil
	} else if err == nil && got == nil {
		return fmt.Errorf("%v: neither a value nor nil", args)
	}
	if err != nil || got != wanted {
		return fmt.Errorf("%v: got %#v, wanted %#v, %w", args, got, wanted, err)
	}
	return nil
}

// grant takes the lock of the story.
func (t *teller) grant(ctx context.Context, ttl int64, options ...string) (token string, fence int64, err error) {
	return t.granted(ctx, ttl, append([]string{"DLOCK", t.key, fmt.Sprint(ttl)}, options...)...)
}

func (t *teller) granted(ctx context.Context, ttl int64, args ...string) (token string, fence int64, err error) {
	got, err := t.client.Do(ctx, args...)
	if err != nil {
		return "", 0, err
	}
	parts, _ := got.([]any)
	if len(parts) != 3 {
		return "", 0, fmt.Errorf("a grant has three elements: %#v", got)
	}
	token, ok1 := parts[0].(string)
	validity, ok2 := parts[1].(int64)
	fence, ok3 := parts[2].(int64)
	if !ok1 || !ok2 || !ok3 || len(token) != 27 || validity <= 0 || validity > ttl || fence <= 1<<50 {
		return "", 0, fmt.Errorf("grant %#v", got)
	}
	return token, fence, nil
}
