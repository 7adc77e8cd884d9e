/** The list of completions above a text area. The text area keeps the focus; arrow keys move, Enter or Tab takes, Escape closes. */

import { complete } from "./completion.js";
import { freshId, h } from "../ui/dom.js";
import { avatar, badges } from "../ui/people.js";

export class Suggestions {
  #input;
  #store;
  #commands;
  #found = null;
  #at = 0;
  #dismissed = null; // the text for which somebody closed the list

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

  /** @returns {boolean} whether the key was meant for the list */
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

  /** The chosen name is already there in full, so there is nothing to complete and Enter may send. */
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
    const take = (event) => this.#take(event, index); // on mousedown, so that the text area keeps the focus
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
