/** The modal that the app has open for this person. */

import { freshId, h } from "../ui/dom.js";
import { icon } from "../ui/icons.js";
import { shortcodes } from "../text/inline.js";
import { BlockList } from "../blocks/block_list.js";
import { showProblem } from "../blocks/blocks.js";
import { Form } from "../blocks/form.js";

const FIELDS = "input, textarea, select";
const PAUSE_MS = 400;

export class ModalLayer {
  element = h("div", { class: "modals" });
  #store;
  #actions;
  #modal = null;
  #returnTo = null; // the focused node before the modal opened

  constructor({ store, actions }) {
    this.#store = store;
    this.#actions = actions;
  }

  render() {
    const { modal: view } = this.#store;
    if (this.#modal && this.#modal.id !== view?.id) this.#leave();
    if (!view) return;
    if (this.#modal) {
      this.#modal.show(view);
      return;
    }
    this.#returnTo = document.activeElement;
    this.#modal = new Modal(view, { store: this.#store, actions: this.#actions });
    this.element.append(this.#modal.element);
    this.#modal.open();
  }

  #leave() {
    this.#modal.element.close();
    this.#modal.element.remove();
    this.#modal = null;
    if (this.#returnTo?.isConnected) this.#returnTo.focus({ preventScroll: true });
  }
}

/** It keeps what was typed through errors and updates. */
class Modal {
  #view;
  #actions;
  #form;
  #list;
  #drawn = ""; // the view as last drawn
  #typing = new TypingDelay();
  #title = h("h2", { id: freshId("modal") });
  #closeButton = h("button", { type: "button", class: "button", on: { click: () => this.close() } });
  #submitButton = h("button", { type: "submit", class: "button primary" });
  #problem = h("p", { class: "problem", role: "alert", "data-testid": "modal-problem", hidden: true });
  #problems = {}; // errors of the last submission, by block_id

  /** `actions`: `submit`, `close` and `use`, which return `{ok, error}`. */
  constructor(view, { store, actions }) {
    this.#actions = actions;
    this.#form = new Form({ conversation: store.route.channel });
    this.#list = new BlockList(
      { view: store, form: this.#form, act: (...used) => this.#act(...used) },
      { class: "block-list modal-body" },
    );
    this.element = this.#dialog();
    this.show(view);
  }

  get id() {
    return this.#view.id;
  }

  #dialog() {
    const x = h(
      "button",
      { type: "button", class: "tool", "aria-label": "Close", on: { click: () => this.close({ clear: true }) } },
      icon("close"),
    );
    const form = h(
      "form",
      { novalidate: true },
      h("header", { class: "modal-header" }, this.#title, x),
      this.#list.element,
      this.#problem,
      h("div", { class: "dialog-buttons" }, this.#closeButton, this.#submitButton),
    );
    const dialog = h("dialog", { class: "modal", "aria-labelledby": this.#title.id, "data-testid": "modal" }, form);
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.#submit();
    });
    dialog.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && (event.ctrlKey || event.metaKey) && !event.defaultPrevented) form.requestSubmit();
    });
    dialog.addEventListener("cancel", (event) => {
      event.preventDefault(); // tell the app first
      if (event.target === dialog) this.close();
    });
    return dialog;
  }

  /** Draws the view after an update. What was typed into the same fields stays. */
  show(view) {
    const drawn = JSON.stringify(view);
    if (drawn === this.#drawn) return;
    this.#drawn = drawn;
    const hadFields = this.#list.element.querySelector(FIELDS) !== null;
    if (view.hash !== this.#view?.hash) this.#problems = {}; // as in Slack, an update removes errors
    this.#view = view;
    this.#title.replaceChildren(...shortcodes(view.title?.text));
    this.#closeButton.replaceChildren(...shortcodes(view.close?.text ?? "Cancel"));
    this.#submitButton.replaceChildren(...shortcodes(view.submit?.text ?? "Submit"));
    this.#submitButton.hidden = !view.submit && !view.blocks.some((block) => block.type === "input");
    this.#form.hold(view.values);
    this.#list.show(view.blocks);
    this.#drawProblems();
    if (this.element.open && !hadFields) this.#focusFirst();
  }

  open() {
    this.element.showModal();
    this.#focusFirst();
  }

  #focusFirst() {
    const marked = this.#view.blocks.map((block) => block.element).find((element) => element?.focus_on_load);
    const wanted = marked && `[data-action-id="${CSS.escape(marked.action_id)}"]`;
    const field = (wanted && this.#list.element.querySelector(wanted)) || this.#list.element.querySelector(FIELDS);
    (field ?? this.#closeButton).focus();
  }

  async close({ clear = false } = {}) {
    await this.#typing.flush();
    this.#report(await this.#actions.close(this.#view, { clear }));
  }

  /** Tells the app, with all values of the view. */
  async #act({ action_id }, { block_id }, value, { typing = false } = {}) {
    const use = async () => {
      const values = this.#form.values(this.#view.blocks);
      this.#report(await this.#actions.use(this.#view, { block_id, action_id, value, values }));
    };
    if (typing) return this.#typing.later(`${block_id} ${action_id}`, use);
    await this.#typing.flush();
    return use();
  }

  async #submit() {
    if (this.#submitButton.hidden || this.#isBusy()) return;
    if (this.#showErrors(this.#form.problems(this.#view.blocks))) return;
    this.#submitButton.setAttribute("aria-busy", "true");
    await this.#typing.flush();
    const answer = await this.#actions.submit(this.#view, this.#form.values(this.#view.blocks));
    this.#submitButton.removeAttribute("aria-busy");
    this.#report(this.#showErrors(answer.errors ?? {}) ? { ok: true } : answer);
  }

  /** Shows errors and focuses the first field with one. @returns {boolean} whether there is one */
  #showErrors(problems) {
    this.#problems = problems;
    this.#drawProblems();
    const wrong = this.#inputs().find(({ block_id }) => problems[block_id]);
    if (wrong) this.#list.node(wrong.block_id).querySelector(FIELDS)?.focus();
    return wrong !== undefined;
  }

  /** Shows this page's errors, or those that another page of the person got. */
  #drawProblems() {
    const problems = isEmpty(this.#problems) ? (this.#view.errors ?? {}) : this.#problems;
    const shown = this.#isBusy() ? {} : problems; // until the answer arrives, the errors are outdated
    for (const { block_id } of this.#inputs()) showProblem(this.#list.node(block_id), shown[block_id]);
  }

  #inputs() {
    return this.#view.blocks.filter(({ block_id }) => this.#list.node(block_id)?.matches(".input-block"));
  }

  #isBusy() {
    return this.#submitButton.getAttribute("aria-busy") === "true";
  }

  #report({ ok, error }) {
    this.#problem.textContent = ok ? "" : error;
    this.#problem.hidden = ok;
  }
}

const isEmpty = (object) => Object.keys(object ?? {}).length === 0;

/** Waits for a pause in typing before it tells the app. */
class TypingDelay {
  #waiting = new Map(); // key -> { timer, send }
  #sent = Promise.resolve();

  /** Calls `send` after a pause; for the same key, only the last one. */
  later(key, send) {
    clearTimeout(this.#waiting.get(key)?.timer);
    const timer = setTimeout(() => this.#send(key), PAUSE_MS);
    this.#waiting.set(key, { timer, send });
  }

  /** Calls everything that still waits at once. Resolves when the app has it. */
  flush() {
    for (const key of [...this.#waiting.keys()]) this.#send(key);
    return this.#sent;
  }

  /** One after the other, so that the app gets the newest text last. */
  #send(key) {
    const { timer, send } = this.#waiting.get(key);
    clearTimeout(timer);
    this.#waiting.delete(key);
    this.#sent = this.#sent.then(send);
  }
}
