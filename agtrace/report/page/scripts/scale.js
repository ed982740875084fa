// The time of a session on a line, to scale except for long pauses, which become breaks of one width.

const SHORTEST_PAUSE = 60;
const NOBODY_THERE = 7200;

// Pauses: between turns if long for this session, and within turns if the machine must have been asleep.
function pausesOf(entries) {
  const turns = entries.filter((entry) => entry.kind === "turn");
  const gaps = [];
  let end = 0;
  for (const entry of entries
    .flatMap((one) => (one.kind === "turn" ? edges(one) : [one]))
    .sort((a, b) => a.start - b.start)) {
    if (entry.start - end > SHORTEST_PAUSE) gaps.push({ start: end, end: entry.start });
    end = Math.max(end, entry.end);
  }
  const between = gaps.filter(
    (gap) =>
      gap.end - gap.start > NOBODY_THERE || !turns.some((turn) => turn.start <= gap.start && gap.end <= turn.end),
  );
  const active = end - between.reduce((sum, gap) => sum + gap.end - gap.start, 0);
  return between.filter((gap) => gap.end - gap.start > 0.03 * active);
}

const edges = (turn) => [
  { start: turn.start, end: turn.start },
  { start: turn.end, end: turn.end },
];

// The position of a moment on a line from `left` that is `width` long, and the seconds until then, without pauses.
function scaleOf(entries, left, width) {
  const pauses = pausesOf(entries);
  const last = entries.reduce((end, entry) => Math.max(end, entry.end), 0);
  const active = (moment) =>
    moment - pauses.reduce((sum, gap) => sum + Math.max(Math.min(moment, gap.end) - gap.start, 0), 0);
  const gapWidth = pauses.length ? Math.min(46, (0.3 * width) / pauses.length) : 0;
  const perSecond = (width - gapWidth * pauses.length) / Math.max(active(last), 0.1);
  const gapsUntil = (moment) =>
    pauses.reduce(
      (sum, gap) => sum + gapWidth * Math.max(0, Math.min(1, (moment - gap.start) / (gap.end - gap.start))),
      0,
    );
  return { pauses, last, active, gapWidth, x: (moment) => left + active(moment) * perSecond + gapsUntil(moment) };
}

const STEPS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 43200, 86400];

// The moments labelled below the line: round ones, no closer together than a label is wide.
function ticksOf(scale, left, width) {
  const step = STEPS.find((seconds) => (width * seconds) / Math.max(scale.active(scale.last), 1) > 70) ?? 86400 * 7;
  const ticks = [];
  let free = -Infinity;
  for (let passed = 0; passed <= scale.active(scale.last); passed += step) {
    const moment = momentAt(scale, passed);
    const x = scale.x(moment);
    const label = duration(passed);
    const needed = 7 * label.length + 8;
    if (x < free || x + needed > left + width + 12) continue;
    ticks.push({ x, label });
    free = x + needed;
  }
  return ticks;
}

// The moment when this many seconds had passed, without pauses.
function momentAt(scale, passed) {
  let moment = passed;
  for (const gap of scale.pauses) if (moment > gap.start) moment += gap.end - gap.start;
  return moment;
}
