/** The page's own line icons, drawn on a square of 20 by 20 in the text's colour. */

import { svg } from "./dom.js";

const PATHS = {
  hash: ["M8 3L6 17", "M14 3l-2 14", "M3.5 7.5h13.5", "M3 12.5h13.5"],
  lock: ["M5 9h10v8H5z", "M7 9V6.5a3 3 0 0 1 6 0V9"],
  shared: ["M8.5 6.2a4.5 4.5 0 1 0 0 7.6", "M11.5 6.2a4.5 4.5 0 1 1 0 7.6", "M7.5 10h5"],
  close: ["M5 5l10 10", "M15 5L5 15"],
  menu: ["M3 5.5h14", "M3 10h14", "M3 14.5h14"],
  send: ["M3.5 4l13.5 6-13.5 6 2.2-6z", "M5.7 10H10"],
  reply: ["M3.5 4.5h13v9h-6l-4 3.5v-3.5h-3z"],
  edit: ["M4 16l.8-3.6L13.4 3.8l2.8 2.8-8.6 8.6z", "M11.5 5.7l2.8 2.8"],
  trash: ["M3.5 5.5h13", "M8 5.5V3.5h4v2", "M5.5 5.5l.8 11h7.4l.8-11", "M8.5 8.5v5", "M11.5 8.5v5"],
  smile: ["M10 2.5a7.5 7.5 0 1 0 0 15a7.5 7.5 0 0 0 0-15z", "M7 12c1.5 1.9 4.5 1.9 6 0", "M7.5 7.6v.6", "M12.5 7.6v.6"],
  swap: ["M4 7h11l-3-3", "M16 13H5l3 3"],
  check: ["M4 10.5l4 4 8-9"],
  down: ["M10 4v11", "M5.5 10.5L10 15l4.5-4.5"],
  eye: ["M2 10c3.5-6 12.5-6 16 0c-3.5 6-12.5 6-16 0z", "M10 7.7a2.3 2.3 0 1 0 0 4.6a2.3 2.3 0 0 0 0-4.6z"],
  plug: ["M7 3v4", "M13 3v4", "M5 7h10v2.5a5 5 0 0 1-10 0z", "M10 14.5V18"],
  file: ["M5 2.5h7l3.5 3.5v11.5H5z", "M11.5 2.5V6.5H15.5"],
  more: ["M4.6 9.6h.8v.8h-.8z", "M9.6 9.6h.8v.8h-.8z", "M14.6 9.6h.8v.8h-.8z"],
  forward: ["M11 5l5.5 5-5.5 5", "M16 10H9c-3 0-5 2-5.5 5.5"],
  clip: [
    "M15.5 9.5l-5.8 5.8a3.4 3.4 0 0 1-4.8-4.8l6.6-6.6a2.3 2.3 0 0 1 3.2 3.2l-6.4 6.4a1.1 1.1 0 0 1-1.6-1.6l5.5-5.5",
  ],
  bolt: ["M11 2.5L4.5 11.5H9.5L8.5 17.5L15.5 8.5H10.5z"],
  archive: ["M3 4h14v3.5H3z", "M4.5 7.5v9h11v-9", "M8 10.5h4"],
};

export function icon(name) {
  const lines = PATHS[name].map((d) => svg("path", { d }));
  return svg("svg", { class: "icon", viewBox: "0 0 20 20", "aria-hidden": "true", focusable: "false" }, ...lines);
}
