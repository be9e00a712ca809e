// All that is recorded of a delivery, and what a person does about one that is stuck.

import { announce } from "./announcements.js";
import { byId, element, keepList, setText, unseen, written } from "./elements.js";
import { meaningOf, nameOf, stateMark } from "./states.js";
import { at, duration, wholeTime } from "./times.js";

const OVERDUE_MS = 60_000; // a waiter looks when it is due; the times of leases are of this size

const LABELS = { look: "Look again", resend: "Send again", drop: "Drop" };

/** Has decisions taken, after asking. */
export class Decisions {
  #connection;

  constructor(connection) {
    this.#connection = connection;
  }

  read(deliveryId) {
    return this.#connection.get(`/api/deliveries/${deliveryId}`);
  }

  /** What came of it as `{text, lines, delivery}`, or null if the person thought better of it. Throws Refused. */
  async take(decision, delivery, isForced = false) {
    if (decision !== "look" && !(await confirmed(decision, delivery, isForced))) return null;
    const force = isForced ? "?force=1" : "";
    const done = await this.#connection.post(`/api/deliveries/${delivery.delivery_id}/${decision}${force}`);
    return { ...wordsFor(decision, done), delivery: done.delivery };
  }
}

function wordsFor(decision, { delivery, look, sent_again: sentAgain }) {
  const lines = look ? [...look.looked_at, `found: ${look.found}`] : [];
  const which = `Delivery ${delivery.delivery_id}`;
  if (decision === "resend") {
    return { text: `Sent again to ${sentAgain.recipient} as message ${sentAgain.message_id}. ${which} is withdrawn.`, lines };
  }
  return { text: `${which} is ${nameOf(delivery.state)}${decision === "look" ? " after the look" : ""}.`, lines };
}

/** Ask in the dialog; whether the person said yes. */
function confirmed(decision, delivery, isForced) {
  const ask = byId("ask");
  const to = `delivery ${delivery.delivery_id} to ${delivery.recipient}`;
  const late = delivery.address === null ? "" : " What was handed over can't be called back: if it appears all the same, it becomes seen.";
  if (decision === "drop") {
    setText(byId("ask-title"), `Drop ${to}?`);
    setText(byId("ask-text"), `It is withdrawn, and is not delivered any more.${late}`);
    setText(byId("ask-yes"), "Drop it");
  } else if (isForced) {
    setText(byId("ask-title"), `Send the text of ${to} all the same?`);
    setText(byId("ask-text"), `It goes out as a new message, and this delivery is withdrawn. ${delivery.recipient} may read the text twice.`);
    setText(byId("ask-yes"), "Send it all the same");
  } else {
    setText(byId("ask-title"), `Send the text of ${to} again?`);
    setText(byId("ask-text"), `It goes out as a new message, and this delivery is withdrawn; an uncertain one is looked for first.${late}`);
    setText(byId("ask-yes"), "Send again");
  }
  return new Promise((resolve) => {
    ask.returnValue = "no";
    ask.addEventListener("close", () => resolve(ask.returnValue === "yes"), { once: true });
    ask.showModal();
  });
}

/** All that is recorded of one delivery, with the buttons; made once for each place where it is shown. */
export class Record {
  #decisions;
  #delivery;
  #facts = element("dl", { class: "facts" });
  #events = element("tbody");
  #buttons = {};
  #force;
  #said = element("div", { class: "said", role: "status" });

  constructor(delivery, decisions) {
    this.#decisions = decisions;
    const which = unseen(` for delivery ${delivery.delivery_id} to ${delivery.recipient}`);
    for (const [decision, label] of Object.entries(LABELS)) {
      const button = element("button", { type: "button", "data-decision": decision }, label, which.cloneNode(true));
      button.addEventListener("click", () => this.#decide(decision));
      this.#buttons[decision] = button;
    }
    this.#force = element("button", { type: "button", "data-decision": "force", hidden: true }, "Send it all the same", which);
    this.#force.addEventListener("click", () => this.#decide("resend", true));
    const head = ["Time", "What happened", "State", "Why"].map((word) => element("th", { scope: "col" }, word));
    const caption = element("caption", { class: "unseen" }, `What happened to delivery ${delivery.delivery_id}`);
    this.element = element(
      "div",
      { class: "record" },
      this.#facts,
      element("div", { class: "scrolls" }, element("table", {}, caption, element("thead", {}, element("tr", {}, ...head)), this.#events)),
      element("div", { class: "buttons" }, ...Object.values(this.#buttons), this.#force),
      this.#said,
    );
  }

  update(delivery) {
    this.#delivery = delivery;
    this.#facts.replaceChildren(...factsOf(delivery).flatMap(([name, value]) => [element("dt", {}, name), element("dd", {}, value)]));
    this.#events.replaceChildren(...delivery.events.map((event) => eventRow(event, delivery.created_at_ms)));
    for (const [decision, button] of Object.entries(this.#buttons)) {
      button.hidden = !delivery.decisions.includes(decision);
    }
    if (!delivery.decisions.includes("resend")) this.#force.hidden = true;
  }

  async #decide(decision, isForced = false) {
    const pressed = isForced ? this.#force : this.#buttons[decision];
    pressed.setAttribute("aria-busy", "true");
    try {
      const done = await this.#decisions.take(decision, this.#delivery, isForced);
      if (done === null) return;
      this.#force.hidden = true;
      this.#say([done.text, ...done.lines], "done");
      if (decision !== "look") showOutcome(done.text);
      this.update(done.delivery);
      if (pressed.hidden) this.element.closest("li, details")?.querySelector("summary, h3")?.focus();
    } catch (error) {
      this.#say([error.message], "refused");
      this.#force.hidden = !(decision === "resend" && error.mayBeForced);
    } finally {
      pressed.removeAttribute("aria-busy");
    }
  }

  #say([first, ...lines], is) {
    this.#said.dataset.is = is;
    this.#said.replaceChildren(
      element("p", {}, first),
      ...(lines.length ? [element("ul", {}, ...lines.map((line) => element("li", {}, line)))] : []),
    );
  }
}

function eventRow({ at_ms: ms, event, to_state: state, why }, sentAtMs) {
  const time = element("time", { datetime: new Date(ms).toISOString(), title: wholeTime(ms) }, at(ms));
  const since = ms > sentAtMs ? ` +${duration(ms - sentAtMs)}` : "";
  return element(
    "tr",
    {},
    element("td", {}, time, element("span", { class: "since" }, since)),
    element("td", {}, nameOf(event)),
    element("td", {}, nameOf(state)),
    element("td", {}, why),
  );
}

/** What was looked at, and when it is looked at next. */
function factsOf(delivery) {
  const facts = [
    ["State", `${nameOf(delivery.state)}: ${meaningOf(delivery.state)}`],
    ["Detail", delivery.detail],
    ["Given to", delivery.address ?? "nobody yet"],
    ["Known there as", delivery.key],
    ["Looked", looksOf(delivery)],
    ["Next look", nextLookOf(delivery)],
    ["Repeats", delivery.repeats || null],
  ];
  return facts.filter(([, value]) => value).map(([name, value]) => [name, String(value)]);
}

function looksOf({ looks, absent_since_ms: absentSince, policy }) {
  const where = policy === "queue" ? "in the thread's queue and among its items" : "in the session's transcript";
  if (absentSince !== null) return `${where}: found in neither since ${at(absentSince)} (looks in this state: ${looks})`;
  return looks ? `${where} (looks in this state: ${looks})` : null;
}

function nextLookOf({ next_look_at_ms: ms }) {
  if (ms === null) return null;
  return ms < Date.now() - OVERDUE_MS ? `was due at ${at(ms)}: nobody serves its address now` : at(ms);
}

function showOutcome(text) {
  setText(byId("outcome"), text);
  byId("outcome").hidden = false;
}

/** The deliveries that wait for a decision, in all rooms. */
export class Stuck {
  #decisions;
  #kept = new Map();
  #known = null;

  constructor(decisions) {
    this.#decisions = decisions;
  }

  show({ deliveries, are_more: areMore }) {
    this.#announce(deliveries);
    const list = byId("stuck-list");
    const hadFocus = list.contains(document.activeElement);
    keepList(list, this.#kept, deliveries, (delivery) => delivery.delivery_id, (delivery) => this.#make(delivery));
    byId("stuck").hidden = deliveries.length === 0;
    byId("stuck-more").hidden = !areMore;
    const count = byId("stuck-count");
    count.hidden = deliveries.length === 0;
    setText(count, `${deliveries.length}${areMore ? " or more" : ""} to decide`);
    if (hadFocus && !list.contains(document.activeElement)) {
      byId(deliveries.length ? "stuck-title" : "room-title").focus();
    }
  }

  /** Only those that come while the page is open: what was there at the start stands in the page's head. */
  #announce(deliveries) {
    const added = deliveries.filter(({ delivery_id: id }) => this.#known && !this.#known.has(id));
    this.#known = new Set(deliveries.map(({ delivery_id: id }) => id));
    if (added.length) {
      const [{ delivery_id: id, recipient, state }] = added;
      announce(`Waits for your decision: delivery ${id} to ${recipient} is ${nameOf(state)}`);
    }
  }

  #make(delivery) {
    const record = new Record(delivery, this.#decisions);
    const state = element("span", { class: "state" });
    const cut = [...delivery.text_begins].length < delivery.text_characters ? "…" : "";
    const made = element(
      "li",
      { class: "delivery" },
      element(
        "header",
        {},
        stateMark(),
        element("h3", { tabindex: "-1" }, `Message ${delivery.message_id} from ${delivery.sender} to ${delivery.recipient}`),
        state,
        element("span", { class: "where" }, `in ${delivery.room}, sent ${at(delivery.created_at_ms)}`),
      ),
      element("p", { class: "text" }, ...written(delivery.text_begins + cut)),
      record.element,
    );
    const update = (now) => {
      made.dataset.state = now.state;
      setText(state, nameOf(now.state));
      record.update(now);
    };
    return { element: made, update };
  }
}
