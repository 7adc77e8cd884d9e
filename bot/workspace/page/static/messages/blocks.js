/**
 * Block Kit as DOM. A block this page does not know is a quiet note, never an error.
 * `press(element, block)` is called for a pressed button, after its confirmation; it answers a promise.
 */

import { confirmDialog } from "../ui/dialog.js";
import { h, safeUrl } from "../ui/dom.js";
import { link, shortcodes, textObject } from "../text/inline.js";
import { markdown } from "../text/markdown.js";
import { richText } from "../text/rich_text.js";

const RENDERERS = {
  section,
  header,
  context,
  divider,
  actions,
  image,
  rich_text: richText,
  markdown: (b, view) => markdown(b.text, view),
};

export function blocks(list, view, press) {
  return list.map((block) => {
    try {
      const render = Object.hasOwn(RENDERERS, block?.type) ? RENDERERS[block.type] : unknown;
      return render(block, view, press);
    } catch {
      return unknown(block); // one malformed block must not take the others' place
    }
  });
}

function unknown(block) {
  return h("p", { class: "quiet" }, `(A “${block?.type ?? "nameless"}” block is not shown here)`);
}

function section(block, view, press) {
  const body = h("div", { class: "section-body" });
  if (block.text) body.append(h("div", { class: "text", dir: "auto" }, textObject(block.text, view)));
  if (block.fields) {
    const fields = block.fields.map((field) => h("div", { class: "text", dir: "auto" }, textObject(field, view)));
    body.append(h("div", { class: "fields" }, fields));
  }
  const accessory = block.accessory && element(block.accessory, block, view, press);
  return h("div", { class: "block section" }, body, accessory && h("div", { class: "accessory" }, accessory));
}

function header(block, view) {
  return h("h3", { class: "block header-block", dir: "auto" }, textObject(block.text, view));
}

function context(block, view, press) {
  const parts = (block.elements ?? []).map((part) =>
    part.type === "image"
      ? picture(part, "context-image")
      : h("span", { class: "text", dir: "auto" }, textObject(part, view)),
  );
  return h("div", { class: "block context" }, parts);
}

function divider() {
  return h("hr", { class: "block divider" });
}

function actions(block, view, press) {
  return h(
    "div",
    { class: "block actions" },
    (block.elements ?? []).map((part) => element(part, block, view, press)),
  );
}

function image(block, view) {
  const title = block.title && h("figcaption", {}, textObject(block.title, view));
  return h("figure", { class: "block image-block" }, title, picture(block, "image"));
}

function element(part, block, view, press) {
  if (part?.type === "button") return button(part, block, press);
  if (part?.type === "image") return picture(part, "accessory-image");
  if (part?.type === "static_select" || part?.type === "overflow") return menu(part, block, press);
  return h("span", { class: "quiet" }, `(A “${part?.type ?? "nameless"}” element is not shown here)`);
}

/** Pictures come from this page's own server or from the message itself; another address is only linked to. */
function picture(part, name) {
  const url = String(part.image_url ?? "");
  const alt = String(part.alt_text ?? "");
  if (/^data:image\/(?:png|jpeg|gif|webp|svg\+xml)[;,]/i.test(url) || sameOrigin(url)) {
    return h("img", { class: name, src: url, alt, loading: "lazy", decoding: "async" });
  }
  return h("span", { class: "text" }, "Picture: ", link(url, alt || url));
}

function sameOrigin(url) {
  try {
    return url !== "" && new URL(url, location.href).origin === location.origin;
  } catch {
    return false;
  }
}

function button(part, block, press) {
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
  node.addEventListener("click", (event) => pressed(event, node, { part, block, press, href }));
  return node;
}

async function pressed(event, node, { part, block, press, href }) {
  if (node.getAttribute("aria-busy") === "true") return event.preventDefault();
  if (part.confirm) {
    event.preventDefault(); // a link with a question opens only after the answer
    if (!(await confirmDialog(confirmation(part.confirm)))) return;
    if (href) window.open(href, "_blank", "noopener,noreferrer");
  }
  node.setAttribute("aria-busy", "true");
  await press(part, block);
  node.removeAttribute("aria-busy");
}

/** A choice of options as the browser's own list; choosing sends the option's value. */
function menu(part, block, press) {
  const hint = part.placeholder?.text || (part.type === "overflow" ? "More…" : "Choose…");
  const options = (part.options ?? []).map((option) => h("option", { value: option.value }, option.text?.text));
  const node = h(
    "select",
    {
      class: "menu-select",
      "aria-label": hint,
      "data-action-id": part.action_id,
      "data-focus": `${block.block_id}/${part.action_id}`,
    },
    h("option", { value: "" }, hint),
    options,
  );
  node.addEventListener("change", async () => {
    const { value } = node;
    node.value = "";
    if (value && (!part.confirm || (await confirmDialog(confirmation(part.confirm)))))
      await press({ ...part, value }, block);
  });
  return node;
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
