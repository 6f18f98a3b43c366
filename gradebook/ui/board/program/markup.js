// HTML and SVG of the page that is drawn anew without being mounted anew. A link
// with a data-name opens a page of the app, in the same session; a search field
// leaves those links in sight that hold its text.

export function draw({ data, parentElement, setTriggerValue }) {
  const [drawing] = data;
  let box = parentElement.querySelector("div.markup");
  if (!box) {
    box = document.createElement("div");
    box.className = "markup";
    parentElement.appendChild(box);
  }
  if (box.drawn !== drawing) box.innerHTML = box.drawn = drawing;
  // With a key held down the browser opens a link, in a tab of its own.
  box.onclick = (event) => {
    const link = event.target.closest("a[data-name]");
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    setTriggerValue("opened", link.dataset.name);
  };
  box.oninput = ({ target }) => {
    const text = target.value.trim().toLowerCase();
    for (const section of box.querySelectorAll("section")) {
      const stage = section.querySelector("h3").textContent;
      for (const link of section.querySelectorAll("[data-find]"))
        link.classList.toggle("out", !`${link.dataset.find} ${stage}`.includes(text));
    }
  };
}
