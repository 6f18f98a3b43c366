// What Streamlit holds of a component: it loads the program, and one module of it draws.
// The server puts the address and the module's name in.
const program = import(new URL("/PROGRAM", location.origin).href);
/** @param {import("./types.js").Component} component */
export default async (component) => (await program).modules.MODULE.draw(component);
