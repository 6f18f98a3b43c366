// Axes: from values to pixels and back, linear or symlog.

const ROOM = 0.07; // of the axis' length, free beside the outermost value

// The function that a symlog axis is linear in: x / unit near 0, the
// logarithm of it far away.
const symlog = (x, unit) => Math.sign(x) * Math.log1p(Math.abs(x / unit));
const explog = (y, unit) => Math.sign(y) * Math.expm1(Math.abs(y)) * unit;

export class Axis {
  // values: the numbers that must be in sight. unit: null for linear.
  constructor(values, unit, left, right) {
    this.unit = unit;
    this.left = left;
    this.right = right;
    const bent = values.map((x) => this.bend(x));
    let low = Math.min(...bent);
    let high = Math.max(...bent);
    if (high - low < 1e-12) [low, high] = [low - 1, high + 1];
    const room = (high - low) * ROOM;
    this.low = low - room;
    this.high = high + room;
  }

  bend(x) {
    return this.unit ? symlog(x, this.unit) : x;
  }

  unbend(y) {
    return this.unit ? explog(y, this.unit) : y;
  }

  // Pixels of a value; a value beyond the end stands at the end.
  at(x) {
    const share = (this.bend(x) - this.low) / (this.high - this.low);
    const inside = Math.min(Math.max(share, 0), 1);
    return this.left + inside * (this.right - this.left);
  }

  holds(x) {
    const bent = this.bend(x);
    return bent >= this.low && bent <= this.high;
  }

  value(pixels) {
    const share = (pixels - this.left) / (this.right - this.left);
    const inside = Math.min(Math.max(share, 0), 1);
    return this.unbend(this.low + inside * (this.high - this.low));
  }

  // The least and the greatest value, as round numbers inside the axis.
  get ends() {
    const ends = [this.left, this.right].map((p) => this.value(p));
    const grain = this.grain(0.5 * (this.left + this.right));
    return [
      round(Math.ceil(ends[0] / grain) * grain, grain),
      round(Math.floor(ends[1] / grain) * grain, grain),
    ];
  }

  // The round step that a pixel is worth at this place: 1, 2 or 5 times a
  // power of ten.
  grain(pixels) {
    const width = Math.abs(this.value(pixels + 1) - this.value(pixels - 1));
    return roundUp(Math.max(width / 2, 1e-12));
  }

  // The value under a hand at this place, as a round number.
  snapped(pixels) {
    return round(this.value(pixels), this.grain(pixels));
  }

  // Where lines stand, with a distance that their numbers fit into.
  ticks(distance) {
    const count = Math.max((this.right - this.left) / distance, 1.5);
    const found = this.unit ? this.powers(distance) : this.even(count);
    return found.filter((x) => this.holds(x));
  }

  even(count) {
    const step = roundUp((this.high - this.low) / count);
    const found = [];
    for (let i = Math.ceil(this.low / step); i * step <= this.high; i++)
      found.push(round(i * step, step));
    return found;
  }

  powers(distance) {
    const found = [0];
    const first = Math.round(Math.log10(this.unit));
    for (const sign of [1, -1]) {
      let last = this.at(0);
      for (let k = first; k < first + 320; k++) {
        const x = sign * 10 ** k;
        if (!this.holds(x)) break;
        if (Math.abs(this.at(x) - last) < distance) continue;
        found.push(x);
        last = this.at(x);
      }
    }
    return found;
  }
}

// The unit of the symlog axis that these values call for, or null where a
// linear axis shows them all: one value would press the others together.
export function squashed(values) {
  const sizes = values.map(Math.abs).filter((x) => x > 0 && isFinite(x));
  if (sizes.length < 3) return null;
  sizes.sort((a, b) => a - b);
  const middle = sizes[Math.floor((sizes.length - 1) / 2)];
  const largest = sizes[sizes.length - 1];
  return largest > 12 * middle ? 10 ** Math.floor(Math.log10(middle)) : null;
}

// The rewards differ, but by so little beside their size that they would
// stand on one another on an axis that begins at 0.
export function close(values) {
  const [low, high] = [Math.min(...values), Math.max(...values)];
  return low * high > 0 && high > low && high - low < 0.1 * Math.min(Math.abs(low), Math.abs(high));
}

export function roundUp(x) {
  const power = 10 ** Math.floor(Math.log10(x));
  const factor = [1, 2, 5, 10].find((f) => x <= f * power * (1 + 1e-9));
  return factor * power;
}

// x as a multiple of the step, without the digits of binary fractions.
export function round(x, step) {
  const digits = Math.min(Math.max(Math.ceil(-Math.log10(step)), 0), 15);
  const near = Number((Math.round(x / step) * step).toFixed(digits));
  return near === 0 ? 0 : near;
}

// A tick's or a cell's number: 1e6 and 0.001 in the shortest form.
export function short(x) {
  const size = Math.abs(x);
  const plain = size === 0 || (size >= 1e-4 && size < 1e5);
  return plain ? String(x) : x.toExponential().replace("e+", "e");
}

export const minus = (text) => text.replace(/-/g, "\u2212");

// "+0.50", "−0.48", "0.00".
export const signed = (x, digits) => (x > 0 ? "+" : "") + minus(x.toFixed(digits));

const NUMBER = /^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$/;

// The number in a cell, or null: the server says what is wrong with it.
export function parsed(text) {
  const typed = text.trim().replace("\u2212", "-");
  const value = NUMBER.test(typed) ? Number(typed) : NaN;
  return isFinite(value) ? value : null;
}
