/** A message of one's own, open for editing in its place. Enter saves, Escape gives up. */

import { h } from "../ui/dom.js";
import { fitHeight } from "../ui/textarea.js";
import { asTyped } from "../text/typed.js";

/** @param {object} how `save(message, text)` answers `{ok, error}`; `done()` closes the editor */
export function messageEditor(message, { store, save, done }) {
  const before = asTyped(message.text, store);
  const input = h("textarea", {
    class: "edit-input",
    rows: 1,
    dir: "auto",
    "aria-label": "Edit message",
    "data-focus": "edit",
  });
  const problem = h("p", { class: "problem", role: "alert", hidden: true });
  const button = (label, kind, click) => h("button", { type: "button", class: `button ${kind}`, on: { click } }, label);
  const submit = async () => {
    const text = input.value.trim();
    if (!text || text === before) return done();
    const answer = await save(message, text);
    if (answer.ok) return done();
    problem.textContent = answer.error;
    problem.hidden = false;
    return undefined;
  };
  input.value = before;
  input.addEventListener("input", () => fitHeight(input));
  input.addEventListener("keydown", (event) => {
    if (event.isComposing) return;
    if (event.key === "Escape") {
      event.stopPropagation();
      done();
    } else if (event.key === "Enter" && !event.shiftKey) {
      event.preventDefault();
      submit();
    }
  });
  const buttons = h("div", { class: "edit-buttons" }, button("Cancel", "", done), button("Save", "primary", submit));
  return h(
    "article",
    { class: "message editing", "data-ts": message.ts, "data-testid": "message" },
    h("div", { class: "gutter" }),
    h("div", { class: "content" }, input, problem, buttons),
  );
}

/** Puts the cursor behind the editor's text. The editor must be in the document. */
export function focusEditor(editor) {
  const input = editor.querySelector("textarea");
  fitHeight(input);
  input.focus();
  input.setSelectionRange(input.value.length, input.value.length);
}
