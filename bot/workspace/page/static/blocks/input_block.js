/** The `input` block: an element with its label, its hint, and what is wrong with what was entered. */

import { freshId, h } from "../ui/dom.js";
import { textObject } from "../text/inline.js";
import { element } from "./elements.js";

const FIELD = "input:not([type=radio], [type=checkbox]), textarea, select";

export function input(given, surface) {
  const { view, act } = surface;
  const ids = { label: freshId("label"), hint: freshId("hint"), problem: freshId("problem") };
  const told = (...used) => (given.dispatch_action ? act(...used) : Promise.resolve());
  const described = given.hint ? `${ids.hint} ${ids.problem}` : ids.problem;
  const names = { "aria-labelledby": ids.label, "aria-describedby": described };
  const control = element(given.element, given, { ...surface, act: told }, names);
  return h(
    "div",
    { class: "block input-block", "data-block-id": given.block_id },
    labelOf(given, control, ids.label, view),
    control,
    given.hint && h("p", { class: "input-hint", id: ids.hint, dir: "auto" }, textObject(given.hint, view)),
    h("p", { class: "problem", id: ids.problem, hidden: true }),
  );
}

/** A press on the label leads to the field it names; a group of choices has no single one. */
function labelOf({ label, optional }, control, id, view) {
  const field = control.matches(FIELD) ? control : control.querySelector(FIELD);
  const words = [
    h("span", { dir: "auto" }, textObject(label, view)),
    optional && h("span", { class: "input-optional" }, " (optional)"),
  ];
  if (!field) return h("div", { class: "input-label", id }, words);
  field.id = freshId("field");
  if (!optional) field.setAttribute("aria-required", "true");
  return h("label", { class: "input-label", id, for: field.id }, words);
}

/** Shows at its field what is wrong, or that nothing is. `block` is what input() made. */
export function showProblem(block, words) {
  const problem = block.querySelector(":scope > .problem");
  problem.textContent = words ?? "";
  problem.hidden = !words;
  for (const field of block.querySelectorAll("[aria-describedby]")) {
    if (words) field.setAttribute("aria-invalid", "true");
    else field.removeAttribute("aria-invalid");
  }
}
