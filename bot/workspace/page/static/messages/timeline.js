/** What a message list shows, in order: day dividers, the line above what is new, and messages, joined where one person goes on. Pure. */

import { dayKey, dayLabel } from "../text/times.js";

const GROUP_SECONDS = 300;
const seconds = (message) => Number.parseFloat(message.ts);

/** @param {object} options `days`: with day dividers; `newAfter`: the `ts` after which others' messages are new, or null */
export function timeline(messages, { days = true, newAfter = null, me = null } = {}) {
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
