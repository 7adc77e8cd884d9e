/** The address after `#` has the acting person, the channel, its tab and the open thread, for reloads and links. */

export function readRoute(hash = location.hash) {
  const values = new URLSearchParams(hash.slice(1));
  return { as: values.get("as"), channel: values.get("channel"), thread: values.get("thread"), tab: values.get("tab") };
}

export function makeHref({ as, channel, thread, tab }) {
  const values = Object.entries({ as, channel, thread, tab }).filter(([, value]) => value);
  return `#${new URLSearchParams(values)}`;
}

const PERSON = "pagehand-as";

/** The person this browser last acted as, for addresses without one, such as links to messages. */
export function lastPerson() {
  try {
    return localStorage.getItem(PERSON);
  } catch {
    return null;
  }
}

export function rememberPerson(id) {
  try {
    if (id) localStorage.setItem(PERSON, id);
    else localStorage.removeItem(PERSON);
  } catch {
    // if storage is disabled, such an address opens as the first person
  }
}
