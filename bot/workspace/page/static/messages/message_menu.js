/** The toolbar on the message under the pointer or the keyboard's focus, with its choice of emoji. */

import { freshId, h, replace } from "../ui/dom.js";
import { icon } from "../ui/icons.js";
import { menuButton } from "../ui/menu.js";
import { emoji, OFFERED } from "../text/emoji.js";

const QUICK = 3; // emoji offered without opening the picker

export class MessageMenu {
  element = h("div", { class: "menu", role: "toolbar", "aria-label": "Message actions" });
  #store;
  #actions;
  #picker = null;

  constructor(store, actions) {
    this.#store = store;
    this.#actions = actions;
  }

  /** Moves the toolbar to a row, with what this person may do with its message. */
  attach(row, message, { mine, inThread }) {
    if (this.element.parentElement === row) return;
    const { openThread, startEdit, remove, forward, react } = this.#actions;
    this.#picker = new EmojiPicker({ onPick: (name) => react(message, name) });
    const tools = [
      OFFERED.slice(0, QUICK).map((name) => this.#quick(name, message)),
      this.#picker.element,
      !inThread && this.#tool("reply", "Reply in thread", () => openThread(message)),
      this.#tool("forward", "Share message", () => forward(message)),
      mine && this.#tool("edit", "Edit message", () => startEdit(message)),
      mine && this.#tool("trash", "Delete message", () => remove(message)),
      this.#more(message),
    ];
    replace(this.element, tools);
    row.append(this.element);
  }

  detach() {
    this.element.remove();
  }

  #tool(name, label, click) {
    const props = { type: "button", class: "tool", "aria-label": label, title: label, "data-focus": `menu ${name}` };
    return h("button", { ...props, on: { click } }, icon(name));
  }

  #quick(name, message) {
    const props = {
      type: "button",
      class: "tool",
      "aria-label": `React with :${name}:`,
      title: `:${name}:`,
      "data-focus": `react ${name}`,
      on: { click: () => this.#actions.react(message, name) },
    };
    return h("button", props, emoji(name));
  }

  #more(message) {
    const props = { "data-focus": "menu more", "data-testid": "more-actions" };
    return menuButton({ label: "More actions", name: "more", items: () => this.#shortcuts(message), props });
  }

  /** The app's shortcuts. People of other organisations see that they cannot use them. */
  #shortcuts(message) {
    const { me, shortcuts, app } = this.#store;
    const detail = me.is_external ? "Not for people of other organisations" : app?.real_name;
    const offered = shortcuts
      .filter((shortcut) => shortcut.type === "message")
      .map((shortcut) => ({
        label: shortcut.name,
        detail,
        disabled: me.is_external,
        click: () => this.#actions.runShortcut(shortcut, message),
      }));
    return offered.length ? offered : [{ label: "No app has a shortcut here", disabled: true }];
  }
}

/** A button that opens a choice of emoji, with a field for the names of others. */
class EmojiPicker {
  element;
  #onPick;
  #opener;
  #panel = null;

  constructor({ onPick }) {
    this.#onPick = onPick;
    this.#opener = h(
      "button",
      {
        type: "button",
        class: "tool",
        "aria-label": "Add a reaction",
        title: "Add a reaction",
        "aria-expanded": "false",
        "data-focus": "menu smile",
        on: { click: () => (this.#panel ? this.#close() : this.#open()) },
      },
      icon("smile"),
    );
    this.element = h("span", { class: "picker-button" }, this.#opener);
    this.element.addEventListener("keydown", (event) => {
      if (event.key !== "Escape" || !this.#panel) return;
      event.stopPropagation();
      this.#close();
    });
  }

  #open() {
    const offered = OFFERED.map((name) => this.#choice(name));
    this.#panel = h(
      "div",
      { class: "picker", role: "group", "aria-label": "Emoji" },
      h("div", { class: "picker-grid" }, offered),
      this.#byName(),
    );
    this.element.append(this.#panel);
    this.#panel.classList.toggle("above", this.#isCutOff());
    this.#opener.setAttribute("aria-expanded", "true");
    offered[0].focus();
  }

  #choice(name) {
    const props = { type: "button", class: "tool", "aria-label": `React with :${name}:`, title: `:${name}:` };
    return h("button", { ...props, on: { click: () => this.#pick(name) } }, emoji(name));
  }

  #byName() {
    const id = freshId("emoji-name");
    const input = h("input", { id, class: "text-input", placeholder: "rocket", autocomplete: "off" });
    const form = h(
      "form",
      { class: "picker-name" },
      h("label", { class: "visually-hidden", for: id }, "Emoji by name"),
      input,
      h("button", { type: "submit", class: "button" }, "React"),
    );
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      const name = input.value.trim().toLowerCase().replace(/^:|:$/g, "");
      if (name) this.#pick(name);
    });
    return form;
  }

  #pick(name) {
    this.#close();
    this.#onPick(name);
  }

  /** Near the list's lower edge the panel would be cut off, so that it opens upwards. */
  #isCutOff() {
    const list = this.element.closest(".scroller").getBoundingClientRect();
    return this.#panel.getBoundingClientRect().bottom > list.bottom;
  }

  #close() {
    this.#panel.remove();
    this.#panel = null;
    this.#opener.setAttribute("aria-expanded", "false");
    this.#opener.focus();
  }
}
