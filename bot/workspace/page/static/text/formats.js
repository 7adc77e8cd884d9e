/** Times and sizes as people read them. Clocks follow the browser's locale; days and dates are in English, like the page. */

const clock = new Intl.DateTimeFormat(undefined, { hour: "numeric", minute: "2-digit" });
const clockSeconds = new Intl.DateTimeFormat(undefined, { hour: "numeric", minute: "2-digit", second: "2-digit" });
const english = (options) => new Intl.DateTimeFormat("en", options);
const dayWithWeekday = english({ weekday: "long", month: "long", day: "numeric" });
const dayWithYear = english({ weekday: "long", year: "numeric", month: "long", day: "numeric" });

/** A message's `ts` is its Unix time in seconds, with a fraction that makes it unique. */
const when = (ts) => new Date(Number.parseFloat(ts) * 1000);
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
  date_short: (d) => english({ year: "numeric", month: "short", day: "numeric" }).format(d),
  time: (d) => clock.format(d),
  ago: (d) => ago(d),
};

/** Fills in a `<!date>` format. Returns null for an invalid time or a token that Pagehand does not use. */
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

const UNITS = ["bytes", "kB", "MB", "GB"];

export function sizeOf(bytes) {
  if (bytes === 1) return "1 byte";
  const power = Math.min(Math.floor(Math.log10(Math.max(bytes, 1)) / 3), UNITS.length - 1);
  const value = bytes / 1000 ** power;
  return `${value >= 10 || power === 0 ? Math.round(value) : value.toFixed(1)} ${UNITS[power]}`;
}
