/** The sidebar: the workspace's name, its conversations and the acting person. */

import { h, replace } from "../ui/dom.js";
import { icon } from "../ui/icons.js";
import { avatar, badges, displayName, standing } from "../ui/people.js";

export class Sidebar {
  #store;
  #unread;
  #name = h("strong", { class: "workspace-name" });
  #channels = h("ul", { class: "conversations" });
  #direct = h("ul", { class: "conversations" });
  #directHeading = h("h2", {}, "Direct messages");
  #actAs;
  #people = h("div", { class: "people", role: "menu", "aria-label": "Act as", hidden: true });

  /** `unread(channel)` returns `{any, calls}`. */
  constructor({ store, unread }) {
    this.#store = store;
    this.#unread = unread;
    this.#actAs = h("button", {
      type: "button",
      class: "act-as",
      "data-testid": "act-as",
      "aria-haspopup": "menu",
      "aria-expanded": "false",
      on: { click: () => this.#toggle() },
    });
    const lists = h(
      "nav",
      { class: "sidebar-lists", "aria-label": "Conversations" },
      h("h2", {}, "Channels"),
      this.#channels,
      this.#directHeading,
      this.#direct,
    );
    const foot = h(
      "div",
      { class: "sidebar-foot", role: "region", "aria-label": "Who you are" },
      this.#people,
      this.#actAs,
    );
    this.element = h(
      "div",
      { class: "sidebar", id: "sidebar" },
      h("header", { class: "workspace" }, h("span", { class: "workspace-mark", "aria-hidden": "true" }), this.#name),
      lists,
      foot,
    );
    foot.addEventListener("keydown", (event) => this.#keydown(event));
    document.addEventListener("pointerdown", ({ target }) => !foot.contains(target) && this.#close());
  }

  render() {
    const { conversations, team } = this.#store;
    this.#name.textContent = team.name;
    const direct = conversations.filter((channel) => channel.is_im);
    this.#fill(
      this.#channels,
      conversations.filter((channel) => !channel.is_im),
    );
    this.#fill(this.#direct, direct);
    this.#directHeading.hidden = direct.length === 0;
    this.#renderPeople();
  }

  #fill(list, channels) {
    const focused = list.contains(document.activeElement) ? document.activeElement.dataset.channel : null;
    replace(
      list,
      channels.map((channel) => h("li", {}, this.#entry(channel))),
    );
    if (focused) list.querySelector(`[data-channel="${CSS.escape(focused)}"]`)?.focus();
  }

  #entry(channel) {
    const store = this.#store;
    const current = store.route.channel === channel.id;
    const { any, calls } = current ? { any: false, calls: 0 } : this.#unread(channel);
    const other = channel.is_im ? store.person(channel.user) : null;
    const props = {
      href: store.href({ channel: channel.id, thread: null }),
      class: ["conversation", any && "unread", !channel.is_im && !store.canWrite(channel) && "not-joined"]
        .filter(Boolean)
        .join(" "),
      "aria-current": current && "page",
      "data-testid": "channel",
      "data-channel": channel.id,
      "data-name": channel.name,
    };
    return h(
      "a",
      props,
      h(
        "span",
        { class: "conversation-mark" },
        channel.is_im
          ? avatar(other, "tiny")
          : icon(channel.is_archived ? "archive" : channel.is_private ? "lock" : "hash"),
      ),
      h("bdi", { class: "conversation-name" }, store.title(channel)),
      channel.is_ext_shared &&
        h("span", { class: "shared", title: "Shared with another organisation" }, icon("shared")),
      other && badges(other),
      any && !calls && h("span", { class: "visually-hidden" }, " (unread)"),
      calls > 0 && h("span", { class: "calls" }, calls, h("span", { class: "visually-hidden" }, " for you")),
    );
  }

  #renderPeople() {
    const { me, humans } = this.#store;
    replace(
      this.#actAs,
      avatar(me),
      h(
        "span",
        { class: "act-as-words" },
        h("span", { class: "act-as-label" }, "Acting as"),
        h("bdi", { class: "act-as-name" }, displayName(me)),
      ),
      icon("swap"),
    );
    if (!this.#people.hidden) return;
    replace(
      this.#people,
      h("p", { class: "people-title" }, "Act as"),
      humans.map((person) => this.#personItem(person)),
    );
  }

  #personItem(person) {
    const mine = person.id === this.#store.me.id;
    const known = standing(person);
    const props = {
      class: "person",
      href: this.#store.href({ as: person.id, thread: null }),
      role: "menuitemradio",
      "aria-checked": String(mine),
      tabindex: "-1",
      "data-testid": "person",
      "data-person": person.id,
      on: { click: () => this.#close(true) },
    };
    return h(
      "a",
      props,
      avatar(person, "small"),
      h(
        "span",
        { class: "person-words" },
        h("span", {}, h("bdi", {}, displayName(person)), " ", known && h("span", { class: "badge" }, known.label)),
        known && h("span", { class: "person-note" }, known.note),
      ),
      mine && icon("check"),
    );
  }

  #toggle() {
    if (!this.#people.hidden) return this.#close(true);
    this.#renderPeople();
    this.#people.hidden = false;
    this.#actAs.setAttribute("aria-expanded", "true");
    this.#people.querySelector('[aria-checked="true"]')?.focus();
    return undefined;
  }

  #close(refocus = false) {
    if (this.#people.hidden) return;
    this.#people.hidden = true;
    this.#actAs.setAttribute("aria-expanded", "false");
    if (refocus) this.#actAs.focus();
  }

  #keydown(event) {
    if (this.#people.hidden) return;
    const items = [...this.#people.querySelectorAll(".person")];
    const at = items.indexOf(document.activeElement);
    const next = { ArrowDown: at + 1, ArrowUp: at - 1 + items.length, Home: 0, End: items.length - 1 }[event.key];
    if (next !== undefined) items[next % items.length].focus();
    else if (event.key === "Escape" || event.key === "Tab") this.#close(true);
    else if (event.key === " ") document.activeElement.click();
    else return;
    event.stopPropagation();
    if (event.key !== "Tab") event.preventDefault();
  }
}
