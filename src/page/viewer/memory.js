// The arena: each buffer from the instruction that makes it to the last that needs it, at its address.
function memoryMap(program) {
  const memory = program.memory, width = chartWidth(), height = Math.min(420, width * 0.8), left = 64, bottom = 26, top = 8;
  const spanX = width - left - 8, spanY = height - bottom - top;
  const x = at => left + at / Math.max(1, program.count) * spanX;
  const y = address => top + spanY - address / Math.max(1, memory.arena_bytes) * spanY;
  const chart = make('svg', {class: 'chart map', viewBox: `0 0 ${width} ${height}`, role: 'img', 'aria-label': 'memory over time'});
  const byNumber = new Map(program.instructions.map(instruction => [instruction.number, instruction]));
  const nameAt = (number, step) => {
    for (let at = number; at >= 0 && at <= program.count; at += step) if (byNumber.has(at)) return byNumber.get(at).node || byNumber.get(at).operators;
    return '';
  };
  const show = ([name, type, offset, bytes, first, last], box) => {
    chart.querySelectorAll('.chosen').forEach(other => other.classList.remove('chosen'));
    box.classList.add('chosen');
    showDetails(name, [['type', type], ['bytes', `${bytes.toLocaleString('en')} (${bytesText(bytes)})`], ['address', offset.toLocaleString('en')],
      ['lives', `instructions ${first} to ${last}`], ['made by', nameAt(first, 1)], ['last used by', nameAt(last, -1)]]);
  };
  for (let i = 0; i <= 4; ++i) {
    const address = memory.arena_bytes * i / 4;
    chart.append(make('path', {class: 'axis', d: `M${left} ${y(address)}H${width - 8}`}),
      make('text', {x: left - 6, y: y(address) + 4, 'text-anchor': 'end'}, bytesText(address)),
      make('text', {x: x(program.count * i / 4), y: height - 8, 'text-anchor': i === 4 ? 'end' : 'middle'}, String(Math.round(program.count * i / 4))));
  }
  memory.buffers.forEach((buffer, i) => {
    const [name, type, offset, bytes, first, last] = buffer;
    const box = make('rect', {class: 'box', x: x(first), y: y(offset + bytes), width: Math.max(1.5, x(last) - x(first)),
      height: Math.max(1, y(offset) - y(offset + bytes)), style: `fill:hsl(${(i * 47) % 360} 45% 62%)`},
    make('title', {}, `${name}\n${type}\n${bytesText(bytes)} at ${offset.toLocaleString('en')}`));
    box.addEventListener('mouseenter', () => show(buffer, box));
    box.addEventListener('click', () => show(buffer, box));
    chart.append(box);
  });
  return chart;
}

function memoryView(element) {
  for (const program of data.programs) {
    const memory = program.memory;
    const rows = [['activations', memory.arena_bytes, 'in one arena'], ['alive at once, at most', memory.lower_bound_bytes, 'no arena can be smaller'],
      ['weights', memory.weights_bytes, ''], ['inputs', memory.input_bytes, ''], ['outputs', memory.output_bytes, ''], ['state', memory.state_bytes, '']];
    element.append(make('h2', {}, data.programs.length > 1 ? program.name : 'Memory'),
      make('table', {}, rows.filter(row => row[1]).map(([name, bytes, note]) => make('tr', {}, make('td', {}, name),
        make('td', {class: 'n'}, bytesText(bytes)), make('td', {class: 'note'}, note)))));
    if (!memory.buffers.length) { element.append(make('p', {class: 'note'}, 'Nothing lies in the arena.')); continue; }
    element.append(make('p', {class: 'note'}, 'Addresses over time: from left to right the instructions, from bottom to top the arena.'),
      memoryMap(program), sortedTable([{title: 'buffer', of: row => row[0]}, {title: 'type', of: row => row[1]},
        {title: 'bytes', number: true, of: row => row[3], show: bytesText}, {title: 'address', number: true, of: row => row[2], show: at => at.toLocaleString('en')},
        {title: 'from', number: true, of: row => row[4], show: String}, {title: 'to', number: true, of: row => row[5], show: String}],
      memory.buffers, {by: {of: row => row[3]}, batch: 50}));
  }
}
if ((data.programs || []).length) views.push({name: 'memory', title: 'Memory', open: memoryView});
