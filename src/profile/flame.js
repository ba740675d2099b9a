"use strict";
(function () {
	const NS = "http://www.w3.org/2000/svg", XHTML = "http://www.w3.org/1999/xhtml";
	const svg = document.documentElement, byId = (id) => document.getElementById(id);
	const fluid = svg.hasAttribute("data-fluid"), PAD = 3, EPSILON = 1e-5;
	let area, frames, charWidth, zoomed = null, pattern = "", ignoreCase = false, box = null;

	/* A frame's place is in percent of the area, so that it holds for any width. */
	function readFrame(g) {
		const rect = g.querySelector("rect"), title = g.querySelector("title").textContent;
		return {
			g: g, rect: rect, text: g.querySelector("text"), title: title,
			name: title.replace(/ \([^(]*\)$/, ""),
			x: parseFloat(rect.getAttribute("x")),
			w: parseFloat(rect.getAttribute("width")),
			y: parseFloat(rect.getAttribute("y")),
		};
	}

	function measureChar() {
		const probe = document.createElementNS(NS, "text");
		probe.textContent = "0".repeat(100);
		area.appendChild(probe);
		charWidth = probe.getComputedTextLength() / 100 || 7.2;
		probe.remove();
	}

	function fit(name, room) {
		const chars = Array.from(name);
		if (room >= chars.length)
			return name;
		return room < 3 ? "" : chars.slice(0, room - 2).join("") + "..";
	}

	function place(frame, x, w, pixels) {
		const label = fit(frame.name, Math.floor((w / 100 * pixels - 2 * PAD) / charWidth));
		frame.rect.setAttribute("x", x + "%");
		frame.rect.setAttribute("width", w + "%");
		if (!frame.text && label) {
			frame.text = document.createElementNS(NS, "text");
			frame.text.setAttribute("dx", PAD);
			frame.text.setAttribute("y", frame.y + 12);
			frame.g.appendChild(frame.text);
		}
		if (frame.text) {
			frame.text.setAttribute("x", x + "%");
			frame.text.textContent = label;
		}
	}

	/* The zoomed frame fills the width; what it stands on does too, dimmed; the rest goes. */
	function layout() {
		const pixels = area.getBoundingClientRect().width || 1180;
		const z = zoomed || { x: 0, w: 100, y: Infinity };
		for (const f of frames) {
			const inside = f.x >= z.x - EPSILON && f.x + f.w <= z.x + z.w + EPSILON && f.y <= z.y;
			const below = f.y > z.y && f.x <= z.x + EPSILON && f.x + f.w >= z.x + z.w - EPSILON;
			f.g.classList.toggle("hide", !inside && !below);
			f.g.classList.toggle("outer", below);
			if (inside)
				place(f, (f.x - z.x) / z.w * 100, f.w / z.w * 100, pixels);
			else if (below)
				place(f, 0, 100, pixels);
		}
		byId("unzoom").classList.toggle("hide", !zoomed);
	}

	function zoom(frame) {
		zoomed = frame && frame.w < 100 - EPSILON ? frame : null;
		layout();
	}

	/* Without the scroll bar, where the browser tells. */
	function windowWidth() {
		return window.visualViewport ? window.visualViewport.width : window.innerWidth;
	}

	function resize() {
		if (fluid)
			svg.setAttribute("width", Math.max(Math.floor(windowWidth()), 480));
		area.setAttribute("width", parseFloat(svg.getAttribute("width")) - 20);
		layout();
	}

	/* A sample counts once, however many of its frames match: only the lowest one's width. */
	function matchedShare(found) {
		let sum = 0, end = 0;
		found.sort((a, b) => a.x - b.x || b.w - a.w);
		for (const f of found) {
			if (f.x + f.w <= end + EPSILON)
				continue;
			sum += f.w;
			end = f.x + f.w;
		}
		return sum;
	}

	function search() {
		let regexp = null;
		try {
			regexp = pattern && new RegExp(pattern, ignoreCase ? "i" : "");
		} catch (invalid) {
			regexp = null;
		}
		if (box)
			box.style.borderColor = pattern && !regexp ? "#cf222e" : "#0969da";
		const found = frames.filter((f) => {
			const hit = Boolean(regexp) && regexp.test(f.name);
			f.g.classList.toggle("match", hit);
			return hit;
		});
		byId("matched").textContent =
			regexp ? "matched: " + matchedShare(found).toFixed(2) + "%" : "";
		byId("search").lastChild.textContent = regexp ? "Reset search" : "Search";
		byId("ignorecase").classList.toggle("off", !ignoreCase);
	}

	/* Title, buttons and figures stay in view. */
	function follow() {
		byId("head").setAttribute("transform", "translate(0 " + window.scrollY + ")");
	}

	function closeBox() {
		if (!box)
			return;
		box.parentNode.remove();
		box = null;
	}

	function openBox() {
		closeBox();
		const holder = document.createElementNS(NS, "foreignObject");
		const right = parseFloat(svg.getAttribute("width"));
		const places = { x: right - 330, y: 36, width: 320, height: 26 };
		for (const key in places)
			holder.setAttribute(key, places[key]);
		box = document.createElementNS(XHTML, "input");
		box.setAttribute("placeholder", "regular expression");
		box.setAttribute("style", "box-sizing: border-box; width: 100%; height: 24px; " +
			"border: 1px solid #0969da; border-radius: 4px; padding: 0 6px; font: 12px monospace");
		box.value = pattern;
		box.addEventListener("input", () => { pattern = box.value; search(); });
		holder.appendChild(box);
		byId("head").appendChild(holder);
		box.focus();
		box.select();
	}

	function toggleSearch() {
		if (pattern) {
			pattern = "";
			closeBox();
			search();
		} else {
			openBox();
		}
	}

	function toggleCase() {
		ignoreCase = !ignoreCase;
		search();
	}

	/* One step back: the box, then the search, then the zoom. */
	function escape() {
		if (box && pattern) {
			closeBox();
		} else if (box || pattern) {
			closeBox();
			pattern = "";
			search();
		} else {
			zoom(null);
		}
	}

	function onKey(event) {
		const control = event.ctrlKey || event.metaKey;
		if (event.key === "F3" || (control && event.key === "f"))
			openBox();
		else if (control && event.key === "i")
			toggleCase();
		else if (event.key === "Enter" && event.target === box)
			closeBox();
		else if (event.key === "Escape")
			escape();
		else
			return;
		event.preventDefault();
	}

	function frameOf(event) {
		const g = event.target.closest && event.target.closest(".func_g");
		return g ? frames[g.dataset.index] : null;
	}

	function show(frame) {
		const dso = frame && frame.g.getAttribute("data-dso");
		byId("details").textContent = frame ? frame.title + (dso ? " in " + dso : "") : "";
	}

	window.addEventListener("load", () => {
		area = byId("frames");
		frames = Array.from(area.querySelectorAll(".func_g"), readFrame);
		frames.forEach((f, i) => { f.g.dataset.index = i; });
		measureChar();
		area.addEventListener("click", (event) => zoom(frameOf(event)));
		area.addEventListener("mouseover", (event) => show(frameOf(event)));
		area.addEventListener("mouseout", () => show(null));
		byId("unzoom").addEventListener("click", () => zoom(null));
		byId("search").addEventListener("click", toggleSearch);
		byId("ignorecase").addEventListener("click", toggleCase);
		for (const button of document.querySelectorAll(".script"))
			button.classList.remove("script", "hide");
		window.addEventListener("keydown", onKey);
		window.addEventListener("resize", resize);
		window.addEventListener("scroll", follow);
		resize();
		/* To where the stacks begin; but a headless browser's picture of a page is of its top. */
		if (!navigator.webdriver)
			window.scrollTo(0, parseFloat(svg.getAttribute("height")));
	});
})();
