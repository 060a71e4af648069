// History: frames hold totals since the start; a chart wants what happened between
// two of them, over the last five minutes.

import { eventsOf } from "./events.js";

export const WINDOW = 300; // seconds
const EVENTS = 30; // are kept

export class History {
  points = new Map(); // gate name to a list of points, oldest first
  events = []; // the latest last

  // add takes a frame in.
  add(frame) {
    const last = this.frame;
    const anew = last && (last.process !== frame.process || frame.at < last.at);
    if (anew) this.frame = undefined;
    this.events.push(...eventsOf(last, frame, anew));
    this.events = this.events.filter((e) => frame.at - e.at <= WINDOW * 1000).slice(-EVENTS);
    for (const gate of frame.gates) this.addGate(frame, gate);
    this.frame = frame;
  }

  // begin replaces what is known by frames of before, and by those heard since.
  begin(frames) {
    const latest = this.frame;
    this.points.clear();
    this.events = [];
    this.frame = undefined;
    for (const frame of frames) this.add(frame);
    if (latest) this.add(latest);
  }

  addGate(frame, gate) {
    const before = this.frame?.gates.find((g) => g.name === gate.name);
    const points = this.points.get(gate.name) ?? [];
    points.push(before ? between(before, gate, this.frame.at, frame.at) : standing(gate, frame.at));
    while (points.length && frame.at - points[0].at > (WINDOW + 5) * 1000) points.shift();
    this.points.set(gate.name, points);
  }

  of(name) {
    return this.points.get(name) ?? [];
  }

  // marks are the events of a gate, and those of the whole process.
  marks(name) {
    return this.events.filter((e) => !e.gate || e.gate === name);
  }
}

// between makes a point of two snapshots of a gate: rates per second, and what is
// true at its end.
function between(a, b, from, to) {
  const seconds = Math.max((to - from) / 1000, 0.05);
  const rate = (x, y) => Math.max(0, (y ?? 0) - (x ?? 0)) / seconds;
  const rates = (x, y) => y.map((n, i) => rate(x?.[i], n));
  const reasons = {};
  for (const [name, counts] of Object.entries(b.reasons)) reasons[name] = rates(a.reasons[name], counts);
  return {
    at: to,
    draining: b.draining,
    overflow: overflow(b),
    served: rates(a.admitted, b.admitted),
    refused: rates(a.refused, b.refused),
    shadowed: rates(a.shadowed, b.shadowed),
    reasons,
    routes: b.routes.map((r) => {
      const before = a.routes.find((q) => q.route === r.route) ?? r; // new in the list: no rate yet
      return { route: r.route, shed: rates(before.shed, r.shed), held: rate(before.held, r.held),
        served: rate(before.served, r.served), failed: rate(before.failed, r.failed), limited: rate(before.limited, r.limited) };
    }),
    pools: b.pools.map((p) => {
      const before = a.pools.find((q) => q.name === p.name);
      return {
        ...p,
        waited: rates(before?.waits, p.waits),
        holding: rates(before?.held ?? p.held, p.held), // slots, by level
        moved: before ? Math.sign(p.limit - before.limit) : 0,
      };
    }),
  };
}

// overflow is how often each limit has met a caller too many, in all.
const overflow = (gate) => Object.fromEntries(gate.limits.map((l) => [l.name, l.overflow]));

// standing is a point with nothing before it.
function standing(gate, at) {
  return {
    at, draining: gate.draining, overflow: overflow(gate), served: null, refused: null, shadowed: null, reasons: {}, routes: [],
    pools: gate.pools.map((p) => ({ ...p, waited: p.waits.map(() => 0), holding: p.held.map(() => 0), moved: 0 })),
  };
}

// mean returns the average of what pick finds in the last seconds' points.
export function mean(points, seconds, pick) {
  const since = (points.at(-1)?.at ?? 0) - seconds * 1000;
  const values = points.filter((p) => p.at > since && p.served).map(pick).filter((v) => v !== undefined);
  return values.length ? values.reduce((a, b) => a + b, 0) / values.length : 0;
}
