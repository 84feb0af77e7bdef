// page.js polls the daemon while the page is visible, and runs the actions of the page.
import { byId, setText, make, rows, middle, time, micros, number, clock } from "./rows.js";
import { chart, spark, quantile, extend } from "./draw.js";

const [interval, pageSize] = [1000, 50]; // ms between two polls of the state; locks on a page
let about = { version: "", daemon: "", user: "", force: false, databases: [0], groups: [] };
const choice = { db: "0", group: "" }; // what is shown; "" = all groups

// get fetches JSON, also when the page was opened with a name and password in its address,
// which fetch refuses.
async function get(path, values, options) {
  const url = location.origin + location.pathname.replace(/[^/]*$/, "") + path + "?" + new URLSearchParams(values);
  const response = await fetch(url, { cache: "no-store", ...options });
  if (!response.ok) throw new Error((await response.text()).trim());
  return response.json();
}

let before = null; // the last state
let [delay, stateTimer, stateRound] = [interval, 0, 0]; // a newer round ends an older one
const [line, times, trips] = [[], [], {}]; // of the charts; trips by the master's name

// pollState polls everything but the list of locks.
async function pollState() {
  const round = ++stateRound;
  clearTimeout(stateTimer);
  if (document.hidden) return;
  try {
    const state = await get("state", { ...choice, since: lastEvent });
    if (round !== stateRound) return;
    showState(state);
    live("live", "live");
    delay = interval;
  } catch (error) {
    if (round !== stateRound) return;
    live("lost", "not connected: " + error.message);
    delay = Math.min(2 * delay, 8000);
  }
  stateTimer = setTimeout(pollState, delay);
}

function live(state, text) {
  byId("live").dataset.state = state;
  setText(byId("live"), text);
}

function showState(s) {
  showHeadline(s.headline, s.draining);
  if (before) measure(s, before);
  const masters = s.masters.filter((m) => [m.group, ""].includes(choice.group));
  rows(byId("masters"), masters, (m) => m.name, ["bare", "bare", "number bare", "wide note", "number bare", "number more", "number more"], fillMaster);
  const epochs = new Map(masters.filter((m) => m.configuration === "current").map((m) => [m.group, m.epoch]));
  const stale = s.stale_daemons.length ? ", stale: " + s.stale_daemons.join(", ") : "";
  const shown = [...epochs].map(([group, epoch]) => (group ? group + " " : "") + "epoch " + epoch).join(", ");
  setText(byId("epoch"), shown ? shown + " · daemons " + number(s.daemons) + stale : "");
  chart(byId("rate"), line, ["granted", "refused", "undecided"], (n) => (n ? number(n) + "/s" : "0"), "No figures yet: they begin when the page opens.", 5);
  chart(byId("time"), times, ["p50", "p99"], micros, "No request was decided in this time.", 100);
  const places = new Map(); // of keys: those that wait for the same stand together
  for (const w of s.waiters) {
    w.first = !places.has(w.keys.join());
    if (w.first) places.set(w.keys.join(), places.size);
  }
  s.waiters.sort((a, b) => places.get(a.keys.join()) - places.get(b.keys.join()));
  rows(byId("waiters"), s.waiters, (w) => w.id, ["key cut wide", "cut wide", "number", "number", "number"], fillWaiter);
  setText(byId("waiting-count"), s.waiting ? number(s.waiting) : "");
  byId("no-waiters").hidden = s.waiting > 0;
  setText(byId("total"), s.held ? "· " + number(s.held) + " granted by this daemon" : "");
  setText(byId("facts"), [about.version, about.user ? "user " + about.user : "no login", "clients " + number(s.clients), "in flight " + number(s.in_flight)].join(" · "));
  showEvents(s);
  before = s;
}

// measure adds what happened since the last poll to the charts.
function measure(s, b) {
  const seconds = Math.max(s.at - b.at, 1) / 1000;
  extend(line, s.at, ["granted", "refused", "undecided"].map((name) => Math.max(0, s[name] - b[name]) / seconds));
  extend(times, s.at, [quantile(s.times, b.times, 0.5), quantile(s.times, b.times, 0.99)]);
  for (const m of s.masters) {
    const old = b.masters.find((one) => one.name === m.name);
    if (old) extend(trips[m.name] ??= [], s.at, [quantile(m.trips, old.trips, 0.99)]);
  }
}

const summaries = { good: "All well", warn: "Needs attention", bad: "Not serving" };
let spoken = "";

function showHeadline(h, draining) {
  const [lines, cards] = draining ? [["This daemon is stopping.", ...h.lines], ["", ...h.cards]] : [h.lines, h.cards];
  byId("headline").dataset.level = h.level;
  setText(byId("summary"), summaries[h.level]);
  if (byId("lines").childElementCount !== lines.length) byId("lines").replaceChildren(...lines.map(() => make("li")));
  lines.forEach((text, i) => setText(byId("lines").children[i], text));
  lines.forEach((_, i) => setCard(byId("lines").children[i], cards[i]));
  document.title = (h.level === "good" ? "" : "! ") + "redlockd " + about.daemon + ": " + (h.level === "good" ? "all well" : lines[0]);
  if (byId("icon").dataset.level !== h.level) Object.assign(byId("icon"), { href: "icon.svg?level=" + h.level }).dataset.level = h.level;
  const changed = lines.join(" ").replace(/[0-9]+/g, "#"); // passing seconds are no change
  if (changed !== spoken) setText(byId("spoken"), summaries[h.level] + ": " + lines.join(" "));
  spoken = changed;
}

// setCard names the card of the runbook that helps.
function setCard(element, card) {
  if (card) element.dataset.card = card;
  else delete element.dataset.card;
}

function fillMaster([name, state, since, note, trip, votes, queue], m) {
  setText(name, m.group && !choice.group ? m.group + " " + m.name : m.name);
  name.title = m.address;
  if (!state.firstElementChild) state.append(make("span", "state"));
  setText(state.firstElementChild, m.state);
  state.firstElementChild.dataset.state = m.state;
  setText(since, time(m.since));
  const voting = m.state === "voting";
  setText(note, voting ? m.address + (m.durable ? ", durable" : "") : (m.left > 0 ? "votes in " + time(m.left) + ": " : "") + m.detail);
  note.classList.toggle("quiet", voting);
  setCard(note, m.card);
  spark(trip, trips[m.name] || [], micros);
  setText(votes, [m.yes, m.no, m.uncounted].map(number).join(" / "));
  setText(queue, [m.queued, m.pending_releases].map(number).join(" / "));
}

function fillWaiter([key, client, place, since, left], w) {
  [w.client, number(w.place), time(w.since), time(w.left)].forEach((text, i) => setText([client, place, since, left][i], text));
  key.replaceChildren(...(w.first ? [make("span", "middle")] : [])); // the others stand with the first one
  if (w.first) middle(key.firstElementChild, w.keys.join(", "));
  client.title = `${w.client}, ${w.mode}${w.fair ? ", FAIR" : ""}`;
}

let lastEvent = 0; // its number

// showEvents adds new events, unless somebody reads: then they follow later.
function showEvents(s) {
  const body = byId("events");
  if (body.closest(".tall").matches(":hover, :focus-within")) return;
  lastEvent = s.last_event;
  for (const e of s.events) {
    const texts = [["", clock(e.at)], ["word-" + e.word, e.word], ["key cut", e.key], ["key token", e.token_hash]];
    body.prepend(make("tr", "", ...texts.map(([className, text]) => make("td", className, text))));
    const key = body.firstElementChild.children[2];
    key.replaceChildren(make("span", "middle"));
    middle(key.firstElementChild, e.key);
  }
  while (body.childElementCount > 100) body.lastElementChild.remove();
  setText(byId("missed"), s.dropped_events ? `${number(s.dropped_events)} more went by` : "");
  byId("no-events").hidden = body.childElementCount > 0;
}

// Every page begins at a cursor of DLOCKS. A walk finds a lock on several masters, so seen
// has the page that showed it first.
let [match, cursors, at, seen] = ["", ["0"], 0, new Map()];
let [shown, listTimer, listRound] = [null, 0, 0]; // shown is the match of the list on the screen

function find(text) {
  [match, cursors, at, seen] = [text, ["0"], 0, new Map()];
  pollLocks();
}

async function pollLocks() {
  const [round, began, found] = [++listRound, Date.now(), new Map()];
  clearTimeout(listTimer);
  if (document.hidden) return;
  let [next, scanned, fresh] = [cursors[at], 0, shown !== match];
  try {
    for (let over = false; !over;) {
      // Keys are in no order, so those scanned so far show how many match.
      const count = scanned ? Math.ceil(Math.min(1000, Math.max(10, (pageSize - found.size) * scanned / (found.size || 1)))) : pageSize;
      const step = await get("locks", { ...choice, match, cursor: next, count });
      if (round !== listRound) return;
      for (const row of step.rows) if ((seen.get(row.id) ?? at) >= at) found.set(row.id, row);
      [next, scanned] = [step.next, scanned + count];
      if (!found.size && at > 0) cursors[at] = next; // the next poll does not scan this part again
      over = next === "0" || found.size >= pageSize;
      if (over || (fresh && found.size)) showLocks([...found.values()], next);
      if (fresh && !over) setText(byId("list-note"), `Looking through the locks: ${number(scanned)} keys so far.`);
    }
  } catch (error) {
    if (round !== listRound) return;
    if (fresh && !found.size) showLocks([], "0");
    setText(byId("list-note"), "Locks may be missing: " + error.message);
  }
  listTimer = setTimeout(pollLocks, Math.max(2 * interval, 5 * (Date.now() - began)));
}

// bySymptom puts first what requests wait for, then what is held longest: a fence is the time of the grant.
function bySymptom(a, b) {
  return (b.waiting > 0) - (a.waiting > 0) || (a.fence.length || 99) - (b.fence.length || 99) || (a.fence < b.fence ? -1 : a.fence > b.fence ? 1 : a.key < b.key ? -1 : 1);
}

function showLocks(list, next) {
  for (const [id, page] of seen) if (page === at) seen.delete(id); // it may be on a later page by now
  for (const row of list.sort(bySymptom)) seen.set(row.id, at);
  [shown, cursors[at + 1]] = [match, next];
  rows(byId("locks"), list, (k) => k.id, ["key wide", "cut wide", "mode", "number", "number", "number", "number fence key"], fillLock, byId("search"));
  byId("earlier").disabled = at === 0;
  byId("later").disabled = next === "0";
  setText(byId("count"), at || next !== "0" ? "page " + (at + 1) : list.length ? number(list.length) : "");
  byId("no-locks").hidden = list.length > 0 || match !== "" || at > 0;
  const none = at > 0 ? "There are no more locks." : match && "No lock that you may see matches. * stands for any text, ? for one character.";
  setText(byId("list-note"), list.length ? "" : none);
}

function fillLock([key, holder, mode, held, left, waits, fence], k) {
  if (!key.firstElementChild) {
    const button = make("button", "link middle");
    button.type = "button";
    button.addEventListener("click", () => openDetail(k));
    key.append(button);
  }
  middle(key.firstElementChild, k.key);
  const more = k.count - k.holders.length;
  const texts = k.holders.map(([meta, client], i) => [meta, client + (i < k.holders.length - 1 ? "; " : more > 0 ? ` and ${number(more)} more` : "")]);
  if (holder.title !== texts.flat().join(" ")) holder.replaceChildren(...texts.flatMap(([meta, client]) => (meta ? [make("strong", "", meta), client] : [client])));
  holder.title = texts.flat().join(" ");
  setText(mode, k.mode);
  setText(held, k.fence && before ? time(before.at - Number(k.fence) / 1000) : "–"); // a fence is the time of the grant in µs
  setText(left, time(k.left));
  setText(waits, k.waiting ? number(k.waiting) : "");
  waits.classList.toggle("waits", k.waiting > 0);
  setText(fence, k.fence || "–");
}

let target = null; // the lock of the dialogs

// openDetail shows what DINFO shows.
async function openDetail(k) {
  target = k;
  for (const part of ["detail-facts", "detail-holders", "detail-votes"]) byId(part).replaceChildren();
  setText(byId("detail-key"), k.key);
  setText(byId("detail-error"), "");
  byId("ask-force").hidden = !about.force;
  byId("detail").showModal();
  try {
    const lock = await get("lock", { db: choice.db, id: k.id });
    if (target === k) showDetail(lock);
  } catch (error) {
    setText(byId("detail-error"), error.message);
  }
}

function showDetail(lock) {
  const facts = { state: lock.state, mode: lock.mode, holders: lock.count, fence: lock.fence, "waiting in this daemon": lock.waiters, "in the queue of all": lock.queue };
  byId("detail-facts").replaceChildren(...Object.entries(facts).map(([name, value]) => make("div", "", make("dt", "", name), make("dd", "", value ?? "–"))));
  const fill = (cells, ...values) => values.forEach((value, i) => setText(cells[i], String(value ?? "–")));
  const left = (ms) => (ms === null ? null : time(Number(ms)));
  rows(byId("detail-holders"), lock.holders, null, ["wide", "wide", "", "key", "number fence key", "number", "number"],
    (cells, h) => fill(cells, h.meta, [h.name, h.client].filter(Boolean).join(" ") || null, h.daemon, h.token, h.fence, left(h.ttl), h.votes));
  rows(byId("detail-votes"), lock.votes, null, ["", "", "key", "number", "number", "wide"],
    (cells, m) => fill(cells, m.master, m.state, m.token, m.holders, left(m.ttl), m.detail));
  const by = lock.holders.slice(0, 3).map((h) => h.meta || h.name || h.client || "token " + h.token).join(", ");
  setText(byId("force-text"), `It is ${lock.state}${by ? " by " + by : ""}; requests that wait for it: ${Math.max(lock.waiters, lock.queue)}.`);
}

function askForce() {
  setText(byId("force-key"), target.key);
  setText(byId("force-error"), "");
  byId("force-yes").disabled = false;
  byId("force").showModal();
}

async function force() {
  byId("force-yes").disabled = true;
  try {
    const done = await get("force", { db: choice.db, id: target.id }, { method: "POST", headers: { "Content-Type": "application/json" } });
    byId("force").close();
    byId("detail").close();
    setText(byId("spoken"), target.key + (done === "1" ? " was force-unlocked." : " was not held any more."));
    spoken = "";
    pollLocks();
  } catch (error) {
    setText(byId("force-error"), "Not done: " + error.message);
    byId("force-yes").disabled = false;
    byId("force-yes").focus();
  }
}

function listen() {
  let typing = 0;
  const on = (id, kind, act) => byId(id).addEventListener(kind, act);
  on("search", "input", (e) => {
    clearTimeout(typing);
    typing = setTimeout(() => find(e.target.value), 250);
  });
  for (const id of ["db", "group"]) on(id, "change", (e) => {
    [choice[id], before, lastEvent] = [e.target.value, null, 0];
    byId("events").replaceChildren();
    pollState();
    find(match);
  });
  on("earlier", "click", () => pollLocks(at--));
  on("later", "click", () => pollLocks(at++));
  on("detail-close", "click", () => byId("detail").close());
  on("ask-force", "click", askForce);
  on("force-no", "click", () => byId("force").close());
  on("force-yes", "click", force);
  document.addEventListener("visibilitychange", () => [pollState(), pollLocks()]); // a hidden page costs nothing
  document.addEventListener("keydown", (e) => {
    if (e.key !== "/" || e.ctrlKey || e.metaKey || e.target.matches("input, select") || document.querySelector("dialog[open]")) return;
    e.preventDefault();
    byId("search").focus();
  });
}

listen();
about = await get("about", {}).catch(() => about); // the state shows the error
setText(byId("daemon"), about.daemon);
for (const [id, all] of [["db", about.databases], ["group", about.groups]]) {
  byId(id).replaceChildren(...all.map((n) => new Option(n)));
  byId(id).parentElement.hidden = all.length < 2;
}
byId("group").prepend(new Option("all", "", true, true));
pollState();
pollLocks();
