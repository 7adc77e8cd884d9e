/**
 * Block Kit as DOM, for messages, modals and Home alike. A block this page does not know is a quiet note, never an error.
 *
 * `surface` is where the blocks stand: `view` (the store), `form` (what was typed and chosen, see form.js), `heading` (the
 * tag of headings) and `act(element, block, value)`, which tells the app that an element was used and answers a promise.
 */

import { h } from "../ui/dom.js";
import { textObject } from "../text/inline.js";
import { markdown } from "../text/markdown.js";
import { richText } from "../text/rich_text.js";
import { element } from "./elements.js";
import { input } from "./input_block.js";
import { picture } from "./picture.js";

const RENDERERS = {
  section,
  header,
  context,
  divider,
  actions,
  image,
  input,
  alert,
  rich_text: (b, { view }) => richText(b, view),
  markdown: (b, { view }) => markdown(b.text, view),
};

export function blocks(list, surface) {
  return list.map((each) => block(each, surface));
}

export function block(given, surface) {
  try {
    const render = Object.hasOwn(RENDERERS, given?.type) ? RENDERERS[given.type] : unknown;
    return render(given, surface);
  } catch {
    return unknown(given); // one malformed block must not take the others' place
  }
}

function unknown(given) {
  return h("p", { class: "quiet" }, `(A “${given?.type ?? "nameless"}” block is not shown here)`);
}

function section(given, surface) {
  const { text, fields } = given;
  const words = (object) => h("div", { class: "text", dir: "auto" }, textObject(object, surface.view));
  const body = h("div", { class: "section-body" }, text && words(text));
  if (fields) body.append(h("div", { class: "fields" }, fields.map(words)));
  const accessory = given.accessory && element(given.accessory, given, surface);
  return h("div", { class: "block section" }, body, accessory && h("div", { class: "accessory" }, accessory));
}

function header({ text }, { view, heading = "h3" }) {
  return h(heading, { class: "block header-block", dir: "auto" }, textObject(text, view));
}

function context({ elements }, { view }) {
  const parts = (elements ?? []).map((part) =>
    part.type === "image"
      ? picture(part, "context-image")
      : h("span", { class: "text", dir: "auto" }, textObject(part, view)),
  );
  return h("div", { class: "block context" }, parts);
}

function alert({ text, level }, { view }) {
  const kind = ["info", "warning", "error", "success"].includes(level) ? level : "info";
  return h("div", { class: `block alert alert-${kind}`, role: "note", dir: "auto" }, textObject(text, view));
}

function divider() {
  return h("hr", { class: "block divider" });
}

function actions(given, surface) {
  const elements = (given.elements ?? []).map((part) => element(part, given, surface));
  return h("div", { class: "block actions" }, elements);
}

function image(given, { view }) {
  const title = given.title && h("figcaption", {}, textObject(given.title, view));
  return h("figure", { class: "block image-block" }, title, picture(given, "image"));
}
