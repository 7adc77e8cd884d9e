/** The `rich_text` block: sections, lists, quotes and preformatted text. */

import { h } from "../ui/dom.js";
import { inline, link } from "./inline.js";

const STYLES = ["bold", "italic", "strike", "underline"];
const MARKERS = ["disc", "circle", "square"];

export function richText(block, view) {
  return h(
    "div",
    { class: "rich" },
    (block.elements ?? []).map((element) => richElement(element, view)),
  );
}

function richElement(element, view) {
  const parts = element.elements ?? [];
  switch (element.type) {
    case "rich_text_section":
      return h("div", { class: "rich-section", dir: "auto" }, runs(parts, view));
    case "rich_text_quote":
      return h("blockquote", { dir: "auto" }, runs(parts, view));
    case "rich_text_preformatted":
      return h(
        "pre",
        { tabindex: "0" },
        parts.map((part) => part.text ?? part.url ?? ""),
      );
    case "rich_text_list":
      return list(element, parts, view);
    default:
      return h("p", { class: "quiet" }, `(${element.type ?? "unknown"} is not shown here)`);
  }
}

function list(element, items, view) {
  const indent = Math.min(Number(element.indent) || 0, 8);
  const ordered = element.style === "ordered";
  const start = ordered ? (Number(element.offset) || 0) + 1 : null;
  const props = { class: `rich-list indent-${indent} ${MARKERS[indent % 3]}`, start };
  return h(
    ordered ? "ol" : "ul",
    props,
    items.map((item) => h("li", { dir: "auto" }, runs(item.elements ?? [], view))),
  );
}

function runs(parts, view) {
  return parts.map((part) => styled(part, run(part, view)));
}

function run(part, view) {
  switch (part.type) {
    case "text":
      return part.text ?? "";
    case "link":
      return link(part.url, part.text, view);
    case "user":
      return inline([{ type: "user", id: part.user_id }], view);
    case "channel":
      return inline([{ type: "channel", id: part.channel_id }], view);
    case "usergroup":
      return inline([{ type: "usergroup", label: null }], view);
    case "broadcast":
      return inline([{ type: "broadcast", name: part.range }], view);
    case "emoji":
      return inline([{ type: "emoji", name: part.name ?? "" }], view);
    case "date":
      return inline([{ ...part, seconds: part.timestamp, fallback: part.fallback ?? "" }], view);
    case "color":
      return h("code", {}, part.value ?? "");
    default:
      return part.text ?? "";
  }
}

function styled(part, content) {
  const style = part.style && typeof part.style === "object" ? part.style : {};
  const inner = style.code ? h("code", {}, content) : content;
  const nodes = STYLES.filter((name) => style[name]);
  if (nodes.length === 0) return inner;
  return h("span", { class: nodes.map((name) => `run-${name}`).join(" ") }, inner);
}
