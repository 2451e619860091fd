// The graph of a stage. Names with slashes or dots are scopes, which fold to one box; only what can be seen is drawn.
const field = {op: 0, kind: 1, name: 2, type: 3, attributes: 4, operands: 5, results: 6};
const programOf = name => (data.programs || []).find(program => program.name === name);

// Instructions by the nodes that they came of. What the compiler makes of a node has its name with numbers behind it:
// relu2.1 is of relu2. The time of an instruction of several nodes counts for the first.
const timeOfNode = new Map(), instructionsOfNode = new Map();
function namesOf(name) {
  const names = [name];
  while (/\.\d+$/.test(name)) names.push(name = name.replace(/\.\d+$/, ''));
  return names;
}
for (const program of data.programs || [])
  for (const instruction of program.instructions)
    instruction.nodes.forEach((node, i) => {
      for (const name of namesOf(node)) {
        if (!instructionsOfNode.has(name)) instructionsOfNode.set(name, []);
        instructionsOfNode.get(name).push(instruction);
        if (instruction.ms && i === 0) timeOfNode.set(name, (timeOfNode.get(name) || 0) + instruction.ms);
      }
    });
const wholeTime = (data.programs || []).reduce((sum, program) =>
  program.instructions.reduce((part, instruction) => part + (instruction.ms || 0), sum), 0);

function scopesOf(name) {
  const own = namesOf(name).pop();
  return own.split(own.includes('/') ? '/' : '.').filter(word => word).slice(0, -1);
}

function showRecord(record, stage) {
  const instructions = instructionsOfNode.get(record[field.name]) || [];
  const ms = timeOfNode.get(record[field.name]);
  showDetails(record[field.name] || record[field.op], [
    ['operator', record[field.op]], ['type', record[field.type]], ['attributes', record[field.attributes]],
    ['time', ms && `${timeText(ms)} (${percentText(ms / wholeTime)})`], ['stage', stage.phase],
    ['operands', record[field.operands].join(', ')], ['results', record[field.results].join(', ')]],
  instructions.map(instructionDetails));
}

function instructionDetails(instruction) {
  return make('section', {}, make('h2', {}, instruction.operators), make('dl', {}, [
    ['kernel', instruction.kernel], ['type', instruction.type], ['operations', countText(instruction.flops)],
    ['moves', bytesText(instruction.bytes)], ['units', instruction.units],
    ['time', instruction.ms && `${timeText(instruction.ms)} (${percentText(instruction.share)})`],
    ...instruction.refused.map(([kernel, reason]) => ['not ' + kernel, reason])]
    .filter(([, value]) => value !== undefined).map(([name, value]) => [make('dt', {}, name), make('dd', {}, String(value))])));
}

class Graph {
  constructor(element) {
    this.element = element;
    this.open = new Set();
    this.chosen = null;
    this.scale = 1;
    this.x = this.y = 0;
    this.edges = make('g');
    this.nodes = make('g');
    this.canvas = make('g', {}, this.edges, this.nodes);
    this.svg = make('svg', {role: 'img', 'aria-label': 'graph'}, this.canvas);
    this.hits = make('div', {class: 'hits', hidden: true});
    this.functions = [];
    data.stages.forEach(stage => stage.functions.forEach(f => this.functions.includes(f.name) || this.functions.push(f.name)));
    this.stages = make('select', {'aria-label': 'stage', onchange: () => this.load()},
      data.stages.map((stage, i) => make('option', {value: i}, `after ${stage.phase}`)));
    this.function = make('select', {'aria-label': 'function', hidden: this.functions.length < 2, onchange: () => this.load()},
      this.functions.map(name => make('option', {value: name}, name)));
    this.colour = make('select', {'aria-label': 'colour', hidden: !wholeTime, onchange: () => this.paint(true)},
      make('option', {value: 'kind'}, 'colour: kind'), make('option', {value: 'time'}, 'colour: time'));
    this.weights = make('button', {'aria-pressed': false, onclick: () => {
      this.weights.setAttribute('aria-pressed', this.weights.getAttribute('aria-pressed') !== 'true');
      this.load();
    }}, 'weights');
    this.query = make('input', {type: 'search', placeholder: 'search', 'aria-label': 'search', oninput: () => this.search()});
    this.bar = make('div', {class: 'bar'}, this.query, this.stages, this.function, this.colour,
      make('button', {onclick: () => this.unfold(true)}, 'unfold'), make('button', {onclick: () => this.unfold(false)}, 'fold'),
      make('button', {onclick: () => this.fit()}, 'fit'), this.weights);
    element.append(this.svg, this.bar, this.hits);
    this.listen();
    const graphs = data.stages.map((stage, i) => stage.on === 'graph' ? i : -1).filter(i => i >= 0);
    const preferred = data.stages.findIndex(stage => stage.phase === 'optimize');
    this.stages.value = preferred >= 0 ? preferred : graphs.length ? graphs[graphs.length - 1] : 0;
    this.load();
  }

  get stage() { return data.stages[this.stages.value]; }

  load(keep) {
    const stage = this.stage, part = stage.functions.find(f => f.name === this.function.value) || stage.functions[0];
    const withWeights = this.weights.getAttribute('aria-pressed') === 'true';
    this.records = (part ? part.records : []).map(number => data.records[number])
      .filter(record => withWeights || record[field.kind] !== 'constant');
    this.scopes = this.records.map(record => scopesOf(record[field.name]));
    if (!keep) this.foldToFit();
    this.arrange();
    if (!keep) this.fit();
  }

  // Opens scopes, outer ones first, as long as not too many boxes are to be seen.
  foldToFit() {
    const enough = 80;
    this.open.clear();
    for (let depth = 0; depth < 12; ++depth) {
      const wider = new Set();
      this.scopes.forEach(scope => { if (scope.length > depth) wider.add(scope.slice(0, depth + 1).join('/')); });
      if (!wider.size) break;
      const boxes = new Set(this.scopes.map((scope, i) => scope.length > depth + 1 ? scope.slice(0, depth + 2).join('/') : 'record ' + i));
      if (boxes.size > enough) break;
      wider.forEach(scope => this.open.add(scope));
    }
  }

  boxOf(i) {
    const scope = this.scopes[i];
    for (let depth = 1; depth <= scope.length; ++depth) {
      const path = scope.slice(0, depth).join('/');
      if (!this.open.has(path)) return path;
    }
    return null;
  }

  arrange() {
    this.boxes = [];
    const byKey = new Map(), boxOfRecord = [];
    this.records.forEach((record, i) => {
      const path = this.boxOf(i), key = path === null ? i : path;
      if (!byKey.has(key)) { byKey.set(key, this.boxes.length); this.boxes.push({key, path, members: []}); }
      boxOfRecord.push(byKey.get(key));
      this.boxes[byKey.get(key)].members.push(i);
    });
    // Instructions write one place again and again, so it is the last writer that counts.
    const writer = new Map(), seen = new Set();
    this.arrows = [];
    const instructions = this.stage.on !== 'graph';
    const join = (from, to) => {
      const key = from * this.boxes.length + to;
      if (from !== to && !seen.has(key)) { seen.add(key); this.arrows.push([from, to]); }
    };
    if (!instructions)
      this.records.forEach((record, i) => record[field.results].forEach(name => { if (record[field.kind] !== 'output') writer.set(name, i); }));
    this.records.forEach((record, i) => {
      record[field.operands].forEach((name, at) => {
        // The second operand of an output is the place that it writes.
        if (record[field.kind] === 'output' && at === 1) {
          if (writer.has(name)) join(boxOfRecord[i], boxOfRecord[writer.get(name)]);
          return;
        }
        if (writer.has(name)) join(boxOfRecord[writer.get(name)], boxOfRecord[i]);
      });
      if (instructions) record[field.results].forEach(name => writer.set(name, i));
    });
    for (const box of this.boxes) {
      const record = this.records[box.members[0]];
      box.label = box.path === null ? record[field.op] : box.path.split('/').pop();
      const under = box.path === null ? record[field.name] : `${box.members.length} nodes`;
      box.small = under.length > 26 ? '…' + under.slice(-25) : under;
      if (box.label.length > 26) box.label = box.label.slice(0, 25) + '…';
      box.width = Math.max(64, 7.2 * box.label.length + 18, 5.6 * box.small.length + 18);
      box.height = 36;
      box.ms = box.members.reduce((sum, i) => sum + (timeOfNode.get(this.records[i][field.name]) || 0), 0);
    }
    const drawn = layered(this.boxes, this.arrows);
    this.boxes.forEach((box, i) => Object.assign(box, drawn.places[i]));
    this.routes = drawn.routes;
    this.width = drawn.width;
    this.height = drawn.height;
    this.paint(true);
  }

  colourOf(box) {
    if (this.colour.value === 'time' && wholeTime) {
      const most = this.boxes.reduce((m, b) => Math.max(m, b.ms), 0);
      return `color-mix(in srgb, var(--hot) ${Math.round(100 * box.ms / (most || 1))}%, var(--panel))`;
    }
    return `var(--${box.path === null ? this.records[box.members[0]][field.kind] : 'panel'})`;
  }

  // Draws what lies inside of the window; from afar boxes are only colours.
  paint(all) {
    this.canvas.setAttribute('transform', `translate(${this.x} ${this.y}) scale(${this.scale})`);
    const view = this.svg.getBoundingClientRect(), margin = 60;
    const left = -this.x / this.scale - margin, top = -this.y / this.scale - margin;
    const right = left + view.width / this.scale + 2 * margin, bottom = top + view.height / this.scale + 2 * margin;
    const far = this.scale < 0.3;
    if (!all && this.painted && this.painted.far === far && left >= this.painted.left && right <= this.painted.right &&
        top >= this.painted.top && bottom <= this.painted.bottom) return;
    const wide = (right - left) / 2, high = (bottom - top) / 2;
    const area = {far, left: left - wide, right: right + wide, top: top - high, bottom: bottom + high};
    this.painted = area;
    const lines = new Map();
    const edges = [];
    this.routes.forEach((points, i) => {
      let least = Infinity, most = -Infinity, high2 = Infinity, low = -Infinity;
      for (const [x, y] of points) { least = Math.min(least, x); most = Math.max(most, x); high2 = Math.min(high2, y); low = Math.max(low, y); }
      if (most < area.left || least > area.right || low < area.top || high2 > area.bottom) return;
      let path = `M${points[0][0].toFixed(1)} ${points[0][1].toFixed(1)}`;
      for (let at = 1; at < points.length; ++at) {
        const [x, y] = points[at], [ox, oy] = points[at - 1], half = ((oy + y) / 2).toFixed(1);
        path += x === ox ? `V${y.toFixed(1)}` : `C${ox.toFixed(1)} ${half} ${x.toFixed(1)} ${half} ${x.toFixed(1)} ${y.toFixed(1)}`;
      }
      const [from, to] = this.arrows[i];
      const near = this.chosen !== null && (this.boxes[from].key === this.chosen || this.boxes[to].key === this.chosen);
      lines.set(near, (lines.get(near) || '') + path);
    });
    for (const near of [false, true])
      if (lines.has(near)) edges.push(make('path', {class: 'edge' + (near ? ' chosen' : ''), d: lines.get(near)}));
    this.edges.replaceChildren(...edges);
    const seen = this.boxes.filter(box => box.x + box.width >= area.left && box.x <= area.right && box.y + box.height >= area.top && box.y <= area.bottom);
    if (far && seen.length > 400) {
      const blocks = new Map();
      for (const box of seen) {
        const colour = this.colourOf(box);
        blocks.set(colour, (blocks.get(colour) || '') + `M${box.x.toFixed(0)} ${box.y}h${box.width.toFixed(0)}v${box.height}h-${box.width.toFixed(0)}z`);
      }
      this.nodes.replaceChildren(...[...blocks].map(([colour, d]) => make('path', {d, style: `fill:${colour};stroke:var(--dim)`})));
      return;
    }
    this.nodes.replaceChildren(...seen.map(box => {
      const group = make('g', {class: 'node' + (box.path === null ? '' : ' scope') + (box.key === this.chosen ? ' chosen' : ''),
        transform: `translate(${box.x.toFixed(1)} ${box.y})`, 'data-key': box.key},
      make('rect', {width: box.width, height: box.height, style: `fill:${this.colourOf(box)}`}));
      if (!far) group.append(make('text', {x: box.width / 2, y: 15, 'text-anchor': 'middle'}, box.label),
        make('text', {x: box.width / 2, y: 28, 'text-anchor': 'middle', class: 'dim'}, box.small));
      return group;
    }));
  }

  choose(box) {
    this.chosen = box.key;
    if (box.path !== null) {
      const time = box.ms && wholeTime ? `${timeText(box.ms)} (${percentText(box.ms / wholeTime)})` : undefined;
      showDetails(box.path, [['nodes', String(box.members.length)], ['time', time]],
        make('button', {onclick: () => this.openScope(box.path)}, 'unfold'));
    } else {
      const record = this.records[box.members[0]], scope = this.scopes[box.members[0]];
      showRecord(record, this.stage);
      if (scope.length) details.append(make('button', {onclick: () => this.closeScope(scope.join('/'))}, 'fold ' + scope.join('/')));
    }
    this.paint(true);
  }

  openScope(path) { this.open.add(path); this.chosen = null; this.arrange(); }
  closeScope(path) {
    for (const open of [...this.open]) if (open === path || open.startsWith(path + '/')) this.open.delete(open);
    this.chosen = path;
    this.arrange();
  }
  unfold(all) {
    this.open.clear();
    if (all) this.scopes.forEach(scope => { for (let depth = 1; depth <= scope.length; ++depth) this.open.add(scope.slice(0, depth).join('/')); });
    this.arrange();
    this.fit();
  }

  fit() {
    const view = this.svg.getBoundingClientRect();
    const bar = this.bar.getBoundingClientRect().bottom - view.top;  // on a narrow window it has two rows
    this.scale = Math.min(1.2, (view.width - 30) / (this.width || 1), (view.height - bar - 20) / (this.height || 1));
    // A long graph is read from its beginning.
    if (this.scale < 0.45) this.scale = Math.max(this.scale, Math.min(0.75, (view.width - 30) / (this.width || 1)));
    this.scale = Math.max(this.scale, 0.02);
    this.x = (view.width - this.width * this.scale) / 2;
    this.y = bar + 10;
    this.paint(true);
  }

  centre(box) {
    const view = this.svg.getBoundingClientRect();
    this.scale = Math.max(this.scale, 0.8);
    this.x = view.width / 2 - (box.x + box.width / 2) * this.scale;
    this.y = view.height / 2 - (box.y + box.height / 2) * this.scale;
    this.choose(box);
  }

  reveal(i) {
    const scope = this.scopes[i];
    for (let depth = 1; depth <= scope.length; ++depth) this.open.add(scope.slice(0, depth).join('/'));
    this.arrange();
    const box = this.boxes.find(b => b.path === null && b.members[0] === i);
    if (box) this.centre(box);
  }
  // Some node that an instruction came of, under the name that it has here.
  revealNode(instruction) {
    const names = instruction.nodes.flatMap(namesOf);
    const i = this.records.findIndex(record => names.includes(record[field.name]));
    if (i >= 0) this.reveal(i);
  }

  search() {
    const words = this.query.value.toLowerCase().split(/\s+/).filter(word => word), most = 50;
    const found = [];
    if (words.length)
      this.records.forEach((record, i) => {
        const text = (record[field.op] + ' ' + record[field.name] + ' ' + record[field.type]).toLowerCase();
        if (words.every(word => text.includes(word))) found.push(i);
      });
    this.hits.hidden = !words.length;
    this.hits.replaceChildren(...found.slice(0, most).map(i => make('button', {onclick: () => { this.hits.hidden = true; this.reveal(i); }},
      this.records[i][field.op] + ' ', make('small', {}, this.records[i][field.name]))),
    make('div', {class: 'note'}, found.length > most ? `${found.length - most} more` : found.length ? '' : 'nothing found'));
  }

  zoom(factor, x, y) {
    const scale = Math.min(4, Math.max(0.02, this.scale * factor));
    this.x = x - (x - this.x) * scale / this.scale;
    this.y = y - (y - this.y) * scale / this.scale;
    this.scale = scale;
    this.paint(false);
  }

  listen() {
    const pointers = new Map();
    let moved = 0;
    this.svg.addEventListener('wheel', event => {
      event.preventDefault();
      const view = this.svg.getBoundingClientRect();
      if (event.ctrlKey || !event.shiftKey) this.zoom(Math.exp(-event.deltaY * 0.0015), event.clientX - view.left, event.clientY - view.top);
    }, {passive: false});
    this.svg.addEventListener('pointerdown', event => { pointers.set(event.pointerId, event); moved = 0; });
    window.addEventListener('pointermove', event => {
      const last = pointers.get(event.pointerId);
      if (!last) return;
      const others = [...pointers.values()].filter(other => other.pointerId !== event.pointerId);
      if (others.length) {
        const view = this.svg.getBoundingClientRect(), other = others[0];
        const apart = (a, b) => Math.hypot(a.clientX - b.clientX, a.clientY - b.clientY) || 1;
        this.zoom(apart(event, other) / apart(last, other), (event.clientX + other.clientX) / 2 - view.left, (event.clientY + other.clientY) / 2 - view.top);
      } else {
        this.x += event.clientX - last.clientX;
        this.y += event.clientY - last.clientY;
        this.paint(false);
      }
      moved += Math.abs(event.clientX - last.clientX) + Math.abs(event.clientY - last.clientY);
      pointers.set(event.pointerId, event);
    });
    for (const end of ['pointerup', 'pointercancel']) window.addEventListener(end, event => pointers.delete(event.pointerId));
    this.svg.addEventListener('click', event => {
      if (moved > 5) return;
      const at = this.boxAt(event);
      if (at) this.choose(at);
    });
    this.svg.addEventListener('dblclick', event => {
      const at = this.boxAt(event);
      if (at && at.path !== null) this.openScope(at.path);
    });
    new ResizeObserver(() => this.paint(true)).observe(this.svg);
  }
  boxAt(event) {
    const view = this.svg.getBoundingClientRect();
    const x = (event.clientX - view.left - this.x) / this.scale, y = (event.clientY - view.top - this.y) / this.scale;
    return this.boxes.find(box => x >= box.x && x <= box.x + box.width && y >= box.y && y <= box.y + box.height);
  }
}

if (data.stages)
  views.push({name: 'graph', title: 'Graph', open: function(element) { this.graph = new Graph(element); },
    shown: function(instruction) { if (instruction) this.graph.revealNode(instruction); }});
