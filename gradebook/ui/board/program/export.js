// The picture as a file, SVG or PNG. The server draws it, with title and link.

import { server } from "./messages.js";

/**
 * @param {{name: string, epoch: string}} data
 * @param {"svg" | "png"} kind
 */
export async function save({ name, epoch }, kind) {
  const place = new URL(`?link=${encodeURIComponent(location.href)}`, server(epoch));
  const answer = await fetch(place);
  if (!answer.ok) return;
  const drawn = await answer.blob();
  const picture = kind === "svg" ? drawn : await raster(drawn);
  if (!picture) return;
  const link = document.createElement("a");
  link.href = URL.createObjectURL(picture);
  link.download = `${name}.${kind}`;
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
