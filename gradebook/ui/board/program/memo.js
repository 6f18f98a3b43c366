// Whether what is drawn is what is asked for.

/**
 * The same plain data: numbers, text, and lists and records of them.
 * @param {any} a
 * @param {any} b
 * @returns {boolean}
 */
export function alike(a, b) {
  if (a === b) return true;
  if (typeof a !== "object" || typeof b !== "object" || !a || !b) return false;
  if (Array.isArray(a) !== Array.isArray(b)) return false;
  const names = Object.keys(a);
  if (names.length !== Object.keys(b).length) return false;
  return names.every((name) => alike(a[name], b[name]));
}
