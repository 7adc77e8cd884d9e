/** The tables of Markdown: a line of names, a line of dashes, and a line for each row. Pure; linear in the text's length. */

const RULE_CELL = /^:?-{1,200}:?$/;

/** The cells of a row; an escaped bar belongs to its cell. */
export function cellsOf(line) {
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
export function beginsTable(lines, at) {
  if (!lines[at].includes("|") || !lines[at + 1]?.includes("-")) return false;
  const rule = cellsOf(lines[at + 1]);
  return rule.every((cell) => RULE_CELL.test(cell)) && rule.length === cellsOf(lines[at]).length;
}

/** @returns {("left" | "center" | "right")[]} how the line of dashes aligns each column */
export function alignments(line) {
  return cellsOf(line).map((cell) => {
    if (cell.endsWith(":")) return cell.startsWith(":") ? "center" : "right";
    return "left";
  });
}
