// What Streamlit holds of a component: it loads the program, whose address the server
// puts in, and calls its module.
const program = import(new URL("/PROGRAM", location.origin).href);
export default async (component) => (await program).MODULE.draw(component);
