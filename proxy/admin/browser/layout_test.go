package browser

// layout_test.go tests how the page looks on a phone, a laptop and a large screen, with few
// and many locks.

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

// longKey has its distinctive part at the end, as keys often do.
const longKey = "tenants/eu-central-1/customers/000000000042/orders/2031/11/invoices/reconciliation/part-0017"

func TestPage_LooksRightInEverySizeWithAnyNumberOfLocks(t *testing.T) {
	s := newScene(t, "--max-ttl=1h")
	c := s.client(t, "worker-7")
	v := s.open(t, "operator")
	held := 0
	for _, want := range []int{0, 10, 5000} {
		for ; held < want; held++ {
			key, words := fmt.Sprintf("orders:%05d", held), []any{}
			switch held {
			case 3:
				key, words = longKey, []any{"META", "nightly reconciliation of all invoices of the year, started by the scheduler"}
			case 4:
				words = []any{"LIMIT", "12"}
			case 5:
				words = []any{"SHARED"}
			}
			if held < 10 { // the masters may still be dialled
				do(t, c, "DEXTEND", key, lock(t, c, key, words...), 3600000)
			} else {
				do(t, c, "DLOCK", key, 3600000)
			}
		}
		v.until(fmt.Sprintf("the page shows %d locks", want), fmt.Sprintf(`document.querySelectorAll("#locks tr").length >= %d`, min(want, 50)))
		v.until("all fences are known", `[...document.querySelectorAll("#locks tr")].every(r => /^[0-9]{16,}$/.test(r.children[6].textContent))`)
		v.until("figures are drawn", `document.querySelector("#rate path.series-0")?.getAttribute("d").includes("L")`)
		for _, width := range []int64{390, 1280, 1920} {
			name := fmt.Sprintf("%d-%d", width, want)
			v.shoot(name, width, map[int64]int64{390: 1600, 1280: 1000, 1920: 1080}[width])
			v.wellLaidOut(name)
		}
		if empty := eval[bool](v, `document.getElementById("no-locks").hidden`); empty != (want > 0) {
			t.Errorf("with %d locks the hint for none is hidden: %v", want, empty)
		}
	}
	v.walksThroughPages(s, held)
	v.clean(s.url)
}

// walksThroughPages: Next shows other locks, Previous the first ones; a pattern and a whole
// key find theirs.
func (v *viewer) walksThroughPages(s *scene, held int) {
	v.t.Helper()
	keys := func() string {
		return eval[string](v, `[...document.querySelectorAll("#locks button")].map(b => b.textContent).join(" ")`)
	}
	turn := func(button string, page int) {
		v.t.Helper()
		v.run(chromedp.Evaluate(`document.getElementById("`+button+`").click()`, nil))
		v.until(fmt.Sprintf("page %d is there", page), fmt.Sprintf(`document.getElementById("count").textContent === "page %d" && document.querySelectorAll("#locks tr").length >= 40`, page))
	}
	v.until("there are more pages", `!document.getElementById("later").disabled`)
	turn("later", 2)
	turn("earlier", 1) // the list before may be of the time when there were fewer locks
	first := keys()
	turn("later", 2)
	second := keys()
	for _, key := range strings.Fields(second) {
		if strings.Contains(" "+first+" ", " "+key+" ") {
			v.t.Errorf("%s is on two pages", key)
		}
	}
	turn("earlier", 1)
	v.until("it has the same locks", `[...document.querySelectorAll("#locks button")].map(b => b.textContent).join(" ") === `+quote(first))
	for _, c := range []struct {
		pattern string
		want    int
	}{{"orders:0004?", 10}, {longKey, 1}, {"nothing", 0}, {"part-0017", 1}, {"no such key", 0}, {fmt.Sprintf("orders:%05d", held-1), 1}} {
		pattern, want := c.pattern, c.want // never as many as before: the list before must not pass
		v.run(chromedp.Evaluate(`document.getElementById("search").value = `+quote(pattern)+`; document.getElementById("search").dispatchEvent(new Event("input"))`, nil))
		v.until(fmt.Sprintf("%s finds %d", pattern, want), fmt.Sprintf(`document.querySelectorAll("#locks tr").length === %d && (%[1]d > 0 || document.getElementById("list-note").textContent.includes("matches"))`, want))
	}
}

// wellLaidOut fails the test if something on the page has no space.
func (v *viewer) wellLaidOut(name string) {
	v.t.Helper()
	for _, fault := range eval[[]string](v, layoutFaults) {
		v.t.Errorf("%s: %s", name, fault)
	}
}

// layoutFaults lists what is wrong: sideways scrolling, cut fences and keys, small buttons,
// texts over one another. What an ancestor clips does not count as shown.
const layoutFaults = `(() => {
  const faults = [], box = e => e.getBoundingClientRect(), shown = e => e.checkVisibility() && box(e).width > 1 && !e.closest(".hidden, .skip");
  const wide = document.scrollingElement.scrollWidth;
  if (wide > innerWidth) faults.push("the page is " + wide + " px wide of " + innerWidth);
  for (const e of document.querySelectorAll("td.fence, td.number, th, .state, #detail-holders td")) if (shown(e) && e.scrollWidth > e.clientWidth + 1) faults.push("cut: " + e.textContent);
  for (const e of document.querySelectorAll(".middle")) if (shown(e) && box(e.lastElementChild).right > box(e.closest("td")).right + 1) faults.push("the end of a key is cut: " + e.textContent);
  for (const e of document.querySelectorAll("button, input, select")) if (shown(e) && box(e).height < 32) faults.push(box(e).height + " px high: " + (e.textContent || e.id));
  const modal = [...document.querySelectorAll("dialog[open]")].pop();
  if (modal && (box(modal).left < 0 || box(modal).right > innerWidth || modal.scrollWidth > modal.clientWidth)) faults.push("the dialog is too wide");
  const boxes = [], walker = document.createTreeWalker(modal || document.body, NodeFilter.SHOW_TEXT);
  for (let node; (node = walker.nextNode());) {
    if (!node.data.trim() || !shown(node.parentElement)) continue;
    const range = document.createRange();
    range.selectNodeContents(node);
    for (let r of range.getClientRects()) {
      let [left, top, right, bottom] = [r.left, r.top, r.right, r.bottom];
      for (let e = node.parentElement; e; e = e.parentElement) if (getComputedStyle(e).overflowX !== "visible") {
        const b = box(e);
        [left, top, right, bottom] = [Math.max(left, b.left), Math.max(top, b.top), Math.min(right, b.right), Math.min(bottom, b.bottom)];
      }
      if (right - left > 1 && bottom - top > 1) boxes.push({ left, top, right, bottom, text: node.data.trim(), node });
    }
  }
  boxes.forEach((a, i) => boxes.slice(i + 1).forEach(b => {
    if (a.node !== b.node && Math.min(a.right, b.right) - Math.max(a.left, b.left) > 2 && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 5) faults.push("over one another: " + a.text + " and " + b.text);
  }));
  return faults.slice(0, 10);
})()`

// resize sets the size of the window.
func resize(width, height int64) chromedp.Action {
	return emulation.SetDeviceMetricsOverride(width, height, 1, width < 600)
}
