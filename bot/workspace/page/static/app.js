/** Assembles the page: store, stream, address and panes. */

import * as api from "./data/api.js";
import { ChannelPane } from "./panes/channel_pane.js";
import { h } from "./ui/dom.js";
import { Banner, Toast } from "./ui/alerts.js";
import { lastPerson, makeHref, readRoute, rememberPerson } from "./data/route.js";
import { ModalLayer } from "./panes/modal.js";
import { inline } from "./text/inline.js";
import { parseInline } from "./text/mrkdwn.js";
import { Sidebar } from "./panes/sidebar.js";
import { Store } from "./data/store.js";
import { Stream } from "./data/stream.js";
import { ThreadPane } from "./panes/thread_pane.js";
import { ReadMarks } from "./data/unread.js";
import { makeActions } from "./actions.js";

class App {
  #store = new Store();
  #toast = new Toast();
  #stream = null;
  #marks = new ReadMarks();
  #newAfter = { view: null, mark: null };
  #heading = h("h1", { class: "visually-hidden" }, document.title);

  constructor(root) {
    const store = this.#store;
    const actions = makeActions(store, (words) => this.#toast.show(words));
    this.root = root;
    this.banner = new Banner({
      retry: () => this.#stream?.retryNow(),
      tip: () => inline(parseInline(store.tip), store),
      hideTip: () => store.set({ tip: "" }),
    });
    this.sidebar = new Sidebar({
      store,
      unread: (channel) => this.#marks.unread(store.me.id, channel, store.all(channel.id)),
    });
    this.channel = new ChannelPane({ store, actions, openSidebar: () => this.#drawer(true) });
    this.modal = new ModalLayer({ store, actions });
    this.thread = new ThreadPane({ store, actions, close: () => this.#closeThread() });
    const skip = h(
      "button",
      { type: "button", class: "skip", on: { click: () => this.channel.focus() } },
      "Skip to the message box",
    );
    const backdrop = h("div", { class: "backdrop", on: { click: () => this.#drawer(false) } });
    root.replaceChildren(
      skip,
      this.banner.element,
      this.sidebar.element,
      backdrop,
      h("main", { class: "panes" }, this.#heading, this.channel.element, this.thread.element),
      this.modal.element,
      this.#toast.element,
    );
    store.subscribe(() => this.#render());
    this.#listen();
    this.#follow();
  }

  #listen() {
    window.addEventListener("hashchange", () => this.#follow());
    window.addEventListener("online", () => this.#stream?.retryNow());
    document.addEventListener("visibilitychange", () => this.#store.loaded && this.#store.changed());
    for (const name of ["dragover", "drop"]) {
      // The browser would open a file that misses the composer in place of this page, and everything typed would be lost.
      window.addEventListener(name, (event) => event.dataTransfer?.types.includes("Files") && event.preventDefault());
    }
    document.addEventListener("keydown", (event) => {
      if (event.key !== "Escape" || event.defaultPrevented || document.querySelector("dialog[open]")) return;
      if (this.root.classList.contains("drawer-open")) this.#drawer(false);
      else if (this.#store.route.thread) this.#closeThread();
    });
  }

  /** Follows the address: another person needs another stream, everything else is drawn from the store. */
  async #follow() {
    const route = readRoute();
    if (!route.as) return this.#chooseSomebody(route);
    const { route: before } = this.#store;
    const samePerson = before.as === route.as;
    if (!samePerson) this.#actAs(route.as);
    this.#store.set({ route });
    this.#drawer(false);
    queueMicrotask(() => this.#moveFocus(before, route));
    return undefined;
  }

  async #chooseSomebody(route) {
    try {
      const as = lastPerson() ?? (await api.fetchSnapshot(null)).me.id;
      location.replace(makeHref({ ...route, as }));
    } catch {
      this.#store.set({ stream: "lost" });
      setTimeout(() => this.#follow(), 2000);
    }
  }

  #actAs(person) {
    this.#stream?.close();
    this.#store.set({ loaded: false });
    this.#stream = new Stream(person, {
      state: (stream) => this.#store.set({ stream }),
      event: (event) => this.#store.apply(event),
      refused: () => {
        rememberPerson(null); // there is nobody with that id here
        location.replace(makeHref({ ...readRoute(), as: null }));
      },
      snapshot: (snapshot) => {
        rememberPerson(snapshot.me.id);
        this.#store.replace(snapshot);
        this.#openSomeChannel();
      },
    });
  }

  /** Without a channel that this person can see, the page opens one they are in, preferably with the bot. */
  #openSomeChannel() {
    const { route, conversations } = this.#store;
    if (this.#store.channel(route.channel)) return;
    const mine = conversations.filter((c) => !c.is_im && c.is_member);
    const first = mine.find((c) => c.bot_is_member) ?? mine[0] ?? conversations[0];
    location.replace(makeHref({ as: route.as, channel: first?.id ?? null }));
  }

  #moveFocus(before, route) {
    if (!this.#store.loaded || matchMedia("(pointer: coarse)").matches) return;
    if (route.thread && route.thread !== before.thread) this.thread.focus();
    else if (route.channel !== before.channel || before.thread) this.channel.focus();
  }

  #render() {
    const store = this.#store;
    this.banner.render(store);
    if (!store.loaded) return;
    this.sidebar.render();
    this.channel.render({ newAfter: this.#newLine() });
    this.thread.render();
    this.modal.render();
    this.#markRead();
    this.root.classList.toggle("thread-open", !this.thread.element.hidden);
    this.root.dataset.ready = store.me.id;
    this.#titleBar();
  }

  /** The line above new messages stays where it was when the channel was opened. */
  #newLine() {
    const { route } = this.#store;
    const view = `${route.as} ${route.channel}`;
    if (view !== this.#newAfter.view) this.#newAfter = { view, mark: this.#marks.mark(route.as, route.channel) };
    return this.#newAfter.mark;
  }

  #markRead() {
    const { route, me } = this.#store;
    if (route.channel && !document.hidden) this.#marks.read(me.id, route.channel, this.#store.all(route.channel));
  }

  #titleBar() {
    const store = this.#store;
    const channel = store.channel(store.route.channel);
    const calls = store.conversations.reduce(
      (sum, c) => sum + this.#marks.unread(store.me.id, c, store.all(c.id)).calls,
      0,
    );
    const name = `${channel ? `${store.title(channel)} · ` : ""}${store.team.name}`;
    this.#heading.textContent = name;
    document.title = `${calls ? `(${calls}) ` : ""}${name}`;
  }

  #drawer(open) {
    this.root.classList.toggle("drawer-open", open);
    if (open) this.sidebar.element.querySelector("a, button")?.focus();
  }

  #closeThread() {
    location.hash = this.#store.href({ thread: null });
  }
}

new App(document.getElementById("app"));
