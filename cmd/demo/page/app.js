'use strict';

const WAYS = [['none', 'Without a lock', 'side by side'], ['lock', 'With the lock', 'one by one']];
const NAMES = Array.from({ length: 100 }, (_, i) => 'p' + String(i + 1).padStart(3, '0'));
// A request queues in the browser, too: with the lock until nearly all others have done their work.
const TIMEOUT_MS = 60_000 + NAMES.length * Number(document.body.dataset.work);

const $ = (selector, root = document) => root.querySelector(selector);

// ask sends one request and returns the body as text. Every failure is an
// Error whose message can be shown to the reader as it is.
async function ask(path, method = 'GET', fields) {
  let res, text;
  try {
    res = await fetch(path, {
      method,
      body: fields && new URLSearchParams(fields),
      credentials: 'same-origin',
      cache: 'no-store',
      signal: AbortSignal.timeout(TIMEOUT_MS),
    });
    text = (await res.text()).trim();
  } catch (err) {
    throw new Error(err.name === 'TimeoutError'
      ? `no response within ${TIMEOUT_MS / 1000} seconds`
      : 'the server cannot be reached');
  }
  // Without its full stop, since the text is used inside a sentence.
  if (!res.ok) throw new Error(`${res.status} ${text.slice(0, 200) || res.statusText}`.replace(/\.$/, ''));
  return text;
}

// ---- The comparison -------------------------------------------------------

function say(selector, text, isError = false) {
  const el = $(selector);
  el.textContent = text;
  el.classList.toggle('error', isError);
}

// panel wraps one of the two sections.
function panel(way, order) {
  const root = document.getElementById(way);
  const grid = $('.grid', root);
  const cells = new Map(NAMES.map((name) => {
    const cell = document.createElement('span');
    cell.className = 'cell';
    cell.dataset.name = name;
    cell.title = name;
    cell.dataset.state = 'idle';
    grid.append(cell);
    return [name, cell];
  }));
  return {
    set(name, state) { cells.get(name).dataset.state = state; },
    state(name) { return cells.get(name).dataset.state; },
    clear() {
      cells.forEach((cell) => { cell.dataset.state = 'idle'; });
      delete root.dataset.result;
      $('[data-kept]', root).textContent = '–';
      $('[data-lost]', root).textContent = '–';
      $('[data-total]', root).textContent = '';
      grid.setAttribute('aria-label', '100 requests, not sent yet');
      this.meta('waiting');
    },
    meta(text) { $('[data-meta]', root).textContent = text; },
    result({ kept, lost, failed, ms }) {
      root.dataset.result = kept === NAMES.length ? 'all' : 'some';
      $('[data-kept]', root).textContent = kept;
      $('[data-lost]', root).textContent = lost.join(', ') || 'none';
      $('[data-lost]', root).scrollTop = 0;
      $('[data-total]', root).textContent = lost.length || '';
      this.meta(`${(ms / 1000).toFixed(1)} s, ${order}` + (failed ? `, ${failed} failed` : ''));
      grid.setAttribute('aria-label', `100 requests: ${kept} kept, ${lost.length} lost, ${failed} failed`);
    },
  };
}

// runSide fires all requests of one way at once, then asks what was kept.
// It throws only if there is no result to show at all.
async function runSide(way, view) {
  view.meta('starting');
  // The session and its cookie must exist first: otherwise each of the 100
  // requests would start its own session.
  await ask(`compare/${way}/reset`, 'POST');
  // All windows of a browser share the session. The run's mark is there before the 100 requests, so no request
  // overwrites it. If it is missing in the end, somebody else has emptied the session, and nothing can be counted.
  const mark = `run-${Math.random()}`;
  await ask(`compare/${way}/set`, 'POST', { name: mark });

  let answered = 0;
  let failed = 0;
  let firstError = '';
  const start = performance.now();
  await Promise.all(NAMES.map(async (name) => {
    view.set(name, 'pending');
    try {
      await ask(`compare/${way}/set`, 'POST', { name });
      view.set(name, 'answered');
    } catch (err) {
      failed++;
      firstError ||= err.message;
      view.set(name, 'failed');
    }
    view.meta(`${++answered} of ${NAMES.length} done`);
  }));
  const ms = performance.now() - start;

  let params;
  try {
    // An empty Go slice may arrive as null.
    params = new Set(JSON.parse(await ask(`compare/${way}/params`)) ?? []);
  } catch (err) {
    throw new Error(firstError || (err instanceof SyntaxError ? 'the list of kept values is not valid JSON' : err.message));
  }
  if (!params.has(mark)) throw new Error(firstError || 'the session was emptied meanwhile, perhaps by a run in another window');
  const kept = NAMES.filter((name) => params.has(name)).length;
  // Lost means: the server said ok, and yet the value is gone. A failed
  // request was never promised to be stored, so it stays "failed".
  const lost = NAMES.filter((name) => view.state(name) === 'answered' && !params.has(name));
  lost.forEach((name) => view.set(name, 'lost'));
  const result = { kept, lost, failed, ms, firstError };
  view.result(result);
  return result;
}

const views = Object.fromEntries(WAYS.map(([way, , order]) => [way, panel(way, order)]));

function sentence(label, { kept, lost, failed, firstError }) {
  const n = NAMES.length;
  let text = kept === n ? `${label}: all ${n} kept.` : `${label}: ${kept} kept, ${lost.length} lost.`;
  if (failed) text = text.slice(0, -1) + `, ${failed} failed (first error: ${firstError}).`;
  return text;
}

async function run() {
  const fire = $('#fire');
  const session = $('#yours fieldset');
  // A log-in or log-out in the middle of a run would change its session.
  fire.disabled = session.disabled = true;
  document.body.dataset.run = 'running';
  WAYS.forEach(([way]) => views[way].clear());

  // One side after the other. Side by side, waiting requests of the locked
  // side would take nearly all of the browser's connections; the other side
  // would then hardly run in parallel and look better than it is.
  const report = [];
  let broken = false;
  let trouble = false;
  for (const [way, label] of WAYS) {
    say('#status', `${label}: 100 requests are under way.`);
    try {
      const result = await runSide(way, views[way]);
      trouble ||= result.failed > 0;
      report.push(sentence(label, result));
    } catch (err) {
      broken = true;
      views[way].meta('no result');
      report.push(`${label}: no result (${err.message.replace(/\. Please try again$/, '')}).`); // said below
    }
  }
  if (broken) report.push('You can try again.');
  say('#status', report.join(' '), broken || trouble);
  document.body.dataset.run = broken ? 'failed' : 'done';
  fire.disabled = session.disabled = false;
  // Disabling the button may have dropped the keyboard focus: restore it.
  if (document.activeElement === document.body) fire.focus({ preventScroll: true });
}

// ---- Your session ---------------------------------------------------------

// Clicks are handled in order, so that a late response never shows an old value.
let queue = Promise.resolve();

// Who is signed in, as far as the page knows; '' is a guest.
let user = '';

// look shows who is signed in. It returns true if somebody was, and is not any
// more. After an error the next look may succeed.
async function look() {
  const was = user;
  user = await ask('user').catch(() => user);
  $('#who').textContent = user && `signed in as ${user}`;
  return was !== '' && user === '';
}

const OUT = 'You are not signed in any more. You go on as a guest, with a new counter.';

// step does some work, and shows the counter that it returns, and a text; without
// a text the last one stays.
function step(work, done) {
  queue = queue.then(async () => {
    try {
      say('#count', await work());
      if (await look()) say('#session-status', OUT);
      else if (done !== undefined) say('#session-status', done);
    } catch (err) {
      say('#session-status', `That did not work: ${err.message}.`, true);
    }
  });
}

const count = () => ask('count');
const on = (id, work, done) => $(id).addEventListener('click', () => step(work, done));

on('#incr', () => ask('incr', 'POST'), '');
on('#login', async () => { await ask('login', 'POST'); return count(); },
  'The session has a new id. The old id is invalid.');
on('#logout', async () => { await ask('logout', 'POST'); user = ''; return count(); },
  'Logged out. The old session is gone.');
$('#fire').addEventListener('click', run);

step(count, '');
// Meanwhile another window may have counted, signed in, or ended the session.
document.addEventListener('visibilitychange', () => { if (!document.hidden) step(count); });
