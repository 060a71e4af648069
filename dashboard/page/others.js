// What is not a gate: the calls the service makes, its work queues, its stores.

import { card, h, table, tag } from "./dom.js";
import { clock, duration, number, sum } from "./words.js";

export function othersView() {
  const log = card("", "What happened");
  const events = h("ol", { class: "log" });
  log.box.append(events);
  const numbers = inForce();
  const calls = card("", "Calls to others");
  const stores = card("", "Shared limits");
  const queues = card("", "Work queues");
  const places = [calls, stores, queues].map((c) => {
    const place = h("div");
    c.box.append(place);
    return place;
  });
  return {
    box: h("div", { class: "grid" }, log.box, stores.box, calls.box, queues.box, numbers),
    set(frame, happened) {
      setLog(events, happened);
      numbers.hidden = !frame.inForce;
      calls.box.hidden = !frame.calls.length;
      stores.box.hidden = !frame.stores.length;
      queues.box.hidden = !frame.queues.length;
      setCalls(calls.note, places[0], frame.calls);
      setStores(places[1], frame.stores);
      setQueues(places[2], frame.queues);
    },
  };
}

// inForce shows the numbers in force and where each comes from, as they are when it is
// opened.
function inForce() {
  const text = h("pre", { tabindex: 0, "aria-label": "The numbers in force" });
  const details = h("details", null, h("summary", null, "Numbers in force, and where each comes from"), text);
  details.addEventListener("toggle", async () => {
    if (!details.open) return;
    try {
      const answer = await fetch("in-force.txt", { signal: AbortSignal.timeout(5000), cache: "no-store" });
      text.textContent = answer.ok ? await answer.text() : `No answer: ${answer.status}.`;
    } catch {
      text.textContent = "No answer.";
    }
  });
  return h("section", { class: "card" }, details);
}

// setLog lists the latest events first.
function setLog(place, events) {
  const items = [...events].reverse().slice(0, 12).map((e) => h("li", null, h("time", null, clock(e.at)), " ", e.gate ? h("b", null, e.gate + " ") : "", e.text));
  place.replaceChildren(...(items.length ? items : [h("li", { class: "none" }, "Nothing in the last five minutes.")]));
}

function setCalls(note, place, calls) {
  const more = sum(calls.map((c) => c.more));
  note.textContent = more ? `${number(more)} quieter operations are left out.` : "";
  table(place, ["Transport", "Operation", "State", ">Rate in force", ">In flight", ">Waiting", ">Throttled", ">Failed", ">Not sent", ">Retries left"],
    calls.flatMap((c) => c.operations.map((o) => [
      c.name, [o.service, o.operation].filter(Boolean).join(" "), state(o), number(o.rate) + "/s", number(o.inFlight),
      number(o.waiting), number(o.throttled), number(o.failed), number(o.notSent), number(Math.floor(o.budget)),
    ])));
}

function state(o) {
  if (o.pause > 0) return tag("away for " + duration(o.pause), "bad");
  if (o.multiplier < 0.995) return tag(Math.round(o.multiplier * 100) + " % of its rate", "warn");
  return tag("in full");
}

function setStores(place, stores) {
  table(place, ["Limit", "State", ">Processes", ">Ceiling", ">Without the store", ">Keys", ">Of them alone", ">Calls", ">Failed"],
    stores.map((s) => [
      s.name, s.degraded ? tag([s.state, s.why].filter(Boolean).join(": "), "bad") : tag(s.state || "shared"),
      number(s.peers), number(s.rate) + "/s", number(s.share) + "/s", number(s.keys), number(s.awayKeys),
      number(s.calls), number(s.failed),
    ]));
}

function setQueues(place, queues) {
  table(place, ["Queue", ">Critical", ">High", ">Normal", ">Batch", ">Oldest", ">Dropped"],
    queues.map((q) => [q.name, ...[...q.waiting].reverse().map(number), duration(q.oldest), number(q.dropped)]));
}
