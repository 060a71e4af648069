// Words and numbers: what the page says in text.

export const LEVELS = ["batch", "normal", "high", "critical"];

// OWN are the refusals that callers bring upon themselves; the rest is overload.
// LIMITS are those of them that a limit of the caller's own made.
export const LIMITS = ["rate-limited", "not-admissible", "caller-cap"];
export const OWN = new Set([...LIMITS, "unidentified", "client-gone"]);

export const REASONS = {
  "unidentified": "The identify step turned the caller away.",
  "rate-limited": "The caller is over its own rate.",
  "not-admissible": "No waiting helps: it costs more than the burst, or the rate is zero.",
  "limiter-unavailable": "The shared limit lost its store, and its policy is to refuse.",
  "route-cap": "The route has as much in flight as it may.",
  "caller-cap": "The caller has as much in flight as it may.",
  "stream-cap": "The route has as many streams open as it may.",
  "capacity": "All slots were taken, and this request does not wait.",
  "queue-full": "The queue was at its bound for this level.",
  "predicted-wait": "The wait would have been longer than the longest stay.",
  "queue-bytes": "The bodies that wait are at their bound.",
  "waited-too-long": "It stood in the queue as long as it may.",
  "deadline-unmeetable": "It could not have been answered before its deadline.",
  "evicted": "It gave up its place to work that ranks higher.",
  "pressure": "Memory, the scheduler or a pool is under pressure.",
  "client-gone": "The client left before its turn.",
  "draining": "The process is shutting down.",
};

export const CAUSES = {
  "none": "It has not moved yet.",
  "start": "It began here.",
  "grow": "More slots bought more throughput, or latency is low.",
  "saturated": "More slots bought nothing: something below is queueing.",
  "thrash": "More slots cost throughput.",
  "latency": "Work in flight could not finish in its budget.",
  "undo": "The last cut cost throughput: concurrency was not the cause.",
  "stalled": "Nothing finished while work was in flight.",
  "errors": "Work timed out or was dropped below.",
};

// STORE is what a shared limit says of its store.
export const STORE = {
  "timeout": "it answers late or not at all",
  "refused": "no connection can be made",
  "lost": "connections break off",
  "readonly": "it takes no writes: a failover goes on, or this is a replica",
  "loading": "it reads its data after a start",
  "memory": "its memory is full",
  "cluster": "a part of the cluster is down or moves",
  "auth": "the password is wrong, or it lacks rights",
  "late": "it runs calls long after they were sent",
  "error": "it answers with errors",
};

// ADVICE is one thing to do, by the reason that most refusals have, by the cause of the
// limit's last move, or by what else there is to say, and the section of the runbook that
// has more.
export const ADVICE = {
  "pressure": { text: "Find what uses the memory or the processor; the limit is not the matter.", section: "#headgateshedratehigh" },
  "limiter-unavailable": { text: "Bring the store of the shared limit back.", section: "#headgateceilingdegraded" },
  "draining": { text: "Wait, if this is a deploy or a scale-down; if nobody stopped it, ask what sent the signal.", section: "#deploys" },
  "route-cap": { text: "See whether the route's cap fits its traffic.", section: "#headgateshedratehigh" },
  "stream-cap": { text: "Look for clients that open streams and never leave.", section: "#headgateshedratehigh" },
  "start": { text: "Wait some seconds: the limit grows as the work shows what it takes.", section: "#deploys" },
  "latency": { text: "Ask what the handlers call: it got slower.", section: "#headgatecriticalshed" },
  "stalled": { text: "Find what the handlers call and what does not answer.", section: "#headgatelimitatfloor" },
  "errors": { text: "Look at the errors of what the handlers call.", section: "#headgatecriticalshed" },
  "saturated": { text: "Widen the narrowest resource below, or shed load: more slots bring nothing.", section: "#headgateshedratehigh" },
  "thrash": { text: "Look for locks, memory or a disk that the handlers contend for.", section: "#headgateshedratehigh" },
  "none": { text: "Demand is above capacity: add capacity, or slow the biggest callers down.", section: "#headgateshedratehigh" },
  "caller": { text: "Slow CALLER down: lower its plan, its share or its weight.", section: "#headgateshedratehigh" },
  "limits": { text: "Nothing, if the limits are right: 429 is between the caller and its plan.", section: "#callers-over-their-limits" },
  "store": { text: "Mend the store; do not restart the service, and do not mark it unready.", section: "#headgateceilingdegraded" },
  "calls": { text: "Slow down what calls that service, or buy a larger quota.", section: "#headgateretrybudgetempty" },
  "table": { text: "See whether the callers are real: mend an identity that anybody can make up, or raise the table.", section: "#headgatetableoverflow" },
  "shadow": { text: "Enforce again when what is refused is what you want refused.", section: "#changing-what-is-in-force" },
};

export function number(x) {
  if (x === null || x === undefined || !isFinite(x)) return "∞";
  const a = Math.abs(x);
  if (a >= 1e6) return trim(x / 1e6) + "M";
  if (a >= 1e4) return trim(x / 1e3) + "k";
  if (a >= 100 || Number.isInteger(x)) return String(Math.round(x));
  return trim(x);
}

const trim = (x) => x.toFixed(Math.abs(x) < 10 ? 1 : 0).replace(/\.0$/, "");

export function duration(s) {
  if (s <= 0) return "0";
  if (s < 0.001) return trim(s * 1e6) + " µs";
  if (s < 1) return trim(s * 1e3) + " ms";
  if (s < 120) return trim(s) + " s";
  return s < 7200 ? Math.round(s / 60) + " min" : Math.round(s / 3600) + " h";
}

// clock is a time of day.
export const clock = (at) => new Date(at).toLocaleTimeString();

// list joins words: a, b and c.
export const list = (words) => words.length < 2 ? words.join("") : words.slice(0, -1).join(", ") + " and " + words.at(-1);

export const sum = (numbers) => numbers.reduce((a, b) => a + b, 0);
