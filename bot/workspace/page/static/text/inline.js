/** Inline nodes (see mrkdwn.js) and text objects as DOM. `view` is the store: it knows people, channels and who "I" am. */

import { h, safeUrl } from "../ui/dom.js";
import { emoji } from "./emoji.js";
import { parseMrkdwn } from "./mrkdwn.js";
import { formatDate } from "./formats.js";

const STYLE_TAGS = { bold: "strong", italic: "em", strike: "s" };

export function inline(nodes, view) {
  return nodes.map((node) => inlineNode(node, view));
}

function inlineNode(node, view) {
  if (node.type in STYLE_TAGS) return h(STYLE_TAGS[node.type], {}, inline(node.children, view));
  switch (node.type) {
    case "code":
      return h("code", {}, node.text);
    case "link":
      return link(node.url, node.label);
    case "user":
      return userMention(node, view);
    case "channel":
      return channelMention(node, view);
    case "usergroup":
      return h("span", { class: "mention" }, h("bdi", {}, node.label || "@group"));
    case "broadcast":
      return h("span", { class: "mention mention-me", "data-broadcast": node.name }, `@${node.name}`);
    case "emoji":
      return emoji(node.name);
    case "date":
      return date(node, view);
    default:
      return node.text ?? "";
  }
}

/** A link opens in a new tab without opener and referrer. An address with another scheme stays text. */
function link(url, label) {
  const href = safeUrl(url);
  const content = label ? shortcodes(label) : url;
  if (!href) return h("span", { class: "dead-link", title: "This address cannot be opened from here" }, content);
  return h("a", { href, target: "_blank", rel: "noopener noreferrer", title: href, dir: "auto" }, content);
}

function userMention({ id, label }, view) {
  const person = view.person(id);
  const mine = view.me?.id === id;
  const name = person?.name || label || "someone";
  return h(
    "span",
    { class: mine ? "mention mention-me" : "mention", title: person?.real_name },
    h("bdi", {}, `@${name}`),
  );
}

function channelMention({ id, label }, view) {
  const channel = id ? view.channel(id) : view.channelNamed(label);
  if (!channel) return id || !label ? h("span", { class: "mention" }, `#${label || "private channel"}`) : `#${label}`;
  return h(
    "a",
    { class: "mention", href: view.href({ channel: channel.id, thread: null }) },
    h("bdi", {}, `#${channel.name}`),
  );
}

function date(node, view) {
  const text = formatDate(node.seconds, node.format) ?? node.fallback;
  return node.url ? link(node.url, text) : h("time", {}, text);
}

/** Plain text with emoji for `:shortcodes:`. */
export function shortcodes(text) {
  return String(text ?? "")
    .split(/(:[a-z0-9_+'-]{1,100}:)/)
    .map((part, index) => (index % 2 ? emoji(part.slice(1, -1)) : part));
}

/** A Block Kit text object: `plain_text` stays plain, `mrkdwn` is parsed, including bare names unless it is `verbatim`. */
export function textObject(object, view) {
  if (!object || typeof object.text !== "string") return [];
  if (object.type === "plain_text") return object.emoji === false ? [object.text] : shortcodes(object.text);
  return mrkdwn(object.text, view, { autolink: !object.verbatim, names: !object.verbatim });
}

/** A mrkdwn text. Line breaks stay; quotes and fences become elements. */
export function mrkdwn(text, view, options) {
  const out = [];
  let lineBefore = false;
  for (const block of parseMrkdwn(text, options)) {
    if (block.type === "line") out.push(lineBefore ? "\n" : "", ...inline(block.children, view));
    else if (block.type === "pre") out.push(h("pre", { tabindex: "0" }, block.text));
    else
      out.push(
        h(
          "blockquote",
          {},
          block.lines.map((line, index) => [index ? "\n" : "", inline(line, view)]),
        ),
      );
    lineBefore = block.type === "line";
  }
  return out;
}
