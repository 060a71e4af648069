// The cause: what is different from the time before the refusals?

import { mean } from "./history.js";
import { ADVICE, OWN, REASONS, clock, duration, number, sum } from "./words.js";

const RECENT = 5; // seconds
const YOUNG = 60; // seconds in which a process has just started

// reasonOf is the reason that most of what is refused for want of capacity has.
export const reasonOf = (gate, points) => Object.keys(gate.reasons).filter((r) => !OWN.has(r))
  .map((r) => [mean(points, RECENT, (p) => sum(p.reasons[r] ?? [0])), r]).sort((a, b) => b[0] - a[0])[0]?.[1];

// causeOf says it in an operator's words: the pool's time and limit, what arrives, how
// long the process has run, and the reason that most refusals have.
export function causeOf(gate, points, since, reason, frame) {
  const parts = [poolOf(gate, points, since), demandOf(points, since)];
  const age = (frame.at - frame.process / 1000) / 1000;
  if (age < YOUNG) parts.push(`This process started ${duration(Math.round(age))} ago and is still learning.`);
  if (reason) parts.push(whyOf(gate, reason));
  return parts.filter(Boolean).join(" ");
}

// fullest is the pool to look at.
function fullest(gate) {
  const full = (p) => p.inFlight / Math.max(p.limit, 1) + (sum(p.waiting) ? 1 : 0);
  return [...gate.pools].sort((a, b) => full(b) - full(a))[0];
}

// usual is how a pool was in quiet times: its quickest tenth, and its limit then. An
// incident often begins some time before the first refusal.
function usual(points, name, until) {
  const known = points.filter((p) => p.at <= until).flatMap((p) => p.pools.filter((q) => q.name === name && q.service > 0));
  known.sort((a, b) => a.service - b.service);
  return known[Math.floor(known.length / 10)] ?? {};
}

const slower = (pool, before) => before.service > 0 && pool.service > 1.5 * before.service;

function poolOf(gate, points, since) {
  const pool = fullest(gate);
  const before = usual(points, pool.name, since.at);
  const called = pool.name ? `The pool ${pool.name}` : gate.pools.length > 1 ? "The main pool" : "Work";
  const parts = [];
  if (slower(pool, before)) {
    parts.push(`${called} takes ${duration(pool.service)} instead of ${duration(before.service)}`);
  } else if (pool.service > 0) {
    parts.push(`${called} takes ${duration(pool.service)}${before.service > 0 ? ", as before" : ""}`);
  }
  if (pool.limit < 0.8 * before.limit) {
    const fell = points.find((p) => p.pools.some((q) => q.name === pool.name && q.limit < 0.8 * before.limit && q.service > before.service));
    parts.push(`its limit fell from ${number(before.limit)} to ${number(pool.limit)}${fell ? ` at ${clock(fell.at)}` : ""}`);
  }
  return parts.length ? parts.join("; ") + "." : "";
}

// arrivals are what comes in each second, whatever becomes of it.
const arrivals = (p) => sum(p.served) + sum(p.refused);

// grown returns what arrives now and arrived before, where that is much more now.
function grown(points, since) {
  const earlier = points.filter((p) => p.served && p.at < since.at - 1000);
  if (earlier.length < 3) return null;
  const before = sum(earlier.map(arrivals)) / earlier.length;
  const now = mean(points, RECENT, arrivals);
  return now > 1.3 * before ? { before, now, earlier } : null;
}

function demandOf(points, since) {
  const more = grown(points, since);
  if (!more) return "";
  const of = (p, route) => {
    const r = p.routes.find((q) => q.route === route);
    return r ? r.served + r.limited + sum(r.shed) : 0;
  };
  const routes = points.at(-1).routes.map(({ route }) => ({
    route, more: mean(points, RECENT, (p) => of(p, route)) - sum(more.earlier.map((p) => of(p, route))) / more.earlier.length,
  })).sort((a, b) => b.more - a.more);
  const where = routes.length > 1 && routes[0].route && routes[0].more > (more.now - more.before) / 2 ? `, above all on ${routes[0].route}` : "";
  return `More arrives: ${number(more.now)}/s instead of ${number(more.before)}/s${where}.`;
}

// whyOf tells the reason; the bound of the queue and a wait that is predicted are two
// things, and only the first has to do with how many wait.
function whyOf(gate, reason) {
  const pool = fullest(gate);
  const said = `Mostly ${reason}: ${REASONS[reason][0].toLowerCase()}${REASONS[reason].slice(1)}`;
  if (reason !== "predicted-wait" && reason !== "deadline-unmeetable") return said;
  return `${said} The queue itself has room: ${number(sum(pool.waiting))} wait, of ${number(pool.bound)} that may.`;
}

// adviceFor is one thing to do: about the reason where that says enough, about the caller
// who has most of the slots, about what got slow, or about what arrives.
export function adviceFor(gate, points, since, reason) {
  if (ADVICE[reason]) return ADVICE[reason];
  const pool = fullest(gate);
  const all = sum(gate.busiest.map((c) => c.count));
  if (gate.busiest.length > 1 && gate.busiest[0].count > (2 * all) / 3 && gate.turned.length !== 1) {
    return { ...ADVICE.caller, text: ADVICE.caller.text.replace("CALLER", () => gate.busiest[0].alias) };
  }
  if (slower(pool, usual(points, pool.name, since.at))) return ADVICE[pool.cause] ?? ADVICE.latency;
  if (grown(points, since)) return ADVICE.none;
  return ADVICE[pool.cause] ?? ADVICE.none;
}
