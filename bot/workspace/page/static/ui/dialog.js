/** A question that has to be answered before something happens. */

import { freshId, h } from "./dom.js";

/** Resolves true for the confirming button, false for the other one, Escape and a press outside. */
export function confirmDialog({ title, text, confirm, deny = "Cancel", danger = false }) {
  const id = freshId("dialog");
  const yes = h(
    "button",
    { type: "submit", value: "yes", class: `button ${danger ? "danger solid" : "primary"}` },
    confirm,
  );
  const no = h("button", { type: "submit", value: "no", class: "button" }, deny);
  const form = h(
    "form",
    { method: "dialog" },
    h("h2", { id }, title),
    h("p", { dir: "auto" }, text),
    h("div", { class: "dialog-buttons" }, no, yes),
  );
  const dialog = h("dialog", { class: "dialog", "aria-labelledby": id }, form);
  document.body.append(dialog);
  return new Promise((resolve) => {
    dialog.addEventListener("click", (event) => event.target === dialog && dialog.close("no"));
    dialog.addEventListener("close", () => {
      dialog.remove();
      resolve(dialog.returnValue === "yes");
    });
    dialog.showModal();
    yes.focus();
  });
}
