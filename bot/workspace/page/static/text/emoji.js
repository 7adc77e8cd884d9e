/** Emoji by Slack's shortcodes: drawings for the important ones, the system's font for other common ones. */

import { h, svg } from "../ui/dom.js";

const GLYPHS = {
  "-1": "👎",
  question: "❓",
  bulb: "💡",
  memo: "📝",
  link: "🔗",
  lock: "🔒",
  fire: "🔥",
  sparkles: "✨",
  bug: "🐛",
  wave: "👋",
  raised_hands: "🙌",
  clap: "👏",
  pray: "🙏",
  ok_hand: "👌",
  100: "💯",
  smile: "😄",
  slightly_smiling_face: "🙂",
  thinking_face: "🤔",
};

/** What the page offers for a quick reaction, in this order. */
export const OFFERED = ["white_check_mark", "eyes", "x", "+1", "heart", "tada"];

/** A picture with its shortcode as its name; `:name:` as text for an unknown one. */
export function emoji(name) {
  const drawing = Object.hasOwn(DRAWINGS, name) ? DRAWINGS[name] : null;
  const glyph = Object.hasOwn(GLYPHS, name) ? GLYPHS[name] : null;
  if (!drawing && !glyph) return h("span", { class: "emoji-unknown" }, `:${name}:`);
  const label = `:${name}:`;
  return h("span", { class: "emoji", role: "img", "aria-label": label, title: label }, drawing ? drawing() : glyph);
}

const path = (fill, d) => svg("path", { fill, d });
const circle = (fill, cx, cy, r) => svg("circle", { fill, cx, cy, r });
const stroke = (color, width, d) =>
  svg("path", {
    d,
    fill: "none",
    stroke: color,
    "stroke-width": width,
    "stroke-linecap": "round",
    "stroke-linejoin": "round",
  });

function picture(...shapes) {
  return svg("svg", { viewBox: "0 0 20 20", "aria-hidden": "true", focusable: "false" }, ...shapes);
}

/**
 * Drawings of 20 by 20 for emoji with a meaning here: a minimal Linux has no emoji font and would show empty boxes.
 */
const DRAWINGS = {
  white_circle: () =>
    picture(svg("circle", { fill: "#f2f4f6", cx: 10, cy: 10, r: 7.5, stroke: "#6b747d", "stroke-width": 0.6 })),
  white_check_mark: () =>
    picture(
      svg("rect", { x: 1.5, y: 1.5, width: 17, height: 17, rx: 4, fill: "#2fa866" }),
      stroke("#fff", 2.6, "M5.6 10.4l3 3 5.8-6.6"),
    ),
  eyes: () =>
    picture(
      ...[5.6, 14.4].flatMap((x) => [
        svg("ellipse", { cx: x, cy: 10, rx: 4.1, ry: 6.2, fill: "#fff", stroke: "#8a8f98", "stroke-width": 0.9 }),
        svg("ellipse", { cx: x - 1.2, cy: 11, rx: 2, ry: 2.9, fill: "#2d3138" }),
        circle("#fff", x - 1.7, 9.8, 0.7),
      ]),
    ),
  warning: () =>
    picture(
      path("#f5b82e", "M8.6 2.6a1.7 1.7 0 0 1 2.9 0l7.2 13a1.7 1.7 0 0 1-1.4 2.6H2.8a1.7 1.7 0 0 1-1.5-2.6z"),
      stroke("#2d3138", 2, "M10 7.4v4.4"),
      circle("#2d3138", 10, 15, 1.2),
    ),
  hourglass_flowing_sand: () =>
    picture(
      path("#e8eef5", "M5.2 3h9.6v2.4c0 2.2-3 3.4-3 4.6s3 2.4 3 4.6V17H5.2v-2.4c0-2.2 3-3.4 3-4.6s-3-2.4-3-4.6z"),
      path(
        "#e3a648",
        "M6.4 5.6h7.2c-.4 1.5-2.4 2.4-3 3.6h-1.2c-.6-1.2-2.6-2.1-3-3.6zM6.3 16.2c0-1.9 2.2-2.7 3.7-3.3 1.5.6 3.7 1.4 3.7 3.3z",
      ),
      stroke("#9a6a3c", 1.8, "M4.4 2.6h11.2M4.4 17.4h11.2"),
    ),
  "+1": () =>
    picture(
      path(
        "#f7c744",
        "M7.2 9.2l2.7-6.4c.2-.5.8-.8 1.4-.6 1.2.3 1.8 1.5 1.5 2.7l-.6 2.6h4.1c1.2 0 2 1.1 1.7 2.2l-1.6 6.2c-.3 1-1.1 1.7-2.2 1.7H7.2z",
      ),
      svg("rect", { x: 1.8, y: 8.6, width: 4.2, height: 9.4, rx: 1.3, fill: "#e0a92c" }),
    ),
  heart: () =>
    picture(
      path(
        "#e0364f",
        "M10 17.6C4.6 13.7 1.6 10.7 1.6 7.2 1.6 4.7 3.5 2.9 5.9 2.9c1.6 0 3.1.8 4.1 2.3 1-1.5 2.5-2.3 4.1-2.3 2.4 0 4.3 1.8 4.3 4.3 0 3.5-3 6.5-8.4 10.4z",
      ),
    ),
  tada: () =>
    picture(
      path("#f0b43c", "M2 18L6.6 6.6l6.8 6.8z"),
      path("#d9932b", "M3.4 14.6l2 2-3.4 1.4zM5.5 9.3l5.2 5.2-2.3.9-3.8-3.8z"),
      stroke("#e0364f", 1.5, "M9.6 6.8c1.5-1.3 1.6-2.9.8-4.4"),
      stroke("#3b8de0", 1.5, "M13.2 10.4c1.4-1 3-1 4.6-.1"),
      circle("#3b8de0", 6.4, 3.4, 1.1),
      circle("#2fa866", 14.2, 5.6, 1.2),
      circle("#e0364f", 16.6, 14.2, 1.1),
      circle("#a35bd6", 17.4, 2.8, 1),
    ),
  x: () => picture(stroke("#d6384e", 3.6, "M4.4 4.4l11.2 11.2M15.6 4.4L4.4 15.6")),
  rocket: () =>
    picture(
      path("#e0364f", "M5 10.4l-3 2.6 3.7.2zM9.6 15l-2.6 3-.2-3.7z"),
      path("#dfe5ec", "M18.3 1.7c-5-.3-9.3 2.5-12.5 8.5l4 4c6-3.2 8.8-7.5 8.5-12.5z"),
      circle("#3b8de0", 12.9, 7.1, 1.9),
      path("#f0a030", "M5.4 12.2l2.4 2.4c-1 1.6-2.6 2.6-5.2 2.8.2-2.6 1.2-4.2 2.8-5.2z"),
    ),
};
