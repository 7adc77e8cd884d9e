/** How far each person has read each channel since this page was opened. */

const opened = Date.now() / 1000;
const number = (ts) => Number.parseFloat(ts);

export class ReadMarks {
  #marks = new Map();

  /** The `ts` up to which a person has read a channel; older messages count as read when the page opens. */
  mark(person, channel) {
    return this.#marks.get(`${person} ${channel}`) ?? opened;
  }

  read(person, channel, messages) {
    const newest = Math.max(this.mark(person, channel), ...messages.map((m) => number(m.ts)));
    this.#marks.set(`${person} ${channel}`, newest);
  }

  /** @returns {{any: boolean, calls: number}} whether something is new there, and how many new messages address `person` */
  unread(person, channel, messages) {
    const mark = this.mark(person, channel.id);
    const fresh = messages.filter((m) => number(m.ts) > mark && m.user !== person && !m.ephemeral);
    const calls = fresh.filter((m) => channel.is_im || callsOn(m, person)).length;
    return { any: calls > 0 || fresh.some((m) => !m.thread_ts || m.thread_ts === m.ts), calls };
  }
}

function callsOn(message, person) {
  return message.text.includes(`<@${person}>`) || /<!(?:here|channel|everyone)\b/.test(message.text);
}
