// The verdict: who is hurt, and why? One sentence for the person who was woken.

import { overloadOf } from "./gate.js";
import { mean } from "./history.js";
import { ADVICE, LEVELS, LIMITS, OWN, duration, list, number, sum } from "./words.js";

const RECENT = 5; // seconds

// verdict returns a tone (good, warn or bad), a sentence, and a second one.
export function verdict(frame, history) {
  const gates = frame.gates.map((gate) => judge(gate, history.of(gate.name)));
  const worst = gates.find((g) => g.tone === "bad") ?? gates.find((g) => g.tone === "warn");
  const away = frame.stores.filter((s) => s.degraded);
  const slowed = frame.calls.flatMap((c) => c.operations.filter((o) => o.pause > 0 || o.multiplier < 0.995));
  const besides = [];
  if (away.length) besides.push(`The shared limit ${list(away.map((s) => s.name))} is decided without its store.`);
  if (slowed.length) besides.push(`${list([...new Set(slowed.map((o) => o.service || o.operation))])} asked for less, and gets less.`);
  const first = worst ?? gates[0] ?? { tone: "good", text: "No gate is shown on this page.", more: "" };
  if (!worst && besides.length) return { tone: "warn", text: besides.shift(), more: [first.text, ...besides].join(" ") };
  const named = worst && frame.gates.length > 1 ? `${worst.name}: ` : "";
  return { tone: first.tone, advice: first.advice, text: named + first.text, more: [first.more, ...besides].filter(Boolean).join(" ") };
}

// silent says that the service has not been heard for some seconds; what it said last
// is no news any more.
export function silent(seconds, last) {
  const since = last ? ` What is below was true at ${new Date(last.at).toLocaleTimeString()}.` : "";
  return {
    tone: "bad",
    text: `Nothing heard from the service for ${duration(Math.round(seconds))}.`,
    more: `It is down, restarting, or out of reach from here.${since}`,
  };
}

function judge(gate, points) {
  const name = gate.name;
  if (gate.draining) {
    return { name, tone: "warn", text: "Shutting down: newcomers are refused, running work ends.", more: "" };
  }
  const at = (level) => mean(points, RECENT, (p) => overloadOf(p, level) - overloadOf(p, level + 1));
  const shed = LEVELS.map((_, level) => at(level));
  const own = mean(points, RECENT, (p) => sum(LIMITS.map((r) => sum(p.reasons[r] ?? [0]))));
  const more = own > 0 ? `Besides, ${number(own)}/s are over limits of their own.` : "";
  const lost = LEVELS.filter((_, l) => shed[l] > 0);
  if (lost.length) return shedding(name, gate, points, shed, lost, more);
  if (own > 0) {
    return { name, tone: "good", text: "All within their limits are served.", more: `${number(own)}/s are over limits of their own, and get 429.` };
  }
  const waiting = sum(gate.pools.map((p) => sum(p.waiting)));
  if (waiting) {
    const oldest = Math.max(...gate.pools.map((p) => p.oldest));
    return { name, tone: "good", text: "All is served; some wait for it.", more: `${number(waiting)} wait, the longest for ${duration(oldest)}.` };
  }
  return { name, tone: "good", text: "All is served, and nothing waits.", more: "" };
}

// shedding names the levels and the route that are hurt, since when, the callers that
// are many of those turned away or hold most slots, the cause, and one thing to do.
function shedding(name, gate, points, shed, lost, more) {
  const reason = topReason(gate, points);
  const whole = LEVELS.filter((level, l) => !lost.includes(level) && mean(points, RECENT, (p) => p.served[l]) > 0);
  const kept = whole.length ? `There is room for all ${list(whole.reverse())} work.` : "";
  const since = points[sinceIndex(points)];
  return {
    name,
    tone: shed[3] > 0 ? "bad" : "warn",
    text: `Refusing ${number(sum(shed))}/s of ${list(lost.reverse())} for want of capacity${onRoute(points)}, ${sinceText(points)}.`,
    more: [callers(gate), causeOf(gate, points, since, reason), kept, more].filter(Boolean).join(" "),
    advice: adviceOf(gate, reason),
  };
}

const topReason = (gate, points) => Object.keys(gate.reasons).filter((r) => !OWN.has(r))
  .map((r) => [mean(points, RECENT, (p) => sum(p.reasons[r] ?? [0])), r]).sort((a, b) => b[0] - a[0])[0]?.[1];

// onRoute names the route with most of what is refused, when it has more than half.
export function onRoute(points) {
  const names = [...new Set(points.at(-1)?.routes.map((r) => r.route))];
  const rates = names.map((route) => [mean(points, RECENT, (p) => sum(p.routes.find((r) => r.route === route)?.shed ?? [0])), route]);
  const all = sum(rates.map(([n]) => n));
  const [most, route] = rates.sort((a, b) => b[0] - a[0])[0] ?? [0, ""];
  return route && most > all / 2 ? ` on ${route}` + (most < all * 0.95 ? " above all" : "") : "";
}

const CALM = 3000; // so long without a refusal, and what comes is another incident

// sinceIndex finds the point at which the present refusals began.
export function sinceIndex(points) {
  let first = points.length - 1;
  for (let i = points.length - 1; i >= 0 && points[first].at - points[i].at <= CALM; i--) {
    if (points[i].served && overloadOf(points[i]) > 0) first = i;
  }
  return first;
}

function sinceText(points) {
  const first = sinceIndex(points);
  const at = points[first].at;
  if (first <= 1) return `for ${duration((points.at(-1).at - points[0].at) / 1000)} at least`; // the page knows of no time before
  return `since ${new Date(at).toLocaleTimeString()}`;
}

// callers names who holds most of the slots, or the few that are turned away.
export function callers(gate) {
  const all = sum(gate.busiest.map((c) => c.count));
  const [first] = gate.busiest;
  const texts = [];
  if (gate.busiest.length > 1 && first.count > all / 2) {
    texts.push(`${first.alias} holds ${Math.round((100 * first.count) / all)} % of the slot time of the callers seen.`);
  }
  if (gate.turned.length > 0 && gate.turned.length <= 3) texts.push(`Turned away: ${list(gate.turned.map((c) => c.alias))}.`);
  return texts.join(" ");
}

// usual is how a pool was in quiet times: its quickest tenth, and its limit then. An
// incident often begins some time before the first refusal.
function usual(pools) {
  const known = pools.filter((p) => p.service > 0).sort((a, b) => a.service - b.service);
  return known[Math.floor(known.length / 10)] ?? {};
}

// causeOf says what is different from the time before the refusals, in the pool that is
// fullest.
function causeOf(gate, points, since, reason) {
  const pool = [...gate.pools].sort((a, b) => full(b) - full(a))[0];
  const before = usual(points.filter((p) => p.at <= since.at).flatMap((p) => p.pools.filter((q) => q.name === pool.name)));
  const called = pool.name ? `The pool ${pool.name}` : gate.pools.length > 1 ? "The main pool" : "Work";
  const parts = [];
  if (before.service > 0 && pool.service > 1.5 * before.service) {
    parts.push(`${called} takes ${duration(pool.service)} instead of ${duration(before.service)}`);
  } else if (pool.service > 0) {
    parts.push(`${called} takes ${duration(pool.service)}, as before`);
  }
  if (pool.limit < 0.8 * before.limit) parts.push(`its limit fell from ${number(before.limit)} to ${number(pool.limit)}`);
  const cause = parts.length ? parts.join("; ") + "." : "";
  return [cause, `Mostly ${reason}.`].filter(Boolean).join(" ");
}

const full = (p) => p.inFlight / Math.max(p.limit, 1) + (sum(p.waiting) ? 1 : 0);

// adviceOf is one thing to do, and where it stands in the runbook.
function adviceOf(gate, reason) {
  const pool = [...gate.pools].sort((a, b) => full(b) - full(a))[0];
  return ADVICE[reason] ?? ADVICE[pool?.cause] ?? ADVICE.none;
}
