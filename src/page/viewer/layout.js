// Places boxes in layers, each below all that it needs, with few crossings: longest paths, barycentres, then lines as
// straight as their neighbours allow.
// boxes: [{width, height}], arrows: [[from, to]]. Gives {places: [{x, y}] of upper left corners, routes: [[[x, y], ...]]
// of the arrows, width, height}.
function layered(boxes, arrows) {
  const gapX = 16, gapY = 30, bendWidth = 8, mostBends = 20000;
  const count = boxes.length;

  // Folded scopes may need each other: an arrow that leads back is turned for the layers.
  const leaving = Array.from({length: count}, () => []);
  arrows.forEach(([from], i) => leaving[from].push(i));
  const state = new Uint8Array(count), turned = new Uint8Array(arrows.length);
  for (let root = 0; root < count; ++root) {
    if (state[root]) continue;
    const stack = [[root, 0]];
    state[root] = 1;
    while (stack.length) {
      const top = stack[stack.length - 1];
      if (top[1] === leaving[top[0]].length) { state[top[0]] = 2; stack.pop(); continue; }
      const arrow = leaving[top[0]][top[1]++], to = arrows[arrow][1];
      if (state[to] === 1) turned[arrow] = 1;
      else if (state[to] === 0) { state[to] = 1; stack.push([to, 0]); }
    }
  }
  const ahead = arrows.map(([from, to], i) => turned[i] ? [to, from] : [from, to]);

  const after = Array.from({length: count}, () => []), before = new Int32Array(count);
  for (const [from, to] of ahead) { after[from].push(to); ++before[to]; }
  const waiting = before.slice(), order = [], layer = new Int32Array(count);
  for (let i = 0; i < count; ++i) if (!waiting[i]) order.push(i);
  for (let head = 0; head < order.length; ++head)
    for (const to of after[order[head]]) {
      layer[to] = Math.max(layer[to], layer[order[head]] + 1);
      if (!--waiting[to]) order.push(to);
    }
  // What nothing comes before stands right above the first that needs it.
  for (const box of order)
    if (!before[box] && after[box].length) layer[box] = after[box].reduce((least, to) => Math.min(least, layer[to]), Infinity) - 1;

  // Points: the boxes, then a bend of each arrow in every layer that it crosses.
  const widths = boxes.map(box => box.width), level = Array.from(layer), chains = [];
  let bends = ahead.reduce((sum, [from, to]) => sum + Math.max(0, layer[to] - layer[from] - 1), 0);
  for (const [from, to] of ahead) {
    const chain = [from];
    for (let at = layer[from] + 1; bends <= mostBends && at < layer[to]; ++at) {
      chain.push(widths.length);
      widths.push(bendWidth);
      level.push(at);
    }
    chain.push(to);
    chains.push(chain);
  }
  const up = Array.from({length: widths.length}, () => []), down = Array.from({length: widths.length}, () => []);
  for (const chain of chains)
    for (let i = 0; i + 1 < chain.length; ++i) { down[chain[i]].push(chain[i + 1]); up[chain[i + 1]].push(chain[i]); }

  const rows = [];
  const place = new Float64Array(widths.length);
  const put = point => { (rows[level[point]] ||= []).push(point); };
  order.forEach(put);
  for (let point = count; point < widths.length; ++point) put(point);
  for (let i = 0; i < rows.length; ++i) (rows[i] ||= []).forEach((point, at) => { place[point] = at; });
  const sweeps = widths.length > 4000 ? 4 : 10;
  for (let sweep = 0; sweep < sweeps; ++sweep) {
    const falling = sweep % 2 === 0;
    for (let i = 0; i < rows.length; ++i) {
      const row = rows[falling ? i : rows.length - 1 - i];
      const wish = new Map(row.map(point => {
        const others = falling ? up[point] : down[point];
        return [point, others.length ? others.reduce((sum, other) => sum + place[other], 0) / others.length : place[point]];
      }));
      row.sort((a, b) => wish.get(a) - wish.get(b)).forEach((point, at) => { place[point] = at; });
    }
  }

  // Middles: every row is as near to what its neighbours wish as its order and gaps allow (pooling of neighbours that
  // would overlap).
  const middle = new Float64Array(widths.length);
  const settle = (row, wish) => {
    const offsets = [];
    row.forEach((point, i) => offsets.push(i ? offsets[i - 1] + (widths[row[i - 1]] + widths[point]) / 2 + gapX : 0));
    const pools = [];
    row.forEach((point, i) => {
      let pool = {sum: wish(point) - offsets[i], size: 1};
      while (pools.length && pools[pools.length - 1].sum / pools[pools.length - 1].size > pool.sum / pool.size) {
        const last = pools.pop();
        pool = {sum: last.sum + pool.sum, size: last.size + pool.size};
      }
      pools.push(pool);
    });
    let i = 0;
    for (const pool of pools)
      for (let left = pool.size; left > 0; --left, ++i) middle[row[i]] = pool.sum / pool.size + offsets[i];
  };
  for (const row of rows) settle(row, () => 0);
  const mean = (points, otherwise) => points.length ? points.reduce((sum, point) => sum + middle[point], 0) / points.length : otherwise;
  for (let sweep = 0; sweep < sweeps; ++sweep) {
    const falling = sweep % 2 === 0;
    for (let i = 0; i < rows.length; ++i)
      settle(rows[falling ? i : rows.length - 1 - i], point => mean(falling ? up[point] : down[point], middle[point]));
  }

  const tops = [], heights = rows.map(row => row.reduce((most, point) => point < count ? Math.max(most, boxes[point].height) : most, 0));
  heights.forEach((height, i) => tops.push(i ? tops[i - 1] + heights[i - 1] + gapY : 0));
  let least = Infinity, most = 0;
  for (let i = 0; i < count; ++i) least = Math.min(least, middle[i] - widths[i] / 2);
  const places = boxes.map((box, i) => ({x: middle[i] - box.width / 2 - least, y: tops[level[i]]}));
  for (let i = 0; i < count; ++i) most = Math.max(most, places[i].x + widths[i]);
  const routes = chains.map((chain, i) => {
    const points = [];
    chain.forEach((point, at) => {
      const x = middle[point] - least, top = tops[level[point]];
      if (at === 0) points.push([x, top + boxes[point].height]);
      else if (at + 1 === chain.length) points.push([x, top]);
      else points.push([x, top], [x, top + heights[level[point]]]);
    });
    return turned[i] ? points.reverse() : points;
  });
  return {places, routes, width: most, height: rows.length ? tops[rows.length - 1] + heights[rows.length - 1] : 0};
}
