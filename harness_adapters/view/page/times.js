// Times and durations in a person's words; the blank before a unit does not break.

const DAY_MS = 86_400_000;
const clock = new Intl.DateTimeFormat([], { hour: "2-digit", minute: "2-digit", second: "2-digit", hour12: false });
const shortClock = new Intl.DateTimeFormat([], { hour: "2-digit", minute: "2-digit", hour12: false });
const day = new Intl.DateTimeFormat([], { day: "numeric", month: "short" });
const whole = new Intl.DateTimeFormat([], { dateStyle: "full", timeStyle: "medium" });

/** `17:40:12`; with the day before it if that is not today. */
export function at(ms) {
  const date = new Date(ms);
  const isToday = date.toDateString() === new Date().toDateString();
  return isToday ? clock.format(date) : `${day.format(date)} ${clock.format(date)}`;
}

/** `17:40`. */
export const minuteOf = (ms) => shortClock.format(new Date(ms));

/** All of a time, for a title. */
export const wholeTime = (ms) => whole.format(new Date(ms));

/** `40 ms`, `0.4 s`, `12 s`, `3 min`, `15 h`, `2 days`. */
export function duration(ms) {
  if (ms < 100) return `${Math.max(0, Math.round(ms))}\u00a0ms`;
  if (ms < 9_950) return `${(ms / 1_000).toFixed(1)}\u00a0s`;
  if (ms < 120_000) return `${Math.round(ms / 1_000)}\u00a0s`;
  if (ms < 7_200_000) return `${Math.round(ms / 60_000)}\u00a0min`;
  if (ms < 2 * DAY_MS) return `${Math.round(ms / 3_600_000)}\u00a0h`;
  return `${Math.round(ms / DAY_MS)}\u00a0days`;
}
