/** The address after `#` keeps who one acts as, the channel and the open thread, so that a reload or a link comes back to it. */

export function readRoute(hash = location.hash) {
  const values = new URLSearchParams(hash.slice(1));
  return { as: values.get("as"), channel: values.get("channel"), thread: values.get("thread") };
}

export function makeHref({ as, channel, thread }) {
  const values = Object.entries({ as, channel, thread }).filter(([, value]) => value);
  return `#${new URLSearchParams(values)}`;
}
