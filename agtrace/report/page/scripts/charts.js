// Charts by Chart.js. Each is redrawn when the look changes, because colours are read from the style sheet.

const FONT = getComputedStyle(document.body).fontFamily;

function prepare() {
  Chart.defaults.font.family = FONT;
  Chart.defaults.font.size = 12;
  Chart.defaults.color = colour("--muted");
  Chart.defaults.borderColor = colour("--line");
  Chart.defaults.animation = false;
  Chart.defaults.maintainAspectRatio = false;
  Chart.defaults.plugins.legend.position = "bottom";
  Object.assign(Chart.defaults.plugins.legend.labels, {
    boxWidth: 10,
    boxHeight: 10,
    padding: 14,
    useBorderRadius: true,
    borderRadius: 3,
  });
  Object.assign(Chart.defaults.plugins.tooltip, {
    backgroundColor: colour("--ink"),
    titleColor: colour("--ground"),
    bodyColor: colour("--ground"),
    padding: 10,
    cornerRadius: 8,
    boxPadding: 5,
    boxWidth: 9,
    boxHeight: 9,
    borderWidth: 0,
  });
}

// Draws on a canvas now and whenever the look changes; returns a function that stops this.
function drawn(canvas, configuration) {
  let chart = null;
  const draw = () => {
    chart?.destroy();
    prepare();
    chart = new Chart(canvas, configuration());
  };
  draw();
  whenLookChanges.add(draw);
  return () => {
    whenLookChanges.delete(draw);
    chart.destroy();
  };
}

const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

function tick(label, most) {
  const day = /^(\d{4})-(\d\d)(?:-(\d\d))?$/.exec(label);
  if (!day) return cut(label, most);
  const month = MONTHS[Number(day[2]) - 1];
  return day[3] ? `${Number(day[3])} ${month}` : `${month} ${day[1]}`;
}

const failedShare = ({ name, rows }, n) =>
  name === "tools" ? ` · ${percent(rows[n][1][1] / (rows[n][1][0] || 1))}` : "";

function series(chart) {
  const single = chart.columns.length === 2;
  return chart.columns.slice(1).map((label, n) => ({
    label,
    data: chart.rows.map(([, numbers]) => numbers[n]),
    backgroundColor: single && chart.colours.length > 1 ? chart.colours.map(colour) : colour(chart.colours[n]),
    borderColor: colour("--surface"),
    borderWidth: chart.kind === "columns" && !single ? { top: 1 } : 0,
    borderRadius: chart.kind === "bars" ? 4 : single ? 5 : 2,
    maxBarThickness: chart.kind === "bars" ? (chart.stacked || !n ? 16 : 8) : 46,
    grouped: chart.stacked,
    order: chart.stacked ? n : -n,
  }));
}

function configuration(chart) {
  const lying = chart.kind === "bars";
  const write = WRITTEN[chart.unit];
  const labels = chart.rows.map(([label]) => label);
  const numbers = {
    beginAtZero: true,
    stacked: chart.stacked,
    border: { display: false },
    grid: { drawTicks: false },
    ticks: {
      callback: (value) => write(value),
      precision: chart.unit === "number" ? 0 : undefined,
      maxTicksLimit: 6,
      padding: 6,
    },
  };
  const names = {
    stacked: chart.stacked,
    grid: { display: false },
    border: { color: colour("--line") },
    ticks: {
      callback(_, n) {
        return tick(labels[n], this.chart.width > 460 ? 24 : chart.name === "tools" ? 14 : 20) + failedShare(chart, n);
      },
      autoSkip: !lying,
      maxRotation: 0,
      autoSkipPadding: 14,
      color: lying ? colour("--ink") : colour("--muted"),
    },
  };
  return {
    type: "bar",
    data: { labels, datasets: series(chart) },
    options: {
      indexAxis: lying ? "y" : "x",
      onClick: (_, [hit]) => hit && lists(chart) && listSessions(chart, labels[hit.index]),
      onHover: (event, [hit]) => (event.native.target.style.cursor = hit && lists(chart) ? "pointer" : ""),
      scales: lying ? { x: numbers, y: names } : { x: names, y: numbers },
      interaction: { mode: "index", intersect: false, axis: lying ? "y" : "x" },
      plugins: {
        legend: { display: chart.columns.length > 2 },
        tooltip: {
          filter: (item) => item.raw !== 0 || chart.columns.length === 2,
          callbacks: { label: (item) => `${item.dataset.label}: ${item.raw === null ? "unknown" : write(item.raw)}`, footer: () => "" },
        },
      },
    },
  };
}

// The filters that a chart's bars stand for.
const FILTERS = { detectors: "by-finding", projects: "by-project" };
const lists = (chart) => chart.name in FILTERS;

function listSessions(chart, label) {
  const filter = byId(FILTERS[chart.name]);
  const wanted = [...filter.options].find(({ dataset }) => dataset.label === label);
  if (!wanted) return;
  byId("filters").reset();
  filter.value = wanted.value;
  refresh();
  goTo("#sessions");
}

// Horizontal bars need room for each; it is reserved before anything is drawn, so that nothing moves later.
function makeRoom() {
  for (const chart of facts.charts.filter(({ kind }) => kind === "bars")) {
    byId(`chart-${chart.name}`).parentElement.style.flexBasis = `${chart.rows.length * 30 + 70}px`;
  }
}

function drawOverview() {
  for (const chart of facts.charts) drawn(byId(`chart-${chart.name}`), () => configuration(chart));
}

function contextConfiguration(points, limit, { active, last: end }) {
  const line = colour("--series-2");
  const data = points.map((point) => ({ x: active(point.at), y: point.tokens, at: point.at }));
  const last = active(end) || 1;
  const datasets = [
    {
      label: "Context",
      data,
      borderColor: line,
      backgroundColor: colour("--series-2-soft"),
      fill: true,
      clip: 6,
      borderWidth: 2,
      pointRadius: data.length > 60 ? 0 : 3,
      pointHoverRadius: 5,
      tension: 0,
    },
  ];
  if (limit) {
    const whole = [
      { x: 0, y: limit },
      { x: last, y: limit },
    ];
    datasets.push({
      label: "Window",
      data: whole,
      borderColor: colour("--bad"),
      borderWidth: 1.5,
      borderDash: [6, 4],
      pointRadius: 0,
      pointHitRadius: 0,
    });
  }
  return {
    type: "line",
    data: { datasets },
    options: {
      interaction: { mode: "nearest", intersect: false, axis: "x" },
      scales: {
        x: {
          type: "linear",
          min: 0,
          max: last,
          grid: { display: false },
          ticks: { callback: (value) => duration(value), maxTicksLimit: 8, maxRotation: 0 },
          title: { display: true, text: "time, without long pauses" },
        },
        y: {
          beginAtZero: true,
          border: { display: false },
          ticks: { callback: (value) => short(value), maxTicksLimit: 6 },
        },
      },
      plugins: {
        tooltip: {
          callbacks: {
            title: (items) => (items.length ? `after ${duration(items[0].raw.at ?? 0)}` : ""),
            label: (item) => `${item.dataset.label}: ${plain(item.raw.y)} tokens`,
          },
        },
      },
    },
  };
}
