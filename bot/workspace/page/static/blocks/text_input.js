/** The element to type into. What is typed is kept as it is; what is too long is said and not cut off. */

import { freshId, h } from "../ui/dom.js";
import { fitHeight } from "../ui/textarea.js";
import { lengthOf } from "./form.js";

const COUNT_FROM = 0.8; // of the most that may be typed

export function textInput(part, block, { form, act }, label) {
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
  const tell = (how) => act(part, block, form.value(block, part), how);
  input.value = form.value(block, part) ?? "";
  counter?.count(input.value);
  input.addEventListener("input", () => {
    form.set(block, part, input.value === "" ? null : input.value);
    counter?.count(input.value);
    if (part.multiline) fitHeight(input);
    if (tellsOn("on_character_entered", part, block)) tell({ typing: true });
  });
  input.addEventListener("keydown", (event) => {
    const entered = event.key === "Enter" && !event.isComposing && !part.multiline;
    if (!entered || !tellsOn("on_enter_pressed", part, block)) return;
    event.preventDefault();
    tell();
  });
  return counter ? h("div", { class: "counted" }, input, counter.element) : input;
}

function tellsOn(trigger, part, block) {
  if (!block.dispatch_action) return false;
  return (part.dispatch_action_config?.trigger_actions_on ?? ["on_enter_pressed"]).includes(trigger);
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
