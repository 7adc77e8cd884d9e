/** What comes with a message: files (pictures as they are, texts with their first lines) and other messages shared in it. */

import { h, safeUrl } from "../ui/dom.js";
import { icon } from "../ui/icons.js";
import { avatar, displayName } from "../ui/people.js";
import { fullTime, sizeOf } from "../text/formats.js";
import { mrkdwn } from "../text/inline.js";

const PICTURES = /^image\/(?:png|jpeg|gif|webp)$/;

export function files(list, view) {
  if (!list?.length) return null;
  return h(
    "ul",
    { class: "files", "aria-label": "Files" },
    list.map((file) => h("li", { class: "file", "data-testid": "file" }, fileContent(file, view))),
  );
}

function fileContent(file, view) {
  if (file.is_deleted || file.mode === "tombstone")
    return [icon("file"), h("span", { class: "quiet" }, "This file was deleted.")];
  const href = `/page/files/${encodeURIComponent(file.id)}?${new URLSearchParams({ as: view.me.id })}`;
  const picture =
    PICTURES.test(file.mimetype) &&
    h("img", { class: "thumbnail", src: href, alt: `Picture ${file.name}`, loading: "lazy", decoding: "async" });
  const shown = typeof file.preview === "string" && snippet(file);
  const link = h(
    "a",
    { class: "file-name", href, download: file.name, "aria-label": `Download ${file.name}, ${sizeOf(file.size)}` },
    h("bdi", {}, file.name),
  );
  return [
    picture || icon("file"),
    h("span", { class: "file-words" }, link, h("span", { class: "file-size" }, sizeOf(file.size))),
    shown,
  ];
}

/** The first lines of a text, and the number of further ones. */
function snippet({ name, preview, lines }) {
  const more = lines - preview.split("\n").length;
  return [
    h("pre", { class: "snippet", tabindex: "0", role: "group", "aria-label": `The beginning of ${name}` }, preview),
    more > 0 && h("span", { class: "file-size" }, more === 1 ? "1 more line" : `${more} more lines`),
  ];
}

export function attachments(list, view) {
  return (list ?? []).map((each) =>
    h("div", { class: "attachment", "data-testid": "attachment" }, sharedMessage(each, view)),
  );
}

function sharedMessage(attachment, view) {
  const words = attachment.text || attachment.fallback;
  return [
    attachment.is_msg_unfurl && author(attachment, view),
    words && h("div", { class: "text", dir: "auto" }, mrkdwn(words, view)),
    files(attachment.files, view),
    attachment.from_url && origin(attachment, view),
  ];
}

function author({ author_id: id, author_name: name }, view) {
  const person = view.person(id) ?? { id, real_name: name };
  return h("div", { class: "attachment-author" }, avatar(person, "tiny"), h("bdi", {}, displayName(person)));
}

/** Where the message was written, with a link if the page has it. */
function origin({ from_url: url, channel_id: id, ts }, view) {
  const channel = view.channel(id);
  const when = Number.isFinite(Number.parseFloat(ts)) ? fullTime(ts) : "";
  const where = channel ? (channel.is_im ? "a direct message" : `#${channel.name}`) : "a conversation";
  const message = channel && view.message(id, ts);
  const href = message ? view.href({ channel: id, thread: message.thread_ts || ts }) : safeUrl(url);
  const seen = message && href ? h("a", { href }, "View message") : null;
  return h("div", { class: "attachment-origin" }, `From ${where}`, when && ` · ${when}`, seen && " · ", seen);
}
