/** Where people write: Enter sends, Shift+Enter starts a new line, and a draft stays with its channel or thread. */

import { fitHeight, h } from "../ui/dom.js";
import { icon } from "../ui/icons.js";
import { menuButton } from "../ui/menu.js";
import { AttachedFiles } from "./attached_files.js";
import { commandBeingTyped, Suggestions } from "./suggestions.js";

const EMPTY = { text: "", files: [] };

export class Composer {
  #store;
  #onSend;
  #onArrowUp;
  #commands;
  #drafts = new Map();
  #place = null;
  #target = null; // where the draft goes, even if another place is opened meanwhile
  #turn = Promise.resolve();
  #suggestions;
  #files;
  #also = h("input", { type: "checkbox" });
  #alsoLabel = h("span");

  /**
   * `onSend(text, target, {broadcast, files})` returns `{ok, error}`; `onArrowUp()` is called in an empty composer.
   * With `onShortcut(shortcut)`, the composer offers the app's global shortcuts.
   */
  constructor({ store, testid, commands = false, broadcast = false, onSend, onArrowUp, onShortcut = null }) {
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
    this.#files = new AttachedFiles({
      limits: () => store.limits,
      onChange: () => this.#drawn(),
      refuse: (words) => this.#showProblem(words),
    });
    const also = broadcast && h("label", { class: "also" }, this.#also, this.#alsoLabel);
    const shortcuts = onShortcut && shortcutMenu(store, onShortcut);
    const foot = h("div", { class: "composer-foot" }, this.#files.button, shortcuts, also || keysHint(), this.button);
    this.element = h(
      "div",
      { class: "composer" },
      this.#suggestions.element,
      this.problem,
      this.usage,
      h("div", { class: "composer-box" }, this.input, this.#files.element, foot),
    );
    this.#listen();
  }

  #listen() {
    this.input.addEventListener("keydown", (event) => this.#keydown(event));
    this.input.addEventListener("input", () => {
      this.#showProblem(null);
      this.#suggestions.update();
      this.#drawn();
    });
    this.input.addEventListener("paste", (event) => {
      if (!event.clipboardData?.files.length) return;
      event.preventDefault();
      this.#files.add([...event.clipboardData.files]);
    });
  }

  /** Accepts files dropped on a part of the page. */
  acceptDrops(zone) {
    this.#files.acceptDrops(zone);
  }

  /** Switches to a channel or thread and its draft. */
  use(place, { target, label, placeholder, also = "" }) {
    this.#target = target;
    this.input.setAttribute("aria-label", label);
    this.input.placeholder = placeholder;
    this.#alsoLabel.textContent = also;
    if (place === this.#place) return;
    this.#drafts.set(this.#place, { text: this.input.value, files: this.#files.files });
    this.#place = place;
    const { text, files } = this.#drafts.get(place) ?? EMPTY;
    this.input.value = text;
    this.#files.set(files);
    this.#also.checked = false;
    this.#showProblem(null);
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
    const draft = { text: this.input.value.trim(), files: this.#files.files, broadcast: this.#also.checked };
    if (!draft.text && !draft.files.length) return;
    if (draft.files.length && this.#commands && draft.text.startsWith("/")) {
      this.#showProblem("A command cannot carry files. Take them out, or write a message instead.");
      return;
    }
    const place = this.#place;
    this.input.value = "";
    this.#files.set([]);
    this.#also.checked = false;
    this.#showProblem(null);
    this.#suggestions.close();
    this.#drawn();
    this.element.classList.add("sending");
    const answer = await this.#inTurn(draft, this.#target);
    this.element.classList.remove("sending");
    if (!answer.ok) this.#restore(place, draft, answer.error);
  }

  /** Messages are sent one after the other to keep their order. Commands may take long, so nothing waits for them. */
  #inTurn({ text, ...options }, target) {
    if (text.startsWith("/")) return this.#onSend(text, target, options);
    this.#turn = this.#turn.then(() => this.#onSend(text, target, options));
    return this.#turn;
  }

  /** Restores what was not sent, unless something else has been typed there meanwhile. */
  #restore(place, draft, error) {
    if (place !== this.#place) {
      const { text, files } = this.#drafts.get(place) ?? EMPTY;
      if (!text && !files.length) this.#drafts.set(place, draft);
      return;
    }
    this.#showProblem(error);
    if (!this.#isEmpty()) return;
    this.input.value = draft.text;
    this.#files.set(draft.files);
    this.#also.checked = draft.broadcast;
    this.#drawn();
  }

  #isEmpty() {
    return this.input.value.trim() === "" && this.#files.files.length === 0;
  }

  #showProblem(problem) {
    this.problem.textContent = problem ?? "";
    this.problem.hidden = !problem;
  }

  #drawn() {
    fitHeight(this.input);
    this.button.disabled = this.#isEmpty();
    const withFiles = this.#files.files.length > 0; // replies with files go only to the thread
    this.#also.disabled = withFiles;
    if (withFiles) this.#also.checked = false;
    const command = this.#commands ? commandBeingTyped(this.input.value, this.#store) : null;
    const refused = this.#store.me?.is_external && this.#commands && this.input.value.startsWith("/");
    this.usage.hidden = !command && !refused;
    if (refused) this.usage.textContent = "Commands are not for people of other organisations.";
    if (!command || refused) return;
    const hint = command.usage_hint && h("span", { class: "suggestion-hint" }, command.usage_hint);
    this.usage.replaceChildren(
      h("b", {}, command.command),
      " ",
      ...(hint ? [hint, " "] : []),
      command.description ?? "",
    );
  }
}

function keysHint() {
  const keys = [h("kbd", {}, "Shift"), " + ", h("kbd", {}, "Enter")];
  return h("span", { class: "keys", "aria-hidden": "true" }, keys, " for a new line");
}

/** The menu of the app's global shortcuts; `onShortcut(shortcut)` is called for the chosen one. */
function shortcutMenu(store, onShortcut) {
  return menuButton({ label: "Shortcuts", name: "bolt", items: () => shortcutItems(store, onShortcut) });
}

function shortcutItems({ shortcuts, me }, onShortcut) {
  const offered = shortcuts
    .filter(({ type }) => type === "global")
    .map((shortcut) => ({
      label: shortcut.name,
      detail: me.is_external ? "Not for people of other organisations" : shortcut.description,
      disabled: me.is_external,
      click: () => onShortcut(shortcut),
    }));
  return offered.length ? offered : [{ label: "No app has a shortcut here", disabled: true }];
}
