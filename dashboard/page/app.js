// The page: takes frames from the feed, keeps their history, and shows both.

import { h } from "./dom.js";
import { listen } from "./feed.js";
import { gateView } from "./gate.js";
import { History } from "./history.js";
import { othersView } from "./others.js";
import { silent, verdict } from "./verdict.js";

const main = document.getElementById("main");
const status = document.getElementById("status");
const footer = document.getElementById("footer");

const history = new History();
const views = new Map();
const sentence = h("section", { class: "verdict", role: "status" });
const others = othersView();
let frames = 0;
let waiting = false; // a drawing is due
let rested = 0; // when the next may begin

// Every frame is taken into the history; the latest is drawn, when the browser is
// ready to and drawing leaves it time for other things. A hidden page draws nothing.
const feed = listen((frame) => {
  history.add(frame);
  frames++;
  redraw();
}, (past) => {
  history.begin(past);
  redraw();
});
setInterval(showState, 500);

function redraw() {
  if (waiting) return;
  waiting = true;
  setTimeout(() => requestAnimationFrame(draw), rested - performance.now());
}

function draw() {
  waiting = false;
  const began = performance.now();
  show(history.frame);
  const ended = performance.now();
  rested = ended + 3 * (ended - began);
}

function show(frame) {
  document.title = frame.title;
  document.getElementById("title").textContent = frame.title;
  say(verdict(frame, history));
  for (const gate of frame.gates) {
    if (!views.has(gate.name)) {
      views.set(gate.name, gateView(gate.name, frame.gates.length > 1));
      main.append(views.get(gate.name).box);
    }
    views.get(gate.name).set(gate, history.of(gate.name), history.marks(gate.name));
  }
  if (main.lastChild !== others.box) main.append(others.box);
  others.set(frame, history.events);
  const since = new Date(frame.process / 1000);
  const peers = Math.max(0, ...frame.stores.map((s) => s.peers));
  const many = peers > 1 ? ` It is one of ${peers} processes that share a limit; each has a page of its own.` : "";
  footer.textContent = `This is ${frame.host}, counting since ${since.toLocaleString()}.${many} Charts show the last five minutes.`;
  main.dataset.frames = frames;
  showState();
}

// say puts a judgement at the top of the page.
function say(judged) {
  sentence.className = "verdict " + judged.tone;
  sentence.replaceChildren(judged.text, judged.more ? h("span", null, judged.more) : "",
    judged.advice ? h("span", { class: "advice" }, "What to do: " + judged.advice.text + " ",
      history.frame.runbook ? h("a", { href: history.frame.runbook + judged.advice.section, rel: "noreferrer" }, "Runbook") : null) : "");
  if (sentence.parentNode !== main) main.replaceChildren(sentence);
}

function showState() {
  const state = feed.state();
  if (state === "lost") say(silent(feed.silence() / 1000, history.frame));
  const texts = { live: "live", poll: "polling", wait: "connecting", lost: "no answer" };
  if (status.dataset.state !== state) {
    status.dataset.state = state;
    status.lastElementChild.textContent = texts[state];
    main.className = state === "lost" ? "lost" : "";
  }
}
