// The picture as a file, SVG or PNG. The server draws it, with title and link.

export async function save(board, kind) {
  const place = new URL(`?link=${encodeURIComponent(location.href)}`, board.server);
  const answer = await fetch(place);
  if (!answer.ok) return;
  const drawn = await answer.blob();
  const link = document.createElement("a");
  link.href = URL.createObjectURL(kind === "svg" ? drawn : await raster(drawn));
  link.download = `${board.data.name}.${kind}`;
  link.click();
  URL.revokeObjectURL(link.href);
}

async function raster(drawn) {
  const image = new Image();
  image.src = URL.createObjectURL(drawn);
  await image.decode();
  const canvas = document.createElement("canvas");
  canvas.width = image.width * 2;
  canvas.height = image.height * 2;
  canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
  URL.revokeObjectURL(image.src);
  return new Promise((done) => canvas.toBlob(done, "image/png"));
}
