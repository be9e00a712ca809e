// The delivery states in a person's words.

import { element } from "./elements.js";

const MEANINGS = {
  pending: "not handed to anyone yet",
  handed_over: "given to its address; whether it came there is not known yet",
  accepted: "the receiver has it",
  seen: "recorded where the model reads it",
  uncertain: "handed over, not confirmed, and found nowhere",
  conflict: "its key is held by a message with another text",
  withdrawn: "given up",
};

/** The name of a state, of an event or of a policy: without underlines. */
export const nameOf = (word) => word.replaceAll("_", " ");

export const meaningOf = (state) => MEANINGS[state] ?? "";

/** Its form says the state too, not only its colour: view.css draws it by the `data-state` around it. */
export const stateMark = () => element("span", { class: "mark", "aria-hidden": "true" });
