// What the rest of the page sends: page-wide keys, and that it has to follow
// an edit of the board.
//
// Each key press is a numbered message to the server; those that the server
// has not acknowledged are sent again with the next one.
const PATIENCE = 3000; // ms until the rest is asked again to follow
const TEXT =
  'textarea, [contenteditable="true"], input:not(' +
  '[type="checkbox"], [type="radio"], [type="range"], [type="button"])';
const CONTROL = 'button, a, input, select, textarea, summary, [role], [tabindex="0"]:not(main)';
const live = new WeakMap();

function isTyping(target) {
  if (!target.matches?.(TEXT)) return false;
  // A select box whose list is closed is no place to type.
  return (
    target.getAttribute("role") !== "combobox" || target.getAttribute("aria-expanded") === "true"
  );
}

function pressed(event, presenter) {
  if (event.defaultPrevented || event.altKey) return "";
  const target = event.composedPath()[0];
  const command = event.ctrlKey || event.metaKey;
  if (command && event.key?.toLowerCase() === "z")
    return isTyping(target) ? "" : event.shiftKey ? "redo" : "undo";
  if (!presenter || command || event.shiftKey || event.repeat) return "";
  // The page itself can have the focus, too; it is no control.
  if (target !== document.body && target.closest?.(CONTROL)) return "";
  return { ArrowLeft: "back", ArrowRight: "on", " ": "reveal" }[event.key] || "";
}

function mounted(parentElement) {
  const own = { waiting: [], last: 0 };
  own.listen = (event) => {
    const name = pressed(event, own.data.presenter);
    if (!name) return;
    event.preventDefault();
    own.last += 1;
    own.waiting.push([own.last, name]);
    own.send("pressed", { epoch: own.data.epoch, keys: own.waiting });
    if (name === "back" || name === "on")
      document.querySelector(".st-key-stage")?.scrollIntoView({ block: "center" });
  };
  // The board has its answer to a finished edit: the rest follows.
  own.follow = () => {
    own.asked = Date.now();
    own.send("settled", own.asked);
    clearTimeout(own.patience);
    own.patience = setTimeout(own.follow, PATIENCE);
  };
  document.addEventListener("keydown", own.listen);
  addEventListener("gradebook-settled", own.follow);
  live.set(parentElement, own);
  parentElement.host.toggleAttribute("data-listening", true);
  return own;
}

export function draw({ data: [data], parentElement, setStateValue }) {
  const own = live.get(parentElement) || mounted(parentElement);
  if (own.data?.epoch !== data.epoch) own.waiting = [];
  own.data = data;
  own.send = setStateValue;
  own.last = Math.max(own.last, data.seen);
  own.waiting = own.waiting.filter(([number]) => number > data.seen);
  if (data.heard >= own.asked) clearTimeout(own.patience);
  if (data.top && own.top !== data.top) {
    own.top = data.top;
    // The title's end at the window's end: nothing is above the title.
    document.querySelector("h1")?.scrollIntoView({ block: "end" });
  }
  if (data.focus && own.focus !== data.focus) {
    own.focus = data.focus;
    const at = document.activeElement;
    if (!at || at === document.body) {
      const heir = document.querySelector(".st-key-verdict");
      heir?.setAttribute("tabindex", "-1");
      heir?.focus({ preventScroll: true });
    }
  }
  return () => {
    if (parentElement.isConnected) return; // an earlier call's end
    document.removeEventListener("keydown", own.listen);
    removeEventListener("gradebook-settled", own.follow);
    clearTimeout(own.patience);
    live.delete(parentElement);
  };
}
