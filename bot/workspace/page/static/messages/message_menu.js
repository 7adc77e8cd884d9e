/** The small toolbar that appears on the message under the pointer or the keyboard's focus. */

import { h, replace } from "../ui/dom.js";
import { emoji, OFFERED } from "../text/emoji.js";
import { icon } from "../ui/icons.js";

const QUICK = 3; // emoji offered without opening the picker

export class MessageMenu {
  element = h("div", { class: "menu", role: "toolbar", "aria-label": "Message actions" });
  #actions;
  #picker = null;

  constructor(actions) {
    this.#actions = actions;
    this.element.addEventListener("keydown", (event) => {
      if (event.key !== "Escape" || !this.#picker) return;
      event.stopPropagation();
      this.#closePicker();
    });
  }

  /** Puts the toolbar on a row, with what this person may do to its message. */
  attach(row, message, { mine, inThread }) {
    if (this.element.parentElement === row) return;
    this.#picker = null;
    const { openThread, startEdit, remove } = this.#actions;
    const quick = OFFERED.slice(0, QUICK).map((name) => this.#reaction(name, message));
    const tools = [
      this.#tool("smile", "Add a reaction", () => this.#togglePicker(message), { "aria-expanded": "false" }),
      !inThread && this.#tool("reply", "Reply in thread", () => openThread(message)),
      mine && this.#tool("edit", "Edit message", () => startEdit(message)),
      mine && this.#tool("trash", "Delete message", () => remove(message)),
    ];
    replace(this.element, quick, tools);
    row.append(this.element);
  }

  detach() {
    this.element.remove();
  }

  #tool(name, label, click, more = {}) {
    const props = {
      type: "button",
      class: "tool",
      "aria-label": label,
      title: label,
      "data-focus": `menu ${name}`,
      on: { click },
      ...more,
    };
    return h("button", props, icon(name));
  }

  #reaction(name, message) {
    const click = () => {
      this.#closePicker();
      this.#actions.react(message, name);
    };
    const props = {
      type: "button",
      class: "tool",
      "aria-label": `React with :${name}:`,
      title: `:${name}:`,
      "data-focus": `react ${name}`,
      on: { click },
    };
    return h("button", props, emoji(name));
  }

  #togglePicker(message) {
    if (this.#picker) return this.#closePicker();
    this.#picker = h(
      "div",
      { class: "picker", role: "group", "aria-label": "Emoji" },
      OFFERED.map((name) => this.#reaction(name, message)),
    );
    this.element.append(this.#picker);
    this.#picker.classList.toggle("above", this.#hasRoomAbove());
    this.element.querySelector("[aria-expanded]").setAttribute("aria-expanded", "true");
    this.#picker.firstElementChild.focus();
  }

  /** Near the list's lower edge the picker would be cut off, so it opens upwards. */
  #hasRoomAbove() {
    const list = this.element.closest(".scroller").getBoundingClientRect();
    return this.#picker.getBoundingClientRect().bottom > list.bottom;
  }

  #closePicker() {
    if (!this.#picker) return;
    this.#picker.remove();
    this.#picker = null;
    const opener = this.element.querySelector("[aria-expanded]");
    opener.setAttribute("aria-expanded", "false");
    opener.focus();
  }
}
