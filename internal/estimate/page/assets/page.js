"use strict";
(() => {
  const { files, report, price } = estimate;
  const ways = report.total.map((w) => w.way);
  const names = { plain: "plain", gzip: "gzip", zstd: "zstd", first_contact: "first contact",
    met_before: "met before", steady: "steady" };
  const heads = ways.map((w) => names[w].split(" ")[0]);
  const style = getComputedStyle(document.documentElement);
  const color = (way) => style.getPropertyValue("--" + way.split("_")[0]).trim();
  const whole = new Intl.NumberFormat("en").format;
  const digits = (v) => v >= 100 ? whole(Math.round(v)) : v.toPrecision(3);
  const byId = (id) => document.getElementById(id);

  const add = (to, tag, text) => {
    const e = document.createElement(tag);
    if (text !== undefined) e.textContent = text;
    to.append(e);
    return e;
  };

  const table = (id, head, rows) => {
    const t = byId(id);
    for (const [tag, cells] of [["th", head], ...rows.map((r) => ["td", r])]) {
      const tr = add(t, "tr");
      for (const cell of cells) add(tr, tag, cell);
    }
  };

  // bars draws groups of bars, one for each way: values[group][way], null for none.
  const bars = (id, groups, values, log, unit) => {
    const box = byId(id);
    const keys = add(box, "div");
    keys.className = "keys";
    for (const way of ways) add(keys, "span", names[way]).style.setProperty("--color", color(way));
    const place = add(box, "div");
    const top = Math.max(...values.flat().filter((v) => v > 0));
    const low = Math.min(...values.flat().filter((v) => v > 0));
    const floor = log ? 10 ** Math.floor(Math.log10(low)) : 0;
    const draw = (u) => {
      const wide = u.bbox.width / groups.length;
      const bar = wide * 0.85 / ways.length;
      const base = u.valToPos(floor, "y", true);
      u.ctx.save();
      values.forEach((group, g) => group.forEach((v, w) => {
        if (!(v > 0)) return;
        const y = u.valToPos(v, "y", true);
        u.ctx.fillStyle = color(ways[w]);
        u.ctx.fillRect(u.bbox.left + g * wide + wide * 0.075 + w * bar, y, Math.max(bar - devicePixelRatio, 1), base - y);
      }));
      u.ctx.restore();
    };
    const short = (text, room) => text.length > room ? text.slice(0, Math.max(room - 1, 1)) + "…" : text;
    const plot = () => {
      place.replaceChildren();
      const width = box.clientWidth;
      const room = Math.floor((width - 60) / groups.length / 8);
      new uPlot({
        width, height: 260, legend: { show: false }, cursor: { show: false },
        scales: {
          x: { time: false, range: [-0.5, groups.length - 0.5] },
          y: { distr: log ? 3 : 1, range: [floor, log ? 10 ** Math.ceil(Math.log10(top)) : top * 1.05] },
        },
        series: [{}, { paths: () => null, points: { show: false } }],
        axes: [
          { splits: () => groups.map((_, i) => i), values: () => groups.map((g) => short(g, room)),
            grid: { show: false }, ticks: { show: false } },
          { size: 60, values: (_, splits) => splits.map((v) => v === null ? "" : unit(v)) },
        ],
        hooks: { draw: [draw] },
      }, [groups.map((_, i) => i), groups.map(() => top)], place);
    };
    plot();
    let width = box.clientWidth;
    addEventListener("resize", () => {
      if (box.clientWidth !== width) {
        width = box.clientWidth;
        plot();
      }
    });
  };

  const of = (list, way) => list.find((w) => w.way === way);
  const plain = of(report.total, "plain").bytes;
  const steady = of(report.total, "steady").bytes;
  byId("lead").textContent = `Through a pair of hhfr proxies these calls would take ${
    digits(100 * steady / plain)} % of their bytes once both ends know them, and ${
    digits(100 * of(report.total, "first_contact").bytes / plain)} % at first contact.`;

  byId("about").textContent = `${files.join(", ")}: ${whole(report.calls)} calls of plain SOAP on ${
    whole(report.connections)} connections, from ${
    new Date(report.began).toISOString().slice(0, 19).replace("T", " ")} UTC on.`;

  const kilo = (v) => v >= 1e6 ? v / 1e6 + " MB" : v >= 1e3 ? v / 1e3 + " kB" : v + " B";
  bars("total", ["all calls"], [report.total.map((w) => w.bytes)], false, kilo);
  table("totals", ["", "bytes", "of plain", "packets", "bytes between calls"], report.total.map((w, i) =>
    [names[w.way], whole(w.bytes), digits(100 * w.bytes / plain) + " %", whole(w.packets),
      whole(report.between[i].bytes)]));

  const time = (w) => w.too_thin ? "too thin" : digits(w.call_seconds);
  bars("times", report.links.map((l) => l.link), report.links.map((l) => l.ways.map((w) => w.call_seconds || null)),
    true, (v) => v + " s");
  table("links", ["seconds", ...heads], report.links.map((l) => [l.link, ...l.ways.map(time)]));

  const most = report.operations.slice(0, 6);
  bars("operations", most.map((o) => o.operation), most.map((o) => o.ways.map((w) => w.bytes / o.calls)), false, kilo);
  table("each", ["calls", ...heads], report.operations.map((o) =>
    [`${whole(o.calls)} × ${o.operation}`, ...o.ways.map((w) => whole(Math.round(w.bytes / o.calls)))]));

  if (report.month.length === 0) {
    byId("month-title").hidden = byId("month-title").nextElementSibling.hidden = true;
    return;
  }
  const priced = price > 0;
  table("month", ["", "MB", ...(priced ? [`at ${price} per MB`] : [])], report.month.map((w) =>
    [names[w.way], digits(w.megabytes), ...(priced ? [digits(w.cost)] : [])]));
})();
