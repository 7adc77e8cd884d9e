/** The main pane: a channel's header, messages, hints and composer. */

import { Composer } from "../composer/composer.js";
import { h, replace } from "../ui/dom.js";
import { icon } from "../ui/icons.js";
import { inline } from "../text/inline.js";
import { MessageList } from "../messages/message_list.js";
import { parseInline } from "../text/mrkdwn.js";
import { avatar, badges, displayName } from "../ui/people.js";
import { HomeTab, Tabs } from "./home_tab.js";

export class ChannelPane {
  #store;
  #actions;
  #title = h("h2", { class: "channel-title", "data-testid": "channel-title" });
  #topic = h("p", { class: "topic" });
  #hint = h("div", { class: "hint", hidden: true });
  #composer;
  #tabs = new Tabs({ label: "Home and messages" });
  #home;
  #messages = h("div", { class: "pane-messages", id: "messages-panel" });
  #openedHome = null; // the conversation and tab that the app last heard of

  constructor({ store, actions, openSidebar }) {
    this.#store = store;
    this.#actions = actions;
    this.list = new MessageList({ store, actions, testid: "messages" });
    this.#composer = new Composer({
      store,
      testid: "composer",
      commands: true,
      onArrowUp: () => this.list.editLast(),
      onShortcut: (shortcut) => actions.runShortcut(shortcut),
      onSend: (text, target, { files }) => {
        this.list.toBottom();
        return actions.send({ ...target, text, files });
      },
    });
    this.#home = new HomeTab({ store, actions, id: "home-panel", "aria-label": "Home" });
    const drawer = h(
      "button",
      {
        type: "button",
        class: "tool drawer-button",
        "aria-label": "Channels and people",
        "aria-controls": "sidebar",
        on: { click: openSidebar },
      },
      icon("menu"),
    );
    const header = h(
      "header",
      { class: "pane-header" },
      drawer,
      h("div", { class: "pane-title" }, this.#title, this.#topic),
    );
    this.#messages.append(this.list.element, this.#hint, this.#composer.element);
    this.element = h("section", { class: "channel-pane" }, header, this.#tabs.element, this.#home.element, this.#messages);
    this.#composer.acceptDrops(this.element);
  }

  focus() {
    if (this.#messages.hidden) this.#home.element.focus({ preventScroll: true });
    else this.#composer.focus();
  }

  /** `newAfter`: the `ts` after which messages are new. */
  render({ newAfter }) {
    const store = this.#store;
    const channel = store.channel(store.route.channel);
    if (!channel) return this.#renderNone();
    const name = channel.is_im ? store.title(channel) : `#${channel.name}`;
    this.#renderHeader(channel);
    this.#renderTabs(channel);
    this.list.show({
      view: `${store.me.id} ${channel.id}`,
      label: channel.is_im ? `Messages with ${name}` : `Messages in ${name}`,
      intro: intro(channel, store),
      messages: store.inChannel(channel.id),
      newAfter,
    });
    this.#composer.element.hidden = !store.canWrite(channel);
    const target = { as: store.me.id, channel: channel.id };
    this.#composer.use(`${store.me.id} ${channel.id}`, {
      target,
      label: `Message ${name}`,
      placeholder: `Message ${name}`,
    });
    this.#renderHint(channel);
    return undefined;
  }

  #renderNone() {
    replace(this.#title, "No channels");
    this.#composer.element.hidden = true;
  }

  #renderHeader(channel) {
    const store = this.#store;
    const other = channel.is_im ? store.person(channel.user) : null;
    const mark = channel.is_im ? avatar(other, "small") : icon(channel.is_private ? "lock" : "hash");
    const shared = channel.is_ext_shared && h("span", { class: "badge badge-outside" }, "Shared");
    replace(this.#title, mark, h("bdi", {}, store.title(channel)), shared, other && badges(other));
    replace(this.#topic, inline(parseInline(channel.topic ?? "", { autolink: true }), store));
  }

  /** The conversation with the app has two tabs. The app hears when one is opened. */
  #renderTabs(channel) {
    const store = this.#store;
    const tab = store.hasHome(channel) && store.route.tab === "home" ? "home" : "messages";
    this.#tabs.element.hidden = !store.hasHome(channel);
    this.#home.element.hidden = tab !== "home";
    this.#messages.hidden = tab === "home";
    if (store.hasHome(channel)) this.#messages.setAttribute("role", "tabpanel");
    else this.#messages.removeAttribute("role");
    const href = (name) => store.href({ thread: null, tab: name });
    this.#tabs.show(
      [
        { name: "home", label: "Home", href: href("home"), panel: "home-panel" },
        { name: "messages", label: "Messages", href: href(null), panel: "messages-panel" },
      ],
      tab,
    );
    if (tab === "home") this.#home.render();
    this.#reportOpened(channel, tab);
  }

  #reportOpened(channel, tab) {
    const opened = `${this.#store.me.id} ${channel.id} ${tab}`;
    if (opened === this.#openedHome) return;
    this.#openedHome = opened;
    if (channel.is_im && channel.user === this.#store.app?.id) this.#actions.openHome(tab);
  }

  #renderHint(channel) {
    const bot = this.#store.app;
    const asks = hintFor(channel, bot);
    const key = `${asks} ${channel.id} ${bot?.id}`;
    this.#hint.hidden = !asks;
    if (this.#hint.dataset.shows === key) return;
    this.#hint.dataset.shows = key;
    const button = (label, testid, click) =>
      h("button", { type: "button", class: "button primary", "data-testid": testid, on: { click } }, label);
    if (asks === "archived") {
      replace(
        this.#hint,
        h("p", {}, h("b", {}, `#${channel.name}`), " is archived. You can read it, but not write in it."),
      );
    } else if (asks === "join") {
      const join = () => this.#actions.join({ channel: channel.id });
      replace(
        this.#hint,
        h("p", {}, "You are not a member of ", h("b", {}, `#${channel.name}`), "."),
        button("Join channel", "join-channel", join),
      );
    } else if (asks === "invite") {
      const name = displayName(bot);
      const invite = () => this.#actions.invite({ channel: channel.id, text: `/invite @${bot.name}` });
      replace(
        this.#hint,
        h("p", {}, h("b", {}, name), ` is not in #${channel.name} yet.`),
        button(`Invite ${name}`, "invite-bot", invite),
      );
    }
  }
}

/** The topic of the bar above the composer: "archived", "join", "invite" or none. */
function hintFor(channel, bot) {
  if (channel.is_im) return "";
  if (channel.is_archived) return "archived";
  if (!channel.is_member) return "join";
  return bot && !channel.bot_is_member ? "invite" : "";
}

function intro(channel, store) {
  if (channel.is_im) {
    const other = store.person(channel.user);
    return [
      avatar(other, "large"),
      h("h3", {}, store.title(channel)),
      h("p", {}, "This is the start of your direct messages."),
    ];
  }
  const kind = channel.is_private
    ? "Only people who were invited can see this channel."
    : "Everyone in the workspace can see this channel.";
  return [
    h("span", { class: "intro-mark" }, icon(channel.is_private ? "lock" : "hash")),
    h("h3", {}, h("bdi", {}, channel.name)),
    h("p", {}, `This is where #${channel.name} begins. ${kind}`),
  ];
}
