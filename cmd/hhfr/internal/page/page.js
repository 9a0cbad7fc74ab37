// The page of hhfr decode: what its program (wasm) decodes becomes text nodes, never markup, and
// nothing is sent anywhere. Go's wasm_exec.js is before this.
"use strict";

const $ = id => document.getElementById(id);
const HEIGHT = 22; // of a row, in pixels
const WIDTHS = [7, 16, 8, 26, 8, 7, 10, 26, 22, 22, 9, 8]; // of columns, in characters
const STATE = 7; // its column
const MOST_ROWS = 600000; // that browsers have room for in one element

let at = -1; // the chosen row

const say = (text, wrong) => {
	$("said").textContent = text;
	$("said").classList.toggle("wrong", Boolean(wrong));
};

const element = (kind, name, text) => {
	const e = document.createElement(kind);
	e.className = name;
	e.textContent = text;
	return e;
};

const rowOf = texts => {
	const row = element("div", "row", "");
	texts.forEach((text, i) => {
		const cell = element("span", "", text);
		cell.style.width = WIDTHS[i] + "ch";
		cell.title = text;
		row.append(cell);
	});
	return row;
};

const length = () => Math.min(hhfr.length(), MOST_ROWS);

// draw has the rows that can be seen, and no others.
const draw = () => {
	const list = $("list"), room = $("room");
	room.style.height = (length() + 1) * HEIGHT + "px";
	const titles = rowOf(hhfr.columns());
	titles.classList.add("titles");
	const rows = [titles];
	const first = Math.floor(list.scrollTop / HEIGHT);
	const end = Math.min(first + Math.ceil(list.clientHeight / HEIGHT) + 1, length());
	for (let i = first; i < end; i++) {
		const row = rowOf(hhfr.row(i));
		row.style.top = (i + 1) * HEIGHT + "px";
		row.dataset.row = i;
		row.classList.toggle("at", i === at);
		row.classList.toggle("fault", row.children[STATE].textContent.includes("fault "));
		rows.push(row);
	}
	room.replaceChildren(...rows);
};

const show = () => {
	const [head, body] = at >= 0 ? hhfr.show(at, $("pretty").checked) : ["", ""];
	$("head").textContent = head;
	$("body").textContent = body;
};

const choose = row => {
	at = Math.min(row, length() - 1);
	const list = $("list"), top = at * HEIGHT;
	if (top < list.scrollTop) {
		list.scrollTop = top;
	} else if (top + 2 * HEIGHT > list.scrollTop + list.clientHeight) {
		list.scrollTop = top + 2 * HEIGHT - list.clientHeight;
	}
	draw();
	show();
};

let found = "";

const filter = () => {
	const wrong = hhfr.choose($("filter").value, $("search").value);
	let chosen = $("filter").value || $("search").value ? "; " + hhfr.length() + " chosen" : "";
	if (hhfr.length() > MOST_ROWS) {
		chosen += "; the first " + MOST_ROWS + " are listed";
	}
	say(wrong || found + chosen, wrong);
	if (!wrong) {
		$("list").scrollTop = 0;
		choose(0);
	}
};

const open = async files => {
	if (files.length === 0) {
		return;
	}
	say("reading " + Array.from(files, f => f.name).join(", ") + "…");
	const given = [];
	try {
		for (const f of files) {
			given.push([f.name, new Uint8Array(await f.arrayBuffer())]);
		}
	} catch (e) {
		say("error: " + e.message, true);
		return;
	}
	await new Promise(done => setTimeout(done, 30)); // so that the line above can be seen
	const result = hhfr.open(given);
	if (result.startsWith("error: ")) {
		say(result, true);
		return;
	}
	found = result;
	filter();
	$("list").focus();
};

const start = async () => {
	const packed = Uint8Array.from(atob($("program").textContent.trim()), c => c.charCodeAt(0));
	$("program").remove();
	const program = new Response(new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip")));
	const go = new Go();
	const { instance } = await WebAssembly.instantiate(await program.arrayBuffer(), go.importObject);
	go.run(instance).then(() => say("the program has ended: load the page again", true));
	$("files").disabled = false;
	say("drop captures (pcap, pcapng) here, and with them, if there is one, a store (hhfr context export) or a log of " +
		"TLS keys; nothing leaves this machine");

	$("files").addEventListener("change", e => open(e.target.files));
	let waiting = 0; // for more of what is typed
	for (const line of [$("filter"), $("search")]) {
		line.addEventListener("input", () => {
			clearTimeout(waiting);
			waiting = setTimeout(filter, 200);
		});
	}
	$("pretty").addEventListener("change", show);
	$("list").addEventListener("scroll", draw);
	$("list").addEventListener("click", e => {
		const row = e.target.closest("[data-row]");
		if (row) {
			choose(Number(row.dataset.row));
		}
	});
	const steps = { ArrowDown: 1, ArrowUp: -1, PageDown: 20, PageUp: -20, Home: -1e9, End: 1e9 };
	$("list").addEventListener("keydown", e => {
		if (e.key in steps) {
			e.preventDefault();
			choose(Math.max(at + steps[e.key], 0));
		}
	});
	addEventListener("resize", draw);
	addEventListener("dragover", e => {
		e.preventDefault();
		document.body.classList.add("over");
	});
	addEventListener("dragleave", () => document.body.classList.remove("over"));
	addEventListener("drop", e => {
		e.preventDefault();
		document.body.classList.remove("over");
		open(e.dataTransfer.files);
	});
};

start().catch(e => say("error: " + e.message + " (a browser of 2023 or later has what this needs)", true));
