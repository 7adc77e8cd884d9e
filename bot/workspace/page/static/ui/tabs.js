/** A row of tabs. Each leads to an address; arrow keys move between them. */

import { freshId, h, replace } from "./dom.js";

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
