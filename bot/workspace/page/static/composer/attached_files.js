/** The files attached to a draft: chosen, dropped or pasted, and removable. */

import { h } from "../ui/dom.js";
import { icon } from "../ui/icons.js";
import { sizeOf } from "../text/formats.js";

export class AttachedFiles {
  files = [];
  button;
  element = h("ul", { class: "attached", "aria-label": "Files to send", "data-testid": "attached", hidden: true });
  #chooser = h("input", { type: "file", multiple: true, hidden: true, "data-testid": "file-chooser" });
  #limits;
  #onChange;
  #refuse;

  /** `limits()` returns `{files, file_bytes}`; `refuse(text)` shows why a file was not attached. */
  constructor({ limits, onChange, refuse }) {
    this.#limits = limits;
    this.#onChange = onChange;
    this.#refuse = refuse;
    const choose = h(
      "button",
      {
        type: "button",
        class: "tool",
        "aria-label": "Attach files",
        title: "Attach files",
        on: { click: () => this.#chooser.click() },
      },
      icon("clip"),
    );
    this.button = h("span", { class: "attach" }, choose, this.#chooser);
    this.#chooser.addEventListener("change", () => {
      this.add([...this.#chooser.files]);
      this.#chooser.value = "";
    });
  }

  /** Accepts files dropped on a part of the page, and highlights it meanwhile. */
  acceptDrops(zone) {
    const hasFiles = (event) => event.dataTransfer?.types.includes("Files") && this.button.checkVisibility();
    const mark = (on) => zone.classList.toggle("dropping", on);
    zone.addEventListener("dragover", (event) => {
      if (!hasFiles(event)) return;
      event.preventDefault();
      mark(true);
    });
    zone.addEventListener("dragleave", (event) => mark(zone.contains(event.relatedTarget)));
    zone.addEventListener("drop", (event) => {
      mark(false);
      if (!hasFiles(event)) return;
      event.preventDefault();
      this.add([...event.dataTransfer.files]);
    });
  }

  add(given) {
    const { files: most, file_bytes: largest } = this.#limits();
    const tooLarge = given.filter((file) => file.size > largest);
    const fitting = given.filter((file) => file.size <= largest);
    const taken = fitting.slice(0, most - this.files.length);
    this.set([...this.files, ...taken]);
    if (tooLarge.length) this.#refuse(`“${tooLarge[0].name}” is larger than ${sizeOf(largest)} and was not attached.`);
    else if (taken.length < fitting.length) this.#refuse(`A message can have ${most} files at most.`);
  }

  /** Replaces the files, for example by those of another draft. */
  set(files) {
    this.files = files;
    this.element.hidden = files.length === 0;
    this.element.replaceChildren(...files.map((file) => this.#chip(file)));
    this.#onChange();
  }

  #chip(file) {
    const remove = h(
      "button",
      {
        type: "button",
        class: "tool",
        "aria-label": `Remove ${file.name}`,
        on: { click: () => this.set(this.files.filter((each) => each !== file)) },
      },
      icon("close"),
    );
    const words = h(
      "span",
      { class: "file-words" },
      h("bdi", {}, file.name),
      h("span", { class: "file-size" }, sizeOf(file.size)),
    );
    return h("li", { class: "file" }, icon("file"), words, remove);
  }
}
