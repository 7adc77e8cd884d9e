/** The views that the app has open for this person. The topmost is shown; those below wait with what was typed. */

import { h } from "../ui/dom.js";
import { Modal } from "./modal.js";

export class ModalStack {
  element = h("div", { class: "modals" });
  #store;
  #actions;
  #modals = [];
  #person = null;
  #returnTo = null; // where the keyboard was before the first view came

  constructor({ store, actions }) {
    this.#store = store;
    this.#actions = actions;
  }

  render() {
    const { modals: views, me } = this.#store;
    if (me.id !== this.#person) this.#leave(this.#modals);
    this.#person = me.id;
    if (views.length && !this.#modals.length) this.#returnTo = document.activeElement;
    const known = new Map(this.#modals.map((modal) => [modal.id, modal]));
    this.#leave(this.#modals.filter((modal) => !views.some((view) => view.id === modal.id)));
    this.#modals = views.map((view) => this.#modal(view, known.get(view.id)));
    this.#modals.slice(0, -1).forEach((modal) => modal.hide());
    if (this.#modals.length) this.#modals.at(-1).open();
    else this.#giveFocusBack();
  }

  #modal(view, known) {
    if (known) {
      known.show(view);
      return known;
    }
    const modal = new Modal(view, { store: this.#store, actions: this.#actions });
    this.element.append(modal.element);
    return modal;
  }

  #leave(modals) {
    for (const modal of modals) {
      modal.hide();
      modal.element.remove();
    }
    this.#modals = this.#modals.filter((modal) => !modals.includes(modal));
  }

  #giveFocusBack() {
    if (this.#returnTo?.isConnected) this.#returnTo.focus({ preventScroll: true });
    this.#returnTo = null;
  }
}
