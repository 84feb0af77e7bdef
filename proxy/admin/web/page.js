// page.js shows the state of the daemon and runs the actions of the page. The daemon sends
// the whole screen once a second; the page keeps only the query.
import { byId, setText, make, cells, rows, time, trip, number, clock } from "./rows.js";
import { chart, spark } from "./draw.js";

const query = { db: "0", search: "", order: "key", offset: 0 };
let about = { version: "", user: "", force: false, databases: [0] };
let paused = false;
let spoken = "";

// urlOf returns a URL of this endpoint, also when the page was opened with a name and
// password in its address, which fetch refuses.
const urlOf = (path) => location.origin + location.pathname.replace(/[^/]*$/, "") + path;

// ---- data from the daemon ----

function showView(v) {
  showHeadline(v.headline, v.draining);
  rows(byId("masters"), v.masters || [], (m) => m.name, masterRow, fillMaster);
  chart(byId("rate"), byId("rate-legend"), [
    { name: "granted", values: v.charts.granted || [] }, { name: "refused", values: v.charts.refused || [] },
    { name: "undecided", values: v.charts.undecided || [] }], (n) => number(Math.round(n)));
  chart(byId("time"), byId("time-legend"), [
    { name: "p50", values: v.charts.p50 || [] }, { name: "p99", values: v.charts.p99 || [] }], trip);
  showLocks(v.locks);
  rows(byId("waiters"), v.waiters.rows, (w) => w.id, () => cells("key", "client", "number", "number", "number"), fillWaiter);
  setText(byId("waiting-count"), v.waiters.all ? number(v.waiters.all) : "");
  setText(byId("no-waiters"), v.waiters.all ? "" : "No client waits in this daemon.");
  setText(byId("facts"), `${about.version} · ${about.user ? "user " + about.user : "no login"} · clients ${number(v.clients)} · operations in flight ${number(v.in_flight)}`);
}

const summaries = { good: "all well", warn: "look here", bad: "not serving" };

function showHeadline(h, draining) {
  const lines = draining ? ["This daemon is stopping.", ...h.lines] : h.lines;
  byId("headline").dataset.level = h.level;
  setText(byId("summary"), summaries[h.level]);
  rows(byId("lines"), lines.map((text, i) => ({ text, i })), (l) => String(l.i), () => make("li"), (e, l) => setText(e, l.text));
  document.title = (h.level === "good" ? "" : "! ") + "redlockd: " + (h.level === "good" ? "all well" : lines[0]);
  const changed = lines.join(" ").replace(/[0-9]+/g, "#"); // passing seconds are no change
  if (changed !== spoken) {
    spoken = changed;
    setText(byId("spoken"), summaries[h.level] + ": " + lines.join(" "));
  }
}

function masterRow() {
  const row = cells("", "", "number", "why", "", "number", "number", "number", "number", "number");
  row.children[1].append(make("span", "state"));
  return row;
}

function fillMaster(row, m) {
  const [name, state, since, why, trips, yes, no, uncounted, queued, pending] = row.children;
  setText(name, m.name);
  name.title = m.address + (m.version ? ", version " + m.version : "") + (m.durable ? ", durable" : "");
  setText(state.firstElementChild, m.state);
  state.firstElementChild.dataset.state = m.state;
  setText(since, time(m.since));
  fillWhy(why, m);
  spark(trips, m.trips, trip);
  [[yes, m.yes], [no, m.no], [uncounted, m.uncounted], [queued, m.queued], [pending, m.pending_releases]].forEach(([cell, n]) => setText(cell, number(n)));
}

function fillWhy(cell, m) {
  if (m.left <= 0) {
    setText(cell, m.state === "voting" && m.version ? `${m.address}${m.durable ? ", durable" : ""}` : m.detail);
    cell.classList.toggle("quiet", m.state === "voting");
    return;
  }
  cell.classList.remove("quiet");
  if (!cell.querySelector("progress")) {
    const bar = make("progress");
    bar.setAttribute("aria-label", "age of its memory");
    cell.replaceChildren(bar, make("span"));
  }
  cell.firstElementChild.max = m.whole;
  cell.firstElementChild.value = m.whole - m.left;
  setText(cell.lastElementChild, "votes in " + time(m.left) + ": " + m.detail);
}

function showLocks(l) {
  const body = byId("locks");
  rows(body, l.rows, (k) => k.id, lockRow, fillLock, byId("search"));
  const counted = l.complete ? "" : ", still counting";
  setText(byId("count"), (query.search ? `${number(l.matches)} of ${number(l.total)}` : number(l.total)) + counted);
  const first = l.matches ? l.offset + 1 : 0;
  setText(byId("range"), `${number(first)}–${number(l.offset + l.rows.length)} of ${number(l.matches)}`);
  byId("earlier").disabled = l.offset === 0;
  byId("later").disabled = l.offset + l.rows.length >= l.matches || l.rows.length === 0;
  let text = "";
  if (l.trouble) text = "The list may be incomplete: " + l.trouble;
  else if (l.full) text = "There are more locks than this list can hold.";
  else if (!l.rows.length) text = query.search ? "No lock that you may see matches." : "No lock that you may see is held.";
  setText(byId("no-locks"), text);
}

function lockRow(k) {
  const row = cells("key", "", "holders", "number", "number", "number", "number", "number");
  const look = make("button", "link");
  look.type = "button";
  look.dataset.role = "look";
  look.addEventListener("click", () => openDetail(k.id, k.key));
  row.children[0].append(look);
  if (about.force) {
    const force = make("button", "danger", "force-unlock…");
    force.type = "button";
    force.dataset.role = "force";
    force.setAttribute("aria-label", "force-unlock " + k.key);
    force.addEventListener("click", () => openForce(row, k));
    row.children[7].append(force);
  }
  return row;
}

function fillLock(row, k) {
  const [key, mode, holders, held, left, waits, fence] = row.children;
  setText(key.firstElementChild, k.key);
  key.firstElementChild.title = k.key;
  setText(mode, k.mode);
  const more = k.count - k.holders.length;
  const names = k.holders.join("; ") + (more > 0 ? ` and ${number(more)} more` : "");
  setText(holders, names);
  holders.title = names;
  setText(held, (k.exactly ? "" : "≥ ") + time(k.held));
  setText(left, time(k.left));
  setText(waits, k.waiting ? number(k.waiting) : "");
  waits.classList.toggle("waits", k.waiting > 0);
  setText(fence, k.fence || "–");
}

function fillWaiter(row, w) {
  const [key, client, position, since, left] = row.children;
  setText(key, w.keys.join(", "));
  key.title = key.textContent;
  setText(client, w.client);
  client.title = w.client + (w.fair ? ", FAIR" : "") + ", " + w.mode;
  setText(position, number(w.place));
  setText(since, time(w.since));
  setText(left, time(w.left));
}

const maxEvents = 100;

function showEvents(e) {
  if (paused) return;
  const body = byId("events");
  for (const one of e.rows) {
    const row = cells("", "word-" + one.word, "key", "");
    [clock(one.at), one.word, one.key, one.token_hash].forEach((text, i) => setText(row.children[i], text));
    row.children[2].title = one.key + (one.fence ? ", fence " + one.fence : "");
    body.prepend(row);
  }
  while (body.childElementCount > maxEvents) body.lastElementChild.remove();
  setText(byId("missed"), e.missed ? `${number(e.missed)} more went by` : "");
  setText(byId("no-events"), "");
}

// ---- the stream ----

let closing = null; // ends the stream that is open
let pause = 500; // ms before the next try

function live(state, text) {
  byId("live").dataset.state = state;
  setText(byId("live-text"), text);
  document.body.classList.toggle("stale", state === "lost");
}

// follow opens the stream for the query; after a break the page shows the present state.
async function follow() {
  if (closing) closing.abort();
  const controller = new AbortController();
  closing = controller;
  if (document.hidden) return;
  const words = new URLSearchParams({ ...query, offset: String(query.offset) });
  let trouble = "the daemon closed the connection";
  try {
    const response = await fetch(urlOf("stream?" + words), { signal: controller.signal, cache: "no-store" });
    if (!response.ok) throw new Error((await response.text()).trim());
    await read(response.body.pipeThrough(new TextDecoderStream()).getReader());
  } catch (error) {
    trouble = error.message;
  }
  if (controller.signal.aborted) return;
  live("lost", "not connected: " + trouble);
  pause = Math.min(2 * pause, 8000);
  setTimeout(() => { if (closing === controller) follow(); }, pause);
}

async function read(reader) {
  for (let text = ""; ;) {
    const { value, done } = await reader.read();
    if (done) return;
    text += value;
    for (let end; (end = text.indexOf("\n\n")) >= 0; text = text.slice(end + 2)) {
      const [kind, data] = text.slice(0, end).split("\n", 2);
      take(kind.slice("event: ".length), JSON.parse(data.slice("data: ".length)));
    }
  }
}

function take(kind, content) {
  pause = 500;
  if (kind === "events") return showEvents(content);
  live("live", "live");
  showView(content);
}

// changeQuery changes the query.
function changeQuery(change) {
  Object.assign(query, { offset: 0 }, change);
  follow();
}

// ---- actions ----

let target = null; // the lock of the dialog

function openForce(row, k) {
  const cell = (i) => row.children[i].textContent;
  target = { db: Number(query.db), id: k.id, key: k.key };
  setText(byId("force-key"), k.key);
  const waits = cell(5) || "none";
  setText(byId("force-text"), `Held for ${cell(3)} by ${cell(2) || "an unknown client"}; ${cell(4)} left; waiting: ${waits}.`);
  setText(byId("force-error"), "");
  byId("force-yes").disabled = false;
  byId("force").showModal();
}

async function force() {
  const button = byId("force-yes");
  button.disabled = true;
  try {
    const response = await fetch(urlOf("force"), {
      method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ db: target.db, id: target.id }),
    });
    if (!response.ok) throw new Error((await response.text()).trim());
    const done = (await response.json()) === "1" ? " was force-unlocked." : " was not held any more.";
    byId("force").close();
    setText(byId("spoken"), target.key + done);
    spoken = "";
  } catch (error) {
    setText(byId("force-error"), "Not done: " + error.message);
    button.disabled = false;
    button.focus();
  }
}

async function openDetail(id, key) {
  setText(byId("detail-key"), key);
  for (const part of ["detail-facts", "detail-holders", "detail-votes"]) byId(part).replaceChildren();
  setText(byId("detail-error"), "");
  byId("detail").showModal();
  try {
    const response = await fetch(urlOf("lock?" + new URLSearchParams({ db: query.db, id })));
    if (!response.ok) throw new Error((await response.text()).trim());
    showDetail(await response.json());
  } catch (error) {
    setText(byId("detail-error"), error.message);
  }
}

function showDetail(lock) {
  const facts = [["state", lock.state], ["mode", lock.mode], ["holders", lock.count], ["fence", lock.fence],
    ["waiting in this daemon", lock.waiters], ["in the queue of all", lock.queue]];
  byId("detail-facts").replaceChildren(...facts.flatMap(([name, value]) => [make("dt", "", name), make("dd", "", value ?? "–")]));
  const table = (body, list, ...texts) => byId(body).replaceChildren(...list.map((item) => {
    const row = make("tr");
    for (const [className, text] of texts) row.append(make("td", className, String(text(item) ?? "–")));
    return row;
  }));
  table("detail-holders", lock.holders, ["key", (h) => h.token], ["", (h) => [h.name, h.client].filter(Boolean).join(" ") || "–"], ["", (h) => h.daemon],
    ["", (h) => h.meta], ["number", (h) => h.fence], ["number", (h) => time(Number(h.ttl))], ["number", (h) => h.votes]);
  table("detail-votes", lock.votes, ["", (m) => m.master], ["", (m) => m.state], ["key", (m) => m.token], ["number", (m) => m.holders],
    ["number", (m) => (m.ttl === null ? "–" : time(Number(m.ttl)))], ["", (m) => m.detail]);
}

// ---- mouse and keyboard ----

function listen() {
  let typing = 0;
  byId("search").addEventListener("input", (e) => {
    clearTimeout(typing);
    typing = setTimeout(() => changeQuery({ search: e.target.value }), 200);
  });
  byId("order").addEventListener("change", (e) => changeQuery({ order: e.target.value }));
  byId("db").addEventListener("change", (e) => {
    byId("events").replaceChildren();
    changeQuery({ db: e.target.value });
  });
  byId("earlier").addEventListener("click", () => changeQuery({ offset: Math.max(0, query.offset - 50) }));
  byId("later").addEventListener("click", () => changeQuery({ offset: query.offset + 50 }));
  byId("pause").addEventListener("click", (e) => {
    paused = !paused;
    e.target.setAttribute("aria-pressed", String(paused));
    setText(e.target, paused ? "go on" : "pause");
  });
  byId("force-yes").addEventListener("click", force);
  document.addEventListener("visibilitychange", follow); // a hidden page costs nothing
  document.addEventListener("keydown", press);
}

function press(e) {
  const typing = e.target.matches("input, select, textarea") || document.querySelector("dialog[open]");
  if (e.key === "/" && !typing && !e.ctrlKey && !e.metaKey) {
    e.preventDefault();
    byId("search").focus();
  }
  const role = e.target.dataset && e.target.dataset.role;
  if (role && (e.key === "ArrowDown" || e.key === "ArrowUp")) {
    const row = e.target.closest("tr");
    const next = e.key === "ArrowDown" ? row.nextElementSibling : row.previousElementSibling;
    e.preventDefault();
    if (next) next.querySelector(`[data-role="${role}"]`).focus();
  }
}

async function begin() {
  listen();
  try {
    const response = await fetch(urlOf("about"));
    if (response.ok) about = await response.json();
  } catch { /* the stream shows the error */ }
  byId("db").replaceChildren(...about.databases.map((db) => {
    const choice = make("option", "", String(db));
    choice.value = String(db);
    return choice;
  }));
  follow();
}

begin();
