// Home's frame: six rows with one reward to drag, and the curves of the two
// policies that train with it. All settings are here from the start, so a drag
// asks the server for nothing.

import { follow, STEPS } from "./drag.js";
import { Glide } from "./glide.js";
import { html, remember, set, style, svg } from "./dom.js";
import { sign } from "./legend.js";
import { BIG, DIAMOND } from "./marks.js";
import { minus, signed } from "./scale.js";

const glide = new Glide();
const MOVE = 220; // ms: the curve goes to another setting
const [W, ROW, HEAD] = [608, 36, 44]; // each half's drawing
const reward = (x) => 176 + 96 * x;
const advantage = (x) => 498 + 88 * x;
const update = (x) => 48 + 2.46 * x;
const chance = (x) => 226 - 0.188 * x;
const WAYS = [
  ["pushes them down", ""],
  ["leaves them alone", ""],
  ["pushes them up", "; in this task that helps"],
];
const plain = (x) => (x / 1000).toFixed(3);

export function draw({ data: [data], parentElement: root }) {
  remember(data.progress);
  if (root.home) return;
  const home = (root.home = build(root, data));
  let at = data.start;
  const visited = new Set();
  const show = (next) => {
    visited.add(at);
    visited.delete(next);
    at = next;
    home.show(data.stops[at], [...visited]);
  };
  const step = (by) => show(Math.min(Math.max(at + by, 0), data.stops.length - 1));
  home.hand.addEventListener("keydown", (event) => {
    if (!STEPS[event.key]) return;
    event.preventDefault();
    step(STEPS[event.key]);
  });
  home.hand.addEventListener("pointerdown", (event) => {
    event.preventDefault();
    home.hand.focus({ preventScroll: true });
    const box = home.left.getBoundingClientRect();
    const move = ({ clientX }) => {
      const x = ((clientX - box.left) / box.width) * W;
      const far = data.stops.map((stop) => Math.abs(reward(stop.reward) - x));
      const next = far.indexOf(Math.min(...far));
      if (next !== at) show(next);
    };
    follow(home.hand, event, move, () => {});
  });
  show(at);
}

function build(root, data) {
  const left = svg("svg", { viewBox: `0 0 ${W} 270`, class: "half" });
  const right = svg("svg", { viewBox: `0 0 ${W} 270`, class: "half", role: "img" });
  const heads = [html("div", { class: "result-head" }), html("div", { class: "result-head" })];
  const hand = html("div", {
    class: "home-hand",
    role: "slider",
    tabindex: 0,
    "aria-label": "Reward of row 3",
    "aria-valuemin": 0,
    "aria-valuemax": 2,
  });
  const whole = html(
    "div",
    { class: "board home" },
    html("div", {}, heads[0], html("div", { class: "drawn" }, left, hand)),
    html("div", {}, heads[1], right),
  );
  style(root);
  root.replaceChildren(whole);
  const rows = board(left);
  const curve = curves(right, data);
  const show = (stop, visited) => {
    const [correct, faulty] = stop.advantages;
    const [way, remark] = WAYS[Math.sign(faulty[0]) + 1];
    heads[0].replaceChildren(
      ...numbers(signed(correct[0], 3), signed(faulty[0], 3)),
      html("p", {}, "rows 0 to 2 are right; the bug ", html("b", { text: way }), remark),
    );
    heads[1].replaceChildren(
      ...numbers(plain(data.correct.at(-1)), plain(stop.mean.at(-1))),
      html(
        "p",
        {},
        "chance of success after 200 updates, if unfinished answers earn ",
        html("b", { text: String(stop.reward) }),
      ),
    );
    set(hand, {
      "aria-valuenow": stop.reward,
      "aria-valuetext": `${stop.reward}: the bug ${way}${remark}`,
    });
    hand.style.left = `${(100 * reward(stop.reward)) / W}%`;
    rows(stop);
    curve(
      stop,
      visited.map((n) => data.stops[n]),
    );
  };
  return { left, hand, show };
}

const numbers = (correct, faulty) => [
  sign("correct"),
  html("b", { text: correct }),
  html("small", { text: "correct" }),
  html("span", { text: "\u2192", role: "img", "aria-label": "becomes" }),
  sign("faulty"),
  html("b", { text: faulty }),
  html("small", { text: "faulty" }),
];

const label = (x, y, text, more = {}) => svg("text", { x, y, text, ...more });
const middle = { "text-anchor": "middle" };

// The six rows. Gives what draws a setting.
function board(left) {
  left.append(
    svg("rect", { x: 0, y: HEAD + 4 * ROW, width: W, height: 2 * ROW, class: "home-band" }),
    label(252, 16, "reward (drag row 3)", { ...middle, class: "strong" }),
    label(498, 16, "advantage", { ...middle, class: "strong" }),
    label(14, 36, "row"),
    label(48, 36, "prompt", { class: "roomy" }),
    label(100, 36, "finished?", { class: "roomy" }),
  );
  const axis = (at, ticks) => {
    for (const tick of ticks)
      left.append(
        label(at(tick), 36, minus(String(tick)), middle),
        svg("line", {
          x1: at(tick),
          x2: at(tick),
          y1: HEAD,
          y2: HEAD + 6 * ROW,
          class: tick ? "" : "zero",
        }),
      );
  };
  axis(reward, [0, 1, 2]);
  axis(advantage, [-1, -0.5, 0, 0.5, 1]);
  const rows = [0, 1, 2, 3, 4, 5].map((row) => {
    const y = HEAD + (row + 0.5) * ROW;
    left.append(
      label(20, y + 5, String(row)),
      label(58, y + 5, row < 4 ? "A" : "B"),
      label(104, y + 5, row === 3 ? "no" : "yes", { class: row === 3 ? "strong" : "" }),
    );
    const parts = {
      link: svg("path", { class: "home-link" }),
      reward: svg("circle", { r: row === 3 ? 7 : 5.5, cy: y, class: row === 3 ? "open" : "dot" }),
      correct: svg("circle", { r: 5.5, cy: y, class: "correct" }),
      faulty: svg("path", { d: row < 3 ? BIG : DIAMOND, class: "faulty" }),
      y,
    };
    left.append(parts.link, parts.reward, parts.correct, parts.faulty);
    return parts;
  });
  const value = label(0, HEAD + 3.5 * ROW + 5, "", { class: "strong" });
  const arrows = svg("path", {
    d: "M-14,-5 L-20,0 L-14,5 M14,-5 L20,0 L14,5",
    class: "home-arrows",
  });
  left.append(value, arrows);
  return ({ reward: held, rewards, advantages: [correct, faulty] }) =>
    rows.forEach((parts, row) => {
      const to = [reward(rewards[row]), advantage(correct[row]), advantage(faulty[row])];
      glide.to(`row ${row}`, to, MOVE, ([r, c, f]) => {
        set(parts.reward, { cx: r });
        set(parts.correct, { cx: c });
        set(parts.faulty, { transform: `translate(${f} ${parts.y})` });
        set(parts.link, { d: `M${c},${parts.y} H${f}` });
        if (row !== 3) return;
        set(value, { x: r + 36, text: String(held) });
        set(arrows, { transform: `translate(${r} ${parts.y})` });
      });
    });
}

// The two policies' curves. Gives what draws a setting.
function curves(right, { updates, correct }) {
  const line = (values) =>
    values.map((v, n) => `${n ? "L" : "M"}${update(updates[n])},${chance(v)}`).join("");
  const title = "chance of success of two small policies (same random numbers, mean of 16 seeds)";
  right.append(label(40, 16, title));
  for (const share of [0, 500, 1000])
    right.append(
      label(38, chance(share) + 4, String(share / 1000), { "text-anchor": "end" }),
      svg("line", {
        x1: 48,
        x2: 540,
        y1: chance(share),
        y2: chance(share),
        class: share ? "" : "zero",
      }),
    );
  for (const tick of [0, 50, 100, 150, 200])
    right.append(label(update(tick), 242, String(tick), middle));
  const key = "updates \u00b7 thin lines: single seeds \u00b7 grey: rewards you tried earlier";
  right.append(label(294, 263, key, middle));
  const seeds = svg("path", { class: "home-seeds" });
  const trace = svg("path", { class: "home-trace" });
  const faulty = svg("path", { class: "home-faulty" });
  const rise = label(0, 0, "", { class: "faulty-text strong" });
  const ends = [correct.at(-1), 0].map((v, e) =>
    label(551, chance(v) + 5, plain(v), { class: `strong ${e ? "faulty" : "correct"}-text` }),
  );
  right.append(
    trace,
    seeds,
    svg("path", { class: "home-correct", d: line(correct) }),
    faulty,
    rise,
    ...ends,
  );
  return (stop, visited) => {
    const { mean } = stop;
    set(trace, { d: visited.map((one) => line(one.mean)).join("") });
    set(seeds, { d: stop.seeds.map(line).join("") });
    glide.to("curve", mean, MOVE, (now) => set(faulty, { d: line(now) }));
    const peak = Math.max(...mean);
    const at = mean.indexOf(peak);
    set(rise, {
      x: update(updates[at]) + 14,
      y: chance(peak) - 8,
      text: peak - mean.at(-1) > 200 ? `rises to ${(peak / 1000).toFixed(2)}` : "",
    });
    const ahead = mean.at(-1) - correct.at(-1);
    const aside = Math.abs(ahead) >= 60 ? 5 : ahead > 0 ? -10 : 20; // no label on another
    set(ends[1], { y: chance(mean.at(-1)) + aside, text: plain(mean.at(-1)) });
    set(right, {
      "aria-label": `Chance of success after 200 updates: correct ${plain(correct.at(-1))}, faulty ${plain(mean.at(-1))}`,
    });
  };
}
