// The verdict: who is hurt, since when, why, and what to do about it? A few sentences for
// the person who was woken.

import { adviceFor, causeOf, reasonOf } from "./cause.js";
import { overloadOf } from "./gate.js";
import { mean } from "./history.js";
import { ADVICE, LEVELS, LIMITS, STORE, clock, duration, list, number, sum } from "./words.js";

const RECENT = 5; // seconds

// verdict returns a tone (good, warn or bad), a sentence, what more there is to say, and
// advice. The gravest matter comes first and with all that is known; of the others the
// sentence alone is said.
export function verdict(frame, history) {
  const gates = frame.gates.flatMap((gate) => ofGate(gate, history.of(gate.name), frame));
  const matters = [...gates, ...ofStores(frame), ...ofCalls(frame)].sort((a, b) => b.weight - a.weight);
  const first = matters[0];
  if (!first) return { tone: "good", text: "No gate is shown on this page.", more: "" };
  const named = (m) => (m.gate && frame.gates.length > 1 && m.weight > 0 ? `${m.gate}: ${m.text}` : m.text);
  const besides = matters.slice(1).filter((m) => m.weight >= WEIGHTS.limits).map(named);
  if (first.weight > WEIGHTS.limits && first.weight <= WEIGHTS.store) besides.push(quiet(gates));
  return { tone: first.tone, text: named(first), more: [first.more, ...besides].filter(Boolean).join(" "), advice: first.advice };
}

// WEIGHTS put the matters in order.
const WEIGHTS = { critical: 9, shed: 8, store: 7, draining: 6, calls: 5, table: 4, shadow: 3, limits: 2, waiting: 1, fine: 0 };

// quiet is the good news of gates beside a matter that hurts nobody yet.
function quiet(gates) {
  const still = gates.filter((m) => m.weight <= WEIGHTS.waiting).sort((a, b) => b.weight - a.weight)[0];
  return still && !gates.some((m) => m.weight === WEIGHTS.draining) ? still.text : "";
}

// silent says that the service has not been heard for some seconds; what it said last
// is no news any more.
export function silent(seconds, last) {
  const since = last ? ` What is below was true at ${clock(last.at)}.` : "";
  return {
    tone: "bad",
    text: `Nothing heard from the service for ${duration(Math.round(seconds))}.`,
    more: `It is down, restarting, or out of reach from here.${since}`,
  };
}

// ofGate is what there is to say of a gate.
function ofGate(gate, points, frame) {
  const name = gate.name;
  const matters = [];
  const add = (kind, tone, text, more, advice) => matters.push({ gate: name, weight: WEIGHTS[kind], tone, text, more, advice });
  const shed = LEVELS.map((_, level) => mean(points, RECENT, (p) => overloadOf(p, level) - overloadOf(p, level + 1)));
  if (gate.draining) {
    add("draining", "warn", ...leaving(gate, points), ADVICE.draining);
  } else if (sum(shed) > 0) {
    add(shed[3] > 0 ? "critical" : "shed", shed[3] > 0 ? "bad" : "warn", ...shedding(gate, points, shed, frame));
  }
  const beyond = newcomers(gate, points);
  if (beyond.length) {
    add("table", "warn", `More callers than the table of ${list(beyond)} holds: newcomers share one bucket.`, "", ADVICE.table);
  }
  const shadowed = mean(points, RECENT, (p) => sum(p.shadowed));
  if (shadowed > 0) add("shadow", "warn", `Shadow mode lets ${number(shadowed)}/s through that would be refused.`, "", ADVICE.shadow);
  const own = mean(points, RECENT, overLimits);
  if (own > 0) add("limits", "good", ...over(gate, points, own, sum(shed) > 0), ADVICE.limits);
  const waiting = sum(gate.pools.map((p) => sum(p.waiting)));
  if (waiting) {
    const oldest = Math.max(...gate.pools.map((p) => p.oldest));
    add("waiting", "good", "All is served; some wait for it.", `${number(waiting)} wait, the longest for ${duration(oldest)}.`);
  }
  add("fine", "good", "All is served, and nothing waits.", "");
  return matters;
}

// leaving tells of a gate that drains.
function leaving(gate, points) {
  const since = points.find((p, i) => points.slice(i).every((q) => q.draining));
  const left = sum(gate.pools.map((p) => p.inFlight)) + gate.streams;
  const runs = left === 1 ? "one request still runs" : `${number(left)} requests still run`;
  return [`Shutting down since ${clock((since ?? points.at(-1)).at)}: newcomers are refused, and ${left ? runs : "nothing runs any more"}.`, ""];
}

// overLimits is what a point refused because of limits of the callers' own, per second.
const overLimits = (point) => sum(LIMITS.map((r) => sum(point.reasons[r] ?? [0])));

// over names the callers that are over limits of their own.
function over(gate, points, rate, besides) {
  const names = gate.limited.map((c) => c.alias);
  const who = names.length > 3 ? list([...names.slice(0, 3), "others"]) : list(names) || "Some callers";
  const said = `${who} ${names.length === 1 ? "is over its" : "are over their"} own limits: ${number(rate)}/s get 429, ${sinceText(points, overLimits)}.`;
  return [said, besides ? "" : "All else is served."];
}

// newcomers are the limits whose table has met more callers than it holds, lately.
function newcomers(gate, points) {
  const before = points[0]?.overflow ?? {};
  return gate.limits.filter((l) => l.overflow > (before[l.name] ?? l.overflow)).map((l) => l.name);
}

// shedding names the levels and the route that are hurt, since when, the callers that
// are many of those turned away or hold most slots, the cause, and one thing to do.
function shedding(gate, points, shed, frame) {
  const lost = LEVELS.filter((_, l) => shed[l] > 0);
  const reason = reasonOf(gate, points);
  const whole = LEVELS.filter((level, l) => !lost.includes(level) && mean(points, RECENT, (p) => p.served[l]) > 0);
  const kept = whole.length ? `There is room for all ${list(whole.reverse())} work.` : "";
  const since = points[sinceIndex(points)];
  return [
    `Refusing ${number(sum(shed))}/s of ${list(lost.reverse())} for want of capacity${onRoute(points)}, ${sinceText(points)}.`,
    [callers(gate), causeOf(gate, points, since, reason, frame), kept].filter(Boolean).join(" "),
    adviceFor(gate, points, since, reason),
  ];
}

// onRoute names the route with most of what is refused, when it has more than half.
function onRoute(points) {
  const names = [...new Set(points.at(-1)?.routes.map((r) => r.route))];
  const rates = names.map((route) => [mean(points, RECENT, (p) => sum(p.routes.find((r) => r.route === route)?.shed ?? [0])), route]);
  const all = sum(rates.map(([n]) => n));
  const [most, route] = rates.sort((a, b) => b[0] - a[0])[0] ?? [0, ""];
  return route && most > all / 2 ? ` on ${route}` + (most < all * 0.95 ? " above all" : "") : "";
}

const CALM = 12_500; // so long without a refusal, longer than any two frames of the past lie apart, and what comes is another incident

// sinceIndex finds the point at which the present refusals began, those that count finds.
function sinceIndex(points, count = overloadOf) {
  let first = points.length - 1;
  for (let i = points.length - 1; i >= 0 && points[first].at - points[i].at <= CALM; i--) {
    if (points[i].served && count(points[i]) > 0) first = i;
  }
  return first;
}

function sinceText(points, count) {
  const first = sinceIndex(points, count);
  const at = points[first].at;
  if (first <= 1) return `for ${duration((points.at(-1).at - points[0].at) / 1000)} at least`; // the page knows of no time before
  return `since ${clock(at)}`;
}

// callers names who holds most of the slots, or the few that are turned away.
function callers(gate) {
  const all = sum(gate.busiest.map((c) => c.count));
  const [first] = gate.busiest;
  const texts = [];
  if (gate.busiest.length > 1 && first.count > all / 2) {
    texts.push(`${first.alias} holds ${Math.round((100 * first.count) / all)} % of the slot time of the callers seen.`);
  }
  if (gate.turned.length > 0 && gate.turned.length <= 3) texts.push(`Turned away: ${list(gate.turned.map((c) => c.alias))}.`);
  return texts.join(" ");
}

// ofStores tells of shared limits without their store.
function ofStores(frame) {
  return frame.stores.filter((s) => s.degraded).map((s) => ({
    weight: WEIGHTS.store, tone: "warn", advice: ADVICE.store,
    text: `The shared limit ${s.name} has been decided without its store since ${clock(frame.at - 1000 * s.since)}${s.why ? `: ${STORE[s.why] ?? s.why}` : ""}.`,
    more: s.rate !== null && s.share !== null ? `This process admits ${number(s.share)}/s of ${number(s.rate)}/s by itself.` : "",
  }));
}

// ofCalls tells of services that ask for less than they are sent.
function ofCalls(frame) {
  const of = (test) => [...new Set(frame.calls.flatMap((c) => c.operations.filter(test)).map((o) => o.service || o.operation))];
  const paused = of((o) => o.pause > 0);
  const slowed = of((o) => o.pause <= 0 && o.multiplier < 0.995);
  const said = (names, what) => names.length ? [{
    weight: WEIGHTS.calls, tone: "warn", advice: ADVICE.calls, more: "", text: `${list(names)} ${what}.`,
  }] : [];
  return [...said(paused, "asked for a pause, and is not called until then"), ...said(slowed, "asked for less, and gets less")];
}
