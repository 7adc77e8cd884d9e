/**
 * Slack's mrkdwn, parsed into plain nodes. Pure: no DOM, linear in the text's length.
 *
 * Block nodes: `line`, `quote` (children: nodes), `pre` (text). Inline nodes: `text`, `bold`, `italic`, `strike`
 * (children), `code` (text), `link` (url, label), `user`, `channel`, `usergroup` (id, label), `broadcast` (name),
 * `emoji` (name), `date` (seconds, format, url, fallback).
 */

const STYLES = { "*": "bold", _: "italic", "~": "strike" };
const ENTITIES = { "&amp;": "&", "&lt;": "<", "&gt;": ">" };
const WORD = /[\p{L}\p{N}]/u;
const PLAIN = /(?:[^*_~`<:@#h]|h(?!ttps?:\/\/))+/y;
const TAG = /<([^<>\n]{1,4000})>/y;
const EMOJI = /:([a-z0-9_+'-]{1,100}):(?::skin-tone-[2-6]:)?/y;
const BARE_URL = /https?:\/\/(?:(?!&[lg]t;)[^\s<>`|])+/y;
const BARE_BROADCAST = /@(here|channel|everyone)(?![\p{L}\p{N}_])/uy;
const BARE_CHANNEL = /#([\p{L}\p{N}_-]{1,80})/uy;

/** Slack escapes exactly these three characters, once. */
function unescapeEntities(text) {
  return text.replace(/&(?:amp|lt|gt);/g, (entity) => ENTITIES[entity]);
}

/**
 * @param {string} text as Slack's API carries it
 * @param {{autolink?: boolean, names?: boolean}} options `autolink`: bare URLs become links; `names`: bare @here and
 *   #channel become mentions, as in Slack's text objects that are not `verbatim`
 */
export function parseMrkdwn(text, { autolink = true, names = false } = {}) {
  const blocks = [];
  for (const piece of splitFences(String(text ?? ""))) {
    if (piece.pre) blocks.push({ type: "pre", text: unescapeEntities(piece.text) });
    else blocks.push(...parseLines(piece.text, { autolink, names }));
  }
  return blocks;
}

function splitFences(text) {
  const pieces = [];
  let from = 0;
  for (;;) {
    const open = text.indexOf("```", from);
    const close = open < 0 ? -1 : text.indexOf("```", open + 4);
    if (close < 0) break;
    if (open > from) pieces.push({ text: text.slice(from, open).replace(/\n$/, "") });
    pieces.push({ pre: true, text: text.slice(open + 3, close).replace(/^\n|\n$/g, "") });
    from = close + 3;
    if (text[from] === "\n") from += 1;
  }
  if (from < text.length) pieces.push({ text: text.slice(from) });
  return pieces;
}

function parseLines(text, options) {
  const blocks = [];
  let quoteAll = false;
  for (const line of text.split("\n")) {
    const mark = quoteAll ? [""] : /^(?:&gt;|>){3} ?|^(?:&gt;|>) ?/.exec(line);
    if (!mark) {
      blocks.push({ type: "line", children: parseInline(line, options) });
      continue;
    }
    quoteAll ||= /^(?:&gt;|>){3}/.test(mark[0]);
    const children = parseInline(line.slice(mark[0].length), options);
    const last = blocks.at(-1);
    if (last?.type === "quote") last.lines.push(children);
    else blocks.push({ type: "quote", lines: [children] });
  }
  return blocks;
}

export function parseInline(line, options = {}, active = "") {
  const nodes = [];
  const hopeless = new Set(); // delimiters known to have no closing partner in the rest of this line
  let plain = "";
  const flush = () => {
    if (plain) nodes.push({ type: "text", text: unescapeEntities(plain) });
    plain = "";
  };
  let at = 0;
  while (at < line.length) {
    const found = plainRun(line, at) ? null : special(line, at, options, active, hopeless);
    if (found) {
      flush();
      nodes.push(found.node);
      at = found.end;
    } else {
      const length = plainRun(line, at)?.length || 1;
      plain += line.slice(at, at + length);
      at += length;
    }
  }
  flush();
  return nodes;
}

function plainRun(line, at) {
  return sticky(PLAIN, line, at)?.[0];
}

function special(line, at, options, active, hopeless) {
  const char = line[at];
  if (char in STYLES) return styled(line, at, options, active, hopeless);
  if (char === "`") return codeSpan(line, at);
  if (char === "<") return tag(line, at);
  if (char === ":") return matched(EMOJI, line, at, (m) => ({ type: "emoji", name: m[1] }));
  if (char === "h" && options.autolink) return bareUrl(line, at);
  if (!options.names || WORD.test(line[at - 1] ?? "")) return null;
  if (char === "@") return matched(BARE_BROADCAST, line, at, (m) => ({ type: "broadcast", name: m[1] }));
  if (char === "#") return matched(BARE_CHANNEL, line, at, (m) => ({ type: "channel", id: null, label: m[1] }));
  return null;
}

function styled(line, at, options, active, hopeless) {
  const char = line[at];
  const next = line[at + 1] ?? " ";
  if (active.includes(char) || hopeless.has(char)) return null;
  if (WORD.test(line[at - 1] ?? "") || /\s/.test(next) || next === char) return null;
  const end = closing(line, at + 1, char);
  if (end < 0) {
    hopeless.add(char);
    return null;
  }
  const children = parseInline(line.slice(at + 1, end), options, active + char);
  return { node: { type: STYLES[char], children }, end: end + 1 };
}

/** The end of the style that opened before `from`, skipping code and `<...>`; -1 if it does not end. */
function closing(line, from, char) {
  for (let at = from; at < line.length; at += 1) {
    const here = line[at];
    if (here === char && at > from && !/\s/.test(line[at - 1]) && !WORD.test(line[at + 1] ?? "")) return at;
    if (here === "`" || here === "<") {
      const inner = here === "`" ? codeSpan(line, at) : tag(line, at);
      if (inner) at = inner.end - 1;
    }
  }
  return -1;
}

function codeSpan(line, at) {
  const end = line.indexOf("`", at + 1);
  if (end <= at + 1) return null;
  return { node: { type: "code", text: unescapeEntities(line.slice(at + 1, end)) }, end: end + 1 };
}

function bareUrl(line, at) {
  const match = sticky(BARE_URL, line, at);
  if (!match) return null;
  let { length } = match[0];
  while (length > 0 && ".,;:!?'\"*_~".includes(match[0][length - 1])) length -= 1;
  if (match[0][length - 1] === ")" && !match[0].includes("(")) length -= 1;
  const url = unescapeEntities(match[0].slice(0, length));
  return { node: { type: "link", url, label: null }, end: at + length };
}

function tag(line, at) {
  return matched(TAG, line, at, (m) => readTag(m[1]));
}

function readTag(inner) {
  const bar = inner.indexOf("|");
  const target = bar < 0 ? inner : inner.slice(0, bar);
  const label = bar < 0 ? null : unescapeEntities(inner.slice(bar + 1));
  if (target.startsWith("@")) return { type: "user", id: target.slice(1), label };
  if (target.startsWith("#")) return { type: "channel", id: target.slice(1), label };
  if (target.startsWith("!date^")) return readDate(target, label);
  if (target.startsWith("!subteam^")) return { type: "usergroup", id: target.slice(9), label };
  if (/^!(here|channel|everyone)$/.test(target)) return { type: "broadcast", name: target.slice(1) };
  if (target.startsWith("!")) return { type: "text", text: label ?? `<${target}>` };
  return { type: "link", url: unescapeEntities(target), label };
}

function readDate(target, fallback) {
  const [, seconds, format = "", url = null] = unescapeEntities(target).split("^");
  return { type: "date", seconds: Number(seconds), format, url, fallback: fallback ?? "" };
}

function matched(pattern, line, at, build) {
  const match = sticky(pattern, line, at);
  return match ? { node: build(match), end: at + match[0].length } : null;
}

function sticky(pattern, line, at) {
  pattern.lastIndex = at;
  return pattern.exec(line);
}

/** A stored message as the person typed it, for editing: references become @name, #channel and plain addresses again. */
export function asTyped(text, store) {
  const readable = text.replace(/<([^<>\n]+)>/g, (_, inner) => {
    const [target, label] = inner.split("|");
    if (target.startsWith("@")) return `@${store.person(target.slice(1))?.name ?? label ?? target.slice(1)}`;
    if (target.startsWith("#")) return `#${store.channel(target.slice(1))?.name ?? label ?? target.slice(1)}`;
    if (target.startsWith("!")) return label ?? `@${target.slice(1)}`;
    return target;
  });
  return unescapeEntities(readable);
}
