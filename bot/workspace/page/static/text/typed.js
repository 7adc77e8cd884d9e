/** A stored message as the person typed it, for editing: references become @name, #channel and plain addresses again. */

import { unescapeEntities } from "./mrkdwn.js";

export function asTyped(text, store) {
  const readable = text.replace(/<([^<>\n]+)>/g, (_, inner) => {
    const [target, label] = inner.split("|");
    if (target.startsWith("@")) return `@${store.person(target.slice(1))?.name ?? label ?? target.slice(1)}`;
    if (target.startsWith("#")) return `#${store.channel(target.slice(1))?.name ?? label ?? target.slice(1)}`;
    if (target.startsWith("!")) return label ?? `@${target.slice(1)}`;
    return target;
  });
  return unescapeEntities(readable);
}
