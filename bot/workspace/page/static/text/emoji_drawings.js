/**
 * Small pictures for the emoji that carry meaning here: a minimal Linux has no emoji font, and a receipt shown as an
 * empty box says nothing. Each is drawn on a square of 20 by 20.
 */

import { svg } from "../ui/dom.js";

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

const dot = (color) => () =>
  picture(svg("circle", { fill: color, cx: 10, cy: 10, r: 7.5, stroke: "#6b747d", "stroke-width": 0.6 }));

export const DRAWINGS = {
  white_circle: dot("#f2f4f6"),
  red_circle: dot("#d6384e"),
  large_blue_circle: dot("#3b8de0"),
  large_green_circle: dot("#2fa866"),
  large_yellow_circle: dot("#f5c518"),
  repeat: () =>
    picture(
      stroke(
        "#3b8de0",
        2,
        "M3.5 9V8a3 3 0 0 1 3-3h9M13 2.2L15.8 5 13 7.8M16.5 11v1a3 3 0 0 1-3 3h-9M7 12.2L4.2 15 7 17.8",
      ),
    ),
  memo: () =>
    picture(
      path("#eef2f6", "M4 2.5h9.5v15H4z"),
      stroke("#8a8f98", 1, "M4 2.5h9.5v15H4zM6 6h5.5M6 9h5.5M6 12h3"),
      stroke("#e3a648", 2.4, "M16.8 7.5l-5 6"),
      stroke("#2d3138", 1.4, "M11.5 14l-.5 1.3"),
    ),
  package: () =>
    picture(
      path("#c98f56", "M2.5 6h15v11h-15z"),
      path("#e0ae78", "M4 3h12l1.5 3h-15z"),
      path("#f3dcbb", "M8.7 3h2.6v7H8.7z"),
    ),
  link: () =>
    picture(
      stroke("#8a97a5", 2.2, "M8.3 11.7l3.4-3.4M9 6l2-2a3.5 3.5 0 0 1 5 5l-2 2M11 14l-2 2a3.5 3.5 0 0 1-5-5l2-2"),
    ),
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
  rocket: () =>
    picture(
      path("#e0364f", "M5 10.4l-3 2.6 3.7.2zM9.6 15l-2.6 3-.2-3.7z"),
      path("#dfe5ec", "M18.3 1.7c-5-.3-9.3 2.5-12.5 8.5l4 4c6-3.2 8.8-7.5 8.5-12.5z"),
      circle("#3b8de0", 12.9, 7.1, 1.9),
      path("#f0a030", "M5.4 12.2l2.4 2.4c-1 1.6-2.6 2.6-5.2 2.8.2-2.6 1.2-4.2 2.8-5.2z"),
    ),
  question: () =>
    picture(
      stroke("#d6455d", 3, "M6.6 6.4c.2-2 1.6-3.2 3.5-3.2s3.5 1.2 3.5 3c0 2.6-3.5 2.7-3.5 5.6"),
      circle("#d6455d", 10.1, 16.4, 1.8),
    ),
  x: () => picture(stroke("#d6384e", 3.6, "M4.4 4.4l11.2 11.2M15.6 4.4L4.4 15.6")),
  slightly_smiling_face: () =>
    picture(
      circle("#f7c744", 10, 10, 8.5),
      svg("ellipse", { cx: 7, cy: 8.2, rx: 1.2, ry: 1.6, fill: "#5c4410" }),
      svg("ellipse", { cx: 13, cy: 8.2, rx: 1.2, ry: 1.6, fill: "#5c4410" }),
      stroke("#5c4410", 1.5, "M6 12.4c2 2.4 6 2.4 8 0"),
    ),
  bulb: () =>
    picture(
      path(
        "#f7d24a",
        "M10 1.6c3.3 0 5.8 2.5 5.8 5.6 0 2.4-1.5 3.6-2.4 5.2-.4.7-.5 1.4-.5 1.9H7.1c0-.5-.1-1.2-.5-1.9C5.7 10.8 4.2 9.6 4.2 7.2c0-3.1 2.5-5.6 5.8-5.6z",
      ),
      stroke("#8a8f98", 1.7, "M7.8 16.4h4.4M8.6 18.6h2.8"),
    ),
};
