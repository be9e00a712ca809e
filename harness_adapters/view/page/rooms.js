// Rooms and their roles, as they are at this moment.

import { byId, element, keepList, setText } from "./elements.js";
import { at, wholeTime } from "./times.js";

const HARNESSES = { claude: "Claude Code", codex: "Codex", person: "a person", other: "another client" };

export class Rooms {
  #kept = new Map();
  #shown = { rooms: [], are_more: false };
  #selected = "";

  /** `onChoice(name)`: a person wants to see that room. */
  constructor(onChoice) {
    this.onChoice = onChoice;
  }

  show(snapshot) {
    this.#shown = snapshot;
    keepList(byId("rooms"), this.#kept, snapshot.rooms, (room) => room.name, (room) => this.#make(room));
    byId("rooms-more").hidden = !snapshot.are_more;
  }

  select(name) {
    this.#selected = name;
    this.show(this.#shown);
  }

  policyOf(name) {
    return this.#shown.rooms.find((room) => room.name === name)?.policy ?? "";
  }

  #make({ name }) {
    const counts = element("span", { class: "counts" });
    const button = element("button", { type: "button", class: "room" }, element("span", { class: "name", title: name }, name), counts);
    button.addEventListener("click", () => this.onChoice(name));
    const roles = element("ul", { class: "roles", "aria-label": `Roles in ${name}` });
    const kept = new Map();
    const update = (room) => {
      const isSelected = name === this.#selected;
      if (isSelected) button.setAttribute("aria-current", "true");
      else button.removeAttribute("aria-current");
      setText(counts, countsOf(room.roles));
      roles.hidden = !isSelected || room.roles.length === 0;
      keepList(roles, kept, room.roles, (role) => `${role.name} ${role.harness}`, makeRole);
    };
    return { element: element("li", {}, button, roles), update };
  }
}

function countsOf(roles) {
  const active = roles.filter((role) => role.waiter_active).length;
  const waiting = roles.reduce((sum, role) => sum + role.waiting, 0);
  return `${active} of ${roles.length} active${waiting ? `, ${waiting} waiting` : ""}`;
}

function makeRole({ name, harness }) {
  const state = element("span", { class: "presence" });
  const waiting = element("span", { class: "waiting" });
  const detail = element("p", { class: "detail" });
  const made = element(
    "li",
    { class: "role" },
    element("span", { class: "name" }, name),
    element("span", { class: "harness" }, HARNESSES[harness] ?? harness),
    state,
    waiting,
    detail,
  );
  const update = (role) => {
    made.dataset.is = isOf(role);
    setText(state, presenceOf(role));
    state.title = role.offline_since_ms === null ? "" : `since ${wholeTime(role.offline_since_ms)}`;
    setText(waiting, role.waiting ? `${role.waiting >= 1000 ? "1,000 or more" : role.waiting} waiting` : "");
    setText(detail, role.detail);
    detail.hidden = !role.detail;
  };
  return { element: made, update };
}

function isOf(role) {
  if (role.harness === "person") return "person";
  if (role.waiter_active) return "active";
  return role.connected ? "deaf" : "offline";
}

function presenceOf(role) {
  if (role.harness === "person") return "reads by command";
  if (role.waiter_active) return "active";
  const since = role.offline_since_ms === null ? "" : ` since ${at(role.offline_since_ms)}`;
  return role.connected ? `open, no waiter${since}` : `offline${since}`;
}
