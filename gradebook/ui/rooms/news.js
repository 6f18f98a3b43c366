// Asks the server twice a second whether the room has changed, and tells the
// page only then. A page that is drawn again by a clock of the server would
// draw over a page that is just being left.
const PAUSE = 500;
const PATIENCE = 4000; // ms until unheard news are told again
const live = new WeakMap();

async function look(own) {
  try {
    const { asked, news } = own.data;
    const answer = await fetch(asked, { cache: 'no-store' });
    const now = answer.ok ? await answer.text() : news;
    const told = own.told === now && performance.now() < own.at + PATIENCE;
    if (!own.gone && now !== own.data.news && !told) {
      own.told = now;
      own.at = performance.now();
      own.count += 1;
      own.send('news', `${now} ${own.count}`);
    }
  } catch { /* the server is away for a moment */ }
  if (!own.gone) own.timer = setTimeout(() => look(own), PAUSE);
}

export default function ({ data, parentElement, setStateValue }) {
  let own = live.get(parentElement);
  const first = !own;
  own ||= { count: 0, at: 0 };
  own.data = data;
  own.send = setStateValue;
  if (first) {
    live.set(parentElement, own);
    own.timer = setTimeout(() => look(own), PAUSE);
  }
  return () => {
    if (parentElement.isConnected) return; // an earlier call's end
    own.gone = true;
    clearTimeout(own.timer);
    live.delete(parentElement);
  };
}
