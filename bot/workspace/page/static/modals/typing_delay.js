/** Waits until somebody pauses in typing before the app is told. */

const PAUSE_MS = 400;

export class TypingDelay {
  #waiting = new Map(); // key -> { timer, tell }
  #told = Promise.resolve();

  /** Tells after a pause; for the same key, only the last. */
  later(key, tell) {
    clearTimeout(this.#waiting.get(key)?.timer);
    const timer = setTimeout(() => this.#tell(key), PAUSE_MS);
    this.#waiting.set(key, { timer, tell });
  }

  /** Tells at once what still waits, and answers when the app has it. */
  flush() {
    for (const key of [...this.#waiting.keys()]) this.#tell(key);
    return this.#told;
  }

  /** One after the other, so that the app does not take an older text for the newest. */
  #tell(key) {
    const { timer, tell } = this.#waiting.get(key);
    clearTimeout(timer);
    this.#waiting.delete(key);
    this.#told = this.#told.then(tell);
  }
}
