// The last hour: how long deliveries took, and how many waited. Drawn, and as a table.

import { byId, drawn, element } from "./elements.js";
import { duration, minuteOf } from "./times.js";

const WIDTH = 320;
const LEFT = 44; // for the labels
const RIGHT = WIDTH - 8;
const TIMES = { top: 10, bottom: 112 };
const WAITING = { top: 146, bottom: 192 };
const HEIGHT = 214;

const MINUTES = 60;
const LABELLED_MINUTES = 20;
const SCALE_MS = [100, 1_000, 10_000, 60_000, 600_000, 3_600_000];

/** Draw what the feed says of the hour. */
export function drawHour({ minutes, is_whole: isWhole }) {
  byId("chart").replaceChildren(legend(), picture(minutes));
  byId("hour-table").replaceChildren(...tableOf(minutes));
  byId("hour-part").hidden = isWhole;
}

function picture(minutes) {
  const x = (index) => LEFT + ((index + 0.5) * (RIGHT - LEFT)) / MINUTES;
  return drawn(
    "svg",
    { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-labelledby": "chart-title", "aria-describedby": "chart-text" },
    drawn("title", { id: "chart-title" }, "Delivery times and waiting deliveries over the last hour"),
    drawn("desc", { id: "chart-text" }, summaryOf(minutes)),
    ...minuteLabels(minutes, x),
    ...timesGrid(minutes),
    ...minutes.flatMap((minute, index) => timesOf(minute, x(index), ceilingOf(minutes))),
    ...waitingOf(minutes, x),
  );
}

/** The smallest step of the scale that nothing is above. */
function ceilingOf(minutes) {
  const longest = Math.max(0, ...minutes.flatMap(({ accepted, seen }) => [accepted?.longest_ms ?? 0, seen?.longest_ms ?? 0]));
  return SCALE_MS.find((step) => step >= longest && step >= 10_000) ?? SCALE_MS.at(-1);
}

/** A logarithmic scale: from a tenth of a second, since minutes and moments stand side by side. */
function heightOf(ms, ceiling) {
  const [least] = SCALE_MS;
  const share = Math.log(Math.min(Math.max(ms, least), ceiling) / least) / Math.log(ceiling / least);
  return TIMES.bottom - share * (TIMES.bottom - TIMES.top);
}

function timesGrid(minutes) {
  const ceiling = ceilingOf(minutes);
  return SCALE_MS.filter((step) => step <= ceiling).flatMap((step) => gridLine(heightOf(step, ceiling), duration(step)));
}

function gridLine(y, label) {
  return [
    drawn("line", { class: "grid", x1: LEFT, x2: RIGHT, y1: y, y2: y }),
    drawn("text", { class: "label", x: LEFT - 6, y: y + 3, "text-anchor": "end" }, label),
  ];
}

/** From the middle one to the longest of a minute, with a dot at the middle. */
function timesOf(minute, x, ceiling) {
  return ["accepted", "seen"].flatMap((which) => {
    const took = minute[which];
    if (took === null) return [];
    const at = which === "accepted" ? x - 1 : x + 1;
    const [middle, longest] = [heightOf(took.median_ms, ceiling), heightOf(took.longest_ms, ceiling)];
    return [
      drawn("line", { class: `range ${which}`, x1: at, x2: at, y1: middle, y2: longest }),
      drawn("circle", { class: `dot ${which}`, cx: at, cy: middle, r: 2.2 }),
    ];
  });
}

function waitingOf(minutes, x) {
  const most = Math.max(1, ...minutes.map((minute) => minute.waiting));
  const y = (count) => WAITING.bottom - (count / most) * (WAITING.bottom - WAITING.top);
  const half = (RIGHT - LEFT) / MINUTES / 2;
  const steps = minutes.map((minute, index) => `L${x(index) - half},${y(minute.waiting)} L${x(index) + half},${y(minute.waiting)}`);
  const area = `M${LEFT},${WAITING.bottom} ${steps.join(" ")} L${RIGHT},${WAITING.bottom} Z`;
  return [
    drawn("text", { class: "label strong", x: LEFT, y: WAITING.top - 10 }, "waiting"),
    ...gridLine(WAITING.bottom, "0"),
    ...gridLine(WAITING.top, most.toLocaleString()),
    drawn("path", { class: "area", d: area }),
  ];
}

function minuteLabels(minutes, x) {
  return minutes.flatMap((minute, index) => {
    if ((minute.begins_at_ms / 60_000) % LABELLED_MINUTES !== 0) return [];
    const at = x(index);
    return [
      drawn("line", { class: "grid", x1: at, x2: at, y1: TIMES.top, y2: WAITING.bottom }),
      drawn("text", { class: "label", x: at, y: HEIGHT - 6, "text-anchor": "middle" }, minuteOf(minute.begins_at_ms)),
    ];
  });
}

function legend() {
  return element(
    "p",
    { class: "legend", "aria-hidden": "true" },
    "time until ",
    element("span", { class: "accepted" }, "accepted"),
    " and ",
    element("span", { class: "seen" }, "seen"),
    ": the middle one to the longest",
  );
}

function summaryOf(minutes) {
  const deliveries = minutes.reduce((sum, minute) => sum + minute.deliveries, 0);
  const longest = Math.max(0, ...minutes.map(({ accepted }) => accepted?.longest_ms ?? 0));
  const took = longest ? ` The longest took ${duration(longest)} to be accepted.` : "";
  return `${deliveries} deliveries.${took} ${minutes.at(-1)?.waiting ?? 0} wait now. The table below has the numbers.`;
}

/** Only the minutes in which something was sent, or the number of waiting ones changed. */
function tableOf(minutes) {
  const head = ["Minute", "Sent", "Accepted", "Seen", "Waiting"];
  const said = minutes.filter(
    (minute, index) => minute.deliveries || index === minutes.length - 1 || minute.waiting !== (minutes[index - 1]?.waiting ?? minute.waiting),
  );
  return [
    element("caption", {}, "Each minute's deliveries, how long the middle one and the longest took, and how many waited at its end"),
    element("thead", {}, element("tr", {}, ...head.map((word) => element("th", { scope: "col" }, word)))),
    element("tbody", {}, ...said.map(tableRow)),
  ];
}

function tableRow(minute) {
  return element(
    "tr",
    {},
    element("th", { scope: "row" }, minuteOf(minute.begins_at_ms)),
    element("td", {}, String(minute.deliveries)),
    element("td", {}, tookOf(minute.accepted)),
    element("td", {}, tookOf(minute.seen)),
    element("td", {}, minute.waiting.toLocaleString()),
  );
}

function tookOf(took) {
  if (took === null) return "";
  const [middle, longest] = [duration(took.median_ms), duration(took.longest_ms)];
  return middle === longest ? middle : `${middle} to ${longest}`;
}
