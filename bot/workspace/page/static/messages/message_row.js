/** One message as a row: shown, or open for editing. */

import { fitHeight, h } from "../ui/dom.js";
import { icon } from "../ui/icons.js";
import { avatar, badges, displayName } from "../ui/people.js";
import { emoji } from "../text/emoji.js";
import { fullTime, lastReply, timeOf } from "../text/formats.js";
import { inline, mrkdwn } from "../text/inline.js";
import { asTyped } from "../text/mrkdwn.js";
import { blocks } from "../blocks/blocks.js";
import { Form } from "../blocks/form.js";
import { attachments, files } from "./attachments.js";

const LONG_TEXT = 3000; // characters; a longer one is folded
const SYSTEM = /^channel_/;

/** @param {object} row `message`, `grouped`, `inThread`, `unfolded` (a Set of ts), `store`, `actions` */
export function messageRow(row) {
  const { message, grouped, store } = row;
  const author = store.person(message.user);
  const kind = [grouped && "grouped", message.ephemeral && "ephemeral", SYSTEM.test(message.subtype ?? "") && "system"];
  const props = {
    class: ["message", ...kind].filter(Boolean).join(" "),
    tabindex: "-1",
    "data-testid": "message",
    "data-ts": message.ts,
    "data-user": message.user,
    "data-ephemeral": message.ephemeral,
    "aria-label": `${displayName(author)}, ${timeOf(message.ts)}`,
  };
  const gutter = grouped ? clock(message) : avatar(author);
  return h(
    "article",
    props,
    h("div", { class: "gutter" }, gutter),
    h("div", { class: "content" }, content(row, author)),
  );
}

function content(row, author) {
  const { message, grouped, store } = row;
  return [
    message.ephemeral && h("div", { class: "only-you" }, icon("eye"), "Only visible to you"),
    message.subtype === "thread_broadcast" && !row.inThread && broadcastNote(row),
    !grouped && byline(message, author),
    body(row),
    attachments(message.attachments, store),
    files(message.files, store),
    reactions(row),
    !row.inThread && message.reply_count > 0 && replies(row),
  ];
}

const clock = (message) =>
  h("time", { class: "time", datetime: iso(message), title: fullTime(message.ts) }, timeOf(message.ts));
const iso = (message) => new Date(Number.parseFloat(message.ts) * 1000).toISOString();

function byline(message, author) {
  const name = h("bdi", { class: "author" }, displayName(author));
  return h("div", { class: "byline" }, name, badges(author), clock(message));
}

function body({ message, store, actions, unfolded }) {
  const edited = message.edited && h("span", { class: "edited" }, " (edited)");
  if (message.subtype === "tombstone") return h("div", { class: "body quiet" }, "This message was deleted.");
  // Slack does not mark an app's updates as edited.
  const sign = message.bot_id ? false : edited;
  if (message.blocks?.length) {
    const act = (part, block, value) => actions.press(message, part, block, value);
    return h("div", { class: "body" }, blocks(message.blocks, { view: store, form: new Form(), act }), sign);
  }
  const text = h("div", { class: "body text", dir: "auto" }, mrkdwn(message.text, store), edited);
  return message.text.length > LONG_TEXT ? folded(text, message.ts, unfolded) : text;
}

function folded(text, ts, unfolded) {
  const button = h("button", { type: "button", class: "link-button", "data-focus": "fold" });
  const draw = () => {
    text.classList.toggle("folded", !unfolded.has(ts));
    button.textContent = unfolded.has(ts) ? "Show less" : "Show the whole message";
    button.setAttribute("aria-expanded", String(unfolded.has(ts)));
  };
  button.addEventListener("click", () => {
    if (!unfolded.delete(ts)) unfolded.add(ts);
    draw();
  });
  draw();
  return h("div", {}, text, button);
}

function broadcastNote({ message, store }) {
  const parent = store.message(message.channel, message.thread_ts);
  const href = store.href({ channel: message.channel, thread: message.thread_ts });
  return h("div", { class: "broadcast-note" }, "replied to a thread: ", h("a", { href }, excerpt(parent, store)));
}

function excerpt(parent, store) {
  if (!parent?.text) return "the thread";
  return inline([{ type: "text", text: mrkdwnText(parent.text, store).slice(0, 80) }], store);
}

function mrkdwnText(text, store) {
  return h("span", {}, mrkdwn(text, store)).textContent.replace(/\s+/g, " ").trim();
}

function reactions({ message, store, actions }) {
  if (!message.reactions?.length) return null;
  const chips = message.reactions.map((reaction) => chip(reaction, message, store, actions));
  return h("div", { class: "reactions", role: "group", "aria-label": "Reactions" }, chips);
}

function chip({ name, users }, message, store, actions) {
  const mine = users.includes(store.me.id);
  const names = users.map((id) => (id === store.me.id ? "you" : displayName(store.person(id))));
  const props = {
    type: "button",
    class: "reaction",
    title: `${names.join(", ")} reacted with :${name}:`,
    "aria-pressed": String(mine),
    "data-testid": "reaction",
    "data-name": name,
    "data-focus": `reaction ${name}`,
    on: { click: () => actions.react(message, name) },
  };
  return h("button", props, emoji(name), h("span", { class: "count" }, users.length));
}

function replies({ message, store, actions }) {
  const list = store.replies(message.channel, message.ts).filter((reply) => !reply.ephemeral);
  const faces = [...new Set(list.map((reply) => reply.user))]
    .slice(0, 4)
    .map((id) => avatar(store.person(id), "small"));
  const count = message.reply_count === 1 ? "1 reply" : `${message.reply_count} replies`;
  const newest = list.at(-1);
  const props = {
    type: "button",
    class: "replies",
    "data-testid": "open-thread",
    "data-focus": "replies",
    on: { click: () => actions.openThread(message) },
  };
  const last = newest && h("span", { class: "last-reply" }, `Last reply ${lastReply(newest.ts)}`);
  return h("button", props, h("span", { class: "faces" }, faces), h("span", { class: "reply-count" }, count), last);
}

/**
 * The editor for one of the person's own messages. Enter saves, Escape cancels.
 * @param {object} how `save(message, text)` returns `{ok, error}`; `done()` closes the editor
 */
export function messageEditor(message, { store, save, done }) {
  const before = asTyped(message.text, store);
  const input = h("textarea", {
    class: "edit-input",
    rows: 1,
    dir: "auto",
    "aria-label": "Edit message",
    "data-focus": "edit",
  });
  const problem = h("p", { class: "problem", role: "alert", hidden: true });
  const button = (label, kind, click) => h("button", { type: "button", class: `button ${kind}`, on: { click } }, label);
  const submit = async () => {
    const text = input.value.trim();
    if (!text || text === before) return done();
    const answer = await save(message, text);
    if (answer.ok) return done();
    problem.textContent = answer.error;
    problem.hidden = false;
    return undefined;
  };
  input.value = before;
  input.addEventListener("input", () => fitHeight(input));
  input.addEventListener("keydown", (event) => {
    if (event.isComposing) return;
    if (event.key === "Escape") {
      event.stopPropagation();
      done();
    } else if (event.key === "Enter" && !event.shiftKey) {
      event.preventDefault();
      submit();
    }
  });
  const buttons = h("div", { class: "edit-buttons" }, button("Cancel", "", done), button("Save", "primary", submit));
  return h(
    "article",
    { class: "message editing", "data-ts": message.ts, "data-testid": "message" },
    h("div", { class: "gutter" }),
    h("div", { class: "content" }, input, problem, buttons),
  );
}

/** Focuses the editor, with the cursor after its text. The editor must be in the document. */
export function focusEditor(editor) {
  const input = editor.querySelector("textarea");
  fitHeight(input);
  input.focus();
  input.setSelectionRange(input.value.length, input.value.length);
}
