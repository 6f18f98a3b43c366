// Text that the server refused stays in its field until it is edited again. The tab's
// session storage keeps it too: after a reload it is sent to the new session's draft,
// which refuses it again.

export function restored(data, put) {
  const place = `gradebook refused ${data.name}`;
  const { epoch, refused } = data;
  const before = JSON.parse(sessionStorage.getItem(place) ?? "{}");
  if (before.epoch !== epoch)
    for (const [cell, [value]] of Object.entries(before.refused ?? {})) {
      const [row, column] = cell.split(" ");
      put({ do: "cell", row: Number(row), column, value });
    }
  sessionStorage.setItem(place, JSON.stringify({ epoch, refused }));
}
