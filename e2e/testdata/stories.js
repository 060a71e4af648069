// Frames of made-up incidents, for the page's own judgement: a quiet time, then trouble.
// What a story says is added up a second at a time, as the service's counters are.

const pool = { name: "", limit: 64, least: 1, most: 1000, inFlight: 10, bound: 256, waiting: [0, 0, 0, 0], bytes: 0, oldest: 0,
  drain: 0, service: 0.012, cause: "grow", moves: 1, waits: Array(14).fill(0), held: [0, 0, 0, 0] };

const gate = { name: "shop", draining: false, streams: 0, admitted: [50, 50, 0, 10], refused: [0, 0, 0, 0], reasons: {}, shadowed: [0, 0, 0, 0],
  exempt: 0, pools: [{}], limits: [], routes: [], limited: [], turned: [], busiest: [] };

const route = { route: "", served: 0, failed: 0, limited: 0, shed: [0, 0, 0, 0], held: 0 };

const add = (a, b) => b.map((n, i) => n + (a?.[i] ?? 0));

// told plays the phases of a story, so many seconds each, and returns what the page says.
export async function told(phases, age = 3600) {
  const { verdict } = await import(new URL("verdict.js", document.baseURI).href);
  const { History } = await import(new URL("history.js", document.baseURI).href);
  const history = new History();
  const began = 1_800_000_000_000;
  const process = (began + 1000 * (phases.reduce((n, p) => n + p.seconds, 0) - age)) * 1000;
  const total = {};
  let at = began, frame;
  for (const { seconds, stores = [], calls = [], gates = [{}] } of phases) {
    for (let i = 0; i < seconds; i++) {
      at += 1000;
      frame = { at, process, title: "", runbook: "", queues: [], stores, calls, gates: gates.map((g) => count(total, { ...gate, ...g })) };
      history.add(frame);
    }
  }
  const said = verdict(frame, history);
  return [said.tone, said.text, said.more, said.advice?.text, said.advice?.section].join("\n");
}

// kept plays eight hours of trouble that comes and goes, and returns how many points and
// events the page still has.
window.kept = async function kept() {
  const { History } = await import(new URL("history.js", document.baseURI).href);
  const history = new History();
  const total = {};
  for (let i = 0; i < 8 * 3600; i++) {
    const limit = i % 60 < 30 ? 64 : 16;
    const stores = [{ name: "api", degraded: i % 100 < 50, peers: 3 }];
    history.add({ at: 1000 * i, process: 1, calls: [], stores, gates: [count(total, { ...gate, pools: [{ limit }], reasons: { capacity: [limit, 0, 0, 0] } })] });
  }
  return [history.of("shop").length, history.events.length, history.points.size].join(" ");
};

// count returns a gate with its counters added to what they were.
function count(total, g) {
  const sums = (total[g.name] ??= { reasons: {}, routes: {}, overflow: 0 });
  for (const key of ["admitted", "refused", "shadowed"]) g[key] = sums[key] = add(sums[key], g[key]);
  for (const [name, n] of Object.entries(g.reasons)) {
    sums.reasons[name] = add(sums.reasons[name], n);
    sums.refused = add(sums.refused, n);
  }
  g.reasons = { ...sums.reasons };
  g.refused = sums.refused;
  g.pools = g.pools.map((p) => ({ ...pool, ...p }));
  g.routes = g.routes.map((r) => {
    const sum = (sums.routes[r.route] ??= { ...route, route: r.route });
    for (const key of ["served", "failed", "limited", "held"]) sum[key] += r[key] ?? 0;
    sum.shed = add(sum.shed, r.shed ?? [0, 0, 0, 0]);
    return { ...sum };
  });
  g.limits = g.limits.map((l) => ({ rate: 10, burst: 10, keys: 5, most: 5, ...l, overflow: (sums.overflow += l.overflow ?? 0) }));
  return g;
}
