'use strict';
// The page of one operator. Whatever comes from the cluster is put into the page as text, never as HTML.
(() => {
	const mostRows = 100; // of one table, whatever there is
	const silence = 40_000; // after which the stream is taken for broken: it has a beat each 15 seconds
	const longestPause = 10_000;

	const states = {
		throttled: ['bad', 'throttled'], blocked: ['bad', 'blocked until it changes'], failed: ['bad', 'failed permanently'],
		retrying: ['warn', 'waiting for a retry'], running: ['busy', 'running'], waiting: ['busy', 'waiting'],
		paused: ['busy', 'paused by its annotation'],
		handled: ['good', 'handled'], unchanged: ['good', 'nothing to do'],
		unknown: ['none', 'not known before this start'], seen: ['none', 'seen'], gone: ['none', 'gone'],
	};
	const byId = (id) => document.getElementById(id);
	const number = (n) => n.toLocaleString('en-US');
	const many = (n, one, more = one + 's') => `${number(n)} ${n === 1 ? one : more}`;
	const full = (o) => (o.namespace ? `${o.namespace}/${o.name}` : o.name);

	// time is such as 2026-01-02 03:04:05, in UTC.
	const time = (text) => (text ? text.slice(0, 19).replace('T', ' ') : '');

	// setText changes nothing that is as it should be: what changes is read out, and costs.
	function setText(element, text) {
		if (element.textContent !== text) {
			element.textContent = text;
		}
	}

	function element(name, text, attributes = {}) {
		const made = document.createElement(name);
		if (text !== undefined) {
			made.textContent = text;
		}
		for (const [key, value] of Object.entries(attributes)) {
			made.setAttribute(key, value);
		}
		return made;
	}

	// moment is a cell with a time.
	function moment(text, otherwise = '') {
		const cell = element('td', undefined, {class: 'time'});
		cell.append(text ? element('time', time(text), {datetime: text}) : otherwise);
		return cell;
	}

	// fill makes the rows of a table. A row that is there, and says the same, is left as it is, and so is whatever has
	// the focus in it.
	function fill(table, items, keyOf, cellsOf) {
		const body = table.tBodies[0];
		const before = new Map(Array.from(body.rows, (row) => [row.dataset.key, row]));
		const focused = document.activeElement?.closest?.('tr')?.parentElement === body
			? document.activeElement.closest('tr').dataset.key : undefined;
		const rows = items.slice(0, mostRows).map((item) => {
			const key = keyOf(item);
			const said = JSON.stringify(item);
			let row = before.get(key);
			if (!row || row.said !== said) {
				const cells = cellsOf(item);
				if (row) {
					cells[0] = keepHead(row.cells[0], cells[0]);
					row.replaceChildren(...cells);
				} else {
					row = element('tr');
					row.append(...cells);
					row.dataset.key = key;
				}
				row.said = said;
			}
			return row;
		});
		if (rows.length !== body.rows.length || rows.some((row, at) => body.rows[at] !== row)) {
			body.replaceChildren(...rows);
		}
		if (focused !== undefined && !body.contains(document.activeElement)) {
			const row = rows.find((row) => row.dataset.key === focused);
			const target = row ? row.querySelector('button') : table.closest('section').querySelector('h2');
			target?.focus({preventScroll: true});
		}
	}

	const keepHead = (old, made) => (old.textContent === made.textContent ? old : made);

	// show has a table and the sentence above it.
	function show(id, total, sentence, items, keyOf, cellsOf) {
		const table = byId(id);
		table.closest('.wide').hidden = items.length === 0;
		setText(byId(id + '-count'), number(total));
		const shown = Math.min(items.length, mostRows);
		setText(byId(id + '-shown'), shown < total ? `${sentence} The first ${number(shown)} are shown.` : sentence);
		fill(table, items, keyOf, cellsOf);
	}

	function objectButton(o) {
		const head = element('th', undefined, {scope: 'row'});
		const button = element('button', full(o), {type: 'button', 'aria-haspopup': 'dialog'});
		button.addEventListener('click', () => explain(o));
		head.append(button);
		return head;
	}

	// -- what the operator is doing

	let served = [];

	function showOperator(o) {
		setText(byId('name'), o.operator || '(it has not started)');
		document.title = o.operator ? `${o.operator}: operator` : 'Operator';
		const waiting = o.waiting ?? [];
		let [mark, text] = ['good', 'Running'];
		if (!o.running) {
			[mark, text] = ['warn', 'Not active: it is starting or exiting, or another replica is the leader'];
		} else if (o.paused || o.standby) {
			[mark, text] = ['warn', o.standby ? 'Standby: ' + o.standby : 'Paused by a peer'];
		} else if (waiting.length > 0) {
			[mark, text] = ['busy', 'Waiting for indices'];
		}
		setText(byId('standing'), text);
		byId('standing').dataset.mark = mark;
		byId('waiting').hidden = waiting.length === 0;
		setText(byId('waiting'), `All handlers wait until the indices are filled. Not listed yet: ${waiting.join(', ')}.`);
		served = o.kinds ?? [];
		showKinds();
		showAbsent(o.absent ?? []);
		showReplicas(o.sharing);
		showPeers(o.peers ?? []);
	}

	const nameOf = (kind) => (kind.group ? `${kind.kind}.${kind.group}` : kind.kind);

	function showKinds() {
		const handlers = served.flatMap((kind) => (kind.handlers ?? []).map((h) => ({...h, kind: nameOf(kind)})));
		const kinds = served.map((kind) => ({...kind, handlers: (kind.handlers ?? []).length, known: known[nameOf(kind)] ?? 0}));
		show('kinds', kinds.length, kinds.length === 0 ? 'No kind is served at the moment.'
			: `${many(kinds.length, 'kind is', 'kinds are')} served, by ${many(handlers.length, 'handler')}.`,
		kinds, (k) => nameOf(k) + k.version, (k) => [
			element('th', nameOf(k), {scope: 'row'}), element('td', k.version),
			element('td', places(k)), element('td', number(k.handlers), {class: 'number'}),
			element('td', number(k.known), {class: 'number'}), element('td', background(k.background)),
		]);
		byId('handlers').hidden = handlers.length === 0;
		setText(byId('handlers-shown'), handlers.length > mostRows
			? `${number(handlers.length)} handlers; the first ${mostRows} are shown.` : many(handlers.length, 'handler') + '.');
		fill(byId('handlers-table'), handlers, (h) => `${h.kind} ${h.on} ${h.id}`, (h) => [
			element('th', h.id, {scope: 'row'}), element('td', h.on), element('td', h.kind, {class: 'kind'}),
			element('td', (h.demands ?? []).join(', ') || 'nothing'), element('td', h.location ?? ''),
		]);
	}

	function places(kind) {
		const names = kind.namespaces ?? [];
		if (!kind.namespaced) {
			return 'of the cluster';
		}
		return names.includes('') ? 'all' : brief(names, 10);
	}

	const brief = (all, most) => (all.length > most
		? `${all.slice(0, most).join(', ')} and ${number(all.length - most)} more` : all.join(', '));

	function background(counts) {
		const all = Object.entries(counts ?? {}).filter(([, n]) => n > 0).sort();
		return all.length === 0 ? 'none' : all.map(([doing, n]) => `${number(n)} ${doing}`).join(', ');
	}

	function showAbsent(absent) {
		byId('absent').hidden = absent.length === 0;
		setText(byId('absent'), 'Waiting for the cluster to serve their kinds: '
			+ brief(absent.map((a) => `${a.handler} (${a.selector})`), 20) + '.');
	}

	// compact is the short form of sorted ranges: 0-4, 7.
	function compact(ranges) {
		const parts = [];
		for (let at = 0; at < ranges.length; at++) {
			const first = ranges[at];
			while (ranges[at + 1] === ranges[at] + 1) {
				at++;
			}
			parts.push(ranges[at] === first ? String(first) : `${first}-${ranges[at]}`);
		}
		return parts.join(', ') || 'none';
	}

	// showReplicas hides the section if the replicas do not share the objects.
	function showReplicas(sharing) {
		byId('sharing').hidden = byId('replicas-link').hidden = !sharing;
		const {replicas, unowned, shards, identity} = {replicas: [], unowned: [], ...sharing};
		const all = replicas ?? [];
		const free = unowned ?? [];
		const sentence = sharing?.elected ? `${sharing.elected} handles all objects until it ends.`
			: `${many(all.length, 'replica shares', 'replicas share')} the objects, in ${many(shards ?? 0, 'range')}.`;
		show('replicas', all.length, sentence, all, (r) => r.identity, (r) => [
			element('th', r.identity === identity ? `${r.identity} (this one)` : r.identity, {scope: 'row'}),
			element('td', compact(r.ranges ?? [])),
			element('td', number(r.load.objects), {class: 'number'}), element('td', number(r.load.backlog), {class: 'number'}),
			element('td', r.leaving ? 'leaving' : r.paused ? 'paused' : r.shards !== shards ? `waits, with ${many(r.shards, 'range')}` : ''),
		]);
		byId('unowned').hidden = free.length === 0;
		setText(byId('unowned'), `No replica holds these ranges, so their objects are not handled: ${compact(free.map((u) => u.index))}.`);
	}

	function showPeers(peers) {
		const others = peers.filter((p) => !p.own).length;
		show('peers', others, peers.length === 0 ? 'No peers are known: the operator looks for none, or acts alone.'
			: `${many(others, 'other operator')} in the peering.`,
		peers, (p) => `${p.namespace ?? ''} ${p.identity} ${p.runtime ?? ''}`, (p) => [
			element('th', p.own ? `${p.identity} (this one)` : p.identity, {scope: 'row'}),
			element('td', String(p.priority), {class: 'number'}), element('td', p.namespace || 'of the cluster'),
			moment(p.lastSeen), moment(p.until),
			element('td', p.busy === undefined ? 'it does not say' : p.busy > 0 ? 'yes' : 'no'),
		]);
		setText(byId('peers-count'), number(others));
	}

	// -- objects

	let known = {};

	function showObjects(view) {
		known = view.kinds;
		showKinds();
		options(byId('kind'), Object.keys(view.kinds).sort(), view.kinds, (kind) => kind);
		options(byId('state'), Object.keys(states), view.states, (state) => states[state][1]);
		setText(byId('objects-count'), number(view.known));
		let sentence = `${many(view.known, 'object is', 'objects are')} known.`;
		if (filtered()) {
			sentence = `${number(view.matching)} of ${many(view.known, 'object')} ${view.matching === 1 ? 'matches' : 'match'}.`;
		}
		if (view.objects.length < view.matching) {
			sentence += ` The first ${number(view.objects.length)} are shown; say more of what you look for.`;
		}
		setText(byId('shown'), sentence);
		if (announce) {
			announce = false;
			setText(byId('found'), sentence);
		}
		fill(byId('objects'), view.objects, (o) => `${o.kind} ${full(o)}`, (o) => [
			objectButton(o), element('td', o.kind, {class: 'kind'}), stateOf(o), element('td', o.says, {class: 'long'}), moment(o.since),
		]);
		showRetries(view);
		if (performance.getEntriesByName('objects').length === 0) {
			requestAnimationFrame(() => performance.mark('objects')); // they are painted at the end of this frame
		}
	}

	function stateOf(o) {
		const [mark, words] = states[o.state] ?? ['none', o.state];
		const cell = element('td', undefined, {class: 'state'});
		cell.append(element('span', words, {'data-mark': mark}));
		if (o.until) {
			cell.append(element('br'), element('span', 'until ', {class: 'quiet'}));
			cell.lastChild.append(element('time', time(o.until), {datetime: o.until}));
		}
		return cell;
	}

	function showRetries(view) {
		show('retries', view.retrying, view.retrying === 0 ? 'No handler waits for a retry.'
			: `${many(view.retrying, 'handler waits', 'handlers wait')} for a retry.`,
		view.retries, (r) => `${r.kind} ${full(r)} ${r.handler} ${r.on}`, (r) => [
			moment(r.until, 'at once'), element('td', r.on ? `${r.handler} (${r.on})` : r.handler),
			objectButton(r), element('td', number(r.attempt), {class: 'number'}),
			element('td', r.error ?? '', {class: 'long'}),
		]);
	}

	// options are the choices of a filter, with how many objects there are. What is chosen stays, even without any.
	function options(select, names, counts, wordsOf) {
		const chosen = select.value;
		const wanted = names.filter((name) => counts[name] > 0 || name === chosen);
		const said = JSON.stringify(wanted.map((name) => [name, counts[name] ?? 0]));
		if (select.said === said) {
			return;
		}
		select.said = said;
		const before = new Map(Array.from(select.options).slice(1).map((option) => [option.value, option]));
		const made = wanted.map((name) => {
			const option = before.get(name) ?? element('option', undefined, {value: name});
			setText(option, `${wordsOf(name)} (${number(counts[name] ?? 0)})`);
			return option;
		});
		select.replaceChildren(select.options[0], ...made);
		select.value = chosen;
	}

	// -- filters

	let announce = false;
	let typing;
	const chosen = () => ({kind: byId('kind').value, state: byId('state').value, text: byId('text').value.trim()});
	const filtered = () => Object.values(chosen()).some((value) => value !== '');

	function refilter() {
		clearTimeout(typing);
		announce = true;
		open();
	}

	byId('filters').addEventListener('submit', (event) => {
		event.preventDefault();
		refilter();
	});
	byId('kind').addEventListener('change', refilter);
	byId('state').addEventListener('change', refilter);
	byId('text').addEventListener('input', () => {
		clearTimeout(typing);
		typing = setTimeout(refilter, 250);
	});
	byId('clear').addEventListener('click', () => {
		byId('filters').reset();
		refilter();
	});

	// -- the explanation of one object

	const dialog = byId('explanation');
	let asked;

	async function explain(o) {
		asked = o;
		setText(byId('explained'), `${o.kind} ${full(o)}`);
		byId('answer').replaceChildren(element('p', 'Asking the operator…'));
		if (!dialog.open) {
			dialog.showModal();
			byId('explained').focus();
		}
		const query = new URLSearchParams({kind: o.kind, namespace: o.namespace ?? '', name: o.name});
		let answer;
		try {
			const response = await fetch('console/object?' + query);
			answer = response.ok ? explained(await response.json()) : [element('p', await response.text())];
		} catch {
			answer = [element('p', 'The operator does not answer. Ask again when it is back.')];
		}
		if (asked === o) {
			byId('answer').replaceChildren(...answer);
		}
	}

	function explained(e) {
		const parts = [];
		if (e.now?.length > 0) {
			const list = element('ul');
			list.append(...e.now.map((sentence) => element('li', sentence)));
			parts.push(element('h3', 'Now'), list);
		}
		parts.push(element('h3', 'Handlers'));
		const handlers = element('dl');
		for (const answer of (e.handlers ?? []).slice(0, mostRows)) {
			const {id, on, demands} = answer.handler;
			const title = `${id} (${on})` + (demands?.length > 0 ? `, for ${demands.join(', ')}` : '');
			handlers.append(element('dt', title), element('dd', answer.says));
		}
		const more = (e.handlers ?? []).length - mostRows;
		parts.push(handlers.hasChildNodes() ? handlers : element('p', 'No handlers are registered for this kind.'));
		if (more > 0) {
			parts.push(element('p', `And ${number(more)} more: the command explain tells of all.`));
		}
		parts.push(element('h3', 'History, the newest first'), historyOf(e.history ?? []));
		return parts;
	}

	function historyOf(history) {
		if (history.length === 0) {
			return element('p', 'There is none.');
		}
		const table = element('table');
		const head = element('tr');
		head.append(...['At (UTC)', 'What', 'Times'].map((text) => element('th', text, {scope: 'col'})));
		table.append(element('caption', 'What has happened to the object', {class: 'unseen'}),
			element('thead'), element('tbody'));
		table.tHead.append(head);
		for (const entry of history.slice().reverse()) {
			const row = element('tr');
			row.append(moment(entry.at), element('td', entry.says, {class: 'long'}),
				element('td', number(entry.times || 1), {class: 'number'}));
			table.tBodies[0].append(row);
		}
		return table;
	}

	byId('again').addEventListener('click', () => explain(asked));
	byId('close').addEventListener('click', () => dialog.close());

	// -- the stream

	let stream;
	let pause = 500;
	let heard = Date.now();
	let later;

	function connected(mark, text) {
		setText(byId('connection'), text);
		byId('connection').dataset.mark = mark;
	}

	function open() {
		clearTimeout(later);
		stream?.close();
		const query = new URLSearchParams(Object.entries(chosen()).filter(([, value]) => value !== ''));
		const opened = new EventSource('console/events?' + query);
		stream = opened;
		heard = Date.now();
		const on = (event, take) => opened.addEventListener(event, (message) => {
			if (stream !== opened) {
				return;
			}
			heard = Date.now();
			pause = 500;
			connected('good', 'Live');
			take(JSON.parse(message.data));
		});
		on('operator', showOperator);
		on('objects', showObjects);
		on('beat', () => {});
		opened.addEventListener('error', () => {
			if (stream === opened) {
				broken();
			}
		});
	}

	// broken tries again, less and less often.
	function broken() {
		stream.close();
		connected('bad', 'Disconnected: what is shown may be old; trying again');
		clearTimeout(later);
		later = setTimeout(open, pause);
		pause = Math.min(2 * pause, longestPause);
	}

	setInterval(() => {
		if (stream.readyState !== EventSource.CLOSED && Date.now() - heard > silence) {
			broken();
		}
	}, 5_000);

	open();
})();
