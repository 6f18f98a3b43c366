// Asks the server for the room's news, which it gives as soon as there are any,
// and writes the counts. Tells the page only when it has to be drawn again, and
// says so when the server is away.
const AGAIN = 1000; // ms until a server that is away is asked again
const PATIENCE = 4000; // ms until a page that was not drawn is told again
const AWAY =
  "The server is away. Votes and what you typed are kept. The page goes on when it is back.";
const NO_DATABASE = "The room's database is away; your own work goes on.";

/**
 * @typedef {object} News  what the server says
 * @property {string} have  what this answer knows, for the next question
 * @property {string} counts  the counts, as HTML
 * @property {string} draw  another text: the page has to be drawn again
 * @property {unknown} [reveal]  what the board shows after a reveal
 * @property {number} within  seconds in which the pages of a room are drawn
 * @property {string} asked  the address to ask
 * @property {Clock} clock
 *
 * @typedef {object} Clock  seconds as they were when the server answered
 * @property {number} [left]  of the lead's timer
 * @property {number} [taken]  at this question
 * @property {number} [session]
 *
 * @typedef {(name: string, value: unknown) => void} Send
 *
 * @typedef {object} Listener  one mounted component
 * @property {HTMLElement} box
 * @property {HTMLElement} away
 * @property {HTMLElement} time
 * @property {Clock} clock
 * @property {number} came  when the server's last answer came, in ms
 * @property {number | undefined} ticks  the timer that writes the clock
 * @property {News} data
 * @property {Send} send
 * @property {AbortController} stop
 * @property {string} have
 * @property {string} counts
 * @property {boolean} ahead  the board shows what the page does not
 * @property {boolean} gone
 * @property {number | undefined} later
 */

/** @type {WeakMap<ShadowRoot, Listener>} */
const live = new WeakMap(); // by the element that Streamlit gives

/** @param {Listener} listener */
async function listen(listener) {
  while (!listener.gone) {
    const { data, have } = listener;
    listener.stop = new AbortController();
    try {
      const asked = `${data.asked}&have=${have}`;
      const answer = await fetch(asked, { cache: "no-store", signal: listener.stop.signal });
      if (!answer.ok) throw answer.status;
      const now = await answer.json();
      listener.away.hidden = true;
      tellAway(false);
      if (listener.data === data) hear(listener, now);
      if (now.draw !== "closed") continue;
    } catch (status) {
      if (listener.stop.signal.aborted) continue;
      listener.away.textContent = status === 503 ? NO_DATABASE : AWAY;
      listener.away.hidden = status === 503 && data.draw === "away"; // the page says so
      tellAway(true);
      listener.have = ""; // so that the server answers at once when it is back
      listener.ahead = true; // and another session draws the page
    }
    await new Promise((done) => setTimeout(done, AGAIN));
  }
}

/**
 * The board's vote is as grey as the page's own buttons while nobody would take it.
 * @param {boolean} away
 */
function tellAway(away) {
  dispatchEvent(new CustomEvent("gradebook-away", { detail: away }));
}

/** @param {number} seconds */
function clockText(seconds) {
  const whole = Math.max(0, Math.floor(seconds));
  return `${Math.floor(whole / 60)}:${String(whole % 60).padStart(2, "0")}`;
}

/** @param {Listener} listener */
function tick(listener) {
  const { clock, came, time } = listener;
  const since = (performance.now() - came) / 1000;
  const parts = [];
  if (clock.left !== undefined) {
    const left = Math.ceil(clock.left - since);
    parts.push(left > 0 ? `${clockText(left)} left` : "Time is up.");
  }
  if (clock.taken !== undefined) parts.push(`${clockText(clock.taken + since)} at this question`);
  if (clock.session !== undefined) parts.push(`${clockText(clock.session + since)} in all`);
  const text = parts.join(" \u00b7 ");
  if (time.textContent !== text) time.textContent = text;
  time.hidden = !text;
  time.classList.toggle("up", clock.left !== undefined && clock.left - since <= 0);
  clearTimeout(listener.ticks);
  listener.ticks = setTimeout(() => tick(listener), 500);
}

/**
 * @param {Listener} listener
 * @param {News} now
 */
function hear(listener, now) {
  listener.have = now.have;
  listener.clock = now.clock ?? {};
  listener.came = performance.now();
  tick(listener);
  if (now.draw === "closed" && listener.data.draw !== "away")
    document.cookie = "gradebook-room=; path=/; max-age=0";
  if (now.counts !== listener.counts) listener.box.innerHTML = listener.counts = now.counts;
  if (now.draw === listener.data.draw && !listener.ahead) return;
  if (now.reveal) dispatchEvent(new CustomEvent("gradebook-reveal", { detail: now.reveal }));
  listener.ahead = Boolean(now.reveal); // the board shows what the page does not
  clearTimeout(listener.later); // each browser has its page drawn at a moment of its own
  const draw = () => {
    listener.send("draw", `${now.draw} ${Date.now()}`);
    listener.later = setTimeout(draw, PATIENCE);
  };
  listener.later = setTimeout(draw, 1000 * now.within * Math.random());
}

/**
 * @param {ShadowRoot} parent
 * @param {News} data
 * @param {Send} send
 * @returns {Listener}
 */
function begin(parent, data, send) {
  // The next session asks in which room this browser is.
  document.cookie = "gradebook-room=1; path=/; max-age=86400; samesite=lax";
  const look = { hidden: true, role: "status", className: "gb-live", textContent: AWAY };
  const away = Object.assign(document.createElement("p"), look);
  const box = document.createElement("div");
  const clocks = { hidden: true, role: "timer", className: "gb-clock" };
  const time = Object.assign(document.createElement("p"), clocks);
  parent.append(time, box, away);
  /** @type {Listener} */
  const listener = {
    ...{ box, away, time, data, send, later: undefined, clock: {}, came: 0, ticks: undefined },
    ...{ stop: new AbortController(), have: "", counts: "", ahead: false, gone: false },
  };
  return listener;
}

/** @param {{data: [News], parentElement: ShadowRoot, setStateValue: Send}} component */
export default function ({ data: [data], parentElement, setStateValue }) {
  const known = live.get(parentElement);
  const listener = known ?? begin(parentElement, data, setStateValue);
  live.set(parentElement, listener);
  listener.send = setStateValue;
  listener.data = data;
  clearTimeout(listener.later);
  listener.ahead = false;
  hear(listener, data);
  if (!known) listen(listener);
  else listener.stop.abort(); // asks anew
  return () => {
    if (parentElement.isConnected) return; // an earlier call's end
    listener.gone = true;
    clearTimeout(listener.later);
    clearTimeout(listener.ticks);
    listener.stop.abort();
    live.delete(parentElement);
  };
}
