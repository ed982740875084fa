// Rows and details are compressed in the page; the browser's own decompression unpacks them.

async function unpack(id) {
  const packed = atob(byId(id).textContent.trim());
  const bytes = new Uint8Array(packed.length);
  for (let at = 0; at < packed.length; at += 1) bytes[at] = packed.charCodeAt(at);
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Response(stream).json();
}

async function unpackRows() {
  const rows = await unpack("rows");
  return rows.map((values, place) => {
    const row = { place };
    facts.columns.forEach((name, number) => {
      row[name] = values[number];
    });
    return row;
  });
}

// The details of a session, or null if they were left out to keep the page small.
async function detailsOf(row) {
  const group = `group-${Math.floor(row.place / facts.group)}`;
  if (!byId(group)?.textContent) return null;
  return (await unpack(group))[row.place % facts.group];
}

const sums = (differences) => {
  let sum = 0;
  return differences.map((difference) => (sum += difference));
};

// The entries and context points of a timeline, from its columns.
function unfolded(packed, names) {
  const starts = sums(packed.starts);
  const events = sums(packed.events);
  const failed = new Set(packed.failed);
  const turns = sums(packed.turns);
  let turn = 0;
  const entries = packed.kinds.map((kind, n) => ({
    kind: facts.kinds[kind],
    start: starts[n] / 10,
    end: (starts[n] + packed.lengths[n]) / 10,
    event: events[n],
    name: packed.named[n] < 0 ? null : names[packed.named[n]],
    turn: facts.kinds[kind] === "turn" ? turns[turn++] : null,
    failed: failed.has(n),
  }));
  const filled = sums(packed.filled);
  const context = sums(packed.at).map((at, n) => ({ at: at / 10, tokens: filled[n] }));
  return { entries, context, window: packed.window, leftOut: packed.left_out };
}
