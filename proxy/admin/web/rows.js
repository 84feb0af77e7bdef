// rows.js shows lists as rows of tables, and formats numbers. Text is set by textContent
// alone, so every key is text, whatever its bytes.

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

// rows shows items in a body: a row has a cell for each class name, and fill writes an item
// into it. Rows are kept as long as their items exist, so the focus stays where it is; when
// its row is removed, the row in its place gets it, or otherwise.
export function rows(body, items, nameOf, classNames, fill, otherwise) {
  const active = body.contains(document.activeElement) ? document.activeElement : null;
  const place = active ? [...body.children].indexOf(active.closest("tr")) : -1;
  const heads = body.closest("table") ? [...body.closest("table").querySelectorAll("th")] : [];
  const kept = new Map([...body.children].map((row) => [row.dataset.name, row]));
  const wanted = items.map((item, i) => {
    const name = nameOf ? nameOf(item) : String(i);
    const row = kept.get(name) || make("tr", "", ...classNames.map((className, n) => {
      const cell = make("td", className);
      cell.dataset.label = heads[n].textContent;
      return cell;
    }));
    kept.delete(name);
    row.dataset.name = name;
    fill(row.children, item);
    return row;
  });
  for (const row of kept.values()) row.remove();
  wanted.forEach((row, i) => {
    if (body.children[i] !== row) body.insertBefore(row, body.children[i] || null);
  });
  if (!active || document.activeElement === active) return;
  if (body.contains(active)) return active.focus({ preventScroll: true });
  (wanted[Math.min(place, wanted.length - 1)]?.querySelector("button") || otherwise || body).focus();
}

// middle shows a text that loses its middle when there is too little space.
export function middle(element, text) {
  if (element.textContent === text) return;
  const letters = [...text];
  const tail = letters.length > 16 ? 8 : 0;
  element.replaceChildren(make("span", "", letters.slice(0, letters.length - tail).join("")), make("span", "", letters.slice(letters.length - tail).join("")));
  element.title = text;
}

// time formats milliseconds for people.
export function time(ms) {
  if (ms < 10000) return (Math.max(ms, 0) / 1000).toFixed(1) + " s";
  const s = Math.round(ms / 1000);
  const two = (n) => String(n).padStart(2, "0");
  if (s < 120) return s + " s";
  if (s < 7200) return `${Math.floor(s / 60)} min ${two(s % 60)} s`;
  if (s < 172800) return `${Math.floor(s / 3600)} h ${two(Math.floor(s / 60) % 60)} min`;
  return Math.floor(s / 86400) + " days";
}

// micros formats microseconds, "–" for what was not measured.
export function micros(us) {
  if (us < 0) return "–";
  if (us < 1000) return us ? Math.round(us) + " µs" : "0";
  if (us < 1e6) return +(us / 1000).toPrecision(2) + " ms";
  return +(us / 1e6).toPrecision(2) + " s";
}

export const number = (n) => n.toLocaleString("en", { maximumFractionDigits: n < 10 ? 1 : 0 });

// clock is the time of day in this browser's zone.
export const clock = (at) => new Date(at).toLocaleTimeString("en-GB") + "." + String(at % 1000).padStart(3, "0");
