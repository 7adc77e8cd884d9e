/** A button that opens a menu of actions. Arrow keys move in it; Escape and a click outside close it. */

import { freshId, h } from "./dom.js";
import { icon } from "./icons.js";

const GAP = 4; // pixels between the button and its menu
const EDGE = 8; // pixels kept free at the window's edges

/**
 * @param {object} menu `label`, `name` (an icon), `items()` (returns `{label, detail, disabled, click}[]`, asked each
 *   time it opens), `props` (for the button)
 */
export function menuButton({ label, name, items, props = {} }) {
  const id = freshId("menu");
  const list = h("div", { class: "popup", id, role: "menu", "aria-label": label, popover: "auto" });
  const button = h(
    "button",
    {
      type: "button",
      class: "tool",
      title: label,
      "aria-label": label,
      "aria-haspopup": "menu",
      "aria-expanded": "false",
      "aria-controls": id,
      ...props,
    },
    icon(name),
  );
  button.addEventListener("click", () => open(list, button, items()));
  list.addEventListener("keydown", (event) => keydown(event, list, button));
  list.addEventListener("toggle", ({ newState }) => button.setAttribute("aria-expanded", String(newState === "open")));
  return h("span", { class: "menu-button" }, button, list);
}

function open(list, button, items) {
  if (list.matches(":popover-open")) return close(list, button);
  list.replaceChildren(...items.map((each) => item(each, () => close(list, button))));
  list.showPopover();
  follow(list, button);
  list.querySelector("[role=menuitem]")?.focus();
  return undefined;
}

/** Keeps the menu at its button during scrolling. */
function follow(list, button) {
  const stay = () => {
    if (list.matches(":popover-open")) place(list, button.getBoundingClientRect());
    else window.removeEventListener("scroll", stay, { capture: true });
  };
  window.addEventListener("scroll", stay, { capture: true, passive: true });
  stay();
}

function close(list, button) {
  list.hidePopover();
  button.focus({ preventScroll: true });
}

function item({ label, detail, disabled, click }, closed) {
  const words = [
    h("span", { class: "popup-label", dir: "auto" }, label),
    detail && h("span", { class: "popup-detail", dir: "auto" }, detail),
  ];
  const props = { class: "popup-item", role: "menuitem", tabindex: "-1", "aria-disabled": disabled && "true" };
  const node = h("button", { ...props, type: "button" }, words);
  node.addEventListener("click", () => {
    if (disabled) return;
    closed();
    click?.();
  });
  return node;
}

/** Below the button and inside the window; above it if there is no room below. */
function place(list, anchor) {
  const { width, height } = list.getBoundingClientRect();
  const below = anchor.bottom + GAP;
  const top = below + height + EDGE > innerHeight ? Math.max(EDGE, anchor.top - GAP - height) : below;
  const left = Math.max(EDGE, Math.min(anchor.right - width, innerWidth - width - EDGE));
  list.style.top = `${top}px`;
  list.style.left = `${left}px`;
}

function keydown(event, list, button) {
  const items = [...list.querySelectorAll("[role=menuitem]")];
  const at = items.indexOf(document.activeElement);
  const next = { ArrowDown: at + 1, ArrowUp: at - 1 + items.length, Home: 0, End: items.length - 1 }[event.key];
  if (next !== undefined) items[next % items.length].focus();
  else if (event.key === "Escape" || event.key === "Tab") close(list, button);
  else return;
  event.stopPropagation();
  event.preventDefault(); // Escape closes only the menu, not the dialog around it
}
