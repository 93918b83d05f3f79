'use strict';

// The page follows its session: a stream tells it which sessions the user has,
// and when this one has ended. Without this script the page works, too: it then
// shows what was true when it was loaded.

const content = document.querySelector('#content');
const line = document.querySelector('#live');
const AGAIN_MS = 3000; // between two tries to reach the server
let stream = null;

const user = () => content.querySelector('#user')?.textContent ?? '';
const shown = () => [...content.querySelectorAll('.device button')].map((b) => b.value).join(' ');

function say(state, text) {
  line.dataset.state = state;
  if (line.textContent !== text) line.textContent = text; // otherwise it would be read out again
}

// follow opens the stream. A page that nobody sees has none: a browser opens
// only about six connections to a site, for all its windows together.
function follow() {
  if (stream || document.hidden || !user()) return;
  stream = new EventSource('devices/live');
  stream.addEventListener('open', live);
  stream.addEventListener('devices', (event) => { event.data === shown() ? live() : refresh(); });
  stream.addEventListener('away', away); // the stream is there, and what it would tell is not
  stream.addEventListener('ended', () => { leave(); out(); refresh(); });
  stream.addEventListener('error', () => {
    if (stream.readyState === EventSource.CONNECTING) return away(); // it tries again by itself
    leave(); // by a 204, or by an error of the server: the page itself tells which
    refresh();
  });
}

function leave() {
  stream?.close();
  stream = null;
}

const live = () => say('on', `live – signed in as ${user()}`);
const out = () => say('out', 'signed out');
const away = () => say('away', 'not connected, trying again');

let timer;

// later does it after a pause, if the page is seen then. So a server with errors
// is not asked without end.
function later(work) {
  clearTimeout(timer);
  timer = setTimeout(() => { if (!document.hidden) work(); }, AGAIN_MS);
}

// Refreshes come one after another, so that a late one never shows an old list.
let queue = Promise.resolve();

// refresh asks for the page, and shows its content. A request that the page
// sends by itself does not keep its session alive.
function refresh() {
  queue = queue.then(async () => {
    try {
      const res = await fetch('devices/now', { cache: 'no-store' });
      if (!res.ok) throw new Error(res.statusText);
      show(new DOMParser().parseFromString(await res.text(), 'text/html').querySelector('#content'));
    } catch {
      away();
      later(refresh);
      return;
    }
    if (!user()) {
      leave();
      out();
    } else if (stream?.readyState === EventSource.OPEN) {
      live();
    } else if (!stream) {
      away();
      later(follow);
    }
  });
}

// show replaces the content. The keyboard's focus stays where it was, or goes
// to the form in which to sign in again. An open question is closed: the list to
// which it belongs has changed.
function show(fresh) {
  const focused = content.contains(document.activeElement) ? document.activeElement : null;
  content.replaceChildren(...fresh.childNodes);
  if (!focused) return;
  const id = focused.closest('#sure') ? 'ask-end-all' : focused.id;
  const same = [...content.querySelectorAll('button')].find((b) => b.id === id && b.value === focused.value);
  (same ?? content.querySelector('#name'))?.focus();
}

document.addEventListener('visibilitychange', () => { document.hidden ? leave() : follow(); });
follow();
