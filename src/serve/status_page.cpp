// The page that a browser shows at /: plain HTML and a few lines of script, nothing from elsewhere.
#include "serve/documents.h"

namespace aglow::serve {

std::string_view statusPage() {
  return R"HTML(<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>aglow</title>
<meta name="viewport" content="width=device-width"><link rel="icon" href="data:,">
<style>
body{font:14px/1.5 system-ui,sans-serif;margin:2em auto;max-width:72em;padding:0 1em;color:#222;background:#fff}
h1{font-size:1.3em}table{border-collapse:collapse;width:100%;margin:1em 0}
th,td{text-align:right;padding:.3em .6em;border-bottom:1px solid #ddd;font-variant-numeric:tabular-nums}
th:first-child,td:first-child{text-align:left}svg{width:16em;height:3em;background:#f6f6f6}
.p50{stroke:#2a7}.p90{stroke:#c80}.p99{stroke:#c33}polyline{fill:none;stroke-width:1.5}.bad{color:#c33}
@media(prefers-color-scheme:dark){body{background:#181818;color:#ddd}svg{background:#222}th,td{border-color:#333}}
</style></head><body>
<h1 id="title">aglow</h1><p id="note"></p>
<table><thead><tr><th>model</th><th>requests/s</th><th>waiting</th><th>running</th><th>refused</th><th>failed</th>
<th>p50 ms</th><th>p90 ms</th><th>p99 ms</th><th>latency of the last 10 s, <span style="color:#2a7">p50</span>
<span style="color:#c80">p90</span> <span style="color:#c33">p99</span></th></tr></thead><tbody id="models"></tbody></table>
<table><thead><tr><th>device</th><th>backend</th><th>state</th><th>memory MB</th><th>waiting</th><th>running</th>
<th>runs</th><th>in use</th></tr></thead><tbody id="devices"></tbody></table>
<script>
"use strict";
const kept = 300, looks = 10, history = new Map();
let token = "", before = null;
const $ = id => document.getElementById(id);
const cell = (row, text, bad) => { const td = row.insertCell(); td.textContent = text; if (bad) td.className = "bad"; return td; };
const ms = us => us > 0 ? (us / 1000).toFixed(2) : "-";
// What came between two looks at counts that only grow, and the time below which a part of it lies.
const between = (now, then) => {
  const old = new Map(then);
  return now.map(([end, n]) => [end, n - (old.get(end) || 0)]).filter(([, n]) => n > 0);
};
const quantile = (ranges, part) => {
  let left = part * ranges.reduce((all, [, n]) => all + n, 0);
  for (const [end, n] of ranges) if ((left -= n) <= 0) return end;
  return 0;
};
function curves(points) {
  const ns = "http://www.w3.org/2000/svg", svg = document.createElementNS(ns, "svg");
  svg.setAttribute("viewBox", "0 0 " + kept + " 60");
  svg.setAttribute("preserveAspectRatio", "none");
  const most = Math.max(1, ...points.map(p => p.p99));
  for (const name of ["p50", "p90", "p99"]) {
    const line = document.createElementNS(ns, "polyline");
    line.setAttribute("class", name);
    line.setAttribute("points", points.map((p, i) => (kept - points.length + i) + "," + (58 - 56 * p[name] / most)).join(" "));
    svg.append(line);
  }
  return svg;
}
function show(status, now) {
  $("title").textContent = status.server + (status.draining ? ", ending" : "");
  $("note").textContent = status.connections + " connections, " + (status.buffered_bytes / 1e6).toFixed(1) + " MB of requests";
  const models = document.createElement("tbody"), devices = document.createElement("tbody");
  for (const m of status.models) {
    const key = m.name + " " + m.version, past = history.get(key) || {points: [], ranges: []}, row = models.insertRow();
    const rate = before && past.done !== undefined ? (m.succeeded - past.done) / ((now - before) / 1000) : 0;
    past.done = m.succeeded;
    const last = between(m.total.ranges_us, past.ranges[0] || []);
    past.ranges.push(m.total.ranges_us);
    past.ranges.splice(0, past.ranges.length - looks);
    const recent = {p50: quantile(last, .5), p90: quantile(last, .9), p99: quantile(last, .99)};
    past.points.push(recent);
    past.points.splice(0, past.points.length - kept);
    history.set(key, past);
    cell(row, m.name + " / " + m.version + (m.current ? "" : " (not current)"), m.replicas < m.wanted);
    cell(row, rate.toFixed(1)); cell(row, m.waiting); cell(row, m.running);
    cell(row, m.refused, m.refused > 0); cell(row, m.failed, m.failed > 0);
    cell(row, ms(recent.p50)); cell(row, ms(recent.p90)); cell(row, ms(recent.p99));
    row.insertCell().append(curves(past.points));
  }
  for (const d of status.devices) {
    const row = devices.insertRow();
    cell(row, d.name); cell(row, d.backend); cell(row, d.healthy ? "runs" : d.fault, !d.healthy);
    cell(row, (d.memory_bytes / 1e6).toFixed(1)); cell(row, d.waiting); cell(row, d.running);
    cell(row, d.runs); cell(row, (100 * d.utilisation).toFixed(0) + " %");
  }
  models.id = "models"; devices.id = "devices";
  $("models").replaceWith(models); $("devices").replaceWith(devices);
  before = now;
}
async function poll() {
  try {
    const answer = await fetch("status", {headers: token ? {authorization: "Bearer " + token} : {}});
    if (answer.status === 401) { token = prompt("Token of this server") || ""; }
    else show(await answer.json(), performance.now());
  } catch (fault) { $("note").textContent = "no answer: " + fault.message; }
  setTimeout(poll, 1000);
}
poll();
</script></body></html>
)HTML";
}

}  // namespace aglow::serve
