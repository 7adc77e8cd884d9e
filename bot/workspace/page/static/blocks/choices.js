/** The elements to choose with: the browser's own list for one option, radio buttons, and checkboxes for several. */

import { freshId, h } from "../ui/dom.js";
import { textObject } from "../text/inline.js";

/** The index identifies an option, since to the browser an empty value means "nothing chosen". */
export function select(part, block, { view, form, act }, label) {
  const hint = part.placeholder?.text || "Choose…";
  const options = optionsOf(part, view);
  const node = h(
    "select",
    {
      class: "menu-select",
      "aria-label": label["aria-labelledby"] ? null : hint,
      "data-action-id": part.action_id,
      "data-focus": `${block.block_id}/${part.action_id}`,
      ...label,
    },
    h("option", { value: "" }, hint),
    options.map(({ label: words }, index) => h("option", { value: index }, words)),
  );
  const show = () => (node.value = indexOf(form.value(block, part), options));
  node.addEventListener("change", async () => {
    const before = form.get(block, part);
    if (node.value === "" && block.type !== "input") return show(); // only inputs can be cleared
    form.set(block, part, node.value === "" ? null : options[node.value].chosen);
    if (await act(part, block, form.value(block, part))) return undefined;
    form.set(block, part, before);
    return show();
  });
  show();
  return node;
}

const bare = (chosen) => chosen.value ?? chosen;

function indexOf(value, options) {
  const found = options.findIndex(({ chosen }) => bare(chosen) === value);
  return found < 0 ? "" : String(found);
}

/** The options, as `{label, chosen}[]`. */
function optionsOf(part, view) {
  if (part.type === "conversations_select") return conversationOptions(part, view);
  return (part.options ?? []).map((option) => ({ label: option.text?.text, chosen: option }));
}

/** The conversations that the element's filter lets through. */
function conversationOptions(part, view) {
  const { include, exclude_bot_users: noBots } = part.filter ?? {};
  return view.conversations
    .filter((channel) => !include || include.includes(kindOf(channel)))
    .filter((channel) => !(noBots && channel.is_im && view.person(channel.user)?.is_bot))
    .map((channel) => ({ label: channel.is_im ? view.title(channel) : `#${channel.name}`, chosen: channel.id }));
}

function kindOf(channel) {
  if (channel.is_im) return "im";
  return channel.is_private ? "private" : "public";
}

export function choiceList(part, block, { view, form, act }, label) {
  const one = part.type === "radio_buttons";
  const options = part.options ?? [];
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

function row({ text }, box, view) {
  return h("label", { class: "choice" }, box, h("span", { dir: "auto" }, textObject(text, view)));
}
