// Where the time goes: instructions as bars, and each against what the machine can do at most.
function roofline(instructions, peak) {
  const width = chartWidth(), height = Math.min(400, width * 0.8), left = 70, bottom = 36, top = 12;
  const points = instructions.filter(i => i.ms > 0 && i.flops > 0 && i.bytes > 0)
    .map(i => ({of: i, x: i.flops / i.bytes, y: i.flops / (i.ms * 1e6)}));
  if (!points.length) return null;
  const corner = peak.gflops / peak.gbytes_per_s;
  const least = Math.min(corner / 10, ...points.map(p => p.x)), most = Math.max(corner * 10, ...points.map(p => p.x));
  const low = Math.min(peak.gflops / 1000, ...points.map(p => p.y)), high = Math.max(peak.gflops * 1.5, ...points.map(p => p.y));
  const log = Math.log10;
  const x = value => left + (log(value) - log(least)) / (log(most) - log(least)) * (width - left - 12);
  const y = value => height - bottom - (log(value) - log(low)) / (log(high) - log(low)) * (height - bottom - top);
  const chart = make('svg', {class: 'chart', viewBox: `0 0 ${width} ${height}`, role: 'img', 'aria-label': 'roofline'});
  for (let power = Math.ceil(log(least)); power <= log(most); ++power)
    chart.append(make('path', {class: 'axis', d: `M${x(10 ** power)} ${top}V${height - bottom}`}),
      make('text', {x: x(10 ** power), y: height - bottom + 14, 'text-anchor': 'middle'}, plain.format(10 ** power)));
  for (let power = Math.ceil(log(low)); power <= log(high); ++power)
    chart.append(make('path', {class: 'axis', d: `M${left} ${y(10 ** power)}H${width - 12}`}),
      make('text', {x: left - 6, y: y(10 ** power) + 4, 'text-anchor': 'end'}, plain.format(10 ** power)));
  const start = Math.max(least, low / peak.gbytes_per_s);
  chart.append(make('text', {x: width - 12, y: height - 6, 'text-anchor': 'end'}, 'operations for each byte moved'),
    make('text', {x: left + 6, y: top + 10}, 'GFLOP/s'),
    make('path', {class: 'roof', d: `M${x(start)} ${y(start * peak.gbytes_per_s)}L${x(corner)} ${y(peak.gflops)}H${x(most)}`}),
    make('text', {x: x(most) - 4, y: y(peak.gflops) - 5, 'text-anchor': 'end'}, `${plain.format(peak.gflops)} GFLOP/s, ${plain.format(peak.gbytes_per_s)} GB/s`));
  for (const point of points)
    chart.append(make('circle', {class: 'dot', cx: x(point.x), cy: y(point.y), r: 3 + 14 * Math.sqrt(point.of.share),
      onclick: () => showInstruction(point.of)}, make('title', {}, `${point.of.node}\n${point.of.operators}\n${timeText(point.of.ms)}, ${percentText(point.of.share)}`)));
  return chart;
}

function showInstruction(instruction) {
  showDetails(instruction.node || instruction.operators, [], instructionDetails(instruction),
    data.stages ? make('button', {onclick: () => openView('graph', instruction)}, 'show in the graph') : '');
}

function profileView(element) {
  for (const program of data.programs) {
    const timed = program.instructions.filter(instruction => instruction.ms !== undefined);
    if (!timed.length) continue;
    const kinds = new Map();
    for (const instruction of timed) {
      const kind = kinds.get(instruction.operators) || {name: instruction.operators, ms: 0, count: 0};
      kind.ms += instruction.ms;
      kind.count += 1;
      kinds.set(instruction.operators, kind);
    }
    const all = timed.reduce((sum, instruction) => sum + instruction.ms, 0);
    const bar = share => make('span', {class: 'share', style: `width:${(Math.max(0.002, share) * 12).toFixed(3)}em`});
    element.append(make('h2', {}, 'By operator'), sortedTable([
      {title: 'operators', of: row => row.name}, {title: 'count', number: true, of: row => row.count, show: String},
      {title: 'time', number: true, of: row => row.ms, show: timeText}, {title: 'share', number: true, of: row => row.ms / all, show: percentText},
      {title: '', of: row => row.ms, show: ms => bar(ms / all)}], [...kinds.values()], {by: {of: row => row.ms}, batch: 15}));
    if (data.peak) element.append(make('h2', {}, 'Against the limits of the machine'),
      make('p', {class: 'note'}, 'A point is an instruction, as large as its share of the time; the line is what the machine can do at most.'),
      roofline(timed, data.peak) || '');
    element.append(make('h2', {}, 'By instruction'), sortedTable([
      {title: 'node', of: row => row.node}, {title: 'operators', of: row => row.operators}, {title: 'kernel', of: row => row.kernel},
      {title: 'time', number: true, of: row => row.ms, show: timeText}, {title: 'share', number: true, of: row => row.share, show: percentText},
      {title: '', of: row => row.share, show: bar},
      {title: 'GFLOP/s', number: true, of: row => row.ms ? row.flops / row.ms / 1e6 : 0, show: value => plain.format(value)},
      {title: 'GB/s', number: true, of: row => row.ms ? row.bytes / row.ms / 1e6 : 0, show: value => plain.format(value)}],
    timed, {by: {of: row => row.ms}, chosen: showInstruction, batch: 60}));
  }
  if (data.run) element.append(make('details', {}, make('summary', {}, 'The run'), make('table', {}, Object.entries(data.run).map(([name, value]) =>
    make('tr', {}, make('td', {}, name.replace(/_/g, ' ')), make('td', {class: 'n'}, typeof value === 'number' ? plain.format(value) : String(value)))))));
}
if ((data.programs || []).some(program => program.instructions.some(instruction => instruction.ms !== undefined)))
  views.push({name: 'profile', title: 'Profile', open: profileView});
