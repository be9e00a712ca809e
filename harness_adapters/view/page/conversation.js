// The messages of a room, each with what became of its deliveries.

import { announce } from "./announcements.js";
import { Record } from "./decisions.js";
import { byId, element, keepList, setText, unseen, written } from "./elements.js";
import { nameOf, stateMark } from "./states.js";
import { at, duration, wholeTime } from "./times.js";

const SHOWN_MAX = 500; // then the oldest go; they are read again when they are asked for
const NEAR_END_PX = 160;
const HUES = 6;
const RECIPIENTS_MAX = 8; // of more, the numbers are shown, and each if it is asked for
const LINES_MAX = 24;
const LINES_OF_LONG = 14;

export class Conversation {
  room = "";
  #connection;
  #decisions;
  #messages = new Map();
  #kept = new Map();
  #areOlder = false;
  #hues = new Map();

  constructor(connection, decisions) {
    this.#connection = connection;
    this.#decisions = decisions;
    byId("older").addEventListener("click", () => this.#showOlder());
    byId("to-end").addEventListener("click", () => toEnd(true));
    addEventListener("scroll", () => isNearEnd() && (byId("to-end").hidden = true), { passive: true });
  }

  /** The new and changed messages of the feed; `is_all`: nothing else is to be shown. */
  show({ room, is_all: isAll, are_older: areOlder, messages: sent }) {
    const messages = isAll ? sent : sent.filter(({ message_id: id }) => !this.#isLeftOut(id));
    const wasNearEnd = isNearEnd();
    const isOtherRoom = room !== this.room;
    const added = messages.filter((message) => !this.#messages.has(message.message_id));
    if (isAll) {
      this.#messages.clear();
      this.#areOlder = areOlder;
    }
    this.room = room;
    this.#put(messages);
    while (this.#messages.size > SHOWN_MAX) {
      this.#messages.delete(Math.min(...this.#messages.keys()));
      this.#areOlder = true;
    }
    this.#draw();
    setText(byId("room-title"), room || "Conversation");
    document.title = room ? `${room} – agent-channel` : "agent-channel";
    if (isOtherRoom || (wasNearEnd && added.length)) toEnd(false);
    else if (!isAll && added.length) byId("to-end").hidden = false;
    if (!isAll && added.length) announce(newsOf(added));
  }

  showPolicy(policy) {
    setText(byId("policy"), policy);
    byId("policy").hidden = !policy;
  }

  /** Before those that are shown, as long as nobody asks for them. */
  #isLeftOut(messageId) {
    return this.#areOlder && messageId < Math.min(...this.#messages.keys());
  }

  #put(messages) {
    for (const message of messages) this.#messages.set(message.message_id, message);
  }

  #draw() {
    const inOrder = [...this.#messages.values()].sort((one, other) => one.message_id - other.message_id);
    const make = (message) => new Message(message, this.#hueOf(message.sender), this.#connection, this.#decisions);
    keepList(byId("messages"), this.#kept, inOrder, (message) => `${this.room} ${message.message_id}`, make);
    byId("older").hidden = !this.#areOlder;
    byId("empty").hidden = inOrder.length > 0;
  }

  /** Those who speak together differ, as long as they are few. */
  #hueOf(sender) {
    const key = `${this.room} ${sender}`;
    if (!this.#hues.has(key)) this.#hues.set(key, this.#hues.size % HUES);
    return this.#hues.get(key);
  }

  async #showOlder() {
    const before = Math.min(...this.#messages.keys());
    const room = this.room;
    const path = `/api/messages?${new URLSearchParams({ room, before })}`;
    const found = await this.#connection.get(path).catch(() => null);
    if (found === null || room !== this.room) return; // no answer: the button is still there
    const height = document.documentElement.scrollHeight;
    this.#put(found.messages);
    this.#areOlder = found.are_older;
    this.#draw();
    scrollBy(0, document.documentElement.scrollHeight - height); // what was read stays in its place
    if (!found.are_older) byId("room-title").focus({ preventScroll: true });
  }
}

class Message {
  #connection;
  #decisions;
  #kept = new Map();
  #counts = element("summary");
  #deliveries = element("ul", { class: "deliveries" });

  constructor(message, hue, connection, decisions) {
    this.#connection = connection;
    this.#decisions = decisions;
    const id = `message-${message.message_id}`;
    this.element = element(
      "li",
      { class: message.is_notice ? "message notice" : "message", id },
      element(
        "header",
        {},
        element("h3", { class: `sender hue-${hue}` }, message.sender, unseen(" wrote")),
        element("span", { class: "number" }, `#${message.message_id}`),
        message.reply_to ? element("a", { href: `#message-${message.reply_to}` }, `answers #${message.reply_to}`) : null,
        element(
          "time",
          { datetime: new Date(message.created_at_ms).toISOString(), title: wholeTime(message.created_at_ms) },
          at(message.created_at_ms),
        ),
      ),
      ...this.#text(message),
      message.deliveries.length > RECIPIENTS_MAX
        ? element("details", { class: "many" }, this.#counts, this.#deliveries)
        : this.#deliveries,
    );
    this.#deliveries.setAttribute("aria-label", `Deliveries of message ${message.message_id}`);
  }

  update({ created_at_ms: sentAtMs, deliveries }) {
    const make = (delivery) => new DeliveryRow(delivery, sentAtMs, this.#decisions);
    keepList(this.#deliveries, this.#kept, deliveries, (delivery) => delivery.delivery_id, make);
    setText(this.#counts, countsOf(deliveries));
  }

  /** A long text is shown by its first lines, with a button for the rest. */
  #text({ message_id: messageId, text_begins: begins, text_characters: characters }) {
    const isCut = [...begins].length < characters;
    const lines = begins.split("\n");
    if (!isCut && lines.length <= LINES_MAX) return [element("p", { class: "text" }, ...written(begins))];
    const first = lines.slice(0, LINES_OF_LONG).join("\n");
    const text = element("p", { class: "text" }, ...written(first));
    const label = `Show all ${characters.toLocaleString()} characters`;
    const more = element("button", { type: "button", class: "more" }, label, unseen(` of message ${messageId}`));
    more.addEventListener("click", async () => {
      more.setAttribute("aria-busy", "true");
      const path = `/api/messages/${messageId}`;
      const whole = isCut ? await this.#connection.get(path).catch(() => null) : { text: begins };
      more.removeAttribute("aria-busy");
      if (whole === null) return;
      text.replaceChildren(...written(whole.text));
      text.tabIndex = -1;
      text.focus({ preventScroll: true });
      more.remove();
    });
    return [text, more];
  }
}

/** One delivery on one line; opened, all that is recorded of it. */
class DeliveryRow {
  #decisions;
  #sentAtMs;
  #record = null;
  #state = element("span", { class: "state" });
  #steps = element("span", { class: "steps" });
  #why = element("span", { class: "why" });

  constructor(delivery, sentAtMs, decisions) {
    this.#decisions = decisions;
    this.#sentAtMs = sentAtMs;
    this.details = element(
      "details",
      {},
      element(
        "summary",
        {},
        stateMark(),
        element("span", { class: "to" }, unseen("to "), delivery.recipient),
        this.#state,
        this.#steps,
        this.#why,
      ),
    );
    this.details.addEventListener("toggle", () => this.#load(delivery.delivery_id));
    this.element = element("li", { class: "delivery" }, this.details);
  }

  update(delivery) {
    this.#showState(delivery);
    const shown = JSON.stringify(delivery);
    if (this.shown !== undefined && this.shown !== shown) this.#load(delivery.delivery_id);
    this.shown = shown;
  }

  #showState(delivery) {
    this.element.dataset.state = delivery.state;
    setText(this.#state, nameOf(delivery.state));
    setText(this.#steps, stepsOf(delivery, this.#sentAtMs));
    setText(this.#why, delivery.detail);
  }

  async #load(deliveryId) {
    if (!this.details.open) return;
    const delivery = await this.#decisions.read(deliveryId).catch(() => null);
    if (delivery === null) return; // it was trimmed, or the view ended, which the page says elsewhere
    if (this.#record === null) {
      this.#record = new Record(delivery, this.#decisions);
      this.details.append(this.#record.element);
    }
    this.#record.update(delivery);
    this.#showState(delivery); // an older message's is not followed
  }
}

/** `12 recipients: 10 seen, 2 pending`. */
function countsOf(deliveries) {
  const counts = new Map();
  for (const { state } of deliveries) counts.set(state, (counts.get(state) ?? 0) + 1);
  const words = [...counts].map(([state, count]) => `${count} ${nameOf(state)}`);
  return `${deliveries.length} recipients: ${words.join(", ")}`;
}

/** How long after the message was sent a delivery came how far. */
function stepsOf(delivery, sentAtMs) {
  const steps = [
    ["handed over", delivery.handed_over_at_ms],
    ["accepted", delivery.accepted_at_ms],
    ["seen", delivery.seen_at_ms],
  ];
  const words = steps.filter(([, ms]) => ms !== null).map(([name, ms]) => `${name} +${duration(ms - sentAtMs)}`);
  if (delivery.repeats) words.push(`repeat ${delivery.repeats}`);
  return words.join(", ");
}

function newsOf([first, ...others]) {
  return others.length ? `${others.length + 1} new messages` : `New message ${first.message_id} from ${first.sender}`;
}

const isNearEnd = () => innerHeight + scrollY >= document.documentElement.scrollHeight - NEAR_END_PX;

function toEnd(andFocus) {
  scrollTo(0, document.documentElement.scrollHeight);
  byId("to-end").hidden = true;
  if (andFocus) byId("room-title").focus({ preventScroll: true });
}
