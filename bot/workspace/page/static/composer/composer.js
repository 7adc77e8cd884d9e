/** Where one writes: Enter sends, Shift+Enter starts a new line, and a draft stays with its channel or thread. */

import { commandBeingTyped } from "./completion.js";
import { h } from "../ui/dom.js";
import { icon } from "../ui/icons.js";
import { Suggestions } from "./suggestions.js";
import { fitHeight } from "../ui/textarea.js";

export class Composer {
  #store;
  #onSend;
  #onArrowUp;
  #commands;
  #drafts = new Map();
  #place = null;
  #target = null; // where what is written now will go, whatever is opened meanwhile
  #turn = Promise.resolve();
  #suggestions;
  #also = h("input", { type: "checkbox" });
  #alsoLabel = h("span");

  /** `onSend(text, target, {broadcast})` answers `{ok, error}`; `onArrowUp()` is called in an empty composer. */
  constructor({ store, testid, commands = false, broadcast = false, onSend, onArrowUp }) {
    this.#store = store;
    this.#onSend = onSend;
    this.#onArrowUp = onArrowUp;
    this.#commands = commands;
    this.input = h("textarea", { rows: 1, "data-testid": testid, dir: "auto", spellcheck: "true" });
    this.button = h(
      "button",
      {
        type: "button",
        class: "send",
        "aria-label": "Send",
        title: "Send (Enter)",
        on: { click: () => this.#submit() },
      },
      icon("send"),
    );
    this.problem = h("p", { class: "problem", role: "alert", "data-testid": "composer-problem", hidden: true });
    this.usage = h("p", { class: "usage", hidden: true });
    this.#suggestions = new Suggestions(this.input, store, { commands });
    const also = broadcast && h("label", { class: "also" }, this.#also, this.#alsoLabel);
    const keys = h(
      "span",
      { class: "keys", "aria-hidden": "true" },
      h("kbd", {}, "Shift"),
      " + ",
      h("kbd", {}, "Enter"),
      " for a new line",
    );
    const foot = h("div", { class: "composer-foot" }, also || keys, this.button);
    this.element = h(
      "div",
      { class: "composer" },
      this.#suggestions.element,
      this.problem,
      this.usage,
      h("div", { class: "composer-box" }, this.input, foot),
    );
    this.#listen();
  }

  #listen() {
    this.input.addEventListener("keydown", (event) => this.#keydown(event));
    this.input.addEventListener("input", () => {
      this.#tell(null);
      this.#suggestions.update();
      this.#drawn();
    });
  }

  /** Moves to a channel or thread, with the draft that was left there. */
  use(place, { target, label, placeholder, also = "" }) {
    this.#target = target;
    this.input.setAttribute("aria-label", label);
    this.input.placeholder = placeholder;
    this.#alsoLabel.textContent = also;
    if (place === this.#place) return;
    this.#drafts.set(this.#place, this.input.value);
    this.#place = place;
    this.input.value = this.#drafts.get(place) ?? "";
    this.#also.checked = false;
    this.#tell(null);
    this.#suggestions.close();
    this.#drawn();
  }

  focus() {
    this.input.focus({ preventScroll: true });
  }

  #keydown(event) {
    if (event.isComposing || this.#suggestions.keydown(event)) return;
    if (event.key === "Enter" && !event.shiftKey) {
      event.preventDefault();
      this.#submit();
    } else if (event.key === "ArrowUp" && this.input.value === "" && this.#onArrowUp()) {
      event.preventDefault();
    }
  }

  async #submit() {
    const text = this.input.value.trim();
    if (!text) return;
    const place = this.#place;
    const broadcast = this.#also.checked;
    this.input.value = "";
    this.#also.checked = false;
    this.#tell(null);
    this.#suggestions.close();
    this.#drawn();
    this.element.classList.add("sending");
    const answer = await this.#inTurn(text, this.#target, { broadcast });
    this.element.classList.remove("sending");
    if (!answer.ok) this.#giveBack(place, text, broadcast, answer.error);
  }

  /** Messages go one after the other, so that they keep their order; a command may wait for its app, and nothing waits for it. */
  #inTurn(text, target, options) {
    if (text.startsWith("/")) return this.#onSend(text, target, options);
    this.#turn = this.#turn.then(() => this.#onSend(text, target, options));
    return this.#turn;
  }

  /** What was not sent comes back, unless something else is being written there by now. */
  #giveBack(place, text, broadcast, error) {
    if (place !== this.#place) {
      if (!this.#drafts.get(place)) this.#drafts.set(place, text);
      return;
    }
    this.#tell(error);
    if (this.input.value !== "") return;
    this.input.value = text;
    this.#also.checked = broadcast;
    this.#drawn();
  }

  #tell(problem) {
    this.problem.textContent = problem ?? "";
    this.problem.hidden = !problem;
  }

  #drawn() {
    fitHeight(this.input);
    this.button.disabled = this.input.value.trim() === "";
    const command = this.#commands ? commandBeingTyped(this.input.value, this.#store) : null;
    this.usage.hidden = !command;
    if (!command) return;
    const hint = command.usage_hint && h("span", { class: "suggestion-hint" }, command.usage_hint);
    this.usage.replaceChildren(
      h("b", {}, command.command),
      " ",
      ...(hint ? [hint, " "] : []),
      command.description ?? "",
    );
  }
}
