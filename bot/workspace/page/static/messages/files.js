/** The files of a message: pictures as they are, texts with their first lines, all with name, size and a way to keep them. */

import { h } from "../ui/dom.js";
import { icon } from "../ui/icons.js";
import { sizeOf } from "../text/sizes.js";

const PICTURES = /^image\/(?:png|jpeg|gif|webp)$/;

export function files(list, view) {
  if (!list?.length) return null;
  return h(
    "ul",
    { class: "files", "aria-label": "Files" },
    list.map((file) => h("li", { class: "file", "data-testid": "file" }, content(file, view))),
  );
}

function content(file, view) {
  if (file.is_deleted || file.mode === "tombstone")
    return [icon("file"), h("span", { class: "quiet" }, "This file was deleted.")];
  const href = `/page/files/${encodeURIComponent(file.id)}?${new URLSearchParams({ as: view.me.id })}`;
  const picture =
    PICTURES.test(file.mimetype) &&
    h("img", { class: "thumbnail", src: href, alt: `Picture ${file.name}`, loading: "lazy", decoding: "async" });
  const shown = typeof file.preview === "string" && snippet(file);
  const link = h(
    "a",
    { class: "file-name", href, download: file.name, "aria-label": `Download ${file.name}, ${sizeOf(file.size)}` },
    h("bdi", {}, file.name),
  );
  return [
    picture || icon("file"),
    h("span", { class: "file-words" }, link, h("span", { class: "file-size" }, sizeOf(file.size))),
    shown,
  ];
}

/** The first lines of a text, and how many more there are. */
function snippet({ name, preview, lines }) {
  const more = lines - preview.split("\n").length;
  return [
    h("pre", { class: "snippet", tabindex: "0", "aria-label": `The beginning of ${name}` }, preview),
    more > 0 && h("span", { class: "file-size" }, more === 1 ? "1 more line" : `${more} more lines`),
  ];
}
