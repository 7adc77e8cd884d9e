/** Dialogs that ask before something happens. */

import { freshId, h } from "./dom.js";

/** Resolves to true for the confirming button, and to false for the other one, Escape and a click outside. */
export function confirmDialog({ title, text, confirm, deny = "Cancel", danger = false }) {
  const yes = h(
    "button",
    { type: "submit", value: "yes", class: `button ${danger ? "danger solid" : "primary"}` },
    confirm,
  );
  const dialog = makeDialog(title, h("p", { dir: "auto" }, text), deny, yes);
  return new Promise((resolve) => {
    dialog.addEventListener("click", (event) => event.target === dialog && dialog.close("no"));
    dialog.addEventListener("close", () => resolve(dialog.returnValue === "yes"));
    yes.focus();
  });
}

/** Stays open, with errors and what was entered, until `submit()` returns `{ok: true}`. */
export function formDialog({ title, fields, confirm, submit }) {
  const problem = h("p", { class: "problem", role: "alert", hidden: true });
  const yes = h("button", { type: "submit", class: "button primary" }, confirm);
  const dialog = makeDialog(title, [fields, problem], "Cancel", yes);
  dialog.querySelector("form").addEventListener("submit", async (event) => {
    if (event.submitter !== yes) return;
    event.preventDefault();
    if (yes.getAttribute("aria-busy") === "true") return;
    yes.setAttribute("aria-busy", "true");
    const { ok, error } = await submit();
    yes.removeAttribute("aria-busy");
    problem.textContent = error ?? "";
    problem.hidden = ok;
    if (ok) dialog.close();
  });
  dialog.querySelector("select, textarea, input").focus();
}

function makeDialog(title, body, deny, yes) {
  const id = freshId("dialog");
  const no = h("button", { type: "submit", value: "no", class: "button", formnovalidate: true }, deny);
  const form = h(
    "form",
    { method: "dialog" },
    h("h2", { id }, title),
    body,
    h("div", { class: "dialog-buttons" }, no, yes),
  );
  const dialog = h("dialog", { class: "dialog", "aria-labelledby": id }, form);
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
  return dialog;
}
