/** The interactive elements of blocks. See blocks.js for `surface`. */

import { confirmDialog } from "../ui/dialog.js";
import { h, safeUrl } from "../ui/dom.js";
import { menuButton } from "../ui/menu.js";
import { shortcodes } from "../text/inline.js";
import { choiceList } from "./choice_list.js";
import { picture } from "./picture.js";
import { select } from "./select.js";
import { textInput } from "./text_input.js";

const RENDERERS = {
  button,
  overflow,
  image: (part) => picture(part, "accessory-image"),
  static_select: select,
  users_select: select,
  channels_select: select,
  conversations_select: select,
  radio_buttons: choiceList,
  checkboxes: choiceList,
  multi_static_select: choiceList,
  plain_text_input: textInput,
  number_input: textInput,
};

/**
 * @param {object} label attributes that name the element, where a label of its own stands beside it
 */
export function element(part, block, surface, label = {}) {
  if (!Object.hasOwn(RENDERERS, part?.type)) {
    return h("span", { class: "quiet" }, `(A “${part?.type ?? "nameless"}” element is not shown here)`);
  }
  return RENDERERS[part.type](part, block, { ...surface, act: asked(surface.act) }, label);
}

/** An element with a question tells the app only after the answer; `act` answers whether it did. */
function asked(act) {
  return async (part, block, chosen, how) => {
    if (part.confirm && !(await confirmDialog(confirmation(part.confirm)))) return false;
    await act(part, block, chosen, how);
    return true;
  };
}

function button(part, block, { act }) {
  const style = part.style === "primary" || part.style === "danger" ? part.style : "";
  const href = part.url ? safeUrl(part.url) : null;
  const props = {
    class: `button ${style}`,
    "data-action-id": part.action_id,
    "data-block-id": block.block_id,
    "data-focus": `${block.block_id}/${part.action_id}`,
    "aria-label": part.accessibility_label,
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
  if (part.confirm) event.preventDefault(); // a link with a question opens only after the answer
  node.setAttribute("aria-busy", "true");
  const told = await act(part, block, part.value ?? null);
  node.removeAttribute("aria-busy");
  if (told && part.confirm && href) window.open(href, "_blank", "noopener,noreferrer");
  return undefined;
}

function overflow(part, block, { act }) {
  const item = (option) => ({
    label: option.text?.text,
    detail: option.description?.text,
    href: option.url && safeUrl(option.url),
    click: () => act(part, block, option.value),
  });
  const props = { class: "button overflow", "data-action-id": part.action_id };
  return menuButton({
    label: "More options",
    name: "more",
    items: () => (part.options ?? []).map(item),
    props: { ...props, "data-focus": `${block.block_id}/${part.action_id}` },
  });
}

function confirmation({ title, text, confirm, deny, style }) {
  return {
    title: title?.text || "Are you sure?",
    text: text?.text || "",
    confirm: confirm?.text || "Yes",
    deny: deny?.text || "Cancel",
    danger: style === "danger",
  };
}
