// What Streamlit holds of a component: it loads a module, whose address the server puts in.
const module = import(new URL("/MODULE", location.origin).href);
/** @param {import("./types.js").Component} component */
export default async (component) => (await module).draw(component);
