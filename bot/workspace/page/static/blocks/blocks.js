/**
 * Block Kit as DOM, for messages, modals and Home alike. The server accepts no other blocks and elements.
 *
 * `surface` says where the blocks are: `view` (the store), `form` (what was typed and chosen, see form.js) and
 * `act(element, block, value)`, which tells the app that an element was used and returns a promise.
 */

import { freshId, h } from "../ui/dom.js";
import { fileAddress } from "../ui/files.js";
import { icon } from "../ui/icons.js";
import { textObject } from "../text/inline.js";
import { markdown } from "../text/markdown.js";
import { element } from "./elements.js";

const RENDERERS = {
  section,
  header,
  context,
  actions,
  image,
  input,
  card,
  plan,
  markdown: (b, { view }) => markdown(b.text, view),
};

export function blocks(list, surface) {
  return list.map((each) => block(each, surface));
}

export function block(given, surface) {
  return RENDERERS[given.type](given, surface);
}

function section(given, surface) {
  const words = h("div", { class: "text", dir: "auto" }, textObject(given.text, surface.view));
  const body = h("div", { class: "section-body" }, words);
  const accessory = given.accessory && element(given.accessory, given, surface);
  return h("div", { class: "block section" }, body, accessory && h("div", { class: "accessory" }, accessory));
}

function header({ text }, { view }) {
  return h("h3", { class: "block header-block", dir: "auto" }, textObject(text, view));
}

function context({ elements }, { view }) {
  const words = (part) => h("span", { class: "text", dir: "auto" }, textObject(part, view));
  return h("div", { class: "block context" }, elements.map(words));
}

function actions(given, surface) {
  const elements = given.elements.map((part) => element(part, given, surface));
  return h("div", { class: "block actions" }, elements);
}

function image({ slack_file: { id }, alt_text: alt, title }, { view }) {
  const picture = h("img", { class: "picture", src: fileAddress(id, view), alt, loading: "lazy", decoding: "async" });
  return h("figure", { class: "block image" }, title && h("figcaption", { dir: "auto" }, title.text), picture);
}

/** Its title is a heading, so that people who listen find it. */
function card(given, surface) {
  const { title, subtitle, body, actions: buttons } = given;
  const words = (object, kind) => object && h("div", { class: kind, dir: "auto" }, textObject(object, surface.view));
  return h(
    "div",
    { class: "block card" },
    title && h("h3", { class: "card-title", dir: "auto" }, textObject(title, surface.view)),
    words(subtitle, "card-subtitle"),
    words(body, "text"),
    h("div", { class: "actions" }, buttons.map((part) => element(part, given, surface))),
  );
}

/** By a task's status: what its mark means, and the mark. */
const STATUSES = {
  pending: ["To do: ", ""],
  in_progress: ["In progress: ", "more"],
  complete: ["Done: ", "check"],
  error: ["Failed: ", "close"],
};

function plan({ title, tasks }) {
  const id = freshId("plan");
  return h(
    "div",
    { class: "block plan" },
    h("p", { class: "plan-title", id, dir: "auto" }, title),
    tasks.length > 0 && h("ul", { class: "plan-tasks", "aria-labelledby": id }, tasks.map((each) => h("li", {}, task(each)))),
  );
}

function task({ title, status }) {
  const [meaning, mark] = STATUSES[status];
  return h(
    "div",
    { class: `task-card ${status}` },
    h("span", { class: "task-mark", "aria-hidden": "true" }, mark && icon(mark)),
    h("span", { dir: "auto" }, h("span", { class: "visually-hidden" }, meaning), title),
  );
}

const FIELD = "input:not([type=radio], [type=checkbox]), textarea, select";

function input(given, surface) {
  const { view, act } = surface;
  const ids = { label: freshId("label"), hint: freshId("hint"), problem: freshId("problem") };
  const dispatch = (...used) => (given.dispatch_action ? act(...used) : Promise.resolve());
  const described = given.hint ? `${ids.hint} ${ids.problem}` : ids.problem;
  const names = { "aria-labelledby": ids.label, "aria-describedby": described };
  const control = element(given.element, given, { ...surface, act: dispatch }, names);
  return h(
    "div",
    { class: "block input-block", "data-block-id": given.block_id },
    labelOf(given, control, ids.label, view),
    control,
    given.hint && h("p", { class: "input-hint", id: ids.hint, dir: "auto" }, textObject(given.hint, view)),
    h("p", { class: "problem", id: ids.problem, hidden: true }),
  );
}

/** A click on the label focuses its field; a group of choices has no single field. */
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

/** Shows the error at an input, or removes it. `block` is the node that input() built. */
export function showProblem(block, words) {
  const problem = block.querySelector(":scope > .problem");
  problem.textContent = words ?? "";
  problem.hidden = !words;
  for (const field of block.querySelectorAll("[aria-describedby]")) {
    if (words) field.setAttribute("aria-invalid", "true");
    else field.removeAttribute("aria-invalid");
  }
}
