// rows.js shows lists as rows of tables. Text is set by textContent alone, so every key is
// text, whatever its bytes. Rows are kept as long as their items exist: the focus stays
// where it is.

export const byId = (id) => document.getElementById(id);

// setText writes a text only if it changed: screen readers and selections are not
// disturbed.
export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

// make builds an element.
export function make(tag, className, ...children) {
  const element = document.createElement(tag);
  if (className) element.className = className;
  element.append(...children);
  return element;
}

// cells makes a row with a cell for each class name.
export function cells(...classNames) {
  return make("tr", "", ...classNames.map((name) => make("td", name)));
}

// rows shows items in a body: build makes a row, fill writes an item into it. When the row
// with the focus is removed, the row in its place gets the focus, or otherwise does.
export function rows(body, items, nameOf, build, fill, otherwise) {
  const active = body.contains(document.activeElement) ? document.activeElement : null;
  const place = active ? [...body.children].indexOf(active.closest("tr")) : -1;
  const kept = new Map();
  for (const row of body.children) kept.set(row.dataset.name, row);
  const wanted = items.map((item) => {
    const name = nameOf(item);
    const row = kept.get(name) || build(item);
    kept.delete(name);
    row.dataset.name = name;
    fill(row, item);
    return row;
  });
  for (const row of kept.values()) row.remove();
  wanted.forEach((row, i) => {
    if (body.children[i] !== row) body.insertBefore(row, body.children[i] || null);
  });
  if (!active || document.activeElement === active) return;
  if (body.contains(active)) {
    active.focus({ preventScroll: true });
    return;
  }
  const next = wanted[Math.min(place, wanted.length - 1)];
  const same = next && next.querySelector(`[data-role="${active.dataset.role || "none"}"]`);
  (same || otherwise || body).focus();
}

// time formats milliseconds for people.
export function time(ms) {
  if (ms < 10000) return (ms / 1000).toFixed(1) + " s";
  const s = Math.round(ms / 1000);
  if (s < 120) return s + " s";
  if (s < 7200) return Math.floor(s / 60) + " min " + String(s % 60).padStart(2, "0") + " s";
  if (s < 172800) return Math.floor(s / 3600) + " h " + String(Math.floor(s / 60) % 60).padStart(2, "0") + " min";
  return Math.floor(s / 86400) + " days";
}

// trip formats microseconds.
export function trip(us) {
  if (us < 0) return "–";
  if (us < 1000) return us + " µs";
  return (us / 1000).toFixed(us < 10000 ? 1 : 0) + " ms";
}

const whole = new Intl.NumberFormat("en");
export const number = (n) => whole.format(n);

// clock is the time of day in this browser's zone.
export function clock(at) {
  const t = new Date(at);
  const two = (n) => String(n).padStart(2, "0");
  return `${two(t.getHours())}:${two(t.getMinutes())}:${two(t.getSeconds())}.${String(t.getMilliseconds()).padStart(3, "0")}`;
}
