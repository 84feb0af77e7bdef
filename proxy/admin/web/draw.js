// draw.js draws charts and lines of numbers.
import { make, setText } from "./rows.js";

const namespace = "http://www.w3.org/2000/svg";
// minPoints is the width of a chart that has just begun, in seconds.
const minPoints = 60;

export function svg(tag, attributes) {
  const element = document.createElementNS(namespace, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  return element;
}

// path draws values from the right. A value below 0 was not measured; the line has a gap
// there. A single point is a short line.
function path(values, width, height, maxValue) {
  const step = width / (Math.max(values.length, minPoints) - 1);
  let text = "";
  let down = false;
  values.forEach((value, i) => {
    if (value < 0) {
      down = false;
      return;
    }
    const x = width - (values.length - 1 - i) * step;
    const y = height - 2 - (height - 6) * Math.min(1, value / maxValue);
    text += (down ? "L" : "M") + x.toFixed(1) + " " + y.toFixed(1) + (down ? "" : "h.5");
    down = true;
  });
  return text;
}

// nice returns the next round number above.
function nice(value) {
  const power = 10 ** Math.floor(Math.log10(value));
  for (const step of [1, 2, 5, 10]) if (step * power >= value) return step * power;
  return value;
}

// chart draws series, each {name, values}, with a legend of the last values.
export function chart(picture, legend, series, write) {
  const maxValue = nice(Math.max(1, ...series.flatMap((s) => s.values)));
  while (picture.childElementCount < series.length + 1) {
    picture.append(picture.childElementCount === 0
      ? svg("path", { class: "grid", d: "M0 4H600M0 61H600" })
      : svg("path", { class: "line series-" + (picture.childElementCount - 1) }));
  }
  while (legend.childElementCount < series.length + 1) {
    const i = legend.childElementCount;
    legend.append(i === 0 ? make("i", "quiet") : make("span", "series-" + (i - 1)));
  }
  setText(legend.firstElementChild, "up to " + write(maxValue));
  const words = series.map((s, i) => {
    picture.children[i + 1].setAttribute("d", path(s.values, 600, 120, maxValue));
    const last = s.values.length ? s.values[s.values.length - 1] : -1;
    const text = s.name + " " + (last < 0 ? "–" : write(last));
    setText(legend.children[i + 1], text);
    return text;
  });
  picture.setAttribute("aria-label", "now: " + words.join(", "));
}

// spark draws one small line into a cell, with the last value behind it.
export function spark(cell, values, write) {
  if (!cell.firstElementChild) {
    const picture = svg("svg", { class: "spark", viewBox: "0 0 120 18", "aria-hidden": "true" });
    picture.append(svg("path", { class: "line" }));
    cell.append(picture, make("span", ""));
  }
  const all = (values || []).slice(-minPoints);
  cell.firstElementChild.firstElementChild.setAttribute("d", path(all, 120, 18, Math.max(500, ...all)));
  setText(cell.lastElementChild, all.length ? write(all[all.length - 1]) : "–");
}
