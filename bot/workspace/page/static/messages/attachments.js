/** What comes with a message: files, of which pictures are shown, and other messages shared in it. */

import { h } from "../ui/dom.js";
import { fileAddress } from "../ui/files.js";
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
  const href = fileAddress(file.id, view);
  const picture =
    PICTURES.test(file.mimetype) &&
    h("img", { class: "thumbnail", src: href, alt: `Picture ${file.name}`, loading: "lazy", decoding: "async" });
  const link = h(
    "a",
    { class: "file-name", href, download: file.name, "aria-label": `Download ${file.name}, ${sizeOf(file.size)}` },
    h("bdi", {}, file.name),
  );
  const words = h("span", { class: "file-words" }, link, h("span", { class: "file-size" }, sizeOf(file.size)));
  return [picture || icon("file"), words];
}

export function attachments(list, view) {
  return (list ?? []).map((each) =>
    h("div", { class: "attachment", "data-testid": "attachment" }, sharedMessage(each, view)),
  );
}

function sharedMessage(attachment, view) {
  const { author_id: id, author_name: name, text } = attachment;
  const person = view.person(id) ?? { real_name: name };
  return [
    h("div", { class: "attachment-author" }, avatar(person, "tiny"), h("bdi", {}, displayName(person))),
    text && h("div", { class: "text", dir: "auto" }, mrkdwn(text, view)),
    files(attachment.files, view),
    origin(attachment, view),
  ];
}

/** Where the message was written, with a link if the page has it. */
function origin({ channel_id: id, ts }, view) {
  const channel = view.channel(id);
  const where = channel ? (channel.is_im ? "a direct message" : `#${channel.name}`) : "a conversation";
  const message = channel && view.message(id, ts);
  const href = message && view.href({ channel: id, thread: message.thread_ts || ts });
  const seen = message && [" · ", h("a", { href }, "View message")];
  return h("div", { class: "attachment-origin" }, `From ${where} · ${fullTime(ts)}`, seen);
}
