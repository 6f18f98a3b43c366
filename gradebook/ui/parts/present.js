// The presenter view's keys: left and right press the neighbours of the open
// stage, space presses what reveals. Off in the plain view, and whenever a
// control has the focus or a modifier is held.
if (!window.gradebookPresenter) {
  window.gradebookPresenter = true;
  const page = '[data-testid="stApp"], [data-testid="stMain"], ' +
    '[data-testid="stAppViewContainer"], ' +
    '[data-testid="stAppScrollToBottomContainer"]';
  const on = () =>
    new URLSearchParams(location.search).get('present') === '1';
  const free = () => {
    const at = document.activeElement;
    return !at || at === document.body ||
      at === document.documentElement || at.matches(page);
  };
  const shown = (button) => button && !button.disabled &&
    button.getClientRects().length > 0;
  const press = (button) => {
    button.click();
    button.scrollIntoView({ block: 'nearest' });
  };
  const neighbour = (by) => {
    const strip = document.querySelector('[class*="st-key-stage-"]');
    if (!strip) return null;
    const buttons = [...strip.querySelectorAll('button')];
    const open = buttons.findIndex((b) =>
      b.getAttribute('aria-checked') === 'true' ||
      b.getAttribute('aria-pressed') === 'true' ||
      (b.dataset.testid || '').endsWith('Active'));
    return open < 0 ? null : buttons[open + by];
  };
  const reveal = () => [
    ...document.querySelectorAll('.st-key-room-reveal button'),
    ...document.querySelectorAll('[class*="st-key-skip-"] button'),
  ].find(shown);
  document.addEventListener('keydown', (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.shiftKey)
      return;
    if (event.defaultPrevented || !on() || !free()) return;
    const button = {
      ArrowLeft: () => neighbour(-1),
      ArrowRight: () => neighbour(1),
      ' ': () => event.repeat ? null : reveal(),
    }[event.key]?.();
    if (!shown(button)) return;
    event.preventDefault();
    press(button);
  });
}
