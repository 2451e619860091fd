'use strict';
// Elements, numbers with units, tables that sort, and the panel of details.
const data = JSON.parse(document.getElementById('data').textContent);

// make('td', {class: 'n'}, 'text', child): texts stay texts.
function make(tag, attributes, ...children) {
  const svg = make.svg.has(tag);
  const element = svg ? document.createElementNS('http://www.w3.org/2000/svg', tag) : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (name.startsWith('on')) element.addEventListener(name.slice(2), value);
    else if (value !== false && value !== undefined) element.setAttribute(name, value === true ? '' : value);
  }
  element.append(...children.flat(3).filter(child => child !== null && child !== undefined));
  return element;
}
make.svg = new Set(['svg', 'g', 'rect', 'path', 'text', 'circle', 'line', 'title']);

const plain = new Intl.NumberFormat('en', {maximumSignificantDigits: 4});
function scaled(value, units, step) {
  let i = 0;
  while (Math.abs(value) >= step && i + 1 < units.length) { value /= step; ++i; }
  return plain.format(value) + ' ' + units[i];
}
const bytesText = bytes => scaled(bytes, ['B', 'KiB', 'MiB', 'GiB', 'TiB'], 1024);
const countText = count => scaled(count, ['', 'K', 'M', 'G', 'T'], 1000).trim();
const timeText = ms => ms >= 1000 ? plain.format(ms / 1000) + ' s' : ms >= 1 ? plain.format(ms) + ' ms' : plain.format(ms * 1000) + ' µs';
const chartWidth = () => Math.max(320, Math.min(960, document.querySelector('main').clientWidth - 32));  // so that its texts can be read
const percentText = share => (share * 100).toFixed(1) + ' %';

// columns: {title, of: row => value, show: (value, row) => text or element, number: bool}. Long tables grow as they are
// scrolled through.
function sortedTable(columns, rows, {by, chosen, batch = 200} = {}) {
  const body = make('tbody');
  const head = make('tr');
  let order = rows.slice(), shown = 0;
  const more = () => {
    for (const row of order.slice(shown, shown + batch)) {
      const line = make('tr', chosen ? {tabindex: 0, onclick: () => chosen(row), onkeydown: e => { if (e.key === 'Enter') chosen(row); }} : {},
        columns.map(column => {
          const value = column.of(row);
          return make('td', {class: column.number ? 'n' : undefined}, column.show ? column.show(value, row) : value);
        }));
      body.append(line);
    }
    shown = Math.min(order.length, shown + batch);
    rest.textContent = shown < order.length ? `${order.length - shown} more` : '';
    rest.hidden = shown >= order.length;
  };
  const rest = make('button', {onclick: more});
  const sortBy = (column, down) => {
    order = rows.slice().sort((a, b) => {
      const x = column.of(a), y = column.of(b);
      return (x < y ? -1 : x > y ? 1 : 0) * (down ? -1 : 1);
    });
    body.replaceChildren();
    shown = 0;
    more();
  };
  for (const column of columns) {
    let down = !column.number;
    head.append(make('th', {class: (column.number ? 'n ' : '') + 'sorts', onclick: () => sortBy(column, down = !down)}, column.title));
  }
  if (by) sortBy(by, true); else more();
  return make('div', {class: 'scroll'}, make('table', {}, make('thead', {}, head), body), rest);
}

// What is known of the thing that was clicked.
const details = make('aside', {hidden: true});
function showDetails(title, facts, ...more) {
  details.hidden = false;
  details.replaceChildren(
    make('button', {class: 'close', 'aria-label': 'close', onclick: () => { details.hidden = true; }}, '×'), make('h2', {}, title),
    make('dl', {}, facts.filter(([, value]) => value !== undefined && value !== '' && value !== null)
      .map(([name, value]) => [make('dt', {}, name), make('dd', {}, value)])), ...more.flat());
}

const views = [];  // {name, title, open: element => void}
function openView(name, argument) {
  const view = views.find(v => v.name === name) || views[0];
  for (const button of document.querySelectorAll('nav button'))
    button.setAttribute('aria-selected', button.dataset.view === view.name);
  if (!view.element) {
    view.element = make('section', {class: 'view ' + view.name});
    document.querySelector('main').insertBefore(view.element, details);
    view.open(view.element);
  }
  for (const other of views) if (other.element) other.element.hidden = other !== view;
  if (location.hash !== '#' + view.name) history.replaceState(null, '', '#' + view.name);
  if (view.shown) view.shown(argument);
}
