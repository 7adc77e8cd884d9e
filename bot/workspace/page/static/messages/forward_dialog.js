/** Asks where to share a message to, and what to say with it. */

import { formDialog } from "../ui/dialog.js";
import { freshId, h } from "../ui/dom.js";

/** `share(message, {channel, thread_ts, text})` answers `{ok, error}`. */
export function forwardDialog(message, { store, share }) {
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

/** The thread that is open comes first, then every conversation that one can write in. */
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
