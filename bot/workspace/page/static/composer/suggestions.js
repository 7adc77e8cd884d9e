/**
 * Completions of commands, people and channels, in a list above a text area. The text area keeps the focus: arrow keys
 * move in the list, Enter or Tab accepts, Escape closes.
 */

import { freshId, h } from "../ui/dom.js";
import { avatar, badges, displayName } from "../ui/people.js";

export class Suggestions {
  #input;
  #store;
  #commands;
  #found = null;
  #at = 0;
  #dismissed = null; // the text for which the person closed the list

  constructor(input, store, { commands }) {
    this.#input = input;
    this.#store = store;
    this.#commands = commands;
    const id = freshId("suggestions");
    this.element = h("div", {
      class: "suggestions",
      id,
      role: "listbox",
      "aria-label": "Suggestions",
      "data-testid": "suggestions",
      hidden: true,
    });
    input.setAttribute("aria-autocomplete", "list");
    input.setAttribute("aria-controls", id);
    input.setAttribute("aria-haspopup", "listbox");
    input.addEventListener("blur", () => this.close());
    input.addEventListener("click", () => this.update());
  }

  update() {
    const { value, selectionStart, selectionEnd } = this.#input;
    if (value !== this.#dismissed) this.#dismissed = null;
    const idle = selectionStart !== selectionEnd || this.#dismissed !== null;
    this.#found = idle ? null : complete(value, selectionStart, this.#store, { commands: this.#commands });
    this.#at = 0;
    this.#draw();
  }

  close() {
    this.#found = null;
    this.#draw();
  }

  /** @returns {boolean} whether the list handled the key */
  keydown(event) {
    if (!this.#found) return false;
    const { length } = this.#found.items;
    if (event.key === "ArrowDown") this.#at = (this.#at + 1) % length;
    else if (event.key === "ArrowUp") this.#at = (this.#at + length - 1) % length;
    else if (event.key === "Tab") return this.#take(event, this.#at);
    else if (event.key === "Enter" && !event.shiftKey) return this.#isWhole() ? false : this.#take(event, this.#at);
    else if (event.key === "Escape") this.#dismiss(event);
    else return false;
    event.preventDefault();
    this.#draw();
    return true;
  }

  /** The chosen name is already complete, so Enter may send. */
  #isWhole() {
    const { from, to, items } = this.#found;
    return this.#input.value.slice(from, to) === items[this.#at].insert.trim();
  }

  #dismiss(event) {
    event.stopPropagation();
    this.#dismissed = this.#input.value;
    this.#found = null;
  }

  #take(event, index) {
    const { from, to, items } = this.#found;
    event.preventDefault();
    const { value } = this.#input;
    const rest = value.slice(to).replace(/^ /, "");
    this.#input.setRangeText(items[index].insert + rest, from, value.length, "end");
    this.#input.selectionStart = this.#input.selectionEnd = from + items[index].insert.length;
    this.#input.dispatchEvent(new Event("input", { bubbles: true }));
    return true;
  }

  #draw() {
    const items = this.#found?.items ?? [];
    this.element.hidden = items.length === 0;
    this.element.replaceChildren(...items.map((item, index) => this.#option(item, index)));
    const active = this.element.children[this.#at];
    if (active) {
      this.#input.setAttribute("aria-activedescendant", active.id);
      active.scrollIntoView({ block: "nearest" });
    } else {
      this.#input.removeAttribute("aria-activedescendant");
    }
  }

  #option({ title, hint, detail, person }, index) {
    const take = (event) => this.#take(event, index); // on mousedown, to keep the focus in the text area
    const props = {
      id: `${this.element.id}-${index}`,
      class: "suggestion",
      role: "option",
      "aria-selected": String(index === this.#at),
      on: { mousedown: take },
    };
    return h(
      "div",
      props,
      person && avatar(person, "small"),
      h("span", { class: "suggestion-title" }, title),
      person && badges(person),
      hint && h("span", { class: "suggestion-hint" }, hint),
      detail && h("span", { class: "suggestion-detail" }, detail),
    );
  }
}

const MAX_SUGGESTIONS = 8;
const BROADCASTS = [
  ["channel", "Notify everyone in this channel"],
  ["here", "Notify everyone who is active in this channel"],
];

/**
 * @returns {{from: number, to: number, items: {insert: string, title: string, hint?: string, detail?: string,
 *   person?: object}[]} | null} the span to replace, and the choices
 */
function complete(text, caret, store, { commands }) {
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

/** The app's commands and the workspace's own. */
function knownCommands(store) {
  const invite = { command: "/invite", usage_hint: "@someone", description: "Add a person or an app to this channel" };
  const commands = store.me.is_external ? [] : store.commands; // Slack offers them to members only
  const rest = commands.some(({ command }) => command === "/invite") ? [] : [invite];
  return [...commands, ...rest].sort((a, b) => a.command.localeCompare(b.command));
}

/** The command whose arguments the person is typing. */
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
