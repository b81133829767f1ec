/* What a browser may add to the pages: colours and names in SQL, a slider, one press of a button. Without it, all works. */
"use strict";
(() => {
  const WORDS = /(--[^\n]*)|('(?:[^']|'')*'?)|("(?:[^"]|"")*"?)|(\b\d+(?:\.\d+)?\b)|(\b[A-Za-z_]\w*\b)/g;
  const KEYS = new Set("select from where group by having order limit as and or not in is null between like case when then else end distinct asc desc count sum avg median stddev variance rollup with union all true false quantile_cont stddev_pop var_pop corr covar_pop min max extract year month".split(" "));

  function paint(area, pre, names) {
    const text = area.value;
    pre.textContent = "";
    let end = 0;
    for (const found of text.matchAll(WORDS)) {
      pre.append(text.slice(end, found.index));
      const span = document.createElement("span");
      span.textContent = found[0];
      span.className = found[1] ? "x" : found[2] ? "s" : found[3] ? "c" : found[4] ? "m" : KEYS.has(found[0].toLowerCase()) ? "k" : names.has(found[0].toLowerCase()) ? "c" : "";
      pre.append(span);
      end = found.index + found[0].length;
    }
    pre.append(text.slice(end) + "\n");
    pre.scrollTop = area.scrollTop;
  }

  function complete(area, list, choices) {
    const close = () => { list.hidden = true; area.removeAttribute("aria-activedescendant"); };
    const word = () => (/[\p{L}\d_]+$/u.exec(area.value.slice(0, area.selectionStart)) || [""])[0];
    const take = (item) => {
      const begun = word().length;
      area.setRangeText(item.dataset.text, area.selectionStart - begun, area.selectionStart, "end");
      close();
      area.dispatchEvent(new Event("input", { bubbles: true }));
    };
    const mark = (item) => {
      for (const each of list.children) each.setAttribute("aria-selected", String(each === item));
      area.setAttribute("aria-activedescendant", item.id);
      item.scrollIntoView({ block: "nearest" });
    };
    const open = () => {
      const begun = word().toLowerCase();
      const fit = begun ? choices.filter((each) => each.name.toLowerCase().startsWith(begun) && each.name.toLowerCase() !== begun).slice(0, 8) : [];
      if (!fit.length) return close();
      list.replaceChildren(...fit.map((each, place) => {
        const item = document.createElement("li");
        const kind = document.createElement("small");
        item.id = `name-${place}`;
        item.setAttribute("role", "option");
        item.dataset.text = each.text;
        kind.textContent = each.kind;
        item.append(each.name, kind);
        item.addEventListener("mousedown", (event) => { event.preventDefault(); take(item); });
        return item;
      }));
      list.hidden = false;
      mark(list.firstChild);
    };
    area.addEventListener("input", (event) => { if (event.inputType) open(); });
    area.addEventListener("blur", close);
    area.addEventListener("keydown", (event) => {
      if (list.hidden) return;
      const now = list.querySelector("[aria-selected=true]");
      if (event.key === "ArrowDown" || event.key === "ArrowUp") mark((event.key === "ArrowDown" ? now.nextSibling || list.firstChild : now.previousSibling || list.lastChild));
      else if (event.key === "Enter" || event.key === "Tab") take(now);
      else if (event.key === "Escape") close();
      else return;
      event.preventDefault();
    });
  }

  const scale = (slider) => { const low = Math.log(slider.dataset.low); return [low, Math.log(slider.dataset.high) - low]; };
  const say = (slider, value) => slider.setAttribute("aria-valuetext", `epsilon ${value}`);

  function follow(slider) {
    const value = document.getElementById(slider.dataset.for).value, [low, span] = scale(slider);
    slider.value = String(Math.round(1000 * (Math.log(Number(value) || 1e-9) - low) / span));
    say(slider, value);
  }

  function lead(slider) {
    const field = document.getElementById(slider.dataset.for), [low, span] = scale(slider);
    field.value = String(Number(Math.exp(low + span * slider.value / 1000).toPrecision(2)));
    say(slider, field.value);
    field.dispatchEvent(new Event("input", { bubbles: true }));
  }

  function begin(root) {
    for (const editor of root.querySelectorAll(".editor[data-names]:not(.lit)")) {
      const area = editor.querySelector("textarea"), pre = document.createElement("pre"), list = document.createElement("ul");
      const choices = JSON.parse(editor.dataset.names);
      const names = new Set(choices.map((each) => each.name.toLowerCase()));
      pre.setAttribute("aria-hidden", "true");
      Object.assign(list, { className: "names", id: "names", hidden: true });
      list.setAttribute("role", "listbox");
      list.setAttribute("aria-label", "Public names");
      for (const [key, value] of [["aria-autocomplete", "list"], ["aria-controls", "names"]]) area.setAttribute(key, value);
      editor.append(pre, list);
      editor.classList.add("lit");
      const again = () => paint(area, pre, names);
      area.addEventListener("input", again);
      area.addEventListener("scroll", () => { pre.scrollTop = area.scrollTop; });
      complete(area, list, choices);
      again();
    }
    for (const slider of root.querySelectorAll("input[type=range][data-for]")) {
      slider.closest("[hidden]")?.removeAttribute("hidden");
      follow(slider);
    }
    for (const button of root.querySelectorAll("button[data-copy]")) {
      button.hidden = false;
      button.onclick = () => navigator.clipboard.writeText(document.getElementById(button.dataset.copy).textContent.trim()).then(() => { button.textContent = "Copied"; });
    }
  }

  document.documentElement.classList.add("scripted");
  addEventListener("DOMContentLoaded", () => {
    begin(document);
    document.body.addEventListener("htmx:afterSettle", () => begin(document));
    document.addEventListener("input", (event) => {
      if (event.target.matches("input[type=range][data-for]")) lead(event.target);
      else if (event.isTrusted) document.querySelectorAll(`input[type=range][data-for="${CSS.escape(event.target.id)}"]`).forEach(follow);
    });
    document.addEventListener("submit", (event) => {
      const form = event.target;
      if (!form.hasAttribute("data-once")) return;
      if (form.classList.contains("busy-now")) return event.preventDefault();
      form.classList.add("busy-now");
      const said = form.querySelector("[role=status]");
      if (said) said.textContent = said.dataset.busy;
    });
    addEventListener("pageshow", () => document.querySelectorAll(".busy-now").forEach((form) => form.classList.remove("busy-now")));
  });
})();
