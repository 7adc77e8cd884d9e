/** Emoji by Slack's shortcodes: drawn for the few that every machine must show, the system's font for the rest. */

import { h } from "../ui/dom.js";
import { DRAWINGS } from "./emoji_drawings.js";

const GLYPHS = {
  "+1": "👍",
  thumbsup: "👍",
  "-1": "👎",
  thumbsdown: "👎",
  heart: "❤️",
  eyes: "👀",
  tada: "🎉",
  rocket: "🚀",
  white_check_mark: "✅",
  heavy_check_mark: "✔️",
  ballot_box_with_check: "☑️",
  x: "❌",
  warning: "⚠️",
  no_entry: "⛔",
  no_entry_sign: "🚫",
  octagonal_sign: "🛑",
  hourglass: "⌛",
  hourglass_flowing_sand: "⏳",
  question: "❓",
  grey_question: "❔",
  exclamation: "❗",
  bulb: "💡",
  memo: "📝",
  pencil: "📝",
  pencil2: "✏️",
  book: "📖",
  books: "📚",
  page_facing_up: "📄",
  link: "🔗",
  lock: "🔒",
  key: "🔑",
  bell: "🔔",
  no_bell: "🔕",
  mag: "🔍",
  gear: "⚙️",
  wrench: "🔧",
  hammer: "🔨",
  package: "📦",
  construction: "🚧",
  fire: "🔥",
  sparkles: "✨",
  star: "⭐",
  zap: "⚡",
  bug: "🐛",
  robot_face: "🤖",
  speech_balloon: "💬",
  thread: "🧵",
  clock3: "🕒",
  stopwatch: "⏱️",
  calendar: "📅",
  arrow_right: "➡️",
  arrows_counterclockwise: "🔄",
  repeat: "🔁",
  file_folder: "📁",
  card_file_box: "🗃️",
  wave: "👋",
  raised_hands: "🙌",
  clap: "👏",
  pray: "🙏",
  ok_hand: "👌",
  muscle: "💪",
  point_right: "👉",
  100: "💯",
  smile: "😄",
  slightly_smiling_face: "🙂",
  grin: "😁",
  joy: "😂",
  wink: "😉",
  thinking_face: "🤔",
  sob: "😭",
  white_circle: "⚪",
  large_blue_circle: "🔵",
  large_green_circle: "🟢",
  large_yellow_circle: "🟡",
  red_circle: "🔴",
  green_heart: "💚",
  broken_heart: "💔",
  coffee: "☕",
  tea: "🍵",
  cake: "🍰",
  palm_tree: "🌴",
  merged: "🔀",
  twisted_rightwards_arrows: "🔀",
  information_source: "ℹ️",
  hash: "#️⃣",
  back: "🔙",
};

/** What the page offers for a quick reaction, in this order. */
export const OFFERED = [
  "white_check_mark",
  "eyes",
  "x",
  "+1",
  "heart",
  "tada",
  "rocket",
  "warning",
  "hourglass_flowing_sand",
  "question",
  "slightly_smiling_face",
  "bulb",
];

/** Shortcodes that share a drawing. */
const ALIASES = {
  thumbsup: "+1",
  hourglass: "hourglass_flowing_sand",
  smile: "slightly_smiling_face",
  pencil: "memo",
  arrows_counterclockwise: "repeat",
};

/** A picture with its shortcode as its name; `:name:` as text for one nobody knows. */
export function emoji(name) {
  const key = Object.hasOwn(ALIASES, name) ? ALIASES[name] : name;
  const drawing = Object.hasOwn(DRAWINGS, key) ? DRAWINGS[key] : null;
  const glyph = Object.hasOwn(GLYPHS, name) ? GLYPHS[name] : null;
  if (!drawing && !glyph) return h("span", { class: "emoji-unknown" }, `:${name}:`);
  const label = `:${name}:`;
  return h("span", { class: "emoji", role: "img", "aria-label": label, title: label }, drawing ? drawing() : glyph);
}
