/** A button that opens a choice of emoji, with a field for the name of any other. */

import { freshId, h } from "../ui/dom.js";
import { emoji, OFFERED } from "../text/emoji.js";
import { icon } from "../ui/icons.js";

export class EmojiPicker {
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

  /** Near the list's lower edge the panel would be cut off, so it opens upwards. */
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
