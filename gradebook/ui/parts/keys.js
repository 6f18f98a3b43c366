
// Ctrl+Z and Ctrl+Shift+Z press the page's Undo and Redo. Inside a text field
// they stay the field's own.
if (!window.gradebookKeys) {
  window.gradebookKeys = true;
  const text = 'textarea, [contenteditable="true"], input:not(' +
    '[type="checkbox"], [type="radio"], [type="range"])';
  const chosen = (field) => // a select box whose list is closed
    field.getAttribute('role') === 'combobox' &&
    field.getAttribute('aria-expanded') !== 'true';
  document.addEventListener('keydown', (event) => {
    const z = event.key?.toLowerCase() === 'z'; // autofill sends no key
    if (!z || !(event.ctrlKey || event.metaKey) || event.altKey) return;
    const field = event.target.closest?.(text);
    if (field && !chosen(field)) return;
    const name = event.shiftKey ? 'redo' : 'undo';
    const button = document.querySelector(
      `[class*="st-key-${name}-"] button`);
    if (!button || button.disabled) return;
    event.preventDefault();
    button.click();
  });
}
// A new run of the page may take away what the keyboard stood on: the answered
// question, or a table drawn anew. Then the focus goes to what follows it.
if (!window.gradebookFocus) {
  window.gradebookFocus = true;
  const heirs = [
    ['st-key-grid-', '[class*="st-key-grid-"] canvas'],
    ['st-key-choice-', '[class*="st-key-case-"] [tabindex="0"]'],
    ['st-key-skip-', '[class*="st-key-case-"] [tabindex="0"]'],
  ];
  let keyed = false;
  let heir = null;
  document.addEventListener('keydown', () => { keyed = true; }, true);
  document.addEventListener('pointerdown', () => {
    keyed = false;
    heir = null;
  }, true);
  document.addEventListener('focusin', (event) => {
    const [, next] = heirs.find(([key]) =>
      event.target.closest(`[class*="${key}"]`)) || [];
    heir = keyed && next ? { from: event.target, next } : null;
  });
  new MutationObserver(() => {
    if (!heir || heir.from.isConnected) return;
    if (document.activeElement !== document.body) return;
    const next = document.querySelector(heir.next);
    if (next) next.focus();
  }).observe(document.body, { childList: true, subtree: true });
}
