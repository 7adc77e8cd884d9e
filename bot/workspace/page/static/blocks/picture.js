/** Pictures come from this page's own server or from the message itself; another address is only linked to. */

import { h } from "../ui/dom.js";
import { link } from "../text/inline.js";

export function picture(part, name) {
  const url = String(part.image_url ?? "");
  const alt = String(part.alt_text ?? "");
  if (/^data:image\/(?:png|jpeg|gif|webp|svg\+xml)[;,]/i.test(url) || sameOrigin(url)) {
    return h("img", { class: name, src: url, alt, loading: "lazy", decoding: "async" });
  }
  return h("span", { class: "text" }, "Picture: ", link(url, alt || url));
}

function sameOrigin(url) {
  try {
    return url !== "" && new URL(url, location.href).origin === location.origin;
  } catch {
    return false;
  }
}
