/** The side pane with a thread: its first message, the replies and a composer. */

import { Composer } from "../composer/composer.js";
import { h, replace } from "../ui/dom.js";
import { icon } from "../ui/icons.js";
import { MessageList } from "../messages/message_list.js";

export class ThreadPane {
  #store;
  #where = h("p", { class: "topic" });
  #gone = h("p", { class: "gone" }, "This thread was deleted, or you cannot see it.");
  #composer;

  constructor({ store, actions, close }) {
    this.#store = store;
    this.list = new MessageList({ store, actions, inThread: true, testid: "thread-messages" });
    this.#composer = new Composer({
      store,
      testid: "thread-composer",
      broadcast: true,
      onArrowUp: () => this.list.editLast(),
      onSend: (text, target, options) => {
        this.list.toBottom();
        return actions.send({ ...target, text, ...options });
      },
    });
    const button = h(
      "button",
      { type: "button", class: "tool", "aria-label": "Close thread", title: "Close (Escape)", on: { click: close } },
      icon("close"),
    );
    const header = h(
      "header",
      { class: "pane-header" },
      h("div", { class: "pane-title" }, h("h2", {}, "Thread"), this.#where),
      button,
    );
    this.element = h(
      "section",
      { class: "thread-pane", "aria-label": "Thread", "data-testid": "thread", hidden: true },
      header,
      this.#gone,
      this.list.element,
      this.#composer.element,
    );
    this.#composer.acceptDrops(this.element);
  }

  focus() {
    this.#composer.focus();
  }

  render() {
    const store = this.#store;
    const { channel: id, thread } = store.route;
    const channel = store.channel(id);
    this.element.hidden = !thread || !channel;
    if (this.element.hidden) return;
    const parent = store.message(id, thread);
    const name = channel.is_im ? store.title(channel) : `#${channel.name}`;
    replace(this.#where, name);
    this.#gone.hidden = Boolean(parent);
    this.list.element.hidden = !parent;
    this.#composer.element.hidden = !parent || !store.canWrite(channel);
    if (!parent) return;
    this.list.show({
      view: `${store.me.id} ${id} ${thread}`,
      label: `Thread in ${name}`,
      parent,
      messages: store.replies(id, thread),
    });
    const target = { as: store.me.id, channel: id, thread_ts: thread };
    this.#composer.use(`${store.me.id} ${id} ${thread}`, {
      target,
      label: "Reply in the thread",
      placeholder: "Reply…",
      also: `Also send to ${name}`,
    });
  }
}
