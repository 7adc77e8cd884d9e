/** The `markdown` block: the Markdown that agents write (headings, lists, tasks, tables, quotes, fences, emphasis, links). */

import { h } from "../ui/dom.js";
import { inline } from "./inline.js";

const FENCE = /^ {0,3}(`{3,}|~{3,})/;
const HEADING = /^ {0,3}(#{1,6}) +(.*)$/;
const RULE = /^ {0,3}(?:(?:\* *){3,}|(?:- *){3,}|(?:_ *){3,})$/;
const ITEM = /^( {0,12})(?:[-*+]|(\d{1,9})[.)]) +(.*)$/;
const TASK = /^\[([ xX])\] +(.*)$/;
const QUOTE = /^ {0,3}> ?/;

export function markdown(text, view) {
  const lines = String(text ?? "").split("\n");
  const out = [];
  let at = 0;
  while (at < lines.length) {
    const [node, next] = block(lines, at, view);
    if (node) out.push(node);
    at = next;
  }
  return h("div", { class: "markdown", dir: "auto" }, out);
}

function block(lines, at, view) {
  const line = lines[at];
  if (!line.trim()) return [null, at + 1];
  if (FENCE.test(line)) return fence(lines, at);
  const heading = HEADING.exec(line);
  if (heading) return [h("p", { class: `md-heading md-h${heading[1].length}` }, spans(heading[2], view)), at + 1];
  if (RULE.test(line)) return [h("hr"), at + 1];
  if (QUOTE.test(line)) return quote(lines, at, view);
  if (ITEM.test(line)) return list(lines, at, view);
  if (beginsTable(lines, at)) return table(lines, at, view);
  return paragraph(lines, at, view);
}

function fence(lines, at) {
  const mark = FENCE.exec(lines[at])[1].slice(0, 3);
  let end = at + 1;
  while (end < lines.length && !lines[end].trimStart().startsWith(mark)) end += 1;
  return [h("pre", { tabindex: "0" }, lines.slice(at + 1, end).join("\n")), end + 1];
}

function quote(lines, at, view) {
  const [inside, end] = takeWhile(lines, at, (line) => QUOTE.test(line));
  const text = inside.map((line) => line.replace(QUOTE, ""));
  return [
    h(
      "blockquote",
      {},
      text.map((line, index) => [index ? "\n" : "", spans(line, view)]),
    ),
    end,
  ];
}

function list(lines, at, view) {
  const [items, end] = takeWhile(lines, at, (line) => ITEM.test(line));
  const first = ITEM.exec(items[0]);
  const rows = items.map((line) => {
    const [, indent, , text] = ITEM.exec(line);
    const task = TASK.exec(text);
    const kind = `indent-${Math.min(Math.floor(indent.length / 2), 4)}${task ? " task" : ""}`;
    return h("li", { class: kind }, task ? [mark(task[1] !== " "), spans(task[2], view)] : spans(text, view));
  });
  return [first[2] ? h("ol", { start: first[2] }, rows) : h("ul", {}, rows), end];
}

const mark = (done) => h("span", { role: "img", "aria-label": done ? "Done:" : "To do:" }, done ? "☑ " : "☐ ");

function table(lines, at, view) {
  const [rows, end] = takeWhile(lines, at + 2, (line) => line.includes("|"));
  const sides = alignments(lines[at + 1]);
  const row = (tag, line) => {
    const cells = cellsOf(line).slice(0, sides.length);
    return h(
      "tr",
      {},
      sides.map((side, index) => h(tag, { class: `side-${side}` }, spans(cells[index] ?? "", view))),
    );
  };
  const head = h("thead", {}, row("th", lines[at]));
  const body = h(
    "tbody",
    {},
    rows.map((line) => row("td", line)),
  );
  return [h("div", { class: "table-scroller", tabindex: "0" }, h("table", {}, head, body)), end];
}

function paragraph(lines, at, view) {
  const [more, end] = takeWhile(
    lines,
    at + 1,
    (line, index) =>
      line.trim() && ![FENCE, HEADING, QUOTE, ITEM].some((p) => p.test(line)) && !beginsTable(lines, index),
  );
  return [
    h(
      "p",
      {},
      [lines[at], ...more].map((line, index) => [index ? "\n" : "", spans(line, view)]),
    ),
    end,
  ];
}

function takeWhile(lines, at, test) {
  let end = at;
  while (end < lines.length && test(lines[end], end)) end += 1;
  return [lines.slice(at, end), end];
}

const spans = (text, view) => inline(parseSpans(text), view);

const PATTERNS = [
  [/\\([\\`*_{}[\]()#+.!~>-])/y, (m) => ({ type: "text", text: m[1] })],
  [/`([^`\n]{1,4000})`/y, (m) => ({ type: "code", text: m[1] })],
  [/!?\[([^\]\n]{1,1000})\]\(([^()\s]{1,3000})\)/y, (m) => ({ type: "link", url: m[2], label: m[1] })],
  [/<@([A-Z0-9]{1,40})>/y, (m) => ({ type: "user", id: m[1] })],
  [/<(https?:[^<>\s]{1,3000}|mailto:[^<>\s]{1,300})>/y, (m) => ({ type: "link", url: m[1], label: null })],
  [/https?:\/\/[^\s<>`"]{1,3000}[^\s<>`".,;:!?)*_~]/y, (m) => ({ type: "link", url: m[0], label: null })],
  [/:([a-z0-9_+'-]{1,100}):/y, (m) => ({ type: "emoji", name: m[1] })],
  [/\*\*(?=\S)([^*\n]{1,4000})\*\*/y, (m) => ({ type: "bold", children: parseSpans(m[1]) })],
  [/__(?=\S)([^_\n]{1,4000})__/y, (m) => ({ type: "bold", children: parseSpans(m[1]) })],
  [/~~(?=\S)([^~\n]{1,4000})~~/y, (m) => ({ type: "strike", children: parseSpans(m[1]) })],
  [/\*(?=\S)([^*\n]{1,4000})\*/y, (m) => ({ type: "italic", children: parseSpans(m[1]) })],
  [/_(?=\S)([^_\n]{1,4000})_(?![\p{L}\p{N}])/uy, (m) => ({ type: "italic", children: parseSpans(m[1]) })],
];
const PLAIN = /(?:[^\\`!\[<h:*_~]|h(?!ttps?:))+|[\p{L}\p{N}]_(?=[\p{L}\p{N}])/uy;

function parseSpans(text) {
  const nodes = [];
  let plain = "";
  let at = 0;
  while (at < text.length) {
    PLAIN.lastIndex = at;
    const run = PLAIN.exec(text)?.[0];
    const [node, length] = run ? [null, run.length] : firstMatch(text, at);
    if (node) {
      if (plain) nodes.push({ type: "text", text: plain });
      nodes.push(node);
      plain = "";
    } else {
      plain += text.slice(at, at + length);
    }
    at += length;
  }
  if (plain) nodes.push({ type: "text", text: plain });
  return nodes;
}

function firstMatch(text, at) {
  for (const [pattern, build] of PATTERNS) {
    pattern.lastIndex = at;
    const match = pattern.exec(text);
    if (match) return [build(match), match[0].length];
  }
  return [null, 1];
}

// tables; parsing takes time linear in the text's length

const RULE_CELL = /^:?-{1,200}:?$/;

/** The cells of a row; an escaped bar belongs to its cell. */
function cellsOf(line) {
  const cells = [""];
  const text = line.trim();
  for (let at = 0; at < text.length; at += 1) {
    if (text[at] === "\\" && text[at + 1] === "|") cells.push(`${cells.pop()}${text[(at += 1)]}`);
    else if (text[at] === "|") cells.push("");
    else cells.push(cells.pop() + text[at]);
  }
  if (text.startsWith("|")) cells.shift();
  if (text.endsWith("|") && cells.length > 1) cells.pop();
  return cells.map((cell) => cell.trim());
}

/** @returns {boolean} whether a table begins at this line */
function beginsTable(lines, at) {
  if (!lines[at].includes("|") || !lines[at + 1]?.includes("-")) return false;
  const rule = cellsOf(lines[at + 1]);
  return rule.every((cell) => RULE_CELL.test(cell)) && rule.length === cellsOf(lines[at]).length;
}

/** @returns {("left" | "center" | "right")[]} how the line of dashes aligns each column */
function alignments(line) {
  return cellsOf(line).map((cell) => {
    if (cell.endsWith(":")) return cell.startsWith(":") ? "center" : "right";
    return "left";
  });
}
