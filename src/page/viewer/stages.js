// What each stage changed: nodes and instructions that it took away, and those that it made.
function stagesView(element) {
  const list = make('div', {class: 'steps', role: 'tablist'}), detail = make('div');
  const line = record => {
    const results = record[field.results].join(', '), operands = record[field.operands].join(', ');
    return `${results} = ${record[field.op]}(${operands}) ${record[field.attributes].replace(/\n/g, ' ')} : ${record[field.type]}`;
  };
  const most = 2000;
  const open = at => {
    [...list.children].forEach((button, i) => button.setAttribute('aria-selected', i === at));
    const stage = data.stages[at], last = data.stages[at - 1];
    const parts = stage.functions.map(part => {
      const old = last && last.functions.find(other => other.name === part.name);
      const had = new Set(old ? old.records : []), has = new Set(part.records);
      const gone = old ? old.records.filter(number => !has.has(number)) : [];
      const added = part.records.filter(number => !had.has(number));
      const other = old && last.on !== stage.on;
      const rows = (numbers, kind, sign) => numbers.slice(0, most).map(number =>
        make('div', {class: kind}, sign + ' ' + line(data.records[number])));
      return make('section', {},
        make('p', {class: 'note'}, (stage.functions.length > 1 ? part.name + ': ' : '') +
          (!old ? `${part.records.length} nodes` : other ? `${old.records.length} nodes became ${part.records.length} instructions`
            : `${gone.length} gone, ${added.length} new, ${part.records.length - added.length} as before`)),
        make('div', {class: 'diff'}, old && !other ? rows(gone, 'gone', '−') : [], rows(added, old && !other ? 'added' : '', old && !other ? '+' : ' ')),
        Math.max(gone.length, added.length) > most ? make('p', {class: 'note'}, `only ${most} are shown`) : null);
    });
    const passes = stage.passes.filter(pass => pass.changed || pass.ms > 1);
    detail.replaceChildren(make('div', {}, make('h2', {}, stage.phase), make('p', {class: 'note'}, timeText(stage.ms)),
      passes.length ? make('details', {}, make('summary', {}, `${passes.length} passes`), make('table', {},
        passes.map(pass => make('tr', {}, make('td', {}, pass.name), make('td', {class: 'n'}, timeText(pass.ms)),
          make('td', {}, pass.changed ? 'changed it' : ''))))) : null, parts));
  };
  data.stages.forEach((stage, i) => list.append(make('button', {role: 'tab', onclick: () => open(i)}, stage.phase,
    make('small', {}, String(stage.functions.reduce((sum, part) => sum + part.records.length, 0))))));
  element.append(make('div', {class: 'split'}, list, detail));
  open(0);
}
if (data.stages) views.push({name: 'stages', title: 'Stages', open: stagesView});
