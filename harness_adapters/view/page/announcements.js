// What a screen reader says, since nobody sees it change.

import { byId, element } from "./elements.js";

const KEPT = 5; // it says each once, as it is added

export function announce(words) {
  const all = byId("announced");
  all.append(element("p", {}, words));
  while (all.childElementCount > KEPT) all.firstElementChild.remove();
}
