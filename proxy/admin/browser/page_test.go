package browser

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// The list is what stands on the masters: no more, no less, with its token,
// fence and time.
func TestPage_ShowsWhatTheMastersHold(t *testing.T) {
	s := newScene(t)
	c := s.client(t, "billing-1")
	tokens := map[string]string{}
	for _, key := range []string{"invoices", "orders:7", "report"} {
		tokens[key] = lock(t, c, key)
	}
	lock(t, c, "catalogue", "SHARED")
	lock(t, c, "printers", "LIMIT", "3")
	v := s.open(t, "operator")
	v.until("five locks with their fences", `[...document.querySelectorAll("#locks tr")].filter(r => /^[0-9]{10,}$/.test(r.children[6].textContent)).length === 5`)
	held := map[string]bool{}
	for _, server := range s.servers {
		for _, key := range server.Keys() {
			if !strings.HasPrefix(key, "redlockd:") {
				held[key] = true
			}
		}
	}
	shown := v.locks()
	if len(shown) != len(held) {
		t.Errorf("the page shows %v, the masters hold %v", shown, held)
	}
	for key := range held {
		if shown[key] == nil {
			t.Errorf("the masters hold %s, the page does not show it", key)
		}
	}
	for key, mode := range map[string]string{"invoices": "exclusive", "catalogue": "shared", "printers": "permits 1 of 3"} {
		if row := shown[key]; row == nil || row[2] != mode || !strings.Contains(row[1], "billing-1") {
			t.Errorf("%s: %q, want the mode %s, held by billing-1", key, row, mode)
		}
	}
	do(t, c, "DUNLOCK", "invoices", tokens["invoices"])
	v.until("the released lock is gone", `![...document.querySelectorAll("#locks tr")].some(r => r.children[0].textContent === "invoices")`)
	v.until("its release is among the events", `[...document.querySelectorAll("#events tr")].some(r => r.textContent.includes("released") && r.textContent.includes(`+quote(mark(tokens["invoices"]))+`))`)
	v.clean(s.url)
}

func TestPage_AKeyWithMarkupIsText(t *testing.T) {
	s := newScene(t)
	c := s.client(t, "<b>mallory</b>")
	const nasty = `<img src=x onerror="document.title='owned';alert(1)">`
	const turned = "safe\u202egnp.exe"
	lock(t, c, nasty, "META", `<script>alert(2)</script>`)
	lock(t, c, turned)
	waiter := s.client(t, "waiter")
	if err := waiter.Send("DLOCK", nasty, "1000", "WAIT", "60000"); err != nil {
		t.Fatal(err)
	}
	v := s.open(t, "operator")
	v.until("the name is there as it is", `[...document.querySelectorAll("#locks tr")].some(r => r.children[0].textContent === `+quote(nasty)+`)`)
	v.until("marks that turn the direction of writing are written out", `[...document.querySelectorAll("#locks tr")].some(r => r.children[0].textContent === `+quote(`"safe\u202egnp.exe"`)+`)`)
	v.until("who waits for it is there", `[...document.querySelectorAll("#waiters tr")].some(r => r.children[0].textContent === `+quote(nasty)+`)`)
	v.run(chromedp.Evaluate(`[...document.querySelectorAll("#locks button.link")].find(b => b.textContent.startsWith("<img")).click()`, nil))
	v.until("its details are there", `document.getElementById("detail-holders").textContent.includes("<script>alert(2)</script>")`)
	if n := eval[int](v, `document.querySelectorAll("main img, main script, main b, dialog img, dialog script").length`); n != 0 {
		t.Errorf("%d elements were made of the name", n)
	}
	if title := eval[string](v, "document.title"); !strings.Contains(title, "redlockd") {
		t.Errorf("the title is %q", title)
	}
	v.clean(s.url)
}

// A person without a mouse: search, walk to the button, confirm.
func TestPage_ForceUnlocksWithTheKeyboardAlone(t *testing.T) {
	s := newScene(t)
	c := s.client(t, "worker")
	lock(t, c, "invoices")
	lock(t, c, "orders")
	v := s.open(t, "operator")
	v.until("both locks are there", `document.querySelectorAll("#locks tr").length === 2`)
	v.slash()
	v.focused("search")
	v.run(chromedp.KeyEvent("invoi"))
	v.until("the search has an answer", `document.querySelectorAll("#locks tr").length === 1`)
	v.tabTo(`document.activeElement.matches("#locks button")`)
	if outline := eval[string](v, "getComputedStyle(document.activeElement).outlineStyle"); outline == "none" {
		t.Error("the focus cannot be seen")
	}
	v.run(chromedp.KeyEvent(kb.Enter))
	v.until("its details are open", `document.getElementById("detail").open && document.getElementById("detail-votes").childElementCount === 5`)
	v.tabTo(`document.activeElement.id === "ask-force"`)
	v.run(chromedp.KeyEvent(kb.Enter))
	v.until("it asks", `document.getElementById("force").open`)
	v.focused("force-no")
	v.run(chromedp.KeyEvent(kb.Escape))
	v.until("Escape is no", `!document.getElementById("force").open`)
	if s.copies("invoices") < 3 {
		t.Fatal("it was released although nobody confirmed it")
	}
	v.focused("ask-force")
	v.run(chromedp.KeyEvent(kb.Enter))
	v.focused("force-no")
	v.tabTo(`document.activeElement.id === "force-yes"`)
	v.run(chromedp.KeyEvent(kb.Enter))
	v.until("the dialog is closed", `!document.getElementById("force").open`)
	eventually(t, "the masters have no copy any more", func() error {
		if n := s.copies("invoices"); n > 0 {
			return fmt.Errorf("%d have one", n)
		}
		return nil
	})
	if n := s.copies("orders"); n < 3 {
		t.Errorf("the other lock has %d copies", n)
	}
	v.until("the row is gone", `document.querySelectorAll("#locks tr").length === 0`)
	v.focused("search") // not lost with the row
	v.until("the event is told", `[...document.querySelectorAll("#events tr")].some(r => r.textContent.includes("forced"))`)
	v.clean(s.url)
}

// slash presses the key as a keyboard does: a page that takes it for itself gets
// no character. KeyEvent sends one in any case.
func (v *viewer) slash() {
	v.t.Helper()
	key := func(kind input.KeyType) *input.DispatchKeyEventParams {
		return input.DispatchKeyEvent(kind).WithKey("/").WithCode("Slash").WithWindowsVirtualKeyCode(191)
	}
	v.run(key(input.KeyDown).WithText("/"), key(input.KeyUp))
}

func (v *viewer) focused(id string) {
	v.t.Helper()
	v.until(id+" has the focus", "document.activeElement.id === "+quote(id))
}

// tabTo presses Tab until a condition holds.
func (v *viewer) tabTo(condition string) {
	v.t.Helper()
	for range 40 {
		v.run(chromedp.KeyEvent(kb.Tab))
		if eval[bool](v, condition) {
			return
		}
	}
	v.t.Fatalf("40 times Tab did not lead to %s", condition)
}

// copies is how many masters hold a key.
func (s *scene) copies(key string) (n int) {
	for _, server := range s.servers {
		for _, one := range server.Keys() {
			if one == key {
				n++
			}
		}
	}
	return n
}

func TestPage_ShowsAUserOnlyWhatTheyMay(t *testing.T) {
	s := newScene(t)
	c := s.client(t, "worker")
	lock(t, c, "invoices:1")
	lock(t, c, "secret")
	v := s.open(t, "reader")
	v.until("the own lock is there", `document.querySelectorAll("#locks tr").length > 0`)
	if shown := v.locks(); shown["invoices:1"] == nil || len(shown) != 1 {
		t.Errorf("a reader of invoices* sees %v", shown)
	}
	v.run(chromedp.Evaluate(`document.querySelector("#locks button").click()`, nil))
	v.until("the details are open", `document.getElementById("detail-votes").childElementCount === 5`)
	if !eval[bool](v, `document.getElementById("ask-force").hidden`) {
		t.Error("a button for what the user may not do")
	}
	v.clean(s.url)
}

// Names for users who cannot see, contrast for users who see little.
func TestPage_CanBeReadInLightAndInDark(t *testing.T) {
	s := newScene(t)
	lock(t, s.client(t, "worker"), "invoices")
	s.servers[4].Kill()
	v := s.open(t, "operator")
	v.until("figures are drawn", `document.querySelector("#rate path.series-0")?.getAttribute("d").includes("L")`)
	v.until("the lock can be opened", `document.querySelectorAll("#locks tr").length === 1`)
	v.run(chromedp.Evaluate(`document.querySelector("#locks button").click()`, nil))
	v.until("the lock and the headline are there", `document.querySelectorAll("#locks tr").length === 1 && document.getElementById("headline").dataset.level === "warn"`)
	grounds := map[string]float64{}
	for _, scheme := range []string{"light", "dark"} {
		v.scheme(scheme)
		grounds[scheme] = eval[float64](v, contrast+`; luminance(getComputedStyle(document.body).backgroundColor)`)
		for _, selector := range []string{"#lines li", "#summary", "#locks td", "#locks button", ".state", "th", "footer", "#facts", "button", ".legend span", ".scale span", ".empty", "dialog button", "dialog dt"} {
			if ratio := eval[float64](v, contrast+`; ratio(`+quote(selector)+`)`); ratio < 4.5 {
				t.Errorf("%s: the contrast of %s is %.1f, want at least 4.5", scheme, selector, ratio)
			}
		}
	}
	if grounds["light"] < 0.8 || grounds["dark"] > 0.1 {
		t.Errorf("the grounds' luminances are %v", grounds)
	}
	v.run(chromedp.Evaluate(`document.getElementById("detail").close()`, nil))
	v.namesForAll()
	v.clean(s.url)
}

// contrast is the arithmetic of WCAG 2, success criterion 1.4.3.
const contrast = `
var parts = c => c.match(/[0-9.]+/g).map(Number);
var luminance = c => { const [r, g, b] = parts(c).map(x => x / 255).map(x => x <= .04045 ? x / 12.92 : ((x + .055) / 1.055) ** 2.4); return .2126 * r + .7152 * g + .0722 * b; };
var ground = e => { for (; e; e = e.parentElement) { const c = getComputedStyle(e).backgroundColor, p = parts(c); if (p.length < 4 || p[3] > 0) return c; } return "rgb(255, 255, 255)"; };
var ratio = s => Math.min(...[...document.querySelectorAll(s)].filter(e => e.textContent && e.getClientRects().length && !e.disabled).map(e => {
  const a = luminance(getComputedStyle(e).color), b = luminance(ground(e));
  return (Math.max(a, b) + .05) / (Math.min(a, b) + .05);
}))`

// namesForAll: every control has a name.
func (v *viewer) namesForAll() {
	v.t.Helper()
	type said struct {
		Value any `json:"value"`
	}
	var tree struct {
		Nodes []struct {
			Ignored bool `json:"ignored"`
			Role    said `json:"role"`
			Name    said `json:"name"`
		} `json:"nodes"`
	}
	v.run(chromedp.ActionFunc(func(ctx context.Context) error {
		return cdp.Execute(ctx, "Accessibility.getFullAXTree", nil, &tree)
	}))
	operable := 0
	for _, n := range tree.Nodes {
		switch n.Role.Value {
		case "button", "searchbox", "textbox", "combobox", "link", "region", "navigation":
			if operable++; !n.Ignored && (n.Name.Value == nil || n.Name.Value == "") {
				v.t.Errorf("a %s has no name", n.Role.Value)
			}
		}
	}
	if operable < 8 {
		v.t.Errorf("%d things can be operated: the tree was not read", operable)
	}
}

// Three in the morning: a master stopped, one restarted empty, and somebody holds
// a lock for which others wait.
func TestPage_NamesTheCauseInOneLook(t *testing.T) {
	s := newScene(t)
	holder := s.client(t, "worker-7")
	lock(t, holder, "invoices", "META", "nightly run", "HOLD")
	for i := range 3 {
		if err := s.client(t, fmt.Sprintf("web-%d", i)).Send("DLOCK", "invoices", "10000", "WAIT", "600000"); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 12 {
		lock(t, holder, fmt.Sprintf("orders:%04d", 17*i))
	}
	lock(t, holder, "catalogue", "SHARED")
	lock(t, holder, "printers", "LIMIT", "3")
	s.servers[3].RestartEmpty()
	s.servers[1].Stop()
	v := s.open(t, "operator")
	stop := s.traffic(t)
	defer stop()
	v.until("the epoch stands beside the masters", `document.getElementById("epoch").innerText === "epoch 1 · daemons 1"`)
	v.until("the masters are named", `/2 of 5 masters cannot vote: m2 has been down for .*, m4 is quarantined for another /.test(document.getElementById("lines").innerText)`)
	v.until("the stuck key is named", `/Key invoices has been held .* by nightly run \(worker-7 .* with 3 waiting, the first for/.test(document.getElementById("lines").innerText)`)
	if level := eval[string](v, `document.getElementById("headline").dataset.level`); level != "warn" {
		t.Errorf("the level is %q", level)
	}
	v.until("the daemon is named", `/^[^ ]+\/[0-9]+$/.test(document.getElementById("daemon").textContent) && document.title.includes(document.getElementById("daemon").textContent)`)
	v.until("the icon has the verdict's colour", `document.getElementById("icon").href.endsWith("icon.svg?level=warn")`)
	v.until("the runbook's cards are named", `["A master's state", "A lock that is not released"].every(card => [...document.querySelectorAll("#lines li")].some(li => li.dataset.card === card)) && document.querySelector('#masters td[data-card="A master that is down"]') !== null`)
	v.until("what requests wait for comes first", `document.querySelector("#locks button").textContent === "invoices"`)
	v.until("who waits for one key stands together", `document.querySelectorAll("#waiters tr").length === 3 && [...document.querySelectorAll("#waiters tr")].map(r => r.children[0].textContent).join() === "invoices,,"`)
	v.until("META comes first", `[...document.querySelectorAll("#locks tr")].some(r => r.children[0].textContent === "invoices" && r.children[1].textContent.startsWith("nightly run"))`)
	points := 5
	if os.Getenv("PAGE_SHOTS") != "" {
		points = 40 // a picture is to show lines
	}
	v.until("figures flow", fmt.Sprintf(`document.querySelector("#rate path.series-0").getAttribute("d").split("L").length > %d`, points))
	for _, scheme := range []string{"light", "dark"} {
		v.scheme(scheme)
		v.shoot(scheme, 1280, 1100)
		v.wellLaidOut(scheme)
		v.shoot(scheme+"-390", 390, 2400)
		if high := eval[float64](v, `Math.max(...[...document.querySelectorAll("#locks tr")].map(r => r.getBoundingClientRect().height))`); high > 84 {
			t.Errorf("a lock is %.0f px high on a phone, more than two lines", high)
		}
		v.wellLaidOut(scheme + " on a phone")
	}
	v.scheme("light")
	v.run(chromedp.Evaluate(`[...document.querySelectorAll("#locks button")].find(b => b.textContent === "invoices").click()`, nil))
	v.until("the details are there", `document.getElementById("detail-votes").childElementCount === 5`)
	for _, width := range []int64{1280, 390} {
		v.shoot(fmt.Sprintf("detail-%d", width), width, 900)
		v.wellLaidOut("the details")
	}
	v.run(chromedp.Evaluate(`document.getElementById("ask-force").click()`, nil))
	v.until("it asks", `document.getElementById("force").open`)
	v.shoot("force", 1280, 1100)
	v.wellLaidOut("the question")
	v.shoot("force-390", 390, 800)
	v.wellLaidOut("the question")
	s.servers[1].Cont()
	v.clean(s.url)
}

// A master that comes and goes votes most of the time, and the verdict is not "all well".
func TestPage_NamesAMasterThatFlaps(t *testing.T) {
	s := newScene(t)
	lock(t, s.client(t, "worker"), "invoices")
	v := s.open(t, "operator")
	voting := `[...document.querySelectorAll("#masters .state")].every(e => e.textContent === "voting")`
	for range 2 {
		v.until("all masters vote", voting)
		s.servers[2].Stop()
		v.until("one does not", `!(`+voting+`)`)
		s.servers[2].Cont()
	}
	v.until("all masters vote, and one flaps", voting+` && document.getElementById("headline").dataset.level === "warn" && /Flapping in the last 5 minutes: .*m3 stopped voting [0-9]+ times/.test(document.getElementById("lines").innerText)`)
	v.clean(s.url)
}

// traffic takes and gives back locks until stop.
func (s *scene) traffic(t *testing.T) (stop func()) {
	t.Helper()
	ended, over := make(chan struct{}), make(chan struct{})
	c := s.client(t, "traffic")
	go func() {
		defer close(over)
		for i := 0; ; i++ {
			select {
			case <-ended:
				return
			default:
			}
			key := fmt.Sprintf("cart:%03d", i%40)
			if reply, err := c.Do("DLOCK", key, "5000"); err == nil {
				if list, ok := reply.([]any); ok {
					_, _ = c.Do("DUNLOCK", key, list[0])
				}
			}
		}
	}()
	return func() { close(ended); <-over }
}
