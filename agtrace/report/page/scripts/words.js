// Formats of figures, the same as on the overview.

const facts = JSON.parse(byId("facts").textContent);
const THIN = "\u00a0";

const plain = (number) => number.toLocaleString("en-US", { maximumFractionDigits: 2 });
const capital = (text) => text.charAt(0).toUpperCase() + text.slice(1);
const detectorWords = (name) => name.replaceAll("_", " ");
const providerName = (name) => facts.providers[name] ?? name;
const counted = (number, noun, nouns = `${noun}s`) => `${plain(number)} ${number === 1 ? noun : nouns}`;

const SEVERAL = ["critical", "warnings", "info"]; // of the severities, in their order
const countedFindings = (count, severity) => counted(count, facts.severities[severity].toLowerCase(), SEVERAL[severity]);

function short(number) {
  for (const [size, unit] of [
    [1e9, "B"],
    [1e6, "M"],
    [1e3, "k"],
  ]) {
    if (number >= 0.9995 * size) return (number / size).toFixed(number >= 99.95 * size ? 0 : 1) + unit;
  }
  return plain(number);
}

function dollars(amount) {
  if (amount >= 1000) return `$${Math.round(amount).toLocaleString("en-US")}`;
  return amount >= 0.01 || amount === 0 ? `$${amount.toFixed(2)}` : `$${amount.toFixed(4)}`;
}

// Marks a total that is only a lower bound.
const atLeast = (figure, made) => (made === "partial" ? `\u2265\u202f${figure}` : figure);

const WRITTEN = { number: plain, tokens: short, dollars };

function duration(seconds) {
  if (seconds < 10) return `${Math.round(seconds * 10) / 10}${THIN}s`;
  if (seconds < 60) return `${Math.round(seconds)}${THIN}s`;
  const minutes = Math.round(seconds / 60);
  if (minutes < 60) {
    const rest = Math.round(seconds % 60);
    return seconds < 600 && rest && rest < 60
      ? `${Math.floor(seconds / 60)}${THIN}min ${rest}${THIN}s`
      : `${minutes}${THIN}min`;
  }
  const hours = Math.floor(minutes / 60);
  if (hours < 48) return `${hours}${THIN}h${minutes % 60 ? ` ${minutes % 60}${THIN}min` : ""}`;
  return `${Math.round(hours / 24)}${THIN}days`;
}

function percent(share) {
  return `${share >= 0.1 || share === 0 ? Math.round(100 * share) : (100 * share).toFixed(1)}%`;
}

const minute = (time) => (time ? time.slice(0, 16).replace("T", " ") : "time unknown");
const grade = (score) => (score === null ? "none" : score >= 80 ? "good" : score >= 60 ? "fair" : "low");
const cut = (text, most) => (text.length > most ? `${text.slice(0, most - 1)}…` : text);

// A command of agtrace with an id or reference, quoted for a shell and never taken for an option.
function command(name, place) {
  const word = /^[\w.:/-]+$/.test(place) ? place : `'${place.replaceAll("'", "'\\''")}'`;
  return `agtrace ${name} ${place.startsWith("-") ? "-- " : ""}${word}`;
}

// The command that shows an event, or a session.
const showCommand = (id, event) => command("show", event === null || event === undefined ? id : `${id}:${event}`);
