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
 * @property {string} said  the counts, as HTML
 * @property {string} draw  another text: the page has to be drawn again
 * @property {unknown} [reveal]  what the board shows after a reveal
 * @property {number} within  seconds in which the pages of a room are drawn
 * @property {string} asked  the address to ask
 *
 * @typedef {(name: string, value: unknown) => void} Send
 *
 * @typedef {object} Listener  one mounted component
 * @property {HTMLElement} box
 * @property {HTMLElement} away
 * @property {News} data
 * @property {Send} send
 * @property {AbortController} stop
 * @property {string} have
 * @property {string} said
 * @property {boolean} ahead  the board shows what the page does not
 * @property {boolean} gone
 * @property {number | undefined} later
 */

/** @type {WeakMap<ShadowRoot, Listener>} */
const live = new WeakMap(); // by the element that Streamlit gives

/** @param {Listener} own */
async function listen(own) {
  while (!own.gone) {
    const { data, have } = own;
    own.stop = new AbortController();
    try {
      const asked = `${data.asked}&have=${have}`;
      const answer = await fetch(asked, { cache: "no-store", signal: own.stop.signal });
      if (!answer.ok) throw answer.status;
      const now = await answer.json();
      own.away.hidden = true;
      if (own.data === data) hear(own, now);
      if (now.draw !== "closed") continue;
    } catch (status) {
      if (own.stop.signal.aborted) continue;
      own.away.textContent = status === 503 ? NO_DATABASE : AWAY;
      own.away.hidden = status === 503 && data.draw === "away"; // the page says so
      own.have = ""; // so that the server answers at once when it is back
      own.ahead = true; // and another session draws the page
    }
    await new Promise((done) => setTimeout(done, AGAIN));
  }
}

/**
 * @param {Listener} own
 * @param {News} now
 */
function hear(own, now) {
  own.have = now.have;
  if (now.draw === "closed" && own.data.draw !== "away")
    document.cookie = "gradebook-room=; path=/; max-age=0";
  if (now.said !== own.said) own.box.innerHTML = own.said = now.said;
  if (now.draw === own.data.draw && !own.ahead) return;
  if (now.reveal) dispatchEvent(new CustomEvent("gradebook-reveal", { detail: now.reveal }));
  own.ahead = Boolean(now.reveal); // the board shows what the page does not
  clearTimeout(own.later); // each browser has its page drawn at a moment of its own
  const draw = () => {
    own.send("draw", `${now.draw} ${Date.now()}`);
    own.later = setTimeout(draw, PATIENCE);
  };
  own.later = setTimeout(draw, 1000 * now.within * Math.random());
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
  parent.append(box, away);
  return {
    ...{ box, away, data, send, later: undefined },
    ...{ stop: new AbortController(), have: "", said: "", ahead: false, gone: false },
  };
}

/** @param {{data: [News], parentElement: ShadowRoot, setStateValue: Send}} component */
export default function ({ data: [data], parentElement, setStateValue }) {
  const known = live.get(parentElement);
  const own = known ?? begin(parentElement, data, setStateValue);
  live.set(parentElement, own);
  own.send = setStateValue;
  own.data = data;
  clearTimeout(own.later);
  own.ahead = false;
  hear(own, data);
  if (!known) listen(own);
  else own.stop.abort(); // asks anew
  return () => {
    if (parentElement.isConnected) return; // an earlier call's end
    own.gone = true;
    clearTimeout(own.later);
    own.stop.abort();
    live.delete(parentElement);
  };
}
