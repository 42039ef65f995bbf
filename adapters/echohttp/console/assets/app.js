// The console's page. It draws what the service tells once a second, and acts through the operators' API.
// Text reaches the page by textContent alone; null is what could not be read, and is shown as "?".

const root = document.documentElement;
const page = document.body.dataset;
const $ = (id) => document.getElementById(id);

/* ---- words and numbers ---- */

const whole = new Intl.NumberFormat('en', { maximumFractionDigits: 0 });
const brief = new Intl.NumberFormat('en', { notation: 'compact', maximumFractionDigits: 1 });
const tenth = new Intl.NumberFormat('en', { maximumFractionDigits: 1 });
const signed = new Intl.NumberFormat('en', { signDisplay: 'exceptZero', maximumFractionDigits: 0 });
const clock = new Intl.DateTimeFormat('en', { hour: '2-digit', minute: '2-digit', second: '2-digit', hourCycle: 'h23' });
const day = new Intl.DateTimeFormat('en', { dateStyle: 'medium', timeStyle: 'medium', hourCycle: 'h23' });

const known = (n) => n !== null && n !== undefined;
const num = (n) => (known(n) ? whole.format(n) : '?');
const rate = (n) => (known(n) ? (n > 0 && n < 10 ? tenth : whole).format(n) : '?');
const millis = (seconds) => (known(seconds) ? seconds * 1000 : null);
const when = (t) => (t ? day.format(new Date(t)) : '–');
const many = (n, one) => `${num(n)} ${n === 1 ? one : `${one}s`}`;
const units = (n) => many(n, 'unit');

function span(seconds) {
  if (!known(seconds)) return '?';
  const s = Math.max(0, seconds);
  if (s < 60) return `${(s < 10 ? tenth : whole).format(s)} s`;
  if (s < 5400) return `${whole.format(s / 60)} min`;
  return s < 172800 ? `${whole.format(s / 3600)} h` : `${whole.format(s / 86400)} days`;
}

/* ---- the page's pieces ---- */

function el(tag, props, ...kids) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(props || {})) {
    if (name.startsWith('on')) node.addEventListener(name.slice(2), value);
    else if (value === true) node.setAttribute(name, '');
    else if (value !== false && known(value)) node.setAttribute(name, value);
  }
  node.append(...kids.flat().filter(known));
  return node;
}

function put(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

const fields = {};
for (const node of document.querySelectorAll('[data-f]')) fields[node.dataset.f] = node;

function tag(kind, glyph, text) {
  return el('span', { class: `tag ${kind}` }, el('span', { 'aria-hidden': 'true' }, glyph), text);
}

function table(caption, heads, rows) {
  return el('div', { class: 'scroll', role: 'region', 'aria-label': caption, tabindex: '0' },
    el('table', { class: 'small' }, el('caption', { class: 'unseen' }, caption),
      el('thead', {}, el('tr', {}, heads.map((h) => el('th', { scope: 'col' }, h)))),
      el('tbody', {}, rows)));
}

const note = (kind, ...text) => el('p', { class: `note ${kind}` }, ...text);

/* ---- signing in ---- */

// A link brings its token behind "#": no server and no log has seen it. It leaves the address at once.
function signInByLink() {
  const token = new URLSearchParams(location.hash.slice(1)).get('t');
  if (!token) return false;
  history.replaceState(null, '', location.pathname);
  const form = $('sign-in');
  form.elements.token.value = token;
  form.submit();
  return true;
}

/* ---- what the service tells ---- */

const state = {
  newest: null, // the last snapshot that came
  recent: [], // the last few: rates are taken over them
  arrived: performance.now(),
  held: false,
  mode: 'connecting',
  signedOut: false,
  said: '',
  saidAt: -Infinity,
};

const rateOver = 3000; // milliseconds

function arrive(snapshot) {
  const restarted = state.newest && state.newest.started !== snapshot.started;
  if (state.newest && !restarted && Date.parse(snapshot.at) < Date.parse(state.newest.at)) return; // overtaken on its way
  if (restarted) state.recent = []; // its counters began anew
  state.newest = snapshot;
  state.arrived = performance.now();
  state.recent.push(snapshot);
  while (state.recent.length > 2 && Date.parse(snapshot.at) - Date.parse(state.recent[1].at) >= rateOver) state.recent.shift();
  samples.push(sampleOf(snapshot));
  while (samples.length > samplesMax) samples.shift();
  if (!state.held) draw();
}

// A rate is known from the second snapshot on.
function perSecond(count) {
  const first = state.recent[0];
  const last = state.recent[state.recent.length - 1];
  if (!first || first === last) return null;
  return (Math.max(0, count(last) - count(first)) * 1000) / (Date.parse(last.at) - Date.parse(first.at));
}

const ratio = (a, b) => (known(a) && known(b) && b > 0 ? a / b : null);
const answers = (snapshot, of) => snapshot.answers.filter(of).reduce((sum, a) => sum + a.count, 0);
const accepted = (s) => answers(s, (a) => a.answer === 'accepted');
const refused = (s) => answers(s, (a) => a.refuses);

function draw() {
  const s = state.newest;
  if (!s) return;
  drawPipeline(s);
  drawAnswers(s);
  drawProducts(s);
  drawVerdict(s);
  drawAlerts(s);
  drawCharts();
  drawFeed(s);
  if ($('buy')) drawBuy(s);
  noteParked(s.pipeline.parked);
  speak(s);
}

function drawPipeline(s) {
  const p = s.pipeline;
  const batches = perSecond((x) => x.pipeline.deductBatches);
  const commands = perSecond((x) => x.pipeline.deductCommands);
  const halves = perSecond((x) => x.pipeline.sentBatches);
  const flows = perSecond((x) => x.pipeline.sentFlows);
  const groups = perSecond((x) => x.pipeline.appliedGroups);
  const rows = perSecond((x) => x.pipeline.appliedRows);
  const mean = (sum, n) => (known(n) && n === 0 ? '–' : rate(ratio(sum, n)));
  put(fields['accepted-rate'], rate(perSecond(accepted)));
  put(fields['refused-rate'], rate(perSecond(refused)));
  put(fields['accepted-total'], num(accepted(s)));
  const times = state.recent.map((x) => x.answerTimes).filter(known).pop(); // like rates: of the last few
  const quiet = perSecond((x) => answers(x, () => true)) === 0;
  for (const name of ['p50', 'p99']) put(fields[name], times ? `${rate(millis(times[`${name}Seconds`]))} ms` : quiet ? '–' : '?');
  put(fields.lane, num(p.laneWaiting));
  put(fields.batch, mean(commands, batches));
  put(fields.intake, p.intake);
  put(fields['gate-rate'], rate(commands));
  put(fields['calls-rate'], rate(batches));
  put(fields.unread, num(p.gatesUnread));
  put(fields.lag, num(p.lagMessages));
  put(fields['half-rate'], rate(halves));
  put(fields['flows-half'], mean(flows, halves));
  put(fields['apply-rate'], rate(rows));
  put(fields['rows-tx'], mean(rows, groups));
  put(fields.applied, num(p.appliedRows));
  put(fields.flight, num(p.openFlows));
  put(fields.oldest, p.openFlows === 0 ? '–' : span(p.oldestOpenSeconds));
  put(fields.untold, num(p.untoldOrders));
  put(fields.parked, num(p.parked));
  put($('next-run'), s.nextReconcile ? `runs by itself next at ${clock.format(new Date(s.nextReconcile))}` : '');
  put($('up'), `up ${span((Date.parse(s.at) - s.started) / 1000)}`);
}

function drawAnswers(s) {
  const list = $('reasons');
  for (const a of s.answers) {
    let li = list.querySelector(`[data-answer="${a.answer}"]`);
    if (!li) {
      li = el('li', { 'data-answer': a.answer }, el('span', { class: 'name' }, a.answer), ' ', el('b'), ' ', el('span', { class: 'rate' }));
      list.append(li);
    }
    put(li.querySelector('b'), num(a.count));
    li.classList.toggle('none', a.count === 0);
    const speed = perSecond((x) => answers(x, (y) => y.answer === a.answer));
    put(li.querySelector('.rate'), speed ? `${rate(speed)}/s` : '');
  }
}

/* ---- products ---- */

const rows = new Map(); // by product; a row stays, so that whoever is on one of its buttons stays there
const columns = ['state', 'epoch', 'total', 'sold', 'confirmed', 'gate', 'ledger', 'flight', 'oldest', 'drift', 'balance', 'acts'];
const glyphs = { holds: ['good', '✓'], broken: ['bad', '✗'], unknown: ['', '?'] };

function drawProducts(s) {
  const body = $('rows');
  if (!rows.size) body.replaceChildren();
  const seen = new Set();
  for (const p of s.products) {
    seen.add(p.productId);
    let row = rows.get(p.productId);
    if (!row) {
      row = newRow(p.productId);
      rows.set(p.productId, row);
      body.append(row.tr);
    }
    drawRow(row, p);
  }
  for (const [id, row] of rows) {
    if (seen.has(id)) continue;
    row.tr.remove();
    rows.delete(id);
  }
  const words = [];
  if (!s.productsRead) words.push('The list could not be read: this is that of an earlier look.');
  else if (!s.products.length) words.push('Nothing is on sale yet.');
  if (s.moreProducts) words.push(`The first ${num(s.products.length)} are shown.`);
  put($('products-note'), words.join(' '));
}

function newRow(id) {
  const cells = Object.fromEntries(columns.map((c) => [c, el('td')]));
  const name = el('button', { class: 'plain', onclick: () => showProduct(id), title: 'Window, limit and stock changes' }, id);
  const row = { id, cells, tr: el('tr', { 'data-product': id }, el('th', { scope: 'row' }, name), columns.map((c) => cells[c])), drawn: {} };
  cells.acts.className = 'script';
  if (page.admin === 'true') {
    row.pause = el('button', { onclick: () => askPause(row.now) }, 'Pause…');
    cells.acts.append(el('div', { class: 'acts' }, row.pause,
      el('button', { onclick: () => askChange(row.now), 'aria-label': `Change the stock of ${id}` }, 'Stock ±'),
      el('button', { onclick: () => askRebuild(row.now), 'aria-label': `Rebuild ${id}` }, 'Rebuild…')));
  }
  return row;
}

function drawTag(row, cell, kind, glyph, text) {
  const drawn = `${kind} ${glyph} ${text}`;
  if (row.drawn[cell] === drawn) return;
  row.drawn[cell] = drawn;
  row.cells[cell].replaceChildren(tag(kind, glyph, text));
}

function drawRow(row, p) {
  row.now = p;
  const c = row.cells;
  if (p.state === 'open' && !p.paused) drawTag(row, 'state', p.gate === 0 ? '' : 'good', p.gate === 0 ? '■' : '●', p.gate === 0 ? 'sold out' : 'open');
  else if (p.state === 'open') drawTag(row, 'state', 'warn', '‖', 'paused');
  else if (p.state === 'unknown') drawTag(row, 'state', '', '?', 'unread');
  else drawTag(row, 'state', 'bad', '▲', p.paused ? `${p.state}, paused` : p.state);
  put(c.epoch, `${num(p.epoch)} / ${num(p.sequence)}`);
  put(c.total, num(p.total));
  put(c.sold, num(p.sold));
  put(c.confirmed, num(p.confirmed));
  put(c.gate, num(p.gate));
  put(c.ledger, num(p.ledger));
  put(c.flight, num(p.inFlight));
  put(c.oldest, p.inFlight === 0 ? '–' : span(p.oldestOpenSeconds));
  put(c.drift, known(p.drift) ? signed.format(p.drift) : '?');
  c.drift.classList.toggle('odd', known(p.drift) && p.drift !== 0);
  const [kind, glyph] = glyphs[p.balance] || glyphs.unknown;
  drawTag(row, 'balance', kind, glyph, p.balanceNote);
  if (row.pause) {
    put(row.pause, p.paused ? 'Resume…' : 'Pause…');
    row.pause.setAttribute('aria-label', `${p.paused ? 'Resume' : 'Pause'} ${p.productId}`);
    row.pause.disabled = p.state === 'unknown';
  }
}

function total(products, of) {
  if (!products.length || products.some((p) => !known(of(p)))) return null;
  return products.reduce((sum, p) => sum + of(p), 0);
}

function verdictOf(products, holds) {
  if (!products.length) return ['unknown', 'no product to judge'];
  const broken = products.filter((p) => p.balance === 'broken' && !holds(p));
  if (broken.length) return ['broken', `broken for ${broken.map((p) => p.productId).join(', ')}`];
  const open = products.filter((p) => p.balance !== 'holds');
  const good = products.length - open.length;
  const all = products.length === 1 ? 'the one product' : `${num(good)} of ${num(products.length)} products`;
  if (!open.length) return ['holds', `holds at rest, for ${all}`];
  const why = [...new Set(open.map((p) => p.balanceNote))].join(', ');
  return ['unknown', good ? `holds for ${num(good)} of ${num(products.length)}; ${why} for ${num(open.length)}` : `${why}: counted when both sides rest`];
}

function drawVerdict(s) {
  const list = s.products;
  const show = (id, words, [verdict, text]) => {
    $(id).dataset.verdict = verdict;
    put($(id).querySelector('.glyph'), glyphs[verdict][1]);
    put(fields[words], `${{ holds: 'Yes', broken: 'No', unknown: 'Not known' }[verdict]}: ${text}`);
  };
  for (const [field, of] of [['sum-sold', 'sold'], ['sum-gate', 'gate'], ['sum-gate2', 'gate'], ['sum-total', 'total'], ['sum-flight', 'inFlight'], ['sum-ledger', 'ledger']]) {
    put(fields[field], num(total(list, (p) => p[of])));
  }
  show('eq-sold', 'words-sold', verdictOf(list, (p) => p.sold + p.gate === p.total));
  show('eq-way', 'words-way', verdictOf(list, (p) => p.gate + p.inFlight === p.ledger));
}

/* ---- accepted last ---- */

const fed = new Map(); // rows by purchase

// The table stands still under a pointer and under the focus, so that nobody traces another purchase than the one meant.
function drawFeed(s) {
  const body = $('feed-rows');
  if (body.matches(':hover, :focus-within')) return;
  const keyOf = (p) => JSON.stringify([p.productId, p.uid, p.token, p.at]);
  const keep = new Set(s.latest.map(keyOf));
  for (const [key, row] of fed) {
    if (keep.has(key)) continue;
    row.remove();
    fed.delete(key);
  }
  s.latest.forEach((p, i) => {
    const key = keyOf(p);
    if (!fed.has(key)) fed.set(key, feedRow(p));
    if (body.children[i] !== fed.get(key)) body.insertBefore(fed.get(key), body.children[i] || null);
  });
}

function feedRow(p) {
  return el('tr', {}, el('td', {}, clock.format(new Date(p.at))), el('td', {}, p.uid), el('td', {}, `${num(p.quantity)} × ${p.productId}`),
    el('td', {}, p.token), el('td', {}, tag('', '→', 'accepted')),
    el('td', {}, el('div', { class: 'acts' }, el('button', { 'aria-label': `Trace ${p.token} of ${p.uid}`, onclick: () => traceOf(p.productId, p.uid, p.token) }, 'Trace'))));
}

/* ---- what needs attention ---- */

function alertsOf(s) {
  const list = [];
  const age = ageOf();
  if (age > staleAfter) list.push(['bad', `Nothing new for ${span(Math.floor(age))}: what is shown is how it was then.`]);
  for (const [part, status] of Object.entries(s.parts || {})) {
    if (!status.ok) list.push(['bad', `The ${part} is ${status.detail || 'away'}; last seen ${status.ageSeconds < 0 ? 'never' : `${span(status.ageSeconds)} ago`}. What it knows is shown as “?”.`]);
  }
  const byId = new Map(s.products.map((p) => [p.productId, p]));
  for (const id of s.pipeline.suspended) {
    const p = byId.get(id);
    const since = p && p.suspendedAt ? `, for ${span((Date.parse(s.at) - Date.parse(p.suspendedAt)) / 1000)}` : '';
    const what = p && p.state === 'damaged' ? 'is damaged and waits for an operator' : 'is suspended while its gate is rebuilt';
    list.push([p && p.state === 'damaged' ? 'bad' : 'warn', `${id} ${what}${since}${p && p.reason ? `: ${p.reason}` : ''}.`]);
  }
  if (s.pipeline.intake === 'sends-fail') list.push(['bad', 'Nothing new is taken: no message could be sent for a while.']);
  if (s.pipeline.intake === 'too-many-open') list.push(['warn', 'Nothing new is taken: too much is in flight.']);
  if (s.pipeline.parked > 0) list.push(['warn', `${num(s.pipeline.parked)} parked ${s.pipeline.parked === 1 ? 'message waits' : 'messages wait'} below.`]);
  for (const p of s.products) {
    if (p.balance === 'broken') list.push(['bad', `${p.productId} differs: Redis has ${units(Math.abs(p.drift))} too ${p.drift > 0 ? 'many' : 'few'}. Make a dry run.`]);
  }
  return list;
}

function drawAlerts(s) {
  const list = alertsOf(s);
  const nodes = $('alerts').children;
  while (nodes.length > list.length) nodes[nodes.length - 1].remove();
  list.forEach(([kind, text], i) => {
    if (!nodes[i]) $('alerts').append(el('li'));
    nodes[i].className = kind;
    put(nodes[i], text);
  });
}

// What matters, to those who listen, when it has changed and at most every 10 s.
function speak(s) {
  const text = [`Invariant: ${fields['words-sold'].textContent}.`, ...alertsOf(s).map(([, t]) => t.replace(/, for [^:.]*/, '').replace(/last seen .* ago/, ''))].join(' ');
  if (text === state.said || performance.now() - state.saidAt < 10000) return;
  state.said = text;
  state.saidAt = performance.now();
  $('status').textContent = text;
}

/* ---- live, or as good as can be ---- */

const link = { source: null, poll: null, opened: 0, failed: 0 };

function connect() {
  link.source = new EventSource('console/stream');
  link.opened = performance.now();
  link.source.onmessage = (event) => {
    stopPolling();
    setMode('live');
    arrive(JSON.parse(event.data));
  };
  link.source.addEventListener('signed-out', signedOut);
  link.source.onerror = () => {
    if (state.signedOut) return;
    if (link.source.readyState === EventSource.CLOSED) { // refused: too many streams, or no session
      link.source = null;
      startPolling();
    } else {
      setMode('away');
    }
  };
}

function startPolling() {
  if (link.poll || state.signedOut) return;
  const ask = async () => {
    try {
      const answer = await fetch('console/snapshot', { cache: 'no-store' });
      if (answer.status === 401) return signedOut();
      if (!answer.ok) throw new Error(answer.status);
      const snapshot = await answer.json();
      if (!link.poll) return;
      setMode('polling');
      arrive(snapshot);
    } catch {
      setMode('away');
    }
  };
  link.poll = setInterval(ask, 2000);
  ask();
}

function stopPolling() {
  clearInterval(link.poll);
  link.poll = null;
}

function setMode(mode) {
  if (!state.signedOut) state.mode = mode;
  drawLink();
}

function signedOut() {
  state.signedOut = true;
  state.mode = 'out';
  stopPolling();
  if (link.source) link.source.close();
  drawLink();
}

const staleAfter = 5; // seconds
const ageOf = () => (performance.now() - state.arrived) / 1000;

function drawLink() {
  const age = ageOf();
  const old = age > staleAfter;
  if (state.newest && !state.held && (old || root.classList.contains('stale'))) drawAlerts(state.newest);
  root.classList.toggle('stale', old || state.signedOut);
  const words = { live: 'live', polling: 'polling every 2 s', away: 'reconnecting', connecting: 'connecting', out: 'signed out: the session has run out' }[state.mode];
  const numbers = state.held ? ' · paused' : old && state.newest ? ` · numbers are ${span(Math.floor(age))} old` : '';
  $('link').dataset.mode = state.mode;
  put($('link-text'), words + numbers);
  if (state.signedOut && !$('again')) $('link').append(el('a', { id: 'again', href: 'console' }, 'Sign in again'));
}

function watchLink() {
  setInterval(() => {
    drawLink();
    const silent = (performance.now() - Math.max(state.arrived, link.opened)) / 1000;
    if (state.signedOut) return;
    if (link.source && link.source.readyState === EventSource.OPEN && silent > 4) startPolling(); // something holds the stream up
    if (!link.source && performance.now() - link.opened > 10000) connect();
  }, 1000);
}

function hold(on) {
  state.held = on;
  $('hold').setAttribute('aria-pressed', String(on));
  put($('hold'), on ? 'Go on' : 'Pause');
  if (!on) draw();
  drawLink();
}

/* ---- charts ---- */

const samplesMax = 900;
const samples = [];
const charts = [];

const sampleOf = (s) => ({
  started: s.started, at: Date.parse(s.at), accepted: accepted(s), refused: refused(s), inFlight: s.pipeline.openFlows, lag: s.pipeline.lagMessages,
  p50: s.answerTimes ? s.answerTimes.p50Seconds : null, p99: s.answerTimes ? s.answerTimes.p99Seconds : null,
  remaining: Object.fromEntries(s.products.slice(0, 6).map((p) => [p.productId, p.gate])),
});

async function loadHistory() {
  const answer = await fetch('console/history', { cache: 'no-store' });
  if (!answer.ok) return;
  const { started, samples: earlier } = await answer.json();
  const first = samples.length ? samples[0].at : Infinity;
  samples.unshift(...earlier.filter((x) => x.at < first).map((x) => ({ ...x, started })));
  while (samples.length > samplesMax) samples.shift();
  if (!state.held) drawCharts();
}

// Between two samples that are far apart nobody watched: nothing is known of that time.
function series() {
  const out = { at: [], accepted: [], refused: [], p50: [], p99: [], inFlight: [], lag: [], products: [], remaining: {} };
  out.products = Object.keys(samples.length ? samples[samples.length - 1].remaining : {}).slice(0, 6);
  for (const id of out.products) out.remaining[id] = [];
  const add = (at, x, before) => {
    const seconds = before ? (x.at - before.at) / 1000 : 0;
    const speed = (name) => (before ? Math.max(0, x[name] - before[name]) / seconds : null);
    out.at.push(at / 1000);
    out.accepted.push(x ? speed('accepted') : null);
    out.refused.push(x ? speed('refused') : null);
    out.p50.push(x ? millis(x.p50) : null);
    out.p99.push(x ? millis(x.p99) : null);
    out.inFlight.push(x && known(x.inFlight) ? x.inFlight : null);
    out.lag.push(x && known(x.lag) ? x.lag : null);
    for (const id of out.products) out.remaining[id].push(x && known(x.remaining[id]) ? x.remaining[id] : null);
  };
  let before = null;
  for (const x of samples) {
    const gap = before && (x.at - before.at > 10000 || x.started !== before.started);
    if (gap) add(before.at + 1, null, null);
    add(x.at, x, gap || !before || x.at === before.at ? null : before);
    before = x;
  }
  return out;
}

function chartOf(id, lines) {
  const style = getComputedStyle(root);
  const color = (name) => style.getPropertyValue(`--${name}`).trim();
  const axis = { stroke: color('soft'), grid: { stroke: color('line'), width: 1 }, ticks: { show: false }, font: '11px system-ui, sans-serif' };
  return new uPlot({
    width: Math.max(200, $(id).clientWidth), height: 150,
    cursor: { y: false, points: { size: 6 } },
    legend: { live: true, markers: { width: 2 } },
    scales: { x: { time: true }, y: { range: (u, low, high) => [0, Math.max(1, high || 0) * 1.08] } },
    axes: [
      { ...axis, space: 90, size: 28, values: (u, ticks) => ticks.map((t) => clock.format(new Date(t * 1000)).slice(0, 5)) },
      { ...axis, size: 52, values: (u, ticks) => ticks.map((t) => (Number.isInteger(t) ? (ticks[ticks.length - 1] < 1e5 ? whole : brief).format(t) : '')) },
    ],
    series: [{ value: (u, t) => (known(t) ? clock.format(new Date(t * 1000)) : 'now') }, ...lines.map(([label, name, dash]) => ({
      label, stroke: color(name), width: 1.75, dash, points: { show: false, filter: lonely }, value: (u, v, line, at) => rate(at === null ? u.data[line][u.data[0].length - 1] : v), // without a pointer: the newest
    }))],
  }, null, $(id));
}

// A value between two unknown ones makes no line, and so is drawn as a point.
function lonely(u, line) {
  const values = u.data[line];
  const at = [];
  values.forEach((v, i) => { if (known(v) && !known(values[i - 1]) && !known(values[i + 1])) at.push(i); });
  return at.length ? at : null;
}

const lineColors = ['blue', 'orange', 'green', 'violet', 'pink', 'grey'];
const dashes = [[], [6, 4], [2, 3], [10, 4], [6, 3, 2, 3], [1, 4]];

function buildCharts(products) {
  while (charts.length) charts.pop().destroy();
  charts.push(
    chartOf('chart-rates', [['accepted', 'green', []], ['refused', 'orange', [6, 4]]]),
    chartOf('chart-times', [['p50', 'blue', []], ['p99', 'pink', [6, 4]]]),
    chartOf('chart-way', [['in flight', 'blue', []], ['lag', 'violet', [6, 4]]]),
    chartOf('chart-left', products.map((id, i) => [id, lineColors[i], dashes[i]])));
  charts.products = products.join(' ');
}

function drawCharts() {
  if (typeof uPlot === 'undefined') return;
  const d = series();
  if (!charts.length || charts.products !== d.products.join(' ')) buildCharts(d.products);
  charts[0].setData([d.at, d.accepted, d.refused]);
  charts[1].setData([d.at, d.p50, d.p99]);
  charts[2].setData([d.at, d.inFlight, d.lag]);
  charts[3].setData([d.at, ...d.products.map((id) => d.remaining[id])]);
  if ($('twin').open) drawTwin(d);
}

// By the minute, newest first: means of rates, the longest of answer times, last values of the rest.
function drawTwin(d) {
  const heads = ['Minute', 'Accepted/s', 'Refused/s', 'p50 at most, ms', 'p99 at most, ms', 'In flight', 'Lag', ...d.products.map((id) => `Left of ${id}`)];
  $('twin-head').replaceChildren(...heads.map((h) => el('th', { scope: 'col' }, h)));
  const minutes = new Map();
  d.at.forEach((t, i) => {
    const minute = Math.floor(t / 60);
    if (!minutes.has(minute)) minutes.set(minute, []);
    minutes.get(minute).push(i);
  });
  const mean = (list, at) => {
    const values = at.map((i) => list[i]).filter(known);
    return values.length ? values.reduce((a, b) => a + b, 0) / values.length : null;
  };
  const most = (list, at) => at.map((i) => list[i]).filter(known).reduce((a, b) => Math.max(a, b), null);
  const last = (list, at) => at.map((i) => list[i]).filter(known).pop();
  $('twin-rows').replaceChildren(...[...minutes].reverse().map(([minute, at]) => el('tr', {},
    el('th', { scope: 'row' }, clock.format(new Date(minute * 60000)).slice(0, 5)),
    el('td', {}, rate(mean(d.accepted, at))), el('td', {}, rate(mean(d.refused, at))),
    el('td', {}, rate(most(d.p50, at))), el('td', {}, rate(most(d.p99, at))),
    el('td', {}, num(last(d.inFlight, at))), el('td', {}, num(last(d.lag, at))),
    d.products.map((id) => el('td', {}, num(last(d.remaining[id], at)))))));
}

function followSizeAndTheme() {
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => {
    if (!charts.length) return;
    buildCharts(series().products);
    drawCharts();
  });
  new ResizeObserver(() => {
    for (const chart of charts) {
      const width = Math.max(200, chart.root.parentElement.clientWidth);
      if (width !== chart.width) chart.setSize({ width, height: 150 });
    }
  }).observe($('charts'));
  $('twin').addEventListener('toggle', drawCharts);
}

/* ---- asking the service for something ---- */

class Refusal extends Error {
  constructor(status, problem) {
    super(plain(status, problem));
    this.status = status;
    this.code = problem && problem.code;
    this.open = this.code === 'outcome-unknown' || status === 0;
  }
}

const plainWords = {
  'plan-outdated': 'The plan no longer fits: something that it lists has changed since. Nothing was done. Make a new dry run and look at it again.',
  'product-exists': 'That product is on sale already, with other terms. Nothing was changed.',
  'stock-not-enough': 'There are not so many units left to take away. Nothing was changed.',
  'outcome-unknown': 'Whether it was done is not known yet. Ask again: it is never done twice.',
};

function plain(status, problem) {
  if (status === 0) return 'The service did not answer; whether it was done is not known. Ask again: it is never done twice.';
  if (!problem) return `The service answered ${status}.`;
  const faults = (problem.errors || []).map((e) => `${e.pointer.replace('/', '')} ${e.detail}`).join('; ');
  const words = plainWords[problem.code] || `${problem.title}.`;
  return [words, problem.detail, faults].filter(Boolean).join(' ');
}

async function call({ method = 'GET', path, body, headers = {} }) {
  let answer;
  try {
    answer = await fetch(`console/api/${path}`, {
      method, cache: 'no-store', body: body && JSON.stringify(body),
      headers: { 'X-CSRF-Token': page.csrf, ...(body ? { 'Content-Type': 'application/json' } : {}), ...headers },
    });
  } catch {
    throw new Refusal(0);
  }
  const json = await answer.json().catch(() => null);
  if (answer.status === 401) signedOut();
  if (!answer.ok) throw new Refusal(answer.status, json);
  return json;
}

const quote = (text) => `'${String(text).replaceAll("'", "'\\''")}'`;

function curlOf({ method = 'GET', path, body, headers = {} }) {
  const parts = [`curl -X ${method} ${quote(new URL(`admin/v1/${path}`, location.href))}`, '-H "Authorization: Bearer $TOKEN"'];
  for (const [name, value] of Object.entries(headers)) parts.push(`-H ${quote(`${name}: ${value}`)}`);
  if (body) parts.push("-H 'Content-Type: application/json'", `-d ${quote(JSON.stringify(body))}`);
  return parts.join(' \\\n  ');
}

async function copy(text, button) {
  const before = button.textContent;
  try {
    await navigator.clipboard.writeText(text);
    put(button, 'Copied');
  } catch {
    put(button, 'Not allowed here: select it');
  }
  setTimeout(() => put(button, before), 2000);
}

function curlPiece(requestNow) {
  const text = el('code');
  const button = el('button', { type: 'button', onclick: () => copy(text.textContent, button) }, 'Copy');
  const piece = el('details', {}, el('summary', {}, 'As curl'), el('pre', { tabindex: '0' }, text), button);
  const refresh = () => put(text, curlOf(requestNow()));
  piece.addEventListener('toggle', refresh);
  return { piece, refresh };
}

// A dialog that says what an action does, asks for what it needs, and shows what came of it.
function ask({ title, effect, inputs = [], action, danger, request, run = call, done }) {
  const dialog = $('ask');
  const form = el('form', { method: 'dialog' });
  const values = () => Object.fromEntries(inputs.map((i) => [i.name, form.elements[i.name].value.trim()]));
  for (const i of inputs) {
    const { label, hint, options, name, ...rest } = i;
    delete rest.must;
    form.append(el('label', {}, el('span', {}, label),
      options ? el('select', { name }, options.map(([v, t]) => el('option', { value: v }, t))) : el('input', { name, autocomplete: 'off', spellcheck: 'false', ...rest }),
      hint ? el('small', {}, hint) : null));
  }
  const outcome = el('div', { role: 'alert' });
  const go = el('button', { class: danger ? 'danger' : 'primary' }, action);
  const cancel = el('button', { type: 'button', onclick: () => dialog.close() }, 'Cancel');
  const curl = curlPiece(() => request(values()));
  form.append(curl.piece, outcome, el('div', { class: 'buttons' }, cancel, go));
  form.addEventListener('input', () => {
    curl.refresh();
    go.disabled = inputs.some((i) => i.must && form.elements[i.name].value.trim() !== i.must);
  });
  go.disabled = inputs.some((i) => i.must);
  form.addEventListener('submit', async (event) => {
    event.preventDefault();
    if (go.disabled) return;
    go.disabled = true;
    outcome.replaceChildren();
    try {
      const answer = await run(request(values()));
      outcome.replaceChildren(note('good', done(answer)));
      put(cancel, 'Close');
      go.remove();
      cancel.focus();
      hold(false); // the effect is to be seen
    } catch (fault) {
      outcome.replaceChildren(note(fault.open ? 'warn' : 'bad', fault.message));
      if (fault.open) put(go, 'Ask again');
      go.disabled = false;
    }
  });
  dialog.className = '';
  dialog.replaceChildren(el('h2', { id: 'ask-title' }, title), el('p', {}, effect), form);
  dialog.showModal();
}

function tell(title, ...content) {
  const dialog = $('ask');
  dialog.className = 'wide';
  dialog.replaceChildren(el('h2', { id: 'ask-title' }, title), ...content,
    el('div', { class: 'buttons' }, el('button', { onclick: () => dialog.close() }, 'Close')));
  if (!dialog.open) dialog.showModal();
}

const newKey = () => (crypto.randomUUID ? crypto.randomUUID() : `k-${Date.now()}-${crypto.getRandomValues(new Uint32Array(2)).join('-')}`); // over http elsewhere than here there is no UUID

const reason = { name: 'reason', label: 'Reason, kept with the change', required: true, maxlength: '200' };
const pathOf = (id) => `products/${encodeURIComponent(id)}`;

function askOpenSale() {
  ask({
    title: 'Put a product on sale',
    effect: 'Its units are on sale as soon as its gate is built, which takes a moment.',
    inputs: [
      { name: 'productId', label: 'Product id', required: true, pattern: '[A-Za-z0-9._:\\-]{1,64}', hint: 'Letters, digits and . _ : - ; at most 64' },
      { name: 'total', label: 'Units', type: 'number', min: '1', max: '1000000000', required: true },
      { name: 'limit', label: 'At most for one buyer (0: no limit)', type: 'number', min: '0', value: '0', required: true },
    ],
    action: 'Put on sale',
    request: (v) => ({ method: 'PUT', path: pathOf(v.productId), body: { total: Number(v.total), limitPerBuyer: Number(v.limit) } }),
    done: (s) => `${s.productId} has ${units(s.total)} on sale; it is ${s.state}.`,
  });
}

function askPause(p) {
  const verb = p.paused ? 'resume' : 'pause';
  ask({
    title: `${p.paused ? 'Resume' : 'Pause'} ${p.productId}`,
    effect: p.paused
      ? `Buyers can take the ${units(p.gate)} in Redis again at once.`
      : `Buyers are told “closed” at once; ${units(p.gate)} stay in Redis. The ${units(p.inFlight)} in flight are finished all the same.`,
    inputs: [reason],
    action: p.paused ? 'Resume' : 'Pause',
    request: (v) => ({ method: 'POST', path: `${pathOf(p.productId)}/${verb}`, body: { reason: v.reason } }),
    done: (s) => `${s.productId} is ${s.paused ? 'paused' : 'no longer paused'}.`,
  });
}

// The key is made when the dialog opens: however often it is sent, it counts once.
function askChange(p) {
  const key = newKey();
  ask({
    title: `Change the stock of ${p.productId}`,
    effect: `${num(p.total)} on sale, ${num(p.gate)} left in Redis. Say how many more (+) or fewer (−); what is sold stays sold.`,
    inputs: [{ name: 'delta', label: 'Change, signed', type: 'number', step: '1', required: true, placeholder: 'for example 50 or -20' }, reason],
    action: 'Change',
    request: (v) => ({ method: 'POST', path: `${pathOf(p.productId)}/stock-changes`, body: { delta: Number(v.delta), reason: v.reason }, headers: { 'Idempotency-Key': key } }),
    done: (c) => `A change of ${signed.format(c.delta)} is ${c.status}.`,
  });
}

function askRebuild(p) {
  ask({
    title: `Rebuild ${p.productId}`,
    effect: `The product is off sale until its gate is built anew from the ledger’s rows: buyers are told to come back, and the ${units(p.inFlight)} in flight are drained first. This cannot be called back.`,
    inputs: [{ name: 'typed', label: `Type ${p.productId} to confirm`, must: p.productId, required: true }, reason],
    action: 'Rebuild', danger: true,
    request: (v) => ({ method: 'POST', path: `${pathOf(p.productId)}/rebuild`, body: { reason: v.reason } }),
    done: () => `${p.productId} is being rebuilt; the table shows when it is open again.`,
  });
}

const changeTags = { confirmed: ['good', '✓', 'confirmed'], pending: ['warn', '…', 'pending'], rejected: ['bad', '✗', 'rejected'], cancelled: ['', '–', 'cancelled'] };

async function showProduct(id) {
  tell(id, el('p', { class: 'words' }, 'Reading…'));
  const content = await Promise.allSettled([call({ path: pathOf(id) }), call({ path: `${pathOf(id)}/stock-changes?limit=20` })]);
  const [stock, changes] = content.map((c) => c.value);
  const parts = [];
  if (stock) {
    const pairs = [['State', stock.paused ? `${stock.state}, paused` : stock.state], ['On sale', num(stock.total)], ['Opens', stock.opensAt ? when(stock.opensAt) : 'at once'],
      ['Closes', stock.closesAt ? when(stock.closesAt) : 'when sold'], ['At most for a buyer', stock.limitPerBuyer ? num(stock.limitPerBuyer) : 'no limit'], ['Confirmed', num(stock.confirmed)],
      ['Gate', stock.gate ? `${num(stock.gate.remaining)} left, epoch ${num(stock.gate.epoch)}${stock.gate.shut ? ', shut' : ''}` : '?'], ['Ledger', stock.ledger ? `${num(stock.ledger.stock)} left, version ${num(stock.ledger.version)}` : '?'],
      ['Open flows', num(stock.inFlight)], ['Closed last for', span(stock.lastClosedSeconds)]];
    parts.push(el('dl', { class: 'facts-list' }, pairs.flatMap(([k, v]) => [el('dt', {}, k), el('dd', {}, v)])));
  } else {
    parts.push(note('bad', content[0].reason.message));
  }
  parts.push(el('h3', {}, 'Stock changes, newest first'));
  if (!changes) parts.push(note('bad', content[1].reason.message));
  else if (!changes.items.length) parts.push(el('p', { class: 'words' }, 'None.'));
  else {
    parts.push(table(`Stock changes of ${id}`, ['Change', 'Reason, and who asked', 'When, and its key'], changes.items.map((c) => el('tr', {},
      el('td', {}, el('div', { class: 'units' }, signed.format(c.delta)), tag(...(changeTags[c.status] || ['', '?', c.status]))),
      el('td', { class: 'word' }, c.reason || '?', el('div', { class: 'words' }, `by ${c.actor || '?'}`)),
      el('td', { class: 'word' }, when(c.createdAt), el('div', { class: 'words id' }, c.key))))));
    if (changes.next) parts.push(el('p', { class: 'words' }, `The newest ${num(changes.items.length)} are shown.`));
  }
  tell(id, ...parts);
}

/* ---- books, doctor, trace ---- */

// Runs work while its button shows that it is under way, and tells a failure in words at its place.
async function busy(button, place, work) {
  if (button.disabled) return;
  button.disabled = true;
  try {
    await work();
  } catch (fault) {
    place.replaceChildren(note('bad', fault.message));
  } finally {
    button.disabled = false;
  }
}

function verifyBooks() {
  const box = $('eq-books');
  return busy($('verify'), $('books-words'), async () => {
    put($('books-words'), 'reading every order and flow…');
    const v = await call({ path: 'verification' });
    const broken = v.invariants.filter((i) => i.verdict === 'broken');
    const open = v.invariants.filter((i) => i.verdict === 'unknown');
    box.dataset.verdict = broken.length ? 'broken' : v.holds ? 'holds' : 'unknown';
    put(box.querySelector('.glyph'), glyphs[box.dataset.verdict][1]);
    const names = (list) => list.map((i) => `${i.name} (${i.title})`).join(', ');
    put($('books-words'), broken.length ? `No: broken are ${names(broken)}` : v.holds
      ? `Yes: ${num(v.orders)} orders of ${num(v.products)} products, at ${clock.format(new Date(v.at))}` : `Not known: ${names(open)}`);
  });
}

const verdictTags = { right: ['good', '✓', 'right'], note: ['', 'i', 'note'], wrong: ['bad', '✗', 'wrong'], unknown: ['warn', '?', 'unread'] };

function examine() {
  const place = $('findings');
  return busy($('examine'), place, async () => {
    place.replaceChildren(el('p', { class: 'words' }, 'Asking Redis, broker and database…'));
    const x = await call({ path: 'doctor' });
    const row = (c) => el('tr', {}, el('td', {}, tag(...verdictTags[c.verdict])), el('td', {}, c.part, c.node ? el('div', { class: 'words id' }, c.node) : null),
      el('td', { class: 'wrap' }, el('b', {}, c.name), ` is ${c.found}`, c.verdict === 'right' ? null : [`Right is ${c.right}.`, c.why, c.change].filter(Boolean).map((line) => el('div', { class: 'words' }, line))));
    const odd = x.checks.filter((c) => c.verdict !== 'right');
    const fine = x.checks.filter((c) => c.verdict === 'right');
    const heads = ['Verdict', 'Part', 'Finding'];
    place.replaceChildren(
      note(x.healthy ? 'good' : 'bad', x.healthy ? `Healthy: ${num(fine.length)} checks are right, ${num(x.notes)} to note.` : `${num(x.wrong)} wrong, ${num(x.unknown)} could not be read.`),
      odd.length ? table('What an operator should know', heads, odd.map(row)) : '',
      el('details', {}, el('summary', {}, `${num(fine.length)} that are right`), table('What is right', heads, fine.map(row))));
  });
}

const stepTags = { done: ['good', '✓', 'done'], waiting: ['warn', '…', 'waiting'], missing: ['bad', '✗', 'missing'], unknown: ['', '?', 'unknown'], skipped: ['', '–', 'skipped'] };

function trace(event) {
  event.preventDefault();
  const form = $('trace-form');
  const query = new URLSearchParams(['productId', 'uid', 'token'].map((n) => [n, form.elements[n].value.trim()]));
  const place = $('trace-result');
  return busy(form.querySelector('button'), place, async () => {
    const t = await call({ path: `trace?${query}` });
    let before = null;
    const steps = t.steps.map((s) => {
      const at = s.at ? Date.parse(s.at) : null;
      const gap = at && before ? ` +${tenth.format((at - before) / 1000)} s` : '';
      if (at) before = at;
      return el('li', { 'data-state': s.state }, el('span', {}, el('b', {}, s.step), ` `, el('span', { class: 'words' }, s.source)), tag(...(stepTags[s.state] || stepTags.unknown)),
        el('span', { class: 'words' }, at ? clock.format(new Date(at)) + gap : ''), el('span', { class: 'detail' }, s.detail));
    });
    const raw = el('code', {}, JSON.stringify(t, null, 2));
    const button = el('button', { type: 'button', onclick: () => copy(raw.textContent, button) }, 'Copy');
    place.replaceChildren(el('p', {}, el('b', {}, `${known(t.quantity) ? units(t.quantity) : '? units'}, ${t.status}`), t.next ? ` · ${t.next}` : ''),
      t.unread.length ? note('warn', `Could not be read: ${t.unread.join(', ')}.`) : '', el('ol', { class: 'line' }, steps),
      el('details', {}, el('summary', {}, 'Raw'), el('pre', { tabindex: '0' }, raw), button));
  });
}

function traceOf(...words) {
  const form = $('trace-form');
  ['productId', 'uid', 'token'].forEach((name, i) => { form.elements[name].value = words[i] || ''; });
  $('trace').scrollIntoView();
  if (form.reportValidity()) form.requestSubmit();
}

/* ---- reconcile: plan, then apply ---- */

const kinds = {
  'open-flow-without-order': 'open flow without an order', 'open-flow-with-order': 'open flow, its order is there', 'order-without-flow': 'order without its flow',
  'flow-disagrees': 'flow and order disagree', 'order-untold': 'the gate was not told', 'stock-drift': 'stock drift',
};
const shownMax = 100;

function anomalies(report) {
  const row = (a) => el('tr', {}, el('td', {}, kinds[a.kind] || a.kind), el('td', { class: 'wrap' }, [a.productId, a.userId, a.token].filter(Boolean).join(' / ')),
    el('td', {}, num(a.units)), el('td', { class: 'wrap' }, a.evidence), el('td', {}, report.mode === 'apply' ? (a.done ? tag('good', '✓', a.action) : tag('warn', '–', `${a.action}: not done`)) : a.action));
  const rest = report.anomalies.length - shownMax;
  return [table('Anomalies', ['What', 'Product / user / token', 'Units', 'Evidence', report.mode === 'apply' ? 'Done' : 'Would be'], report.anomalies.slice(0, shownMax).map(row)),
    rest > 0 ? el('p', { class: 'words' }, `${num(rest)} more are in the report ${report.id}.`) : ''];
}

function countsOf(report) {
  return Object.entries(report.found).map(([k, n]) => `${num(n)} × ${kinds[k] || k}`).join(', ');
}

function showPlan(report) {
  const place = $('plan');
  const looked = `${many(report.products, 'product')}, ${many(report.flowsChecked, 'open flow')} and ${many(report.ordersChecked, 'order')} were compared`;
  if (!report.anomalies.length) {
    place.replaceChildren(note('good', `Nothing found: ${looked}.`));
    return;
  }
  const apply = el('button', { class: 'primary', onclick: () => askApply(report) }, 'Apply this plan…');
  place.replaceChildren(note('warn', `Found: ${countsOf(report)}. ${looked}. Nothing was changed.${report.capped ? ' The list was cut at its cap.' : ''}`), ...anomalies(report),
    el('div', { class: 'bar' }, apply, el('span', { class: 'id' }, `plan ${report.id}`)), curlPiece(() => dryRunRequest).piece);
}

const dryRunRequest = { method: 'POST', path: 'reconciliations', body: { mode: 'dry-run' } };

function dryRun() {
  return busy($('dry-run'), $('plan'), async () => {
    $('plan').replaceChildren(el('p', { class: 'words' }, 'Comparing flows and orders…'));
    showPlan(await call(dryRunRequest));
    loadReports();
  });
}

function askApply(plan) {
  const todo = plan.anomalies.filter((a) => a.action !== 'none');
  ask({
    title: 'Apply the plan',
    effect: `Does what this dry run lists and nothing else: ${many(todo.length, 'repair')} (${countsOf(plan)}), ${units(todo.reduce((n, a) => n + Math.abs(a.units), 0))} in all. If something listed has changed since, nothing is done.`,
    inputs: [{ ...reason, label: 'Reason, kept with the report' }],
    action: 'Apply', danger: true,
    request: (v) => ({ method: 'POST', path: 'reconciliations', body: { mode: 'apply', planId: plan.id, reason: v.reason } }),
    done: (report) => {
      $('plan').replaceChildren(note('good', `Applied: ${num(report.repaired)} of ${num(report.anomalies.length)} repaired.`), ...anomalies(report));
      loadReports();
      return `${num(report.repaired)} repaired.`;
    },
  });
}

async function loadReports() {
  const place = $('reports');
  try {
    const { items } = await call({ path: 'reconciliations?limit=5' });
    if (!items.length) return place.replaceChildren(el('p', { class: 'words' }, 'No run yet. It also runs by itself on its schedule.'));
    place.replaceChildren(table('Last runs, newest first', ['When', 'Mode', 'By', 'Reason', 'Found', 'Repaired'], items.map((r) => el('tr', {},
      el('td', {}, when(r.startedAt)), el('td', {}, r.mode), el('td', { class: 'word' }, r.actor), el('td', { class: 'word' }, r.reason || '–'), el('td', { class: 'word' }, countsOf(r) || 'nothing'), el('td', {}, num(r.repaired))))));
  } catch (fault) {
    place.replaceChildren(note('bad', fault.message));
  }
}

/* ---- parked messages ---- */

const parked = { count: undefined, chosen: new Set(), items: [], filter: {}, asked: 0 };
const parkReasons = ['malformed', 'unknown-product', 'unknown-kind', 'not-open', 'conflict', 'poison', 'dead-letter', 'discarded-half'];

function noteParked(count) {
  if (count === parked.count) return;
  parked.count = count;
  put($('parked-note'), !known(count) ? '? waiting' : count === 0 ? 'none waits' : `${num(count)} waiting`);
  if (known(count)) loadParked();
  else {
    parked.asked++; // an answer that is still on its way is from before that
    $('parked-filter').hidden = true;
    $('parked-list').replaceChildren(note('warn', 'What is parked cannot be read now.'));
  }
}

const filtered = () => Object.keys(parked.filter).length > 0;
const filterWords = (filter) => [filter.reason && `for ${filter.reason}`, filter.productId && `of ${filter.productId}`].filter(Boolean).join(' ');

function filterParked(event) {
  event.preventDefault();
  const { reason: why, productId } = $('parked-filter').elements;
  parked.filter = Object.fromEntries(Object.entries({ reason: why.value, productId: productId.value.trim() }).filter(([, v]) => v));
  return loadParked();
}

async function loadParked() {
  const place = $('parked-list');
  const { filter } = parked;
  const turn = ++parked.asked;
  $('parked-filter').hidden = !parked.count && !filtered();
  try {
    const { items, next } = await call({ path: `parked?${new URLSearchParams({ limit: 50, ...filter })}` });
    if (turn !== parked.asked) return; // another filter, or nothing can be read any more
    parked.items = items;
    parked.chosen.clear();
    drawParked(filter, next !== null);
  } catch (fault) {
    if (turn === parked.asked) place.replaceChildren(note('bad', fault.message));
  }
}

function drawParked(filter, more) {
  const place = $('parked-list');
  const narrowed = filtered();
  if (!parked.items.length) return place.replaceChildren(el('p', { class: 'words' }, narrowed ? `Nothing is parked ${filterWords(filter)}.` : 'Nothing is parked: every message could be applied.'));
  const can = page.repair === 'true';
  const chosen = el('button', { onclick: () => askReplay({ ids: [...parked.chosen] }, many(parked.chosen.size, 'chosen message')) });
  const boxes = parked.items.map((p) => el('input', { type: 'checkbox', 'aria-label': `Choose ${p.id}`, onchange: (e) => { parked.chosen[e.target.checked ? 'add' : 'delete'](p.id); refresh(); } }));
  const all = el('input', { type: 'checkbox', 'aria-label': 'Choose all that are shown', title: 'Choose all that are shown', onchange: () => chooseAll(all.checked) });
  const chooseAll = (on) => {
    boxes.forEach((box, i) => {
      box.checked = on;
      parked.chosen[on ? 'add' : 'delete'](parked.items[i].id);
    });
    refresh();
  };
  const refresh = () => {
    put(chosen, `Replay ${num(parked.chosen.size)} chosen…`);
    chosen.disabled = !parked.chosen.size;
    all.checked = parked.chosen.size === boxes.length;
    all.indeterminate = parked.chosen.size > 0 && !all.checked;
  };
  const row = (p, i) => el('tr', {}, can ? el('td', {}, boxes[i]) : null,
    el('td', {}, when(p.parkedAt)), el('td', {}, p.reason), el('td', { class: 'word' }, p.productId || '–'),
    el('td', { class: 'wrap' }, p.detail, el('details', {}, el('summary', {}, `${num(p.bodyBytes)} bytes, delivered ${num(p.origin.deliveries + 1)}×`), el('pre', { tabindex: '0' }, el('code', {}, p.body)))));
  const parts = [];
  if (can) {
    const match = el('button', { disabled: !narrowed, onclick: () => askReplay(filter, `all that are parked ${filterWords(filter)}, shown or not`) }, 'Replay all that match…');
    parts.push(el('div', { class: 'bar' }, chosen, match, narrowed ? null : el('span', { class: 'words' }, 'A filter first says what is to match.')));
    refresh();
  }
  parts.push(table(narrowed ? `Messages parked ${filterWords(filter)}, newest first` : 'Parked messages, newest first', [...(can ? [all] : []), 'Parked', 'Reason', 'Product', 'Why'], parked.items.map(row)));
  if (more) parts.push(el('p', { class: 'words' }, `The newest ${num(parked.items.length)}${narrowed ? ' that match' : ''} are shown; “all that match” means all, shown or not.`));
  place.replaceChildren(...parts);
}

const groupMax = 100; // the API's

function askReplay(which, words) {
  ask({
    title: 'Replay parked messages',
    effect: `Tries again ${words}, of ${known(parked.count) ? num(parked.count) : '?'} parked. Each asks the gate for its units first, and what is applied already is met, so nothing is sold twice; what still cannot be applied stays parked.`,
    inputs: [{ ...reason, name: 'why' }],
    action: 'Replay',
    request: ({ why }) => ({ method: 'POST', path: 'parked/replay', body: which.ids ? { ids: which.ids.slice(0, groupMax), why } : { ...which, why } }),
    run: (first) => replay(which.ids, first),
    done: (results) => outcomeOf(results),
  });
}

const replayedOf = (results) => results.filter((r) => r.outcome === 'replayed').length;
const outcomeOf = (results) => `${num(replayedOf(results))} replayed, ${num(results.length - replayedOf(results))} left as they were.`;

// In groups: one call has an end, and what was done so far is seen.
async function replay(ids, first) {
  const place = $('parked-result');
  const results = [];
  const left = ids ? ids.slice(groupMax) : [];
  let body = first.body;
  while (body) {
    const answer = await call({ ...first, body });
    results.push(...answer.items);
    if (left.length) body = { ...first.body, ids: left.splice(0, groupMax) };
    else body = answer.next ? { ...first.body, after: answer.next } : null;
    const kind = replayedOf(results) === results.length ? 'good' : 'warn';
    place.replaceChildren(note(kind, outcomeOf(results), body ? ' Going on…' : ''),
      results.length ? table('What became of each', ['Message', 'Outcome', 'Why'], results.slice(-shownMax).map((r) => el('tr', {},
        el('td', { class: 'id' }, r.id), el('td', {}, r.outcome === 'replayed' ? tag('good', '✓', r.outcome) : tag('warn', '–', r.outcome)), el('td', { class: 'wrap' }, r.detail || '')))) : '');
  }
  loadParked();
  return results;
}

/* ---- the demo's purchase ---- */

const demo = { last: null };

const buyWords = {
  'stock-not-enough': 'fewer units are left than were asked for.',
  'limit-reached': 'this buyer would have more than one may.',
  'sale-closed': 'the sale is paused, or outside of its window.',
  'token-reused': 'this token stands for a purchase of another quantity.',
  'token-refused': 'this token was refused before; a new purchase takes a new one.',
  rebuilding: 'the product is being rebuilt. Nothing was taken; the same token may win in a moment.',
  busy: 'the service is busy. Nothing was taken; the same token may win in a moment.',
};

// What is on sale; the choice stays as it is.
function drawBuy(s) {
  const pick = $('buy').elements.productId;
  const ids = s.products.map((p) => p.productId);
  if ([...pick.options].map((o) => o.value).join(' ') === ids.join(' ')) return;
  const chosen = pick.value;
  pick.replaceChildren(...ids.map((id) => el('option', { value: id }, id)));
  if (ids.includes(chosen)) pick.value = chosen;
}

function buy(event) {
  event.preventDefault();
  const { userId, quantity, productId } = $('buy').elements;
  demo.last = { method: 'POST', path: 'demo/purchases', headers: { 'Idempotency-Key': newKey() },
    body: { productId: productId.value, userId: userId.value.trim(), quantity: Number(quantity.value) } };
  return sendPurchase($('buy').querySelector('button.primary'));
}

function sendPurchase(button) {
  const place = $('bought');
  const { body, headers } = demo.last;
  const token = headers['Idempotency-Key'];
  const what = `${units(body.quantity)} of ${body.productId} for ${body.userId}`;
  const answered = (kind, ...text) => place.replaceChildren(note(kind, ...text), el('div', { class: 'bar' },
    el('button', { onclick: () => traceOf(body.productId, body.userId, token) }, 'Trace it'), el('span', { class: 'words id' }, token)));
  return busy(button, place, async () => {
    hold(false); // the effect is to be seen
    try {
      const order = await call(demo.last);
      if (order.repeat) answered('', `Repeat: this token is known, and its order is ${order.status}. Nothing was taken a second time.`);
      else answered('good', `Accepted: ${what}; ${order.status}, ${num(order.remaining)} left.`);
    } catch (fault) {
      if (fault.open) answered('warn', `Not known: ${fault.message}`);
      else answered('bad', `Refused: ${buyWords[fault.code] || fault.message}`);
    }
    $('buy-again').disabled = false;
  });
}

/* ---- search ---- */

// One word is a product, three are a purchase.
function search(event) {
  event.preventDefault();
  const words = $('search').elements.q.value.split(/[\s/]+/).filter(Boolean);
  if (words.length === 1) {
    showProduct(words[0]);
    return;
  }
  traceOf(...words);
}

/* ---- keys ---- */

const keys = {
  p: ['pause the picture, or go on', () => hold(!state.held)],
  t: ['trace one purchase', () => $('trace-form').elements.productId.focus()],
  r: ['dry run of a reconciliation', () => $('dry-run') && $('dry-run').click()],
  '/': ['search for a product, or for product/user/token', () => $('search').elements.q.focus()],
  v: ['check all books', () => $('verify').click()],
  '?': ['these keys', showKeys],
};

function showKeys() {
  tell('Keys', el('dl', { class: 'facts-list' }, Object.entries(keys).flatMap(([k, [what]]) => [el('dt', {}, el('kbd', {}, k)), el('dd', {}, what)])));
}

function onKey(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || $('ask').open) return;
  if (event.target.closest('input, select, textarea')) return;
  const key = keys[event.key];
  if (!key) return;
  event.preventDefault();
  key[1]();
}

/* ---- start ---- */

function startConsole() {
  root.classList.add('scripted');
  $('hold').onclick = () => hold(!state.held);
  $('keys').onclick = showKeys;
  $('verify').onclick = verifyBooks;
  $('examine').onclick = examine;
  $('trace-form').onsubmit = trace;
  $('search').onsubmit = search;
  $('parked-again').onclick = loadParked;
  $('parked-filter').onsubmit = filterParked;
  $('parked-filter').elements.reason.append(...parkReasons.map((r) => el('option', { value: r }, r)));
  if ($('dry-run')) $('dry-run').onclick = dryRun;
  if ($('open-sale')) $('open-sale').onclick = askOpenSale;
  if ($('buy')) {
    $('buy').onsubmit = buy;
    $('buy-again').onclick = () => sendPurchase($('buy-again'));
  }
  document.addEventListener('keydown', onKey);
  followSizeAndTheme();
  setMode('connecting');
  connect();
  watchLink();
  loadHistory().catch(() => {}); // charts begin with what comes
  loadReports();
}

if (!signInByLink()) {
  if (new URLSearchParams(location.search).has('failed')) history.replaceState(null, '', location.pathname);
  if (page.csrf) startConsole();
}
addEventListener('hashchange', signInByLink);
