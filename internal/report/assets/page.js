"use strict";
(() => {
  const colors = ["#2a7fc9", "#d9772b", "#3a9d5d", "#b5509c", "#c0a020", "#2aa5a5", "#c8434b", "#7a68c8", "#7d8894"];
  const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const add = (to, tag, text, kind) => {
    const e = document.createElement(tag);
    if (text !== undefined) e.textContent = text;
    if (kind) e.className = kind;
    to.append(e);
    return e;
  };
  const figure = (v) => v == null ? "" : v >= 1e6 ? +(v / 1e6).toPrecision(3) + " M" :
    v >= 1e4 ? +(v / 1e3).toPrecision(3) + " k" : String(+v.toPrecision(3));

  // table shows cells; columns with anything that is no number stand left.
  const table = (to, { head, rows, text }) => {
    const t = add(add(to, "div", undefined, "table"), "table");
    const first = add(t, "tr");
    head.forEach((h, i) => add(first, "th", h, text[i] ? "text" : ""));
    for (const r of rows) {
      const tr = add(t, "tr");
      r.forEach((c, i) => add(tr, "td", c, (text[i] ? "text" : "") + (c.length > 40 ? " wide" : "")));
    }
  };

  // axis draws in the page's colors.
  const axis = (label, more) => ({
    label, stroke: css("--soft"), grid: { stroke: css("--line"), width: 1 }, ticks: { stroke: css("--line") },
    font: "12px system-ui, sans-serif", labelFont: "12px system-ui, sans-serif",
    values: (_, list) => list.map(figure), labelSize: 18, ...more,
  });

  // marks draws lines up at places that have names.
  const marks = (list) => (u) => {
    const { ctx, bbox } = u;
    ctx.save();
    ctx.strokeStyle = css("--soft");
    ctx.fillStyle = css("--soft");
    ctx.setLineDash([2, 4]);
    ctx.font = `${11 * devicePixelRatio}px system-ui, sans-serif`;
    const places = new Map();
    for (const m of list) places.set(m.x, [...(places.get(m.x) || []), m.name]);
    for (const [x, names] of places) {
      const at = u.valToPos(x, "x", true);
      ctx.beginPath();
      ctx.moveTo(at, bbox.top);
      ctx.lineTo(at, bbox.top + bbox.height);
      ctx.stroke();
      const right = at > bbox.left + bbox.width / 2;
      ctx.textAlign = right ? "right" : "left";
      names.forEach((n, i) => ctx.fillText(n, at + (right ? -4 : 4) * devicePixelRatio,
        bbox.top + (14 + 13 * i) * devicePixelRatio));
    }
    ctx.restore();
  };

  const lines = (c, width) => {
    const xs = [...new Set(c.series.flatMap((s) => s.points.map((p) => p[0])))].sort((a, b) => a - b);
    const data = [xs, ...c.series.map((s) => {
      const at = new Map(s.points);
      return xs.map((x) => at.has(x) ? at.get(x) : null);
    })];
    const values = data.slice(1).flat().filter((v) => v > 0);
    const wide = c.log && Math.min(...xs) > 0 && Math.max(...values) > 30 * Math.min(...values);
    const papers = c.series.filter((s) => s.paper).length > 2 ? ["#7d8894"] : ["#7d8894", "#b08968"];
    let own = 0, theirs = 0;
    return [{
      width, height: Math.max(260, Math.min(400, width * .6)),
      scales: { x: { time: false, distr: wide ? 3 : 1, range: (_, min, max) => min < max ? [min, max] : [min / 2, max * 2] }, y: { distr: wide ? 3 : 1, range: wide ? undefined :
        (_, min, max) => [Math.min(0, min), max > 0 ? max * 1.05 : 1] } },
      axes: [
        axis(c.x, xs.length > 8 ? {} : { splits: () => xs, filter: (_, list) => list }),
        axis(c.y, { size: 64 }),
      ],
      series: [{ label: c.x, value: (_, v) => figure(v) }, ...c.series.map((s) => {
        const stroke = s.paper ? papers[theirs++ % papers.length] : colors[own++ % colors.length];
        return {
          label: s.name, stroke, width: s.paper ? 1 : 2, dash: s.paper ? [4, 4] : undefined, spanGaps: true,
          points: { show: s.points.length < 60, size: s.paper ? 5 : 6, stroke, fill: s.paper ? css("--paper") : stroke },
          value: (_, v) => v == null ? "" : figure(v),
        };
      })],
      hooks: { draw: c.marks ? [marks(c.marks)] : [] },
      cursor: { drag: { x: false, y: false } },
    }, data];
  };

  const bars = (c, width) => {
    const n = c.labels.length;
    return [{
      width, height: 280,
      scales: { x: { time: false, range: [-.6, n - .4] }, y: { range: (_, min, max) => [0, max * 1.05 || 1] } },
      axes: [
        axis(undefined, {
          splits: () => c.labels.map((_, i) => i), values: () => c.labels, rotate: width / n < 90 ? -60 : 0,
          size: width / n < 90 ? 110 : 40, grid: { show: false },
        }),
        axis(c.y, { size: 64 }),
      ],
      series: [{ label: c.x, value: (_, v) => c.labels[v] ?? "" }, ...c.series.map((s, i) => ({
        label: s.name, stroke: colors[i % colors.length], fill: colors[i % colors.length],
        paths: uPlot.paths.bars({ size: [.6, 80] }), points: { show: false }, value: (_, v) => figure(v),
      }))],
      cursor: { drag: { x: false, y: false } },
    }, [c.labels.map((_, i) => i), ...c.series.map((s) => s.points.map((p) => p[1]))]];
  };

  const charts = [];
  const draw = () => {
    for (const { at, chart } of charts) {
      at.replaceChildren();
      const [options, data] = (chart.kind === "bars" ? bars : lines)(chart, at.clientWidth);
      new uPlot(options, data, at);
    }
  };

  const contents = document.getElementById("contents"), sections = document.getElementById("sections");
  report.forEach((s, i) => {
    const part = add(sections, "section");
    part.id = "s" + i;
    if (s.table) add(contents, "a", s.title).href = "#s" + i;
    else part.className = "picture";
    add(part, "h2", s.title);
    if (s.text) add(part, "p", s.text);
    if (s.chart) charts.push({ at: add(part, "div", undefined, "chart"), chart: s.chart });
    if (s.table) table(part, s.table);
  });
  draw();
  let width = innerWidth;
  addEventListener("resize", () => { if (innerWidth !== width) { width = innerWidth; draw(); } });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  addEventListener("beforeprint", draw);
  addEventListener("afterprint", draw);
})();
