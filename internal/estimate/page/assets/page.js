"use strict";
(() => {
  const { files, report, price } = estimate;
  const rows = [["plain", "plain"], ["kept", "plain, kept"], ["gzip", "gzip bodies"], ["dcz", "dcz replies"],
    ["zlib", "tunnel, zlib"], ["zstd", "tunnel, zstd"], ["first_contact", "hhfr"], ["by_connection", "hhfr, by connection"]];
  const names = Object.fromEntries(rows);
  const met = { first_contact: "met_before", by_connection: "by_connection_met" };
  const kind = (way) => way === "zlib" || way === "zstd" ? "tunnel" : way in met ? "hhfr" : "plain";
  const whole = new Intl.NumberFormat("en").format;
  const digits = (v) => v >= 100 ? whole(Math.round(v)) : v.toPrecision(3);
  const count = (n, what) => `${whole(n)} ${what}${n === 1 ? "" : "s"}`;
  const byId = (id) => document.getElementById(id);
  const of = (list, way) => list.find((w) => w.way === way);

  const add = (to, tag, text) => {
    const e = document.createElement(tag);
    if (text !== undefined) e.textContent = text;
    to.append(e);
    return e;
  };

  // table fills a table. A cell that is a number from 0 to 1 is a bar.
  const table = (t, head, body) => {
    const first = add(t, "tr");
    for (const cell of head) add(first, "th", cell);
    for (const [way, ...cells] of body) {
      const tr = add(t, "tr");
      tr.className = kind(way);
      for (const cell of cells) {
        if (typeof cell === "string") {
          add(tr, "td", cell);
          continue;
        }
        const td = add(tr, "td");
        td.className = "bar";
        add(td, "div").style.width = 100 * cell + "%";
      }
    }
  };

  const plain = of(report.total, "plain").bytes;
  const pair = of(report.total, "first_contact").bytes;
  const tunnel = ["zlib", "zstd"].reduce((a, b) => of(report.total, b).bytes < of(report.total, a).bytes ? b : a);
  const share = (bytes) => digits(100 * bytes / plain) + " %";
  byId("title").textContent = report.smallest.first === "first_contact" ?
    `hhfr would take ${share(pair)} of the bytes` : `A tunnel would take fewer bytes than hhfr`;
  const lead = [`${count(report.calls, "call")} take ${whole(plain)} bytes as they are, ${whole(pair)} through a pair of
    hhfr proxies (${share(pair)}), and ${whole(of(report.total, tunnel).bytes)} through a tunnel that compresses with
    ${tunnel} (${share(of(report.total, tunnel).bytes)}).`];
  const seconds = (link, way) => of(link.ways, way).call_seconds;
  const slow = report.links.find((l) => !of(l.ways, "plain").too_thin && !of(l.ways, "first_contact").too_thin);
  if (slow) {
    lead.push(`On ${slow.link} a call takes ${digits(seconds(slow, "plain"))} s as it is, ${
      digits(seconds(slow, "kept"))} s on connections that stay open, and ${
      digits(seconds(slow, "first_contact"))} s through the pair.`);
  }
  if (report.month) {
    const a = of(report.month, "plain"), b = of(report.month, "first_contact");
    lead.push(`30 days are ${digits(a.megabytes)} MB as they are and ${digits(b.megabytes)} MB through the pair` +
      (price > 0 ? `: ${digits(a.cost)} or ${digits(b.cost)} at ${price} per MB.` : "."));
  }
  byId("lead").textContent = lead.join(" ");
  byId("about").textContent = `${files.join(", ")}: plain SOAP on ${count(report.connections, "connection")} to ${
    count(report.servers, "server")}, from ${new Date(report.began).toISOString().slice(0, 19).replace("T", " ")} UTC on.`;

  table(byId("total"), ["", "", "bytes", "of plain", "packets", "met", ...(report.steady ? ["steady"] : [])],
    rows.map(([way, name]) => {
      const w = of(report.total, way);
      return [way, name, w.bytes / plain, whole(w.bytes), share(w.bytes), whole(w.packets),
        way in met ? whole(of(report.total, met[way]).bytes) : "",
        ...(report.steady ? [whole(of(report.steady, way).bytes)] : [])];
    }));

  for (const link of report.links) {
    const box = add(byId("links"), "div");
    add(box, "h3", link.link);
    const most = Math.max(...link.ways.map((w) => w.call_seconds));
    table(add(box, "table"), [], rows.map(([way, name]) => of(link.ways, way).too_thin ? [way, name, "too thin", ""] :
      [way, name, seconds(link, way) / most, digits(seconds(link, way)) + " s"]));
  }

  const shown = ["plain", "dcz", "zlib", "zstd", "first_contact"];
  const line = (name, calls, list, least) =>
    ["", name, calls, ...shown.map((way) => whole(of(list, way).bytes)), least];
  table(byId("each"), ["", "calls", ...shown.map((way) => names[way]), "smallest"], [
    ...report.operations.map((o) => line(o.operation, whole(o.calls), o.ways, names[o.smallest])),
    line("between calls", "", report.between, ""),
    line("all", whole(report.calls), report.total, names[report.smallest.first])]);

  if (!report.month) {
    byId("no-month").hidden = !(byId("of-month").hidden = true);
    byId("no-month").textContent = report.no_month + ".";
    return;
  }
  const dear = of(report.month, "plain").megabytes;
  table(byId("month"), ["", "", "MB", ...(price > 0 ? [`at ${price} per MB`] : [])], rows.map(([way, name]) => {
    const w = of(report.month, way);
    return [way, name, Math.min(w.megabytes / dear, 1), digits(w.megabytes), ...(price > 0 ? [digits(w.cost)] : [])];
  }));
})();
