// The feed: frames from the server, however they can be had.
//
// A browser opens six connections to a host, and a stream holds one. So one tab of
// the browser leads: it holds the stream and passes frames on; the others listen,
// and when they hear nothing for a while, one of them takes over. Of two leaders,
// the one with the higher id yields. Hidden tabs do not lead.

const SILENCE = 2600; // a leader is missing
const PATIENCE = 4000; // a stream that says nothing is none
const POLL = 2000;
const LOST = 5000; // the service is silent
const RETRY = 15000; // while polling, for a stream
const GAP = 8000; // so long without a frame, and the page asks what it has missed

// listen calls onFrame with each frame, and onPast with those from before the page was
// opened, or since it was last heard of: what is known then begins anew with them.
export function listen(onFrame, onPast) {
  const feed = new Feed(onFrame, onPast);
  setInterval(() => feed.tick(), 500);
  document.addEventListener("visibilitychange", () => {
    feed.shown = Date.now();
    feed.tick();
  });
  return feed;
}

class Feed {
  id = crypto.getRandomValues(new Uint32Array(1))[0];
  heard = 0; // when the last frame came, from any tab
  shown = Date.now(); // when the page came into view
  last = 0; // its own time
  process = 0; // and what it counts
  turn = Date.now() + 300 + Math.random() * 900; // when to lead, if no other tab does
  stream = null;
  opened = 0;
  polling = false;
  polled = 0;
  refused = 0; // when the stream last failed

  constructor(onFrame, onPast) {
    this.onFrame = onFrame;
    this.onPast = onPast;
    this.channel = "BroadcastChannel" in window ? new BroadcastChannel("headgate " + location.pathname) : null;
    if (this.channel) this.channel.onmessage = (e) => this.overhear(e.data);
    this.fetch(); // something to show at once
  }

  // state is how frames come: live, poll, wait (none yet) or lost.
  state() {
    if (this.silence() > LOST) return "lost";
    if (!this.heard) return "wait";
    return this.polling ? "poll" : "live";
  }

  // silence is how long no frame has come while the page could be seen: a hidden page
  // asks for none.
  silence() {
    return document.hidden ? 0 : Date.now() - Math.max(this.heard, this.shown);
  }

  tick() {
    const now = Date.now();
    if (document.hidden) return this.close();
    if (this.stream) {
      if (now - Math.max(this.opened, this.heard) > PATIENCE) this.fail();
    } else if (this.polling) {
      if (now - this.polled >= POLL) this.fetch(true);
      if (now - this.refused > RETRY) this.lead();
    } else if (now > this.turn) {
      this.lead();
    }
  }

  lead() {
    this.close();
    this.opened = Date.now();
    this.stream = new EventSource("events");
    this.stream.onmessage = (e) => {
      this.polling = false;
      this.take(JSON.parse(e.data), true);
    };
    // A stream ends every few seconds and the browser asks for the next; one that
    // is refused stays closed.
    this.stream.onerror = () => {
      if (this.stream && this.stream.readyState === EventSource.CLOSED) this.fail();
    };
  }

  close() {
    if (this.stream) this.stream.close();
    this.stream = null;
  }

  fail() {
    this.close();
    this.refused = Date.now();
    this.polling = true;
    this.fetch(true);
  }

  async fetch(share) {
    this.polled = Date.now();
    try {
      const answer = await fetch("data.json", { signal: AbortSignal.timeout(3000), cache: "no-store" });
      if (answer.ok) this.take(await answer.json(), share);
    } catch {
      // the next one may succeed; the state shows that none came
    }
  }

  overhear({ id, frame }) {
    if (this.stream || this.polling) {
      if (id > this.id) return; // they will hear this tab, and yield
      this.close();
      this.polling = false;
    }
    this.turn = Date.now() + SILENCE + Math.random() * 1500;
    this.take(frame, false);
  }

  take(frame, share) {
    const anew = frame.process !== this.process; // the server, or its counting, is another
    if (!anew && frame.at <= this.last) return; // overheard late
    const missed = anew || frame.at - this.last > GAP;
    this.heard = Date.now();
    if (share && this.channel) this.channel.postMessage({ id: this.id, frame });
    this.process = frame.process;
    this.last = frame.at;
    this.onFrame(frame);
    if (missed) this.recall();
  }

  // recall asks for what was shown before.
  async recall() {
    try {
      const answer = await fetch("history.json", { signal: AbortSignal.timeout(10000), cache: "no-store" });
      const frames = answer.ok ? await answer.json() : [];
      this.onPast(frames.filter((f) => f.process === this.process && f.at < this.last));
    } catch {
      // charts begin with what is heard from now on
    }
  }
}
