/** A list of messages that keeps its rows, its scroll position and the keyboard's place while messages arrive and change. */

import { h } from "../ui/dom.js";
import { icon } from "../ui/icons.js";
import { dayKey, dayLabel } from "../text/formats.js";
import { MessageMenu } from "./message_menu.js";
import { focusEditor, messageEditor, messageRow } from "./message_row.js";

const NEAR_BOTTOM = 80; // pixels

export class MessageList {
  #store;
  #actions;
  #inThread;
  #log;
  #jump;
  #intro = h("div", { class: "intro" });
  #menu;
  #rows = new Map(); // key -> { node, signature }
  #view = null; // the channel or thread shown
  #atBottom = true;
  #top = 0; // the scroll position when #atBottom was last set
  #last = null;
  #editing = null;
  #unfolded = new Set();

  constructor({ store, actions, inThread = false, testid }) {
    this.#store = store;
    this.#inThread = inThread;
    this.#actions = { ...actions, startEdit: (message) => this.edit(message) };
    this.#menu = new MessageMenu(store, this.#actions);
    this.#log = h("div", { class: "log", role: "log", "data-testid": testid });
    this.#jump = h(
      "button",
      { type: "button", class: "jump", hidden: true, on: { click: () => this.toBottom() } },
      icon("down"),
      "New messages",
    );
    this.scroller = h("div", { class: "scroller" }, this.#intro, this.#log);
    this.element = h("div", { class: "list" }, this.scroller, this.#jump);
    this.#listen();
  }

  #listen() {
    this.scroller.addEventListener("scroll", () => this.#noteScroll(), { passive: true });
    const stay = new ResizeObserver(() => this.#atBottom && this.toBottom());
    stay.observe(this.scroller);
    stay.observe(this.#log);
    for (const event of ["pointerover", "focusin"]) {
      this.#log.addEventListener(event, ({ target }) => this.#attachMenu(target.closest(".message")));
    }
    this.#log.addEventListener("keydown", (event) => this.#keydown(event));
  }

  /**
   * @param {object} shown `view` (the channel or thread; a new one starts at its end), `label`, `intro` (nodes), `parent`
   *   (a thread's first message), `messages`, `newAfter`
   */
  show({ view, label, intro = [], parent = null, messages, newAfter = null }) {
    const fresh = view !== this.#view;
    if (this.scroller.scrollTop !== this.#top) this.#noteScroll(); // the scroll event may still be pending
    if (fresh) this.#reset(view, label);
    this.#intro.replaceChildren(...intro);
    this.#reconcile(this.#items(parent, messages, newAfter));
    this.#place(fresh, messages.at(-1));
  }

  #reset(view, label) {
    this.#view = view;
    this.#editing = null;
    this.#unfolded.clear();
    this.#rows.clear();
    this.#menu.detach();
    this.#log.replaceChildren();
    this.#log.setAttribute("aria-label", label);
    this.#log.setAttribute("aria-live", "off"); // do not announce the history
    requestAnimationFrame(() => requestAnimationFrame(() => this.#log.setAttribute("aria-live", "polite")));
  }

  #items(parent, messages, newAfter) {
    const items = timeline(messages, { days: !parent, newAfter, me: this.#store.me.id });
    if (!parent) return items;
    const count = messages.filter((m) => !m.ephemeral).length;
    const label = count === 1 ? "1 reply" : `${count} replies`;
    const divider = messages.length ? [{ key: "replies", type: "replies", label }] : [];
    return [{ key: parent.ts, type: "message", message: parent, grouped: false }, ...divider, ...items];
  }

  #reconcile(items) {
    const focus = this.#focusKey();
    const keep = new Set(items.map((item) => item.key));
    for (const [key, { node }] of this.#rows) {
      if (keep.has(key)) continue;
      node.remove();
      this.#rows.delete(key);
    }
    items.forEach((item, index) => this.#draw(item, index));
    this.#rove();
    this.#restoreFocus(focus);
  }

  #draw(item, index) {
    const signature = this.#signature(item);
    const known = this.#rows.get(item.key);
    if (known?.signature !== signature) {
      const node = this.#build(item);
      known?.node.replaceWith(node);
      this.#rows.set(item.key, { node, signature, message: item.message });
    } else {
      known.message = item.message;
    }
    const { node } = this.#rows.get(item.key);
    if (this.#log.children[index] !== node) this.#log.insertBefore(node, this.#log.children[index] ?? null);
  }

  /** A string of everything that the row shows. A row that is being edited does not change. */
  #signature({ type, label, message, grouped }) {
    if (type !== "message") return label;
    if (this.#editing === message.ts) return "editing";
    const people = [message.user, ...(message.reactions ?? []).flatMap((r) => r.users)].map((id) =>
      this.#store.person(id),
    );
    const replies = message.reply_count
      ? this.#store.replies(message.channel, message.ts).map((r) => r.user + r.ts)
      : [];
    return JSON.stringify([message, grouped, people, replies, this.#store.me.id]);
  }

  #build({ type, label, message, grouped }) {
    if (type !== "message")
      return h("div", { class: `divider-row ${type}`, role: "separator", "aria-label": label }, h("span", {}, label));
    if (this.#editing === message.ts) return this.#editor(message);
    return messageRow({
      message,
      grouped,
      inThread: this.#inThread,
      store: this.#store,
      actions: this.#actions,
      unfolded: this.#unfolded,
    });
  }

  /** Opens the editor for one of the person's own messages. */
  edit(message) {
    this.#menu.detach();
    this.#editing = message.ts;
    this.#store.changed();
    queueMicrotask(() => focusEditor(this.#rows.get(message.ts).node)); // before the next key press, which is for the editor
  }

  editLast() {
    const mine = [...this.#rows.values()].map((row) => row.message).filter((m) => m && this.#mine(m));
    if (mine.length) this.edit(mine.at(-1));
    return mine.length > 0;
  }

  #editor(message) {
    const done = () => {
      this.#editing = null;
      this.#store.changed();
      queueMicrotask(() => this.#rows.get(message.ts)?.node.focus());
    };
    return messageEditor(message, { store: this.#store, save: this.#actions.saveEdit, done });
  }

  #mine(message) {
    return (
      message.user === this.#store.me.id &&
      !message.ephemeral &&
      !message.bot_id &&
      (!message.subtype || ["thread_broadcast", "file_share"].includes(message.subtype))
    );
  }

  #attachMenu(row) {
    const message = row && this.#rows.get(row.dataset.ts)?.message;
    if (!message || this.#editing === message.ts || message.ephemeral || message.subtype === "tombstone")
      return this.#menu.detach();
    this.#menu.attach(row, message, { mine: this.#mine(message), inThread: this.#inThread });
    return undefined;
  }

  #keydown(event) {
    const row = event.target.closest(".message");
    if (event.target !== row) return;
    const rows = [...this.#log.querySelectorAll(".message")];
    const at = rows.indexOf(row);
    const next = { ArrowUp: at - 1, ArrowDown: at + 1, Home: 0, End: rows.length - 1 }[event.key];
    if (next !== undefined) {
      event.preventDefault();
      rows[next]?.focus();
      this.#rove(rows[next]);
    } else if (event.key === "Enter" && !this.#inThread) {
      const { message } = this.#rows.get(row.dataset.ts);
      if (!message.ephemeral) this.#actions.openThread(message);
    }
  }

  /** Exactly one row is a tab stop: the chosen one, else the previous one, else the last. */
  #rove(chosen = null) {
    const rows = [...this.#log.querySelectorAll(".message")];
    const stop = chosen ?? rows.find((row) => row.tabIndex === 0) ?? rows.at(-1);
    for (const row of rows) row.tabIndex = row === stop ? 0 : -1;
  }

  #focusKey() {
    const { activeElement } = document;
    const row = this.#log.contains(activeElement) ? activeElement.closest(".message") : null;
    return row && { row: row.dataset.ts, part: activeElement.dataset.focus, was: activeElement };
  }

  #restoreFocus(focus) {
    const node = focus && this.#rows.get(focus.row)?.node;
    if (!node || focus.was.isConnected) return;
    this.#attachMenu(node);
    node.focus({ preventScroll: true }); // the menu is visible, and so focusable, only on the focused row
    const part = focus.part && node.querySelector(`[data-focus="${CSS.escape(focus.part)}"]`);
    (part || node.querySelector("textarea"))?.focus({ preventScroll: true });
  }

  #place(fresh, newest) {
    const arrived = newest && newest.ts !== this.#last;
    this.#last = newest?.ts ?? null;
    if (fresh || this.#atBottom) this.toBottom();
    else if (arrived) this.#jump.hidden = false;
  }

  toBottom() {
    this.#atBottom = true;
    this.#jump.hidden = true;
    this.scroller.scrollTop = this.scroller.scrollHeight;
    this.#top = this.scroller.scrollTop;
  }

  #noteScroll() {
    const { scrollHeight, scrollTop, clientHeight } = this.scroller;
    this.#atBottom = scrollHeight - scrollTop - clientHeight < NEAR_BOTTOM;
    this.#top = scrollTop;
    if (this.#atBottom) this.#jump.hidden = true;
  }
}

const GROUP_SECONDS = 300;
const seconds = (message) => Number.parseFloat(message.ts);

/**
 * What the list shows, in order: day dividers, the line above what is new, and messages, grouped where one person goes on.
 * @param {object} options `days`: with day dividers; `newAfter`: the `ts` after which others' messages are new, or null
 */
function timeline(messages, { days = true, newAfter = null, me = null } = {}) {
  const items = [];
  let previous = null;
  let marked = false;
  for (const message of messages) {
    const newDay = !previous || dayKey(previous.ts) !== dayKey(message.ts);
    if (days && newDay) items.push({ key: `day ${dayKey(message.ts)}`, type: "day", label: dayLabel(message.ts) });
    const isNew = newAfter !== null && !marked && seconds(message) > newAfter && message.user !== me;
    if (isNew) items.push({ key: "new", type: "new", label: "New" });
    marked ||= isNew;
    const grouped = !newDay && !isNew && continues(previous, message);
    items.push({ key: message.ts, type: "message", message, grouped });
    previous = message;
  }
  return items;
}

function continues(previous, message) {
  const alike = ["user", "bot_id", "ephemeral", "subtype"].every((field) => previous[field] === message[field]);
  return (
    alike && !message.subtype && previous.reply_count === 0 && seconds(message) - seconds(previous) < GROUP_SECONDS
  );
}
