/** What the acting person may see, kept up to date by the snapshot and the stream. Views subscribe and read; only app.js writes. */

import { makeHref } from "./route.js";

const byTs = (a, b) => Number.parseFloat(a.ts) - Number.parseFloat(b.ts) || (a.ts < b.ts ? -1 : 1);

export class Store {
  team = null;
  me = null;
  commands = [];
  shortcuts = [];
  limits = { files: 0, file_bytes: 0 };
  modal = null; // the open one
  home = null; // the app's Home tab; null if there is none
  route = { as: null, channel: null, thread: null, tab: null };
  tip = ""; // what to try next, in Slack's format; empty for none
  bot = null; // whether a bot is connected; null if not known yet
  stream = "connecting"; // "connecting", "open" or "lost"
  loaded = false;
  #people = new Map();
  #channels = new Map();
  #messages = new Map();
  #sorted = new Map(); // the cache of all()
  #listeners = new Set();
  #pending = false;

  subscribe(listener) {
    this.#listeners.add(listener);
  }

  /** Notifies the views, once for all changes made in one go. */
  changed() {
    if (this.#pending) return;
    this.#pending = true;
    queueMicrotask(() => {
      this.#pending = false;
      for (const listener of this.#listeners) listener();
    });
  }

  set(values) {
    Object.assign(this, values);
    this.changed();
  }

  replace(snapshot) {
    this.team = snapshot.team;
    this.me = snapshot.me;
    this.commands = snapshot.commands;
    this.shortcuts = snapshot.shortcuts;
    this.limits = snapshot.limits;
    this.modal = snapshot.modal;
    this.home = snapshot.home;
    this.#people = new Map(snapshot.people.map((person) => [person.id, person]));
    this.#channels = new Map(snapshot.channels.map((channel) => [channel.id, channel]));
    this.#messages = new Map();
    this.#sorted.clear();
    for (const list of Object.values(snapshot.messages)) list.forEach((message) => this.#keep(message));
    this.loaded = true;
    this.changed();
  }

  apply(event) {
    if (event.type === "message") this.#keep(event.message);
    else if (event.type === "deleted") this.#drop(event.channel, event.ts);
    else if (event.type === "channel") this.#keepChannel(event.channel);
    else if (event.type === "modal") this.modal = event.view;
    else if (event.type === "home") this.home = event.home;
    else if (event.type === "link") this.bot = event.connected;
    else if (event.type === "tip") this.tip = event.text;
    this.changed();
  }

  #keep(message) {
    if (!this.#messages.has(message.channel)) this.#messages.set(message.channel, new Map());
    this.#messages.get(message.channel).set(message.ts, message);
    this.#sorted.delete(message.channel);
  }

  #drop(channel, ts) {
    this.#messages.get(channel)?.delete(ts);
    this.#sorted.delete(channel);
  }

  /** People who leave a private channel can no longer see it. */
  #keepChannel(channel) {
    if (channel.is_private && !channel.is_im && !channel.is_member) this.#channels.delete(channel.id);
    else this.#channels.set(channel.id, channel);
  }

  person(id) {
    return this.#people.get(id);
  }

  get people() {
    return [...this.#people.values()];
  }

  get humans() {
    return this.people.filter((person) => !person.is_bot);
  }

  /** The app. Slackbot is the workspace itself. */
  get app() {
    return this.people.find((person) => person.is_bot && person.id !== "USLACKBOT") ?? null;
  }

  channel(id) {
    return this.#channels.get(id);
  }

  channelNamed(name) {
    return this.conversations.find((channel) => !channel.is_im && channel.name === name);
  }

  get conversations() {
    return [...this.#channels.values()].sort((a, b) => this.title(a).localeCompare(this.title(b)));
  }

  /** The direct conversation with the app has a Home tab if the app has one. */
  hasHome(channel) {
    return this.home !== null && channel.is_im && this.app?.id === channel.user;
  }

  canWrite(channel) {
    return (channel.is_member || channel.is_im) && !channel.is_archived;
  }

  /** A channel's name without #; a direct conversation is named after the other person. */
  title(channel) {
    if (!channel.is_im) return channel.name;
    const other = this.person(channel.user);
    return other?.real_name || other?.name || channel.name || "Direct message";
  }

  message(channel, ts) {
    return this.#messages.get(channel)?.get(ts);
  }

  /** All messages of a channel, oldest first. */
  all(channel) {
    if (!this.#sorted.has(channel))
      this.#sorted.set(channel, [...(this.#messages.get(channel)?.values() ?? [])].sort(byTs));
    return this.#sorted.get(channel);
  }

  /** The messages that the channel itself shows. Of replies, only those that were also sent to it. */
  inChannel(channel) {
    return this.all(channel).filter((m) => !m.thread_ts || m.thread_ts === m.ts || m.subtype === "thread_broadcast");
  }

  replies(channel, parent) {
    return this.all(channel).filter((m) => m.thread_ts === parent && m.ts !== parent);
  }

  href(change) {
    return makeHref({ ...this.route, tab: null, ...change }); // links lead from Home to messages
  }
}
