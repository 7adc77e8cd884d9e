/** What the acting person can do, a function for each action, with the dialogs that ask first. */

import { post, send } from "./data/api.js";
import { confirmDialog, formDialog } from "./ui/dialog.js";
import { freshId, h } from "./ui/dom.js";

const DELETION = {
  title: "Delete this message?",
  text: "It will be gone for everyone.",
  confirm: "Delete",
  danger: true,
};

/** `showError(text)` shows what went wrong. */
export function makeActions(store, showError) {
  const as = () => store.route.as;
  const reported = async (answer) => {
    const { ok, error } = await answer;
    if (!ok) showError(error);
  };
  const share = ({ channel, ts }, where) => post("forward", { as: as(), channel, ts, ...where });
  return {
    send,
    invite: (body) => reported(send({ as: as(), ...body })),
    join: (body) => reported(post("join", { as: as(), ...body })),
    react: ({ channel, ts }, name) => reported(post("react", { as: as(), channel, ts, name })),
    saveEdit: ({ channel, ts }, text) => post("edit", { as: as(), channel, ts, text }),
    openThread: ({ channel, ts, thread_ts }) => (location.hash = store.href({ channel, thread: thread_ts || ts })),
    press: ({ channel, ts }, { action_id }, { block_id }, value) =>
      reported(post("press", { as: as(), channel, ts, block_id, action_id, value })),
    forward: (message) => forwardDialog(message, { store, share }),
    runShortcut: ({ callback_id }, message = {}) =>
      reported(post("shortcut", { as: as(), callback_id, channel: message.channel, ts: message.ts })),
    openHome: (tab) => reported(post("home", { as: as(), tab })),
    use: ({ id }, body) => post("use", { as: as(), view_id: id, ...body }),
    submit: ({ id }, values) => post("submit", { as: as(), view_id: id, values }),
    close: ({ id }, { clear }) => post("close", { as: as(), view_id: id, clear }),
    remove: async ({ channel, ts }) => {
      if (await confirmDialog(DELETION)) await reported(post("delete", { as: as(), channel, ts }));
    },
  };
}

/**
 * Asks where to share a message to, and what to say with it.
 * `share(message, {channel, thread_ts, text})` returns `{ok, error}`.
 */
function forwardDialog(message, { store, share }) {
  const places = placesOf(store);
  const ids = { place: freshId("place"), text: freshId("text") };
  const place = h(
    "select",
    { id: ids.place, class: "menu-select" },
    places.map(({ label }, index) => h("option", { value: index }, label)),
  );
  const text = h("textarea", { id: ids.text, class: "text-input", rows: 2, dir: "auto" });
  const fields = h(
    "div",
    { class: "dialog-fields" },
    h("label", { for: ids.place }, "Share to"),
    place,
    h("label", { for: ids.text }, "Say something with it (optional)"),
    text,
  );
  const submit = () => {
    const { channel, thread_ts } = places[place.value];
    return share(message, { to: channel, thread_ts, text: text.value.trim() });
  };
  formDialog({ title: "Share message", fields, confirm: "Share", submit });
}

/** The open thread comes first, then every conversation that the person can write in. */
function placesOf(store) {
  const { channel: open, thread } = store.route;
  const name = (channel) => (channel.is_im ? store.title(channel) : `#${channel.name}`);
  const channels = store.conversations.filter((channel) => store.canWrite(channel));
  const here = thread && channels.find((channel) => channel.id === open);
  return [
    ...(here ? [{ label: `The open thread in ${name(here)}`, channel: here.id, thread_ts: thread }] : []),
    ...channels.map((channel) => ({ label: name(channel), channel: channel.id })),
  ];
}
