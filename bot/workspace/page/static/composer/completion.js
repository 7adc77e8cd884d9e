/** What could be meant by what stands before the caret: a command, a person or a channel. Pure. */

import { displayName } from "../ui/people.js";

const MAX_SUGGESTIONS = 8;
const BROADCASTS = [
  ["channel", "Notify everyone in this channel"],
  ["here", "Notify everyone who is active in this channel"],
];

/**
 * @returns {{from: number, to: number, items: {insert: string, title: string, hint?: string, detail?: string,
 *   person?: object}[]} | null} the span to replace, and what with
 */
export function complete(text, caret, store, { commands }) {
  const before = text.slice(0, caret);
  const found = (commands && slash(before, text, store)) || mention(before, store) || channel(before, store);
  return found && found.items.length ? { ...found, to: caret } : null;
}

function slash(before, text, store) {
  if (!/^\/\S*$/.test(before) || /\s/.test(text.trimEnd())) return null;
  const items = knownCommands(store)
    .filter(({ command }) => command.startsWith(before.toLowerCase()))
    .map((c) => ({ insert: `${c.command} `, title: c.command, hint: c.usage_hint, detail: c.description }));
  return { from: 0, items: items.slice(0, MAX_SUGGESTIONS) };
}

/** The workspace's commands and the one that the workspace itself brings. */
export function knownCommands(store) {
  const invite = { command: "/invite", usage_hint: "@someone", description: "Add a person or an app to this channel" };
  const commands = store.me.is_external ? [] : store.commands; // Slack offers them to members only
  const rest = commands.some(({ command }) => command === "/invite") ? [] : [invite];
  return [...commands, ...rest].sort((a, b) => a.command.localeCompare(b.command));
}

/** The command whose arguments are being typed. */
export function commandBeingTyped(text, store) {
  const name = /^(\/\S+)\s/.exec(text)?.[1];
  return name ? (knownCommands(store).find(({ command }) => command === name) ?? null) : null;
}

function mention(before, store) {
  const match = /(?:^|[\s(])@([\p{L}\p{N}._-]*)$/u.exec(before);
  if (!match) return null;
  const typed = match[1].toLowerCase();
  const people = store.people
    .filter((person) => [person.name, displayName(person)].some((name) => name.toLowerCase().startsWith(typed)))
    .map((person) => ({ insert: `@${person.name} `, title: displayName(person), detail: `@${person.name}`, person }));
  const all = BROADCASTS.filter(([name]) => typed && name.startsWith(typed));
  const items = [...people, ...all.map(([name, detail]) => ({ insert: `@${name} `, title: `@${name}`, detail }))];
  return { from: before.length - match[1].length - 1, items: items.slice(0, MAX_SUGGESTIONS) };
}

function channel(before, store) {
  const match = /(?:^|[\s(])#([\p{L}\p{N}_-]*)$/u.exec(before);
  if (!match) return null;
  const items = store.conversations
    .filter((c) => !c.is_im && c.name.startsWith(match[1].toLowerCase()))
    .map((c) => ({ insert: `#${c.name} `, title: `#${c.name}`, detail: c.topic }));
  return { from: before.length - match[1].length - 1, items: items.slice(0, MAX_SUGGESTIONS) };
}
