// Moves what is drawn from where it stands to where it belongs.

export const still = matchMedia("(prefers-reduced-motion: reduce)");

export class Glide {
  constructor() {
    this.moving = new Map(); // key -> {from, to, start, length, draw}
    this.now = new Map(); // key -> the numbers drawn last
    this.asked = new Set(); // keys since the last sweep
    this.frame = 0;
  }

  // Draws the numbers `to` of this key within so many milliseconds. What
  // comes for the first time, or in another form, stands there at once.
  // With no milliseconds nothing sets out, and what is on its way goes on to
  // where it belongs now: the reveal makes the page longer, and its new
  // scroll bar makes the board narrower.
  to(key, to, length, draw) {
    this.asked.add(key);
    const from = this.now.get(key);
    const same = from && from.length === to.length;
    const going = this.moving.get(key);
    if ((!length && !going) || still.matches || !same || document.hidden) {
      this.moving.delete(key);
      this.now.set(key, to);
      draw(to);
      return;
    }
    if (!length || equal(going ? going.to : from, to)) {
      if (going) Object.assign(going, { to, draw });
      else draw(to);
      return;
    }
    this.moving.set(key, { from, to, draw, length, start: performance.now() });
    this.frame ||= requestAnimationFrame((t) => this.step(t));
  }

  step(time) {
    this.frame = 0;
    for (const [key, one] of this.moving) {
      const share = Math.min(Math.max((time - one.start) / one.length, 0), 1);
      const eased = one.length > 200 ? ease(share) : share;
      const at = one.to.map((x, i) => one.from[i] + (x - one.from[i]) * eased);
      this.now.set(key, at);
      one.draw(at);
      if (share === 1) this.moving.delete(key);
    }
    if (this.moving.size) this.frame = requestAnimationFrame((t) => this.step(t));
  }

  // Forgets the keys that nothing was drawn for since the last time.
  sweep() {
    for (const key of this.now.keys())
      if (!this.asked.has(key)) {
        this.now.delete(key);
        this.moving.delete(key);
      }
    this.asked.clear();
  }

  stop() {
    cancelAnimationFrame(this.frame);
    this.moving.clear();
  }
}

export const ease = (x) => (x < 0.5 ? 4 * x ** 3 : 1 - (2 - 2 * x) ** 3 / 2);
const equal = (a, b) => a.every((x, i) => x === b[i]);
