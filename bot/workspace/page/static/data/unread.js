/** How far each person has read each channel, kept in this browser. */

const started = Date.now() / 1000;
const number = (ts) => Number.parseFloat(ts);

export class ReadMarks {
  #key;
  #marks;

  constructor(team, person) {
    this.#key = `pagehand-read:${team}:${person}`;
    this.#marks = load(this.#key);
  }

  /** The `ts` up to which a channel is read; what was there before the first visit counts as read. */
  mark(channel) {
    return this.#marks[channel] ?? started;
  }

  read(channel, messages) {
    const newest = Math.max(this.mark(channel), ...messages.map((m) => number(m.ts)));
    if (this.#marks[channel] === newest) return;
    this.#marks[channel] = newest;
    save(this.#key, this.#marks);
  }

  /** @returns {{any: boolean, calls: number}} is something new there, and how often does it call on `me` */
  unread(channel, messages, me) {
    const mark = this.mark(channel.id);
    const fresh = messages.filter((m) => number(m.ts) > mark && m.user !== me && !m.ephemeral);
    const calls = fresh.filter((m) => channel.is_im || callsOn(m, me)).length;
    return { any: calls > 0 || fresh.some((m) => !m.thread_ts || m.thread_ts === m.ts), calls };
  }
}

function callsOn(message, me) {
  return message.text.includes(`<@${me}>`) || /<!(?:here|channel|everyone)\b/.test(message.text);
}

function load(key) {
  try {
    return JSON.parse(localStorage.getItem(key)) ?? {};
  } catch {
    return {}; // storage may be switched off; then everything counts as read since the page was opened
  }
}

function save(key, marks) {
  try {
    localStorage.setItem(key, JSON.stringify(marks));
  } catch {
    // see load()
  }
}
