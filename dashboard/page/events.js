// Events: what changed between two frames at once, and is worth a mark on the charts.

import { CAUSES, STORE, duration, number } from "./words.js";

// eventsOf lists them, each with its time, its gate if it is about one, and a sentence.
export function eventsOf(before, frame, anew) {
  if (!before) return [];
  const at = frame.at;
  if (anew) return [{ at, text: "The process started." }];
  return [
    ...frame.gates.flatMap((gate) => ofGate(before.gates.find((g) => g.name === gate.name), gate)),
    ...frame.stores.flatMap((store) => ofStore(before.stores.find((s) => s.name === store.name), store)),
    ...frame.calls.flatMap((calls) => ofCalls(before.calls.find((c) => c.name === calls.name), calls)),
  ].map((e) => ({ at, ...e }));
}

function ofGate(before, gate) {
  if (!before) return [];
  const events = [];
  const add = (text) => events.push({ gate: gate.name, text });
  if (gate.draining && !before.draining) add("Shutting down: newcomers are refused.");
  for (const p of gate.pools) {
    const was = before.pools.find((q) => q.name === p.name);
    const called = p.name ? `of ${p.name} ` : "";
    if (!was) add(`The pool ${p.name} was added.`);
    else if (p.limit <= 0.8 * was.limit) add(`The limit ${called}fell from ${number(was.limit)} to ${number(p.limit)}: ${low(CAUSES[p.cause] ?? p.cause)}`);
    else if (p.most !== was.most || p.bound !== was.bound) add(`The bounds ${called}were changed.`);
  }
  for (const l of gate.limits) {
    const was = before.limits.find((m) => m.name === l.name);
    if (was && (was.rate !== l.rate || was.burst !== l.burst)) add(`The limit ${l.name} was changed to ${number(l.rate)}/s, bursts of ${number(l.burst)}.`);
  }
  return events;
}

function ofStore(before, store) {
  if (!before || before.degraded === store.degraded) return [];
  const why = store.why ? `: ${STORE[store.why] ?? store.why}` : "";
  return [{ text: store.degraded ? `The shared limit ${store.name} lost its store${why}.` : `The shared limit ${store.name} has its store back.` }];
}

function ofCalls(before, calls) {
  return calls.operations.flatMap((o) => {
    const was = before?.operations.find((p) => p.service === o.service && p.operation === o.operation);
    if (!was || was.pause > 0 || o.pause <= 0) return [];
    return [{ text: `${o.service || o.operation} asked for a pause of ${duration(o.pause)}.` }];
  });
}

const low = (sentence) => sentence[0].toLowerCase() + sentence.slice(1);
