// Asks the server for the room's news, which it gives as soon as there are any,
// and writes the counts. Tells the page only when it has to be drawn again, and
// says so when the server is away.
const AGAIN = 1000; // ms until a server that is away is asked again
const PATIENCE = 4000; // ms until a page that was not drawn is told again
const AWAY =
  'The server is away. Your votes and what you typed are kept, and this page ' +
  'goes on by itself when the server is back.';
const live = new WeakMap();

async function listen(own) {
  while (!own.gone) {
    const { data, have } = own;
    own.stop = new AbortController();
    try {
      const asked = `${data.asked}&have=${have}`;
      const answer = await fetch(asked, { cache: 'no-store', signal: own.stop.signal });
      if (!answer.ok) throw answer.status;
      const now = await answer.json();
      own.away.hidden = true;
      if (own.data === data) hear(own, now);
      if (now.draw !== 'closed') continue;
    } catch {
      if (own.stop.signal.aborted) continue;
      own.away.hidden = false;
      own.have = ""; // so that the server answers at once when it is back
    }
    await new Promise((done) => setTimeout(done, AGAIN));
  }
}

function hear(own, now) {
  own.have = now.have;
  write(own, now.said);
  const told = own.told === now.draw && performance.now() < own.at + PATIENCE;
  if (now.draw === own.data.draw || told) return;
  own.told = now.draw;
  own.at = performance.now();
  own.count += 1;
  own.send('draw', `${now.draw} ${own.count}`);
}

function write(own, said) {
  if (said !== own.said) own.box.innerHTML = own.said = said;
}

function begin(parent) {
  const own = { count: 0, at: 0 };
  own.box = parent.appendChild(document.createElement('div'));
  own.away = parent.appendChild(document.createElement('p'));
  own.away.hidden = true;
  own.away.role = 'status';
  own.away.textContent = AWAY;
  return own;
}

// The tab's own name: the room follows one tab of the lead's.
function tab() {
  const known = sessionStorage.getItem('gradebook-tab') ?? `${Math.random()}`.slice(2);
  sessionStorage.setItem('gradebook-tab', known);
  return known;
}

export default function ({ data: [data], parentElement, setStateValue }) {
  const known = live.get(parentElement);
  const own = known ?? begin(parentElement);
  live.set(parentElement, own);
  own.send = setStateValue;
  const other = own.data?.asked !== data.asked || own.data.draw !== data.draw;
  own.data = data;
  own.have = data.have;
  write(own, data.said);
  if (data.leads === '1' && data.tab !== tab()) setStateValue('tab', tab());
  if (!known) listen(own);
  else if (other) own.stop.abort(); // asks anew
  return () => {
    if (parentElement.isConnected) return; // an earlier call's end
    own.gone = true;
    own.stop.abort();
    live.delete(parentElement);
  };
}
