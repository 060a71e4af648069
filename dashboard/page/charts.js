// Charts: small SVG, drawn anew with every frame. Time runs to the right and ends
// at the last point; until there is more to show, less of it fills the width.

import { WINDOW } from "./history.js";
import { instant } from "./instant.js";
import { LEVELS, clock, duration, number } from "./words.js";

const LEAST = 20; // seconds across, however young the page is
const NS = "http://www.w3.org/2000/svg";

function node(parent, tag, attributes, text) {
  const n = document.createElementNS(NS, tag);
  for (const [k, v] of Object.entries(attributes)) n.setAttribute(k, v);
  if (text !== undefined) n.textContent = text;
  parent.append(n);
  return n;
}

// Canvas is an SVG that fills its place and maps seconds and values to pixels.
class Canvas {
  constructor(place, height, label, clocked) {
    this.svg = node(place, "svg", { class: "chart" + (clocked ? " clocked" : ""), height, role: "img", "aria-label": label });
    this.height = height;
    this.svg.addEventListener("pointermove", (e) => instant.set(this.at(e.offsetX)));
    this.svg.addEventListener("pointerleave", () => instant.set(null));
    instant.listen(() => this.point());
  }

  // begin clears the chart; points say when it ends and how much time it shows.
  begin(points, low, high) {
    this.width = this.svg.clientWidth || 600;
    this.svg.setAttribute("viewBox", `0 0 ${this.width} ${this.height}`);
    this.svg.replaceChildren();
    this.end = points.at(-1)?.at ?? 0;
    const known = (this.end - (points[0]?.at ?? this.end)) / 1000;
    this.span = Math.min(WINDOW, Math.max(LEAST, known));
    this.low = low;
    this.high = high;
  }

  // finish draws what lies over a chart: marks of events, and the instant looked at.
  finish(marks) {
    for (const m of marks) {
      const x = this.x(m.at);
      if (x < 0) continue;
      const mark = node(this.svg, "line", { class: "mark", x1: x, x2: x, y1: 0, y2: this.height });
      node(mark, "title", {}, `${clock(m.at)}: ${m.text}`);
    }
    this.cursor = node(this.svg, "line", { class: "cursor", y1: 0, y2: this.height, visibility: "hidden" });
    this.point();
  }

  // keys lets the arrows move the instant from point to point.
  keys(points) {
    const of = () => points.findLastIndex((p) => p.at <= (instant.at ?? this.end));
    const moves = { ArrowLeft: -1, ArrowRight: 1, PageDown: -10, PageUp: 10, Home: -Infinity, End: Infinity };
    this.svg.onkeydown = (e) => {
      if (e.key === "Escape") return instant.set(null);
      if (!(e.key in moves) || !points.length) return;
      e.preventDefault();
      instant.set(points[Math.min(points.length - 1, Math.max(0, of() + moves[e.key]))].at);
    };
  }

  point() {
    if (!this.cursor) return;
    const x = instant.at === null ? -1 : this.x(instant.at);
    this.cursor.setAttribute("visibility", x >= 0 && x <= this.width ? "visible" : "hidden");
    this.cursor.setAttribute("x1", x);
    this.cursor.setAttribute("x2", x);
  }

  at(x) {
    return this.end - ((this.width - x) / this.width) * this.span * 1000;
  }

  x(at) {
    return this.width - ((this.end - at) / 1000 / this.span) * this.width;
  }

  y(value) {
    return this.height - ((value - this.low) / (this.high - this.low)) * this.height;
  }

  line(value, cls, text) {
    const y = Math.round(this.y(value)) + 0.5;
    node(this.svg, "line", { class: cls, x1: 0, x2: this.width, y1: y, y2: y });
    if (text) node(this.svg, "text", { x: 2, y: y > 14 ? y - 4 : y + 12 }, text);
  }

  // clock marks how long ago it was, below the chart.
  clock() {
    const step = this.span > 120 ? 60 : this.span > 60 ? 30 : this.span > 30 ? 15 : 5;
    for (let ago = step; ago < this.span; ago += step) {
      const x = this.x(this.end - ago * 1000);
      if (x > 24) node(this.svg, "text", { x, y: this.height + 13, "text-anchor": "middle" }, duration(ago) + " ago");
    }
    node(this.svg, "text", { x: this.width, y: this.height + 13, "text-anchor": "end" }, "now");
  }

  path(cls, d) {
    if (d) node(this.svg, "path", { class: cls, d });
  }

  // area fills between two heights of each point; a gap in time interrupts it.
  area(cls, points, from, to) {
    let d = "";
    for (const run of runs(points)) {
      const edge = (value, list) => list.map((p) => `${this.x(p.at).toFixed(1)},${this.y(value(p)).toFixed(1)}`).join("L");
      d += `M${edge(to, run)}L${edge(from, [...run].reverse())}Z`;
    }
    this.path(cls, d);
  }

  steps(cls, points, value) {
    let d = "";
    for (const run of runs(points)) {
      run.forEach((p, i) => {
        const y = this.y(value(p)).toFixed(1);
        d += i ? `H${this.x(p.at).toFixed(1)}V${y}` : `M${this.x(p.at).toFixed(1)},${y}`;
      });
    }
    this.path(cls, d);
  }
}

const MISSING = 12_500; // no points for so long: longer than any two of the past lie apart

// runs cuts points where some are missing.
function runs(points) {
  const all = [];
  points.forEach((p, i) => {
    if (i && p.at - points[i - 1].at < MISSING) all.at(-1).push(p);
    else all.push([p]);
  });
  return all;
}

// nice rounds a scale up to 1, 2 or 5 times a power of ten.
function nice(x) {
  const power = 10 ** Math.floor(Math.log10(Math.max(x, 1)));
  return power * [1, 1.5, 2, 3, 4, 5, 7.5, 10].find((m) => m * power >= x);
}

const upTo = (numbers, level) => numbers.slice(level).reduce((a, b) => a + b, 0);

// stack draws an area for each level, the most important next to the base.
function stack(canvas, points, pick, sign) {
  for (let l = 0; l < LEVELS.length; l++) {
    canvas.area("a" + l, points, (p) => sign * upTo(pick(p), l + 1), (p) => sign * upTo(pick(p), l));
  }
}

// mirror shows what is served above its base line and what is refused below it.
export function mirror(place) {
  const canvas = new Canvas(place, 210, "Requests per second by level: served above the line, refused below it", true);
  canvas.svg.setAttribute("tabindex", 0);
  canvas.svg.setAttribute("role", "slider");
  return (all, marks) => {
    const points = all.filter((p) => p.served);
    const up = nice(Math.max(1, ...points.map((p) => upTo(p.served, 0))));
    const down = Math.max(...points.map((p) => upTo(p.refused, 0)), 0);
    const low = -Math.max(nice(down), up / 5);
    canvas.begin(all, low, up * 1.05);
    canvas.keys(all);
    node(canvas.svg, "rect", { class: "below", x: 0, width: canvas.width, y: canvas.y(0), height: canvas.height - canvas.y(0) });
    canvas.line(up, "grid-line", number(up) + "/s served");
    canvas.line(up / 2, "grid-line", number(up / 2));
    canvas.line(low, "grid-line", number(-low) + "/s refused");
    stack(canvas, points, (p) => p.served, 1);
    stack(canvas, points, (p) => p.refused, -1);
    canvas.line(0, "axis");
    canvas.clock();
    canvas.finish(marks);
  };
}

const poolsOf = (points, name) =>
  points.flatMap((p) => p.pools.filter((q) => q.name === name).map((q) => ({ ...q, at: p.at })));

// limit shows work in flight under the limit, with a dot for each move.
export function limit(place, pool) {
  const canvas = new Canvas(place, 130, "Work in flight, and the limit");
  return (all, marks) => {
    const points = poolsOf(all, pool);
    const high = nice(Math.max(1, ...points.map((p) => Math.max(p.limit, p.inFlight))));
    canvas.begin(all, 0, high * 1.05);
    canvas.line(high, "grid-line", number(high));
    canvas.line(high / 2, "grid-line", number(high / 2));
    canvas.area("flow", points, () => 0, (p) => p.inFlight);
    canvas.steps("limit", points, (p) => p.limit);
    for (const p of points.filter((q) => q.moved)) {
      node(canvas.svg, "circle", { class: p.moved > 0 ? "up" : "down", r: 2.6, cx: canvas.x(p.at), cy: canvas.y(p.limit) });
    }
    canvas.line(0, "axis");
    canvas.finish(marks);
  };
}

// queue shows who waits, by level, and the bound once it is near.
export function queue(place, pool) {
  const canvas = new Canvas(place, 130, "Requests that wait, by level, and how many may");
  return (all, marks) => {
    const points = poolsOf(all, pool);
    const deepest = Math.max(0, ...points.map((p) => upTo(p.waiting, 0)));
    const bound = points.at(-1)?.bound ?? 0;
    const high = deepest * 4 >= bound ? Math.max(bound, deepest, 1) : nice(deepest);
    canvas.begin(all, 0, high * 1.08);
    canvas.line(high / 2, "grid-line", number(high / 2));
    stack(canvas, points, (p) => p.waiting, 1);
    if (bound && bound <= high) canvas.line(bound, "bound", "bound " + number(bound));
    else canvas.line(high, "grid-line", number(high));
    canvas.line(0, "axis");
    canvas.finish(marks);
  };
}

const SHADES = 5;

// shadeOf returns 1 to SHADES. The fullest cell's quotient may come out above 1.
export const shadeOf = (n, most) =>
  Math.min(SHADES, Math.max(1, Math.ceil((SHADES * Math.log1p(n)) / Math.log1p(most))));

// heat shows how long those admitted from the queue had waited: a column for each
// frame, a row for each doubling.
export function heat(place, pool) {
  const canvas = new Canvas(place, 118, "How long requests waited: darker is more of them", true);
  return (all, marks) => {
    const points = poolsOf(all, pool);
    const rows = points.at(-1)?.waited.length ?? 1;
    canvas.begin(all, 0, rows);
    const most = Math.max(1, ...points.flatMap((p) => p.waited));
    const cells = Array(SHADES + 1).fill("");
    const tall = canvas.height / rows;
    points.forEach((p, i) => {
      const wide = (canvas.width / canvas.span) * Math.min((p.at - (points[i - 1]?.at ?? p.at - 1000)) / 1000, 10);
      p.waited.forEach((n, row) => {
        if (n <= 0) return;
        const shade = shadeOf(n, most);
        const x = canvas.x(p.at) - wide, y = canvas.height - (row + 1) * tall;
        cells[shade] += `M${x.toFixed(1)},${y.toFixed(1)}h${wide.toFixed(1)}v${(tall - 0.6).toFixed(1)}h${(-wide).toFixed(1)}z`;
      });
    });
    cells.forEach((d, shade) => canvas.path("h" + shade, d));
    for (const [row, text] of [[1, "1 ms"], [4, "8 ms"], [7, "64 ms"], [10, "512 ms"], [13, "4 s"]]) {
      if (row < rows) node(canvas.svg, "text", { x: 2, y: canvas.y(row) + 3.5 }, text);
    }
    canvas.line(0, "axis");
    canvas.clock();
    canvas.finish(marks);
  };
}
