/** A list of blocks that can be updated. Unchanged blocks keep their nodes, so that text, focus and scroll position stay. */

import { h } from "../ui/dom.js";
import { block } from "./blocks.js";

export class BlockList {
  #surface;
  #drawn = new Map(); // block_id -> { node, signature }

  /** @param {object} surface see blocks.js */
  constructor(surface, props = {}) {
    this.#surface = surface;
    this.element = h("div", { class: "block-list", ...props });
  }

  show(list) {
    const focus = this.#focus();
    const before = this.#drawn;
    this.#drawn = new Map();
    list.forEach((given, index) => {
      const id = given?.block_id;
      const key = id && !this.#drawn.has(id) ? id : `block ${index}`;
      const signature = JSON.stringify(given);
      const known = before.get(key);
      const kept = known?.signature === signature;
      this.#drawn.set(key, kept ? known : { node: block(given, this.#surface), signature });
    });
    const nodes = [...this.#drawn.values()].map(({ node }) => node);
    for (const child of [...this.element.children]) if (!nodes.includes(child)) child.remove();
    nodes.forEach((node, index) => {
      if (this.element.children[index] !== node) this.element.insertBefore(node, this.element.children[index] ?? null);
    });
    this.#restore(focus);
  }

  /** The node of a block. */
  node(blockId) {
    return this.#drawn.get(blockId)?.node;
  }

  #focus() {
    const { activeElement: was } = document;
    if (!this.element.contains(was)) return null;
    return { was, name: was.dataset.focus, from: was.selectionStart, to: was.selectionEnd };
  }

  #restore(focus) {
    if (!focus?.name || focus.was.isConnected) return;
    const node = this.element.querySelector(`[data-focus="${CSS.escape(focus.name)}"]`);
    node?.focus({ preventScroll: true });
    if (node && typeof focus.from === "number") node.setSelectionRange(focus.from, focus.to);
  }
}
