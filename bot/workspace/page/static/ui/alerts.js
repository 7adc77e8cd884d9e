/** The page's own messages: the state of the connections, a tip, and failed actions. */

import { h, replace } from "./dom.js";
import { icon } from "./icons.js";

const TOAST_MS = 8000;

export class Banner {
  element = h("div", { class: "banner", role: "status", "data-testid": "banner", hidden: true });
  #retry;
  #tip;
  #hideTip;

  /** `tip` returns the nodes of the store's tip. */
  constructor({ retry, tip, hideTip }) {
    this.#retry = retry;
    this.#tip = tip;
    this.#hideTip = hideTip;
  }

  render({ stream, bot, loaded, tip }) {
    const fault = stream === "lost" ? "lost" : bot === false && loaded ? "bot" : "";
    const shows = fault || (loaded ? tip : "");
    if (this.element.dataset.state === shows) return;
    this.element.dataset.state = shows;
    this.element.hidden = !shows;
    this.element.classList.toggle("tip", !fault);
    if (fault === "lost") {
      const button = h("button", { type: "button", class: "link-button", on: { click: this.#retry } }, "Try now");
      replace(
        this.element,
        icon("plug"),
        h("span", {}, "The workspace server cannot be reached. The page keeps trying. "),
        button,
      );
    } else if (fault === "bot") {
      replace(
        this.element,
        icon("plug"),
        h("span", {}, "No bot is connected: commands and buttons get no answer until one is."),
      );
    } else {
      const close = { type: "button", class: "tool", "aria-label": "Hide this tip", on: { click: this.#hideTip } };
      replace(this.element, h("span", {}, this.#tip()), h("button", close, icon("close")));
    }
  }
}

export class Toast {
  element = h("div", { class: "toast", role: "alert", "data-testid": "toast", hidden: true });
  #timer = null;

  show(text) {
    clearTimeout(this.#timer);
    const close = h(
      "button",
      { type: "button", class: "tool", "aria-label": "Close", on: { click: () => this.#hide() } },
      icon("close"),
    );
    replace(this.element, h("span", {}, text), close);
    this.element.hidden = false;
    this.#timer = setTimeout(() => this.#hide(), TOAST_MS);
  }

  #hide() {
    this.element.hidden = true;
  }
}
