/** Times as people read them: the clock in the browser's manner, days in the page's English. */

const clock = new Intl.DateTimeFormat(undefined, { hour: "numeric", minute: "2-digit" });
const clockSeconds = new Intl.DateTimeFormat(undefined, { hour: "numeric", minute: "2-digit", second: "2-digit" });
const english = (options) => new Intl.DateTimeFormat("en", options);
const dayWithWeekday = english({ weekday: "long", month: "long", day: "numeric" });
const dayWithYear = english({ weekday: "long", year: "numeric", month: "long", day: "numeric" });

/** A message's `ts` is its Unix time in seconds, with a counter after the point. */
export const when = (ts) => new Date(Number.parseFloat(ts) * 1000);
export const timeOf = (ts) => clock.format(when(ts));
export const fullTime = (ts) => `${dayWithYear.format(when(ts))} at ${clockSeconds.format(when(ts))}`;
export const dayKey = (ts) => when(ts).toDateString();

export function dayLabel(ts, now = new Date()) {
  const date = when(ts);
  const ago = Math.round((midnight(now) - midnight(date)) / 86_400_000);
  if (ago === 0) return "Today";
  if (ago === 1) return "Yesterday";
  return (date.getFullYear() === now.getFullYear() ? dayWithWeekday : dayWithYear).format(date);
}

export function lastReply(ts) {
  const day = dayLabel(ts);
  return `${day === "Today" || day === "Yesterday" ? day.toLowerCase() : day} at ${timeOf(ts)}`;
}

const midnight = (date) => new Date(date.getFullYear(), date.getMonth(), date.getDate()).getTime();

const PRETTY = { Today: "today", Yesterday: "yesterday" };
const TOKENS = {
  date_num: (d) => new Intl.DateTimeFormat("sv").format(d), // Swedish dates are written year-month-day
  date: (d) => english({ year: "numeric", month: "long", day: "numeric" }).format(d),
  date_slash: (d) => english({ year: "numeric", month: "2-digit", day: "2-digit" }).format(d),
  date_short: (d) => english({ year: "numeric", month: "short", day: "numeric" }).format(d),
  date_long: (d) => dayWithYear.format(d),
  time: (d) => clock.format(d),
  time_secs: (d) => clockSeconds.format(d),
  ago: (d) => ago(d),
};

/** Slack's `<!date>` format filled in, or null where the time or a token is not one Slack knows. */
export function formatDate(seconds, format) {
  const date = new Date(seconds * 1000);
  if (!format || Number.isNaN(date.getTime())) return null;
  let known = true;
  const text = format.replace(/\{(\w+)\}/g, (_, token) => {
    const base = token.replace(/_pretty$/, "");
    known &&= Object.hasOwn(TOKENS, base);
    if (!known) return "";
    return (base !== token && PRETTY[dayLabel(seconds)]) || TOKENS[base](date);
  });
  return known ? text : null;
}

function ago(date) {
  const seconds = (date.getTime() - Date.now()) / 1000;
  const relative = new Intl.RelativeTimeFormat("en", { numeric: "auto" });
  for (const [unit, size] of [
    ["day", 86_400],
    ["hour", 3600],
    ["minute", 60],
  ]) {
    if (Math.abs(seconds) >= size) return relative.format(Math.round(seconds / size), unit);
  }
  return relative.format(Math.round(seconds), "second");
}
