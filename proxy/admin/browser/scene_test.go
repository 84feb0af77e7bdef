// Package browser tests the page of the admin endpoint as its users see it: a headless Chromium, the daemon as a process, five redis-servers. It
// is a module of its own, so that what drives the browser never enters the
// product's; `make page` runs it.
package browser

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"redlockd/pool/faulty"
)

// testTimeout is how long a test waits for what comes within seconds unless it is
// broken.
const testTimeout = 2 * time.Minute

// root is the directory of the product's module.
const root = "../../.."

var daemonBinary string

func TestMain(m *testing.M) { os.Exit(withDaemon(m)) }

func withDaemon(m *testing.M) int {
	dir, err := os.MkdirTemp("", "page")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	daemonBinary = filepath.Join(dir, "redlockd")
	build := exec.Command("go", "build", "-trimpath", "-o", daemonBinary, ".")
	build.Dir, build.Stderr = root, os.Stderr
	if err := build.Run(); err != nil {
		fmt.Fprintln(os.Stderr, "go build:", err)
		return 1
	}
	return m.Run()
}

// scene is a daemon on real masters.
type scene struct {
	servers   []*faulty.Server
	port, url string
}

// users: operator may do all, reader may look at a part.
const users = `
[user.operator]
password-sha256 = "%[1]x"
keys = ["*"]
commands = ["lock", "read", "id", "work", "admin", "force"]
[user.reader]
password-sha256 = "%[1]x"
keys = ["invoices*"]
commands = ["read"]
`

const password = "open"

func newScene(t *testing.T, options ...string) *scene {
	t.Helper()
	servers := faulty.StartGroup(t, 5)
	return startScene(t, servers, "--masters="+strings.Join(masters("m", servers), ","), options...)
}

// masters are the names and addresses of servers.
func masters(prefix string, servers []*faulty.Server) (list []string) {
	for i, server := range servers {
		list = append(list, fmt.Sprintf("%s%d=%s", prefix, i+1, server.Addr()))
	}
	return list
}

// startScene starts the daemon; list is the option that names its masters.
func startScene(t *testing.T, servers []*faulty.Server, list string, options ...string) *scene {
	t.Helper()
	s := &scene{servers: servers, port: faulty.FreeAddr(t)}
	if out, err := exec.Command(daemonBinary, append([]string{"bootstrap", list}, options...)...).CombinedOutput(); err != nil {
		t.Fatalf("bootstrap: %v\n%s", err, out)
	}
	file := filepath.Join(t.TempDir(), "users.toml")
	if err := os.WriteFile(file, fmt.Appendf(nil, users, sha256.Sum256([]byte(password))), 0o600); err != nil {
		t.Fatal(err)
	}
	admin := faulty.FreeAddr(t)
	s.url = "http://" + admin
	// On a busy machine masters may answer late.
	options = append(options, list, "--master-timeout=2s", "--listen="+s.port, "--admin-listen="+admin, "--users="+file, "--lock-info", "--drain-grace=0", "--log-level=error")
	faulty.StartProgram(t, s.port, daemonBinary, []string{"PATH=" + os.Getenv("PATH")}, options...)
	eventually(t, "the admin endpoint answers", func() error {
		conn, err := net.Dial("tcp", admin)
		if err == nil {
			conn.Close()
		}
		return err
	})
	return s
}

// client is a connection to the port, signed in as the operator.
func (s *scene) client(t *testing.T, name string) *faulty.Conn {
	t.Helper()
	c, err := faulty.Dial(s.port, testTimeout)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	do(t, c, "AUTH", "operator", password)
	do(t, c, "CLIENT", "SETNAME", name)
	return c
}

func do(t *testing.T, c *faulty.Conn, words ...any) any {
	t.Helper()
	reply, err := c.Do(words...)
	if err != nil {
		t.Fatalf("%v: %v", words, err)
	}
	return reply
}

// lock takes a lock, when the masters have been admitted, and returns its token.
func lock(t *testing.T, c *faulty.Conn, key string, words ...any) (token string) {
	t.Helper()
	eventually(t, "DLOCK "+key, func() error {
		reply, err := c.Do(append([]any{"DLOCK", key, "60000"}, words...)...)
		if err != nil {
			return err
		}
		list, ok := reply.([]any)
		if !ok {
			return fmt.Errorf("it answered %v", reply)
		}
		token = list[0].(string)
		return nil
	})
	return token
}

// mark is how a token is shown.
func mark(token string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(token)))[:8] }

// eventually waits until happened returns no objection.
func eventually(t *testing.T, what string, happened func() error) {
	t.Helper()
	err := happened()
	for end := time.Now().Add(testTimeout); err != nil && time.Now().Before(end); err = happened() {
		time.Sleep(100 * time.Millisecond)
	}
	if err != nil {
		t.Fatalf("waited in vain: %s: %v", what, err)
	}
}

// viewer is a browser with the page open.
type viewer struct {
	t   *testing.T
	ctx context.Context

	mu       sync.Mutex
	asked    []string // addresses that the browser requested
	troubles []string // dialogs that opened, errors of scripts, what the policy refused
}

// open starts a browser for a user and opens the page.
func (s *scene) open(t *testing.T, user string) *viewer {
	t.Helper()
	options := append(slices.Clone(chromedp.DefaultExecAllocatorOptions[:]), chromedp.WindowSize(1440, 900),
		chromedp.WSURLReadTimeout(testTimeout)) // a busy machine starts Chromium slowly
	if os.Geteuid() == 0 {
		options = append(options, chromedp.NoSandbox) // Chromium refuses to be root otherwise
	}
	limit, end := context.WithTimeout(context.Background(), 3*testTimeout)
	t.Cleanup(end)
	machine, end := chromedp.NewExecAllocator(limit, options...)
	t.Cleanup(end)
	ctx, end := chromedp.NewContext(machine)
	t.Cleanup(end)
	v := &viewer{t: t, ctx: ctx}
	chromedp.ListenTarget(ctx, v.hear)
	v.run(network.Enable(), runtime.Enable(), chromedp.Navigate("http://"+user+":"+password+"@"+strings.TrimPrefix(s.url, "http://")+"/"))
	v.until("the page is live", `document.getElementById("live").dataset.state === "live"`)
	return v
}

func (v *viewer) hear(event any) {
	v.mu.Lock()
	defer v.mu.Unlock()
	switch e := event.(type) {
	case *network.EventRequestWillBeSent:
		v.asked = append(v.asked, e.Request.URL)
	case *page.EventJavascriptDialogOpening:
		v.troubles = append(v.troubles, "a dialog: "+e.Message)
	case *runtime.EventExceptionThrown:
		v.troubles = append(v.troubles, e.ExceptionDetails.Error())
	case *runtime.EventConsoleAPICalled:
		v.troubles = append(v.troubles, fmt.Sprintf("console.%s %v", e.Type, e.Args))
	}
}

// clean fails the test if scripts failed or other servers were requested.
func (v *viewer) clean(origin string) {
	v.t.Helper()
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, trouble := range v.troubles {
		v.t.Error(trouble)
	}
	for _, address := range v.asked {
		if place, err := url.Parse(address); err != nil || place.Scheme+"://"+place.Host != origin {
			v.t.Errorf("the page asks for %s", address)
		}
	}
}

func (v *viewer) run(actions ...chromedp.Action) {
	v.t.Helper()
	if err := chromedp.Run(v.ctx, actions...); err != nil {
		v.t.Fatal(err)
	}
}

// eval reads the value of an expression.
func eval[T any](v *viewer, expression string) (value T) {
	v.t.Helper()
	v.run(chromedp.Evaluate(expression, &value))
	return value
}

// until waits for a condition on the page.
func (v *viewer) until(what, condition string) {
	v.t.Helper()
	eventually(v.t, what, func() error {
		if eval[bool](v, condition) {
			return nil
		}
		return fmt.Errorf("the page reads:\n%s", eval[string](v, "document.body.innerText"))
	})
}

// locks are the rows of the list, by key: the texts of the cells.
func (v *viewer) locks() map[string][]string {
	v.t.Helper()
	rows := eval[[][]string](v, `[...document.querySelectorAll("#locks tr")].map(r => [...r.children].map(c => c.textContent))`)
	all := map[string][]string{}
	for _, row := range rows {
		all[row[0]] = row
	}
	return all
}

func quote(text string) string {
	quoted, _ := json.Marshal(text) // a string always can be
	return string(quoted)
}

// scheme requests light or dark.
func (v *viewer) scheme(name string) {
	v.t.Helper()
	v.run(emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: name}}))
}
