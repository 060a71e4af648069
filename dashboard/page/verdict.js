// The verdict: who is hurt, and why? One sentence for the person who was woken.

import { overloadOf } from "./gate.js";
import { mean } from "./history.js";
import { LEVELS, LIMITS, OWN, duration, list, number, sum } from "./words.js";

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
  return { tone: first.tone, text: named + first.text, more: [first.more, ...besides].filter(Boolean).join(" ") };
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

function shedding(name, gate, points, shed, lost, more) {
  const reason = Object.keys(gate.reasons).filter((r) => !OWN.has(r))
    .map((r) => [mean(points, RECENT, (p) => sum(p.reasons[r] ?? [0])), r]).sort((a, b) => b[0] - a[0])[0]?.[1];
  const whole = LEVELS.filter((level, l) => !lost.includes(level) && mean(points, RECENT, (p) => p.served[l]) > 0);
  const kept = whole.length ? `There is room for all ${list(whole.reverse())} work.` : "";
  return {
    name,
    tone: shed[3] > 0 ? "bad" : "warn",
    text: `Refusing ${number(sum(shed))}/s of ${list(lost.reverse())} for want of capacity, mostly ${reason}.`,
    more: `${kept} ${more}`.trim(),
  };
}
