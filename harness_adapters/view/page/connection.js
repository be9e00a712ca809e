// Asking the view's server: the token in a header, the feed of events, and connecting anew.

const TOKEN_HEADER = "X-Agent-Channel-Token";
const KEPT = "agent-channel token";

const SILENT_MS_MAX = 45_000; // the server says something every 15 s
const WAIT_MS = [500, 1_000, 2_000, 5_000];

/** What the server refused; `status` of HTTP, `mayBeForced` for a decision. */
export class Refused extends Error {
  constructor(message, status, mayBeForced = false) {
    super(message);
    this.status = status;
    this.mayBeForced = mayBeForced;
  }
}

/** The token of this tab: taken from the address once, which no longer shows it then. Null: there is none. */
export function takeToken() {
  const fromAddress = location.hash.slice(1);
  if (/^[0-9a-f]{32}$/.test(fromAddress)) {
    sessionStorage.setItem(KEPT, fromAddress);
    history.replaceState(null, "", location.pathname + location.search);
  }
  return sessionStorage.getItem(KEPT);
}

export class Connection {
  constructor(token) {
    this.headers = { [TOKEN_HEADER]: token };
  }

  /** The JSON of an answer. Throws Refused, or TypeError where nobody answers. */
  async get(path) {
    return this.#answer(await fetch(path, { headers: this.headers }));
  }

  /** Have something done. Throws as `get`. */
  async post(path) {
    return this.#answer(await fetch(path, { method: "POST", headers: this.headers }));
  }

  /**
   * Follow a feed until `signal` aborts; again and again if it breaks off. `onEvent(name, data)`; `onState` is told
   * "live", "lost" or, when it is no use to ask again, "refused" with the reason.
   */
  async follow(path, signal, onEvent, onState) {
    for (let failures = 0; !signal.aborted; failures += 1) {
      try {
        await this.#followOnce(path, signal, (name, data) => {
          failures = 0;
          onEvent(name, data);
        }, onState);
      } catch (error) {
        if (error instanceof Refused && error.status < 500) return onState("refused", error.message);
      }
      if (signal.aborted) return;
      onState("lost");
      await new Promise((resolve) => setTimeout(resolve, WAIT_MS[Math.min(failures, WAIT_MS.length - 1)]));
    }
  }

  async #followOnce(path, signal, onEvent, onState) {
    const broken = new AbortController();
    const abort = () => broken.abort();
    signal.addEventListener("abort", abort);
    let silence = setTimeout(abort, SILENT_MS_MAX);
    try {
      const response = await fetch(path, { headers: this.headers, signal: broken.signal });
      if (!response.ok) await this.#answer(response);
      onState("live");
      const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
      let text = "";
      for (;;) {
        const { value, done } = await reader.read();
        if (done) return;
        clearTimeout(silence);
        silence = setTimeout(abort, SILENT_MS_MAX);
        text += value;
        for (let end = text.indexOf("\n\n"); end >= 0; end = text.indexOf("\n\n")) {
          const event = parse(text.slice(0, end));
          text = text.slice(end + 2);
          if (event && !signal.aborted) onEvent(event.name, event.data);
        }
      }
    } finally {
      clearTimeout(silence);
      signal.removeEventListener("abort", abort);
    }
  }

  async #answer(response) {
    const body = await response.json().catch(() => ({}));
    if (!response.ok) {
      throw new Refused(body.error ?? `The view failed (${response.status}).`, response.status, body.may_be_forced);
    }
    return body;
  }
}

/** One event: this server writes its name, then one line of JSON. A comment is none. */
function parse(lines) {
  const found = /^event: (\w+)\ndata: (.*)$/s.exec(lines);
  return found && { name: found[1], data: JSON.parse(found[2]) };
}
