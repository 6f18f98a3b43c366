// The picture as a file, SVG or PNG. The server draws it, with title and link.

import { server } from "./messages.js";

/**
 * @typedef {{name: string, epoch: string}} Batch
 */

/**
 * @param {Batch} data
 * @param {"svg" | "png"} kind
 */
export async function save({ name, epoch }, kind) {
  const place = new URL(`?link=${encodeURIComponent(location.href)}`, server(epoch));
  const answer = await fetch(place);
  if (!answer.ok) return;
  const drawn = await answer.blob();
  const picture = kind === "svg" ? drawn : await raster(drawn);
  if (picture) download(picture, `${name}.${kind}`);
}

/**
 * The rows as a CSV file, which "Paste rows" takes.
 * @param {Batch} data
 */
export async function saveRows({ name, epoch }) {
  const answer = await fetch(new URL("?as=rows", server(epoch)));
  if (answer.ok) download(await answer.blob(), `${name}-rows.csv`);
}

/**
 * Copies the page's address. What there is to say of it: that it was copied, or that the
 * batch is too long for a link, in the server's words, or that the browser refused.
 * @param {Batch} data
 * @returns {Promise<{copied: boolean, words: string}>}
 */
export async function copyLink({ epoch }) {
  const answer = await fetch(new URL("?as=link", server(epoch))).catch(() => null);
  const words = answer?.ok ? await answer.text() : "";
  if (words) return { copied: false, words };
  try {
    await navigator.clipboard.writeText(location.href);
    return { copied: true, words: "Link copied" };
  } catch {
    return { copied: true, words: "The browser refused. Copy the page\u2019s address." };
  }
}

/**
 * @param {Blob} content
 * @param {string} name
 */
function download(content, name) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(content);
  link.download = name;
  link.click();
  URL.revokeObjectURL(link.href);
}

/**
 * @param {Blob} drawn
 * @returns {Promise<Blob | null>}
 */
async function raster(drawn) {
  const image = new Image();
  image.src = URL.createObjectURL(drawn);
  await image.decode();
  const canvas = document.createElement("canvas");
  canvas.width = image.width * 2;
  canvas.height = image.height * 2;
  canvas.getContext("2d")?.drawImage(image, 0, 0, canvas.width, canvas.height);
  URL.revokeObjectURL(image.src);
  return new Promise((done) => canvas.toBlob(done, "image/png"));
}
