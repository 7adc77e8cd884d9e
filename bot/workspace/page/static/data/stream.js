/** One person's live stream: connects, then fetches a snapshot, and reconnects by itself. */

import { fetchSnapshot } from "./api.js";

const FIRST_WAIT_MS = 400;
const LONGEST_WAIT_MS = 15_000;

/**
 * Events that arrive before the snapshot are applied after it; applying one twice does no harm.
 * `on`: { snapshot(data), event(data), state("connecting" | "open" | "lost"), refused(error) }
 */
export class Stream {
  #as;
  #on;
  #socket = null;
  #timer = null;
  #failures = 0;
  #closed = false;

  constructor(as, on) {
    this.#as = as;
    this.#on = on;
    on.state("connecting");
    this.#connect();
  }

  close() {
    this.#closed = true;
    clearTimeout(this.#timer);
    this.#socket?.close();
  }

  /** Reconnects at once: the person pressed the button, or the network is back. */
  retryNow() {
    if (this.#timer === null) return;
    clearTimeout(this.#timer);
    this.#connect();
  }

  #connect() {
    this.#timer = null;
    const scheme = location.protocol === "https:" ? "wss:" : "ws:";
    const socket = new WebSocket(`${scheme}//${location.host}/page/stream?${new URLSearchParams({ as: this.#as })}`);
    this.#socket = socket;
    let waiting = [];
    let opened = false;
    const deliver = (event) => (waiting ? waiting.push(event) : this.#on.event(event));
    socket.addEventListener("message", ({ data }) => this.#current(socket) && deliver(JSON.parse(data)));
    socket.addEventListener("close", () => this.#current(socket) && this.#again(opened));
    socket.addEventListener("open", async () => {
      opened = true;
      const snapshot = await fetchSnapshot(this.#as).catch((error) => this.#failed(socket, error));
      if (!snapshot || !this.#current(socket)) return;
      this.#failures = 0;
      this.#on.snapshot(snapshot);
      this.#on.state("open");
      waiting.forEach((event) => this.#on.event(event));
      waiting = null;
    });
  }

  #current(socket) {
    return !this.#closed && socket === this.#socket;
  }

  #failed(socket, error) {
    if (!this.#current(socket)) return;
    this.#noteRefusal(error);
    socket.close();
  }

  #noteRefusal(error) {
    if (!this.#closed && error.status >= 400 && error.status < 500) this.#on.refused(error);
  }

  #again(opened) {
    this.#failures += 1;
    this.#on.state("lost");
    // A WebSocket does not say why it was refused; the snapshot does.
    if (!opened) fetchSnapshot(this.#as).catch((error) => this.#noteRefusal(error));
    const ceiling = Math.min(FIRST_WAIT_MS * 2 ** (this.#failures - 1), LONGEST_WAIT_MS);
    this.#timer = setTimeout(() => this.#connect(), ceiling * (0.5 + Math.random() / 2));
  }
}
