/** The interactive elements of blocks. See blocks.js for `surface`. */

import { confirmDialog } from "../ui/dialog.js";
import { fitHeight, freshId, h, safeUrl } from "../ui/dom.js";
import { menuButton } from "../ui/menu.js";
import { shortcodes } from "../text/inline.js";
import { choiceList, select } from "./choices.js";
import { lengthOf } from "./form.js";

const RENDERERS = {
  button,
  overflow,
  static_select: select,
  conversations_select: select,
  radio_buttons: choiceList,
  checkboxes: choiceList,
  multi_static_select: choiceList,
  plain_text_input: textInput,
  number_input: textInput,
};

/**
 * @param {object} label attributes that name the element if it has a label beside it
 */
export function element(part, block, surface, label = {}) {
  return RENDERERS[part.type](part, block, { ...surface, act: confirmed(surface.act) }, label);
}

/** An element with a confirmation dialog tells the app only after it was confirmed; `act` returns whether it did. */
function confirmed(act) {
  return async (part, block, chosen, how) => {
    if (part.confirm && !(await confirmDialog(confirmation(part.confirm)))) return false;
    await act(part, block, chosen, how);
    return true;
  };
}

function button(part, block, { act }) {
  const href = part.url ? safeUrl(part.url) : null;
  const props = {
    class: `button ${part.style ?? ""}`,
    "data-action-id": part.action_id,
    "data-block-id": block.block_id,
    "data-focus": `${block.block_id}/${part.action_id}`,
  };
  const label = part.text?.emoji === false ? part.text.text : shortcodes(part.text?.text);
  const node = href
    ? h("a", { ...props, href, target: "_blank", rel: "noopener noreferrer" }, label)
    : h("button", { ...props, type: "button" }, label);
  node.addEventListener("click", (event) => pressed(event, node, { part, block, act, href }));
  return node;
}

async function pressed(event, node, { part, block, act, href }) {
  if (node.getAttribute("aria-busy") === "true") return event.preventDefault();
  if (part.confirm) event.preventDefault(); // a link with a dialog opens only after it was confirmed
  node.setAttribute("aria-busy", "true");
  const sent = await act(part, block, part.value ?? null);
  node.removeAttribute("aria-busy");
  if (sent && part.confirm && href) window.open(href, "_blank", "noopener,noreferrer");
  return undefined;
}

function overflow(part, block, { act }) {
  const item = (option) => ({ label: option.text?.text, click: () => act(part, block, option.value) });
  const props = { class: "button overflow", "data-action-id": part.action_id };
  return menuButton({
    label: "More options",
    name: "more",
    items: () => (part.options ?? []).map(item),
    props: { ...props, "data-focus": `${block.block_id}/${part.action_id}` },
  });
}

function confirmation({ title, text, confirm, deny }) {
  return { title: title.text, text: text.text, confirm: confirm.text, deny: deny.text };
}

// text inputs: what is typed stays as it is; text that is too long gets a message and is not cut off

const COUNT_FROM = 0.8; // of the maximum length

function textInput(part, block, { form, act }, label) {
  const props = {
    class: "text-input",
    dir: "auto",
    placeholder: part.placeholder?.text,
    "data-action-id": part.action_id,
    "data-focus": `${block.block_id}/${part.action_id}`,
    ...label,
  };
  const input = part.multiline
    ? h("textarea", { ...props, rows: 4, spellcheck: "true" })
    : h("input", { ...props, type: "text", inputmode: part.type === "number_input" ? "decimal" : undefined });
  const counter = part.max_length ? new Counter(part.max_length) : null;
  const { trigger_actions_on: triggers } = part.dispatch_action_config ?? {};
  const dispatchesWhileTyping = block.dispatch_action && triggers?.includes("on_character_entered");
  input.value = form.value(block, part) ?? "";
  counter?.count(input.value);
  input.addEventListener("input", () => {
    form.set(block, part, input.value === "" ? null : input.value);
    counter?.count(input.value);
    if (part.multiline) fitHeight(input);
    if (dispatchesWhileTyping) act(part, block, form.value(block, part), { typing: true });
  });
  return counter ? h("div", { class: "counted" }, input, counter.element) : input;
}

class Counter {
  element = h("p", { class: "counter", id: freshId("counter"), role: "status", hidden: true });
  #most;

  constructor(most) {
    this.#most = most;
  }

  count(text) {
    const left = this.#most - lengthOf(text);
    this.element.hidden = left > this.#most * (1 - COUNT_FROM);
    this.element.classList.toggle("too-long", left < 0);
    this.element.textContent = left < 0 ? `${-left} too many` : `${left} left`;
  }
}
