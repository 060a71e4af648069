// A gate's part of the page.

import * as charts from "./charts.js";
import { card, h, legend, rows, table, tile } from "./dom.js";
import { mean } from "./history.js";
import { instant } from "./instant.js";
import { CAUSES, LEVELS, OWN, REASONS, clock, duration, list, number, sum } from "./words.js";

const RECENT = 5; // seconds that numbers are averaged over

export function gateView(name, several) {
  const tiles = {
    served: tile("Served", "served"),
    refused: tile("Refused", "refused"),
    flight: tile("In flight", "in-flight"),
    waiting: tile("Waiting", "waiting"),
    oldest: tile("Oldest waits", "oldest"),
    drain: tile("Drains", "drain"),
  };
  const traffic = card("", "Served above the line, refused below it");
  const drawTraffic = charts.mirror(traffic.box);
  const served = legend(LEVELS);
  const readout = h("p", { class: "readout" }, LOOK);
  traffic.box.append(served.box, readout);
  let known = [];
  const slider = traffic.box.querySelector("svg");
  instant.listen(() => tell(readout, slider, known));

  const pools = h("div");
  const views = new Map();
  const why = listCard("half", "Why it was refused");
  const who = listCard("half", "Over limits of their own");
  const turned = listCard("half", "Callers turned away for want of capacity");
  const busiest = listCard("half", "Callers by slot time");
  const most = listCard("half", "Callers served most");
  const routes = card("", "Routes");
  const routesTable = h("div");
  routes.box.append(routesTable);
  const limits = card("", "Limits in force");
  const limitsTable = h("div");
  limits.box.append(limitsTable);

  const box = h("article", { "data-gate": name },
    several ? h("h2", null, name) : null,
    h("div", { class: "grid" }, ...Object.values(tiles).map((t) => t.box), traffic.box),
    pools,
    h("div", { class: "grid" }, why.box, who.box, turned.box, busiest.box, most.box, routes.box, limits.box));

  return {
    box,
    set(gate, points, marks) {
      known = points;
      setTiles(tiles, gate, points);
      drawTraffic(points, marks);
      tell(readout, slider, points);
      setTraffic(traffic, served, gate, points);
      for (const p of gate.pools) {
        if (!views.has(p.name)) {
          views.set(p.name, poolView(p.name, gate.pools.length > 1));
          pools.append(views.get(p.name).box);
        }
        views.get(p.name).set(p, points, marks);
      }
      setReasons(why, gate, points);
      for (const [card, list, text] of [[who, gate.limited, number], [turned, gate.turned, number], [busiest, gate.busiest, duration], [most, gate.served, number]]) {
        rows(card.list, list.map((c) => ({ name: c.alias, value: c.count, text: text(c.count) })), "None in the last minute.");
      }
      setRoutes(routes, routesTable, gate, points);
      setLimits(limits, limitsTable, gate);
    },
  };
}

const LOOK = "Point at a chart, or move along this one with the arrow keys, for the figures of an instant.";

// tell writes what was true at the instant looked at.
function tell(readout, slider, points) {
  const p = instant.at === null ? undefined : points.findLast((q) => q.at <= instant.at);
  const text = p ? figures(p) : LOOK;
  readout.textContent = text;
  const end = points.at(-1)?.at ?? 0, first = points[0]?.at ?? 0;
  for (const [name, value] of [["valuemin", 0], ["valuemax", Math.round((end - first) / 1000)], ["valuenow", Math.round(((p?.at ?? end) - first) / 1000)], ["valuetext", text]]) {
    slider.setAttribute("aria-" + name, value);
  }
}

// figures are those of a point.
function figures(p) {
  const by = (rates) => list(LEVELS.map((level, l) => [level, rates?.[l] ?? 0]).filter(([, n]) => n > 0).reverse().map(([level, n]) => `${level} ${number(n)}/s`)) || "nothing";
  const pools = p.pools.map((q) => `${q.name ? q.name + ": " : ""}${number(q.inFlight)} in flight of ${number(q.limit)}, ${number(sum(q.waiting))} waiting` +
    (q.service ? `, work takes ${duration(q.service)}` : ""));
  return `${clock(p.at)}: served ${by(p.served)}; refused ${by(p.refused)}. ${pools.join("; ")}.`;
}

function listCard(cls, title) {
  const c = card(cls, title);
  const list = h("ul", { class: "rows" });
  c.box.append(list);
  return { ...c, list };
}

function setTiles(tiles, gate, points) {
  const rate = (pick) => mean(points, RECENT, pick);
  const served = rate((p) => sum(p.served)), refused = rate((p) => sum(p.refused));
  const overload = rate((p) => overloadOf(p));
  tiles.served.set(number(served), "/s");
  tiles.refused.set(number(refused), "/s", undefined, overload > 0 ? "bad" : refused > 0 ? "warn" : "");
  const flight = sum(gate.pools.map((p) => p.inFlight)), limit = sum(gate.pools.map((p) => p.limit));
  const waiting = sum(gate.pools.map((p) => sum(p.waiting))), bound = sum(gate.pools.map((p) => p.bound));
  tiles.flight.set(number(flight), "of " + number(limit), flight / Math.max(limit, 1));
  tiles.waiting.set(number(waiting), `of ${number(bound)} places`, waiting / Math.max(bound, 1));
  tiles.oldest.set(duration(Math.max(...gate.pools.map((p) => p.oldest))), "");
  const drain = sum(gate.pools.map((p) => p.drain));
  tiles.drain.set(drain ? number(drain) : "–", drain ? "/s when full" : "not known yet");
}

// overloadOf is what a point refused for want of capacity, per second, of the
// levels from the given one on.
export function overloadOf(point, level = 0) {
  let n = 0;
  for (const [reason, rates] of Object.entries(point.reasons)) {
    if (!OWN.has(reason)) n += sum(rates.slice(level));
  }
  return n;
}

function setTraffic(traffic, key, gate, points) {
  key.set(LEVELS.map((_, l) => {
    const served = mean(points, RECENT, (p) => p.served[l]), refused = mean(points, RECENT, (p) => p.refused[l]);
    return number(served) + "/s" + (refused > 0 ? `, ${number(refused)} refused` : "");
  }));
  const extra = [];
  if (gate.streams) extra.push(number(gate.streams) + " streams open");
  if (gate.exempt) extra.push(number(gate.exempt) + " exempt in all");
  const shadowed = sum(gate.shadowed);
  if (shadowed) extra.push(number(shadowed) + " would have been refused, but for shadow mode");
  traffic.note.textContent = extra.join(" · ");
}

function setReasons(why, gate, points) {
  const items = Object.entries(gate.reasons).map(([name, counts]) => {
    const now = mean(points, RECENT, (p) => sum(p.reasons[name] ?? [0]));
    return { name, value: now, total: sum(counts), note: REASONS[name], text: number(now) + "/s" };
  });
  items.sort((a, b) => b.value - a.value || b.total - a.total);
  for (const i of items) i.text += ", " + number(i.total) + " in all";
  rows(why.list, items.slice(0, 8), "Nothing was refused since the start.");
}

function setRoutes(routes, place, gate, points) {
  routes.box.hidden = !gate.routes.length;
  const rate = (name, pick) => mean(points, RECENT, (p) => pick(p.routes.find((r) => r.route === name)));
  table(place, ["Route", ">Served", ">Refused, no capacity", ">Refused, own limits", ">Failed", ">Slots held"],
    gate.routes.map(({ route }) => [route || "(no pattern)", ...[
      (r) => r?.served, (r) => sum(r?.shed ?? [0]), (r) => r?.limited, (r) => r?.failed, (r) => r?.held,
    ].map((pick, i) => number(rate(route, (r) => pick(r) ?? 0)) + (i < 4 ? "/s" : ""))]));
}

function setLimits(limits, place, gate) {
  limits.box.hidden = !gate.limits.length;
  table(place, ["Limit", ">Tokens a second", ">Burst", ">Callers tracked", ">Of", ">Beyond the table"],
    gate.limits.map((l) => [l.name, l.burst ? number(l.rate) : "several", l.burst ? number(l.burst) : "–",
      number(l.keys), l.most ? number(l.most) : "–", number(l.overflow)]));
}

function poolView(name, several) {
  const flight = card("half", "In flight, under the limit");
  const queue = card("half", "In the queue");
  const heat = card("", "How long they waited");
  const drawFlight = charts.limit(flight.box, name);
  const drawQueue = charts.queue(queue.box, name);
  const drawHeat = charts.heat(heat.box, name);
  const holding = legend(LEVELS);
  flight.box.append(holding.box);
  const waiting = legend(LEVELS);
  queue.box.append(waiting.box);
  return {
    box: h("div", null, several ? h("h2", null, name || "main", h("small", null, "pool")) : null,
      h("div", { class: "grid" }, flight.box, queue.box, heat.box)),
    set(pool, points, marks) {
      drawFlight(points, marks);
      drawQueue(points, marks);
      drawHeat(points, marks);
      setFlight(flight.note, pool);
      queue.note.textContent = sum(pool.waiting)
        ? `The oldest has waited ${duration(pool.oldest)}.` + (pool.bytes ? ` They announced ${number(pool.bytes)} bytes.` : "")
        : "Nothing waits.";
      waiting.set(pool.waiting.map(number));
      holding.set(LEVELS.map((_, l) => number(mean(points, RECENT, (p) => p.pools.find((q) => q.name === pool.name)?.holding[l])) + " slots"));
      heat.note.textContent = "Of those that were admitted from the queue. A row is a doubling of the wait.";
    },
  };
}

function setFlight(note, pool) {
  const fixed = pool.least === pool.most && pool.most > 0;
  const range = pool.most && !fixed ? ` (${number(pool.least)} to ${number(pool.most)})` : "";
  const service = pool.service ? ` Work takes ${duration(pool.service)}.` : "";
  note.replaceChildren(h("b", { "data-value": "limit" }, `Limit ${number(pool.limit)}`),
    fixed ? `, fixed.${service}` : `${range}, last moved for ${pool.cause}: ${CAUSES[pool.cause] ?? ""}${service}`);
}
