/** Builds DOM nodes. Data becomes only text nodes and attribute values, so it cannot become markup. */

const SVG = "http://www.w3.org/2000/svg";

/** `h("a", { class: "x", on: { click } }, "text", node, null, [more])`; false and null omit an attribute or child. */
export function h(tag, props = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(props)) setProp(node, name, value);
  node.append(...solid(children));
  return node;
}

export function svg(tag, attributes = {}, ...children) {
  const node = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.append(...children);
  return node;
}

export function replace(node, ...children) {
  node.replaceChildren(...solid(children));
  return node;
}

/** A new id, unique on this page. */
export const freshId = (() => {
  let last = 0;
  return (prefix) => `${prefix}-${(last += 1)}`;
})();

function solid(children) {
  return children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false);
}

function setProp(node, name, value) {
  if (value === null || value === undefined || value === false) return;
  if (name === "on") {
    for (const [event, listener] of Object.entries(value)) node.addEventListener(event, listener);
  } else {
    node.setAttribute(name, value === true ? "" : String(value));
  }
}

/** Makes a text area as high as its text, up to the style sheet's maximum. */
export function fitHeight(input) {
  input.style.height = "auto";
  input.style.height = `${input.scrollHeight + input.offsetHeight - input.clientHeight}px`;
}

/** The address as the browser would open it, or null for a scheme that is not safe to open from a message. */
export function safeUrl(raw) {
  try {
    const url = new URL(String(raw).trim());
    return ["http:", "https:", "mailto:"].includes(url.protocol) ? url.href : null;
  } catch {
    return null;
  }
}
