/** What the app has published on its Home tab for this person. */

import { h } from "../ui/dom.js";
import { displayName } from "../ui/people.js";
import { BlockList } from "../blocks/block_list.js";
import { Form } from "../blocks/form.js";

export class HomeTab {
  #store;
  #actions;
  #view = null;
  #form = new Form();
  #list;
  #empty = h("p", { class: "quiet" });
  #problem = h("p", { class: "problem", role: "alert", hidden: true });

  constructor({ store, actions, ...props }) {
    this.#store = store;
    this.#actions = actions;
    const act = (...used) => this.#act(...used);
    this.#list = new BlockList({ view: store, form: this.#form, heading: "h2", act });
    this.element = h(
      "div",
      { class: "home-tab", role: "tabpanel", tabindex: "-1", "data-testid": "home", hidden: true, ...props },
      this.#problem,
      this.#empty,
      this.#list.element,
    );
  }

  render() {
    const { home, app } = this.#store;
    const view = home?.view ?? null;
    this.#view = view;
    this.#form.hold(view?.values);
    this.#empty.hidden = view !== null;
    this.#empty.textContent = `${displayName(app)} has put nothing here yet.`;
    this.#list.show(view?.blocks ?? []);
  }

  async #act({ action_id }, { block_id }, value) {
    const values = this.#form.values(this.#view.blocks);
    const { ok, error } = await this.#actions.use(this.#view, { block_id, action_id, value, values });
    this.#problem.textContent = ok ? "" : error;
    this.#problem.hidden = ok;
  }
}
