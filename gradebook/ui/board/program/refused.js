// Text that the server refused stays in its field until it is edited again. The tab's
// session storage keeps it too: after a reload it is sent to the new session's draft,
// which refuses it again.

/** @import { Data, Edit } from "./types.js" */

/**
 * @param {Data} data
 * @param {(edit: Edit) => void} put
 */
export function restored({ name, epoch, refused }, put) {
  const place = `gradebook refused ${name}`;
  const before = JSON.parse(sessionStorage.getItem(place) ?? "{}");
  if (before.epoch !== epoch)
    for (const [cell, texts] of Object.entries(before.refused ?? {})) {
      const [row, column] = cell.split(" ");
      put({ do: "cell", row: Number(row), column, value: String(texts[0]) });
    }
  sessionStorage.setItem(place, JSON.stringify({ epoch, refused }));
}
