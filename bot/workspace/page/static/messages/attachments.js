/** What hangs on a message: another message that was shared, or what an app or a link brought. */

import { h, safeUrl } from "../ui/dom.js";
import { link, mrkdwn } from "../text/inline.js";
import { fullTime } from "../text/times.js";
import { avatar, displayName } from "../ui/people.js";
import { files } from "./files.js";

export function attachments(list, view) {
  return (list ?? []).map((each) =>
    h("div", { class: "attachment", "data-testid": "attachment" }, content(each, view)),
  );
}

function content(attachment, view) {
  const { title, title_link: address, text, fallback, pretext } = attachment;
  const words = text || (title ? "" : fallback);
  return [
    attachment.is_share || attachment.is_msg_unfurl ? author(attachment, view) : null,
    pretext && h("div", { class: "text", dir: "auto" }, mrkdwn(pretext, view)),
    title && h("div", { class: "attachment-title", dir: "auto" }, address ? link(address, title, view) : title),
    words && h("div", { class: "text", dir: "auto" }, mrkdwn(words, view)),
    files(attachment.files, view),
    attachment.from_url && origin(attachment, view),
  ];
}

function author({ author_id: id, author_name: name }, view) {
  const person = view.person(id) ?? { id, real_name: name };
  return h("div", { class: "attachment-author" }, avatar(person, "tiny"), h("bdi", {}, displayName(person)));
}

/** Where it was written; on this page, if that is where it is. */
function origin({ from_url: url, channel_id: id, ts }, view) {
  const channel = view.channel(id);
  const when = Number.isFinite(Number.parseFloat(ts)) ? fullTime(ts) : "";
  const where = channel ? (channel.is_im ? "a direct message" : `#${channel.name}`) : "a conversation";
  const message = channel && view.message(id, ts);
  const href = message ? view.href({ channel: id, thread: message.thread_ts || ts }) : safeUrl(url);
  const seen = message && href ? h("a", { href }, "View message") : null;
  return h("div", { class: "attachment-origin" }, `From ${where}`, when && ` · ${when}`, seen && " · ", seen);
}
