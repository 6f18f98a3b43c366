// Keys typed into the table while the page draws. The table's editor acts on a
// key in a timer, which a busy page runs late: a digit that comes before it
// goes to the cell that was just left, and an Enter is undone by the timer of
// the key before. So each key waits until the one before it has had its timers
// and its editor stands, or is gone; what waited is played in its order.
if (!window.gradebookTyping) {
  window.gradebookTyping = true;
  const grid = '[data-testid="stDataFrame"]';
  const editor = '#portal input, #portal textarea';
  const longest = 300; // ms for an editor to come, where the key opens one
  const waiting = [];
  let timers = 0; // keys whose timers have not fired
  let due = null; // what is to come, an editor or none, and since when

  const at = (place) => Boolean(document.activeElement?.closest(place));
  const came = () =>
    due.editor ? at(editor) : at(grid) && !document.querySelector(editor);
  const busy = () => {
    if (due && (came() || performance.now() - due.since > longest)) due = null;
    return timers > 0 || due !== null;
  };

  const follow = (key) => {
    const leaves = ['Enter', 'Tab', 'Escape'].includes(key);
    const since = performance.now();
    if (at(editor)) due = leaves ? { editor: false, since } : null;
    else if (key === 'Enter' || (key.length === 1 && key !== ' '))
      due = { editor: true, since };
    timers += 1;
    // The second timer comes after those that the key's handlers set.
    setTimeout(() => setTimeout(() => {
      timers -= 1;
      play();
    }));
  };

  const play = () => {
    if (!waiting.length) return;
    if (busy()) {
      if (!timers) setTimeout(play, 10);
      return;
    }
    const { key, code, keyCode, shiftKey } = waiting.shift();
    const target = document.activeElement;
    const inside = at(editor);
    follow(key);
    const untaken = target.dispatchEvent(new KeyboardEvent('keydown', {
      key, code, keyCode, shiftKey,
      bubbles: true, cancelable: true, composed: true,
    }));
    if (!untaken || !inside) return;
    if (key.length === 1) document.execCommand('insertText', false, key);
    if (key === 'Backspace') document.execCommand('delete');
    if (key === 'Delete') document.execCommand('forwardDelete');
  };

  window.addEventListener('keydown', (event) => {
    const held = busy() || waiting.length > 0;
    if (!event.isTrusted || event.isComposing) return;
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (!held && !at(grid) && !at(editor)) return;
    if (!held) return follow(event.key);
    event.preventDefault();
    event.stopImmediatePropagation();
    waiting.push(event);
  }, true);
  window.addEventListener('pointerdown', () => {
    waiting.length = 0;
    due = null;
  }, true);
}
