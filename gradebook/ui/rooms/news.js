// Asks the server twice a second how the room stands and writes the answer.
// Tells the page only when it has to be drawn again.
const PAUSE = 500;
const PATIENCE = 4000; // ms until a page that was not drawn is told again
const live = new WeakMap();

async function look(own) {
  const { data } = own;
  try {
    const answer = await fetch(data.asked, { cache: 'no-store' });
    const now = answer.ok && (await answer.json());
    if (now && own.data === data && !own.gone) hear(own, now);
  } catch { /* the server is away for a moment */ }
  if (!own.gone) own.timer = setTimeout(() => look(own), PAUSE);
}

function hear(own, { draw, said }) {
  write(own, said);
  const told = own.told === draw && performance.now() < own.at + PATIENCE;
  if (draw === own.data.draw || told) return;
  own.told = draw;
  own.at = performance.now();
  own.count += 1;
  own.send('draw', `${draw} ${own.count}`);
}

function write(own, said) {
  if (said !== own.said) own.box.innerHTML = own.said = said;
}

export default function ({ data: [data], parentElement, setStateValue }) {
  let own = live.get(parentElement);
  if (!own) {
    const box = parentElement.appendChild(document.createElement('div'));
    own = { count: 0, at: 0, box };
    live.set(parentElement, own);
    own.timer = setTimeout(() => look(own), PAUSE);
  }
  own.data = data;
  own.send = setStateValue;
  write(own, data.said);
  return () => {
    if (parentElement.isConnected) return; // an earlier call's end
    own.gone = true;
    clearTimeout(own.timer);
    live.delete(parentElement);
  };
}
