// draw.js keeps the figures of the last minutes and draws them.
import { make, setText } from "./rows.js";

const span = 180000; // ms that a chart shows

// quantile is one of the counts by upper bound that were added between two polls, -1 for
// none.
export function quantile(now, before, part) {
  const added = Object.entries(now).map(([bound, n]) => [Number(bound), n - (before[bound] || 0)]);
  let rank = part * added.reduce((sum, [, n]) => sum + n, 0);
  for (const [bound, n] of added) if (n > 0 && (rank -= n) <= 0) return bound;
  return -1;
}

// extend adds a point {at, values} to a line and removes what is too old. Five seconds
// without a poll interrupt the line.
export function extend(line, at, values) {
  if (line.length && at - line[line.length - 1].at > 5000) line.push({ at: at - 1, values: values.map(() => -1) });
  line.push({ at, values });
  while (at - line[0].at > span) line.shift();
}

function svg(tag, attributes) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  return element;
}

// path draws the i-th values of a line; a value below 0 was not measured and is a gap. A
// line begins one poll before its first point, since a value is that of the time between.
function path(line, i, width, height, top, shown = span) {
  const now = line.length ? line[line.length - 1].at : 0;
  let text = "";
  let down = false;
  for (const { at, values } of line) {
    const x = width * (1 - (now - at) / shown);
    const y = height - 1 - (height - 2) * (values[i] / top);
    const begin = (x - (width * 1000) / shown).toFixed(1);
    if (values[i] >= 0) text += down ? `L${x.toFixed(1)} ${y.toFixed(1)}` : `M${begin} ${y.toFixed(1)}H${x.toFixed(1)}`;
    down = values[i] >= 0;
  }
  return text;
}

// nice is the next round number above.
function nice(value) {
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 5, 10].map((step) => step * power).find((n) => n >= value * 0.999);
}

// chart draws a line with several values into a figure: names are those of the values, write
// formats one, empty stands where nothing was measured, least is the lowest scale.
export function chart(figure, line, names, write, empty, least) {
  if (!figure.querySelector("svg")) {
    const picture = svg("svg", { viewBox: "0 0 600 112", preserveAspectRatio: "none", "aria-hidden": "true" });
    picture.append(svg("path", { class: "grid", d: "M0 1H600M0 56H600M0 111H600" }), ...names.map((_, i) => svg("path", { class: "series-" + i })));
    figure.querySelector("figcaption").append(make("span", "legend", ...names.map((_, i) => make("span", "series-" + i))));
    figure.append(make("div", "plot", make("div", "scale", make("span"), make("span"), make("span")), picture,
      make("div", "axis", make("span", "", "3 min ago"), make("span", "", "now")), make("p", "empty")));
  }
  const measured = line.flatMap((point) => point.values).filter((value) => value >= 0);
  const top = nice(Math.max(least, ...measured));
  [top, top / 2, 0].forEach((n, i) => setText(figure.querySelectorAll(".scale span")[i], measured.length ? write(n) : ""));
  setText(figure.querySelector(".empty"), measured.length ? "" : empty);
  names.forEach((name, i) => {
    figure.querySelector("path.series-" + i).setAttribute("d", path(line, i, 600, 112, top));
    const last = line.length ? line[line.length - 1].values[i] : -1;
    setText(figure.querySelector(".legend .series-" + i), name + " " + (last < 0 ? "–" : write(last)));
  });
}

// spark draws one small line into a cell, with the last value behind it.
export function spark(cell, line, write) {
  if (!cell.firstElementChild) {
    const picture = svg("svg", { class: "spark", viewBox: "0 0 120 20", preserveAspectRatio: "none", "aria-hidden": "true" });
    picture.append(svg("path", {}));
    cell.append(picture, make("span"));
  }
  cell.querySelector("path").setAttribute("d", path(line, 0, 120, 20, Math.max(1000, ...line.map((point) => point.values[0])), span / 3));
  setText(cell.lastElementChild, line.length ? write(line[line.length - 1].values[0]) : "–");
}
