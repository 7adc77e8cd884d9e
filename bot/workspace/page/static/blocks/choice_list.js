/** Radio buttons, checkboxes, and lists of which several can be chosen. */

import { freshId, h } from "../ui/dom.js";
import { textObject } from "../text/inline.js";

export function choiceList(part, block, { view, form, act }, label) {
  const one = part.type === "radio_buttons";
  const options = part.options ?? (part.option_groups ?? []).flatMap((group) => group.options);
  const name = freshId("choice");
  const boxes = options.map((_, index) =>
    h("input", {
      type: one ? "radio" : "checkbox",
      name,
      "data-focus": `${block.block_id}/${part.action_id}/${index}`,
    }),
  );
  const show = () => {
    const chosen = [form.value(block, part)].flat();
    boxes.forEach((box, index) => (box.checked = chosen.includes(options[index].value)));
  };
  const changed = async () => {
    const before = form.get(block, part);
    const chosen = options.filter((_, index) => boxes[index].checked);
    form.set(block, part, one ? (chosen[0] ?? null) : chosen);
    if (await act(part, block, form.value(block, part))) return;
    form.set(block, part, before);
    show();
  };
  show();
  const props = {
    class: "choices",
    role: one ? "radiogroup" : "group",
    "aria-label": label["aria-labelledby"] ? null : "Choices",
    "data-action-id": part.action_id,
    on: { change: changed },
  };
  const rows = options.map((option, index) => row(option, boxes[index], view));
  return h("div", { ...props, ...label }, rows);
}

function row({ text, description }, box, view) {
  const more = description && h("span", { class: "choice-description" }, textObject(description, view));
  return h(
    "label",
    { class: "choice" },
    box,
    h("span", { class: "choice-text", dir: "auto" }, textObject(text, view), more),
  );
}
