// Axes: from values to pixels and back, linear or symlog. How far an axis reaches, and
// whether it is bent, is decided by the server (output/axes.py).

/** @import { AxisSpec } from "./types.js" */

const ROOM = 0.07; // of the axis' length, free beside the outermost value

export class Axis {
  /**
   * @param {AxisSpec} spec
   * @param {[number, number]} ends  pixels
   */
  constructor({ low, high, unit }, [left, right]) {
    this.unit = unit;
    this.bendable = unit !== null;
    this.left = left;
    this.right = right;
    let [start, end] = [this.bend(low), this.bend(high)];
    if (end - start < 1e-12) [start, end] = [start - 1, end + 1];
    const room = (end - start) * ROOM;
    this.low = start - room;
    this.high = end + room;
  }

  /**
   * The function that a symlog axis is linear in: x / unit near 0, the logarithm of it
   * far away.
   * @param {number} x
   */
  bend(x) {
    return this.unit ? Math.sign(x) * Math.log1p(Math.abs(x / this.unit)) : x;
  }

  /** @param {number} y */
  unbend(y) {
    return this.unit ? Math.sign(y) * Math.expm1(Math.abs(y)) * this.unit : y;
  }

  /**
   * Pixels of a value; a value beyond the end is put at the end.
   * @param {number} x
   */
  at(x) {
    const share = (this.bend(x) - this.low) / (this.high - this.low);
    const inside = Math.min(Math.max(share, 0), 1);
    return this.left + inside * (this.right - this.left);
  }

  /** @param {number} x */
  holds(x) {
    const bent = this.bend(x);
    return bent >= this.low && bent <= this.high;
  }

  /** @param {number} pixels */
  value(pixels) {
    const share = (pixels - this.left) / (this.right - this.left);
    const inside = Math.min(Math.max(share, 0), 1);
    return this.unbend(this.low + inside * (this.high - this.low));
  }

  /** The least and the greatest value, as round numbers inside the axis. */
  get ends() {
    const ends = [this.left, this.right].map((pixels) => this.value(pixels));
    const grain = this.grain(0.5 * (this.left + this.right));
    return [
      round(Math.ceil(ends[0] / grain) * grain, grain),
      round(Math.floor(ends[1] / grain) * grain, grain),
    ];
  }

  /**
   * The round step that a pixel is worth at this place: 1, 2 or 5 times a power of ten.
   * @param {number} pixels
   */
  grain(pixels) {
    const width = Math.abs(this.value(pixels + 1) - this.value(pixels - 1));
    return roundUp(Math.max(width / 2, 1e-12));
  }

  /**
   * The value under a hand at this place, as a round number.
   * @param {number} pixels
   */
  snapped(pixels) {
    return round(this.value(pixels), this.grain(pixels));
  }

  /**
   * Where lines are drawn, at a distance that their numbers fit into.
   * @param {number} distance  pixels
   */
  ticks(distance) {
    const count = Math.max((this.right - this.left) / distance, 1.5);
    const ticks = this.unit ? this.powers(distance, this.unit) : this.even(count);
    return ticks.filter((x) => this.holds(x));
  }

  /** @param {number} count */
  even(count) {
    const step = roundUp((this.high - this.low) / count);
    const ticks = [];
    for (let i = Math.ceil(this.low / step); i * step <= this.high; i++)
      ticks.push(round(i * step, step));
    return ticks;
  }

  /**
   * @param {number} distance
   * @param {number} unit
   */
  powers(distance, unit) {
    const ticks = [0];
    const first = Math.round(Math.log10(unit));
    for (const sign of [1, -1]) {
      let last = this.at(0);
      for (let power = first; power < first + 320; power++) {
        const x = sign * 10 ** power;
        if (!this.holds(x)) break;
        if (Math.abs(this.at(x) - last) < distance) continue;
        ticks.push(x);
        last = this.at(x);
      }
    }
    return ticks;
  }
}

/** @param {number} x  above 0 */
export function roundUp(x) {
  const power = 10 ** Math.floor(Math.log10(x));
  const factor = [1, 2, 5].find((f) => x <= f * power * (1 + 1e-9)) ?? 10;
  return factor * power;
}

/**
 * x as a multiple of the step, without the digits of binary fractions.
 * @param {number} x
 * @param {number} step
 */
export function round(x, step) {
  const digits = Math.min(Math.max(Math.ceil(-Math.log10(step)), 0), 15);
  const near = Number((Math.round(x / step) * step).toFixed(digits));
  return near === 0 ? 0 : near;
}

/**
 * A tick's or a cell's number: 1e6 and 0.001 in the shortest form.
 * @param {number} x
 */
export function short(x) {
  const size = Math.abs(x);
  const plain = size === 0 || (size >= 1e-4 && size < 1e5);
  return plain ? String(x) : x.toExponential().replace("e+", "e");
}

/** @param {string} text */
export const minus = (text) => text.replace(/-/g, "\u2212");

/**
 * "+0.50", "−0.48", "0.00".
 * @param {number} x
 * @param {number} digits
 */
export const signed = (x, digits) => (x > 0 ? "+" : "") + minus(x.toFixed(digits));

const NUMBER = /^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$/;

/**
 * The number in a cell, or null: the server says what is wrong with it.
 * @param {string} text
 */
export function parsed(text) {
  const typed = text.trim().replace("\u2212", "-");
  const value = NUMBER.test(typed) ? Number(typed) : NaN;
  return isFinite(value) ? value : null;
}
