/** The address after `#` keeps who one acts as, the channel, its tab and the open thread, so that a reload or a link comes back to it. */

export function readRoute(hash = location.hash) {
  const values = new URLSearchParams(hash.slice(1));
  return { as: values.get("as"), channel: values.get("channel"), thread: values.get("thread"), tab: values.get("tab") };
}

export function makeHref({ as, channel, thread, tab }) {
  const values = Object.entries({ as, channel, thread, tab }).filter(([, value]) => value);
  return `#${new URLSearchParams(values)}`;
}

const PERSON = "pagehand-as";

/** Who this browser last acted as, for an address that names nobody, such as a link to a message. */
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
    // storage may be switched off; then such an address opens as the first person
  }
}
