// Opens the page: a header with facts, a tab for each view that there is data for.
document.body.className = 'app';
document.body.append(
  make('header', {}, make('h1', {}, data.title), make('span', {class: 'facts'}, data.facts || ''),
    make('nav', {role: 'tablist'}, views.map(view => make('button', {role: 'tab', 'data-view': view.name, onclick: () => openView(view.name)}, view.title)))),
  make('main', {}, details));
window.addEventListener('hashchange', () => openView(location.hash.slice(1)));
document.addEventListener('keydown', event => { if (event.key === 'Escape') details.hidden = true; });
openView(location.hash.slice(1));
