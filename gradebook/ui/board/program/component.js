// What Streamlit holds of a component: it loads the program, whose address the server
// puts in.
const program = import(new URL("/PROGRAM", location.origin).href);
export default async (component) => (await program).draw(component);
