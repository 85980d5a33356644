// Times, numbers and names as people read them.

// Characters that move, hide or reorder what stands around them, shown as what they are.
const UNSEEN = /[\u0000-\u001f\u007f-\u009f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff]/g;

export function plain(value) {
  return String(value).replace(UNSEEN, (letter) => {
    return `\\u{${letter.codePointAt(0).toString(16)}}`;
  });
}

// `350 ms`, `4.2 s`, `48 s`, `12 min`, `3 h 20 min`, `5 d 4 h`.
export function span(ms) {
  if (ms === null || ms === undefined || Number.isNaN(ms)) return "–";
  const whole = Math.max(0, ms);
  if (whole < 1000) return `${Math.round(whole)} ms`;
  if (whole < 10_000) return `${(Math.floor(whole / 100) / 10).toFixed(1)} s`;
  if (whole < 120_000) return `${Math.floor(whole / 1000)} s`;
  const minutes = Math.floor(whole / 60_000);
  if (minutes < 60) return `${minutes} min`;
  const hours = Math.floor(minutes / 60);
  if (hours < 48) return minutes % 60 ? `${hours} h ${minutes % 60} min` : `${hours} h`;
  const days = Math.floor(hours / 24);
  return hours % 24 && days < 10 ? `${days} d ${hours % 24} h` : `${days} d`;
}

// Seconds with one decimal, for what counts down: its width doesn't jump.
export function seconds(ms) {
  return `${(Math.max(0, ms) / 1000).toFixed(1)} s`;
}

const two = (number) => String(number).padStart(2, "0");

// `21:24:44`, in the reader's own time zone.
export function time(ms) {
  const at = new Date(ms);
  return `${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}`;
}

export function shortTime(ms) {
  return time(ms).slice(0, 5);
}

// `2026-11-15 21:24:44`, or the time alone if it is today.
export function date(ms, now = Date.now()) {
  if (!ms) return "–";
  const at = new Date(ms);
  const day = `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())}`;
  const today = new Date(now);
  const same = at.toDateString() === today.toDateString();
  return same ? time(ms) : `${day} ${time(ms)}`;
}

// `1 lease`, `3 leases`, `1,234 duties`.
export function count(number, one, many = `${one}s`) {
  return `${number.toLocaleString("en")} ${number === 1 ? one : many}`;
}

// A load or a weight: two digits behind the point at most.
export function amount(number) {
  return number === null || number === undefined ? "–" : String(Math.round(number * 100) / 100);
}

// One of twelve tints for a name, always the same for the same name.
export function tint(text) {
  let hash = 2166136261;
  for (let at = 0; at < text.length; at += 1) {
    hash = Math.imul(hash ^ text.charCodeAt(at), 16777619);
  }
  return ((hash ^ (hash >>> 13)) >>> 0) % 12;
}

const collator = new Intl.Collator("en", { numeric: true });

export function compare(a, b) {
  return collator.compare(a, b);
}

// The route to something, as a link inside this page.
export function route(...parts) {
  return `#/${parts.map(encodeURIComponent).join("/")}`;
}

// Two sizes of an identifier: enough to tell it from others.
export function short(id) {
  return id && id.length > 12 ? id.slice(0, 8) : id;
}
