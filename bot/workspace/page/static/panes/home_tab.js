/** The app's Home tab for this person, and the row of tabs that leads to it. */

import { freshId, h, replace } from "../ui/dom.js";
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
    this.#list = new BlockList({ view: store, form: this.#form, act });
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

/** A row of tabs. Each leads to an address; arrow keys move between them. */
export class Tabs {
  #drawn = "";

  constructor({ label }) {
    this.element = h("div", { class: "tabs", role: "tablist", "aria-label": label, hidden: true });
    this.element.addEventListener("keydown", (event) => this.#keydown(event));
  }

  /** `tabs`: `{name, label, href, panel}[]`, `panel` being the id of what it shows. */
  show(tabs, chosen) {
    const drawn = JSON.stringify([tabs, chosen]);
    if (drawn === this.#drawn) return;
    this.#drawn = drawn;
    const had = this.element.contains(document.activeElement);
    replace(
      this.element,
      tabs.map((tab) => this.#tab(tab, tab.name === chosen)),
    );
    if (had) this.element.querySelector('[aria-selected="true"]')?.focus();
  }

  #tab({ name, label, href, panel }, selected) {
    const props = {
      class: "tab",
      role: "tab",
      href,
      id: freshId("tab"),
      "aria-selected": String(selected),
      "aria-controls": panel,
      tabindex: selected ? "0" : "-1",
      "data-testid": `tab-${name}`,
    };
    return h("a", props, label);
  }

  #keydown(event) {
    const tabs = [...this.element.children];
    const at = tabs.indexOf(document.activeElement);
    const next = { ArrowRight: at + 1, ArrowLeft: at - 1 + tabs.length, Home: 0, End: tabs.length - 1 }[event.key];
    if (event.key === " ") document.activeElement.click();
    else if (next === undefined) return;
    else tabs[next % tabs.length].focus();
    event.preventDefault();
  }
}
