"use strict";
(() => {
  const page = JSON.parse(document.getElementById("figures").textContent);
  const root = document.documentElement;
  const drawn = new Map();                 // chart element -> Vega view
  const hidden = () => [...document.querySelectorAll("[data-run]")].filter((box) => !box.checked).map((box) => box.value);
  const select = document.getElementById("chosen");
  const slider = document.getElementById("moment");
  for (const figure of page.figures) figure.data ??= page.figures[figure.same].data;
  const media = matchMedia("(prefers-color-scheme: dark)");
  const dark = () => (root.dataset.theme || (media.matches ? "dark" : "light")) === "dark";

  // Columns become rows here: the file is smaller that way.
  function rows(table) {
    const names = Object.keys(table.columns);
    return Array.from({ length: table.length }, (_, i) => {
      const row = {};
      for (const name of names) {
        const column = table.columns[name];
        row[name] = column.levels ? column.levels[column.codes[i]] : column[i];
      }
      return row;
    });
  }

  function config() {
    const style = getComputedStyle(root), ink = style.getPropertyValue("--ink").trim();
    const soft = style.getPropertyValue("--soft").trim(), line = style.getPropertyValue("--line").trim();
    const font = "system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif";
    return {
      background: "transparent", font, view: { stroke: null },
      axis: { labelColor: soft, titleColor: soft, titleFontWeight: 500, gridColor: line, domainColor: line, tickColor: line, labelFontSize: 11, titleFontSize: 11 },
      legend: { labelColor: ink, titleColor: soft, titleFontWeight: 500, labelFontSize: 11, titleFontSize: 11 },
    };
  }

  // Whether nothing of a chart would be seen: all of its runs are hidden, or the chosen one did not record it.
  function empty(figure) {
    const runs = figure.data.columns.run.levels;
    if (figure.spec.params[0].name === "chosen") {
      if (!runs.includes(select.value)) return true;
      const field = figure.spec.layer[0].encoding.color.field;
      figure.values ??= rows(figure.data);
      return !figure.values.some((row) => row.run === select.value && row[field] !== null);
    }
    const gone = hidden();
    return runs.every((run) => gone.includes(run));
  }

  // A chart of which another one has the place: it has no width, and is drawn when it is chosen.
  const away = (element) => element.closest("figure[hidden]") !== null;

  async function draw(element) {
    if (away(element)) return;
    const figure = page.figures[element.dataset.figure];
    element.classList.toggle("empty", empty(figure));
    if (empty(figure)) { element.dataset.ready = "empty"; return; }
    figure.values ??= rows(figure.data);
    const spec = structuredClone(figure.spec);
    spec.data = { values: figure.values };
    const values = { hidden: hidden(), chosen: select?.value, moment: Number(slider?.value) };
    for (const param of spec.params) param.value = values[param.name];
    const actions = { export: true, source: false, compiled: false, editor: false };
    const options = { actions, config: config(), renderer: "canvas", tooltip: { theme: dark() ? "dark" : "light" }, downloadFileName: figure.key };
    const made = await vegaEmbed(element, spec, options);
    drawn.get(element)?.finalize();
    drawn.set(element, made.view);
    element.dataset.ready = "yes";
  }

  function signal(name, value) {
    for (const [element, view] of drawn) {
      const figure = page.figures[element.dataset.figure];
      if (!figure.spec.params.some((param) => param.name === name)) continue;
      element.classList.toggle("empty", empty(figure));
      if (empty(figure)) continue;
      if (view) view.signal(name, value).runAsync(); else draw(element);
    }
  }

  // Charts are drawn when they are about to be seen, so that many of them open as fast as few; one after the other, so
  // that the first is there early and the page answers meanwhile.
  const charts = [...document.querySelectorAll(".chart")];
  const waiting = [];
  let drawing = false;
  async function drawAll() {
    if (drawing) return;
    drawing = true;
    while (waiting.length) {
      await new Promise((done) => setTimeout(done));
      await draw(waiting.shift()).catch((problem) => console.error(problem));
    }
    drawing = false;
  }
  const watch = new IntersectionObserver((entries) => {
    for (const entry of entries) {
      if (entry.isIntersecting && !drawn.has(entry.target)) {
        drawn.set(entry.target, null);
        waiting.push(entry.target);
      }
    }
    drawAll();
  }, { rootMargin: "200px" });
  charts.forEach((chart) => watch.observe(chart));
  addEventListener("beforeprint", () => charts.forEach((chart) => drawn.get(chart) || draw(chart)));

  const redraw = () => { for (const element of drawn.keys()) draw(element); };
  const knob = document.getElementById("theme");
  const label = () => { knob.textContent = dark() ? "Light colours" : "Dark colours"; knob.setAttribute("aria-pressed", String(dark())); };
  knob.addEventListener("click", () => { root.dataset.theme = dark() ? "light" : "dark"; label(); redraw(); });
  media.addEventListener("change", () => { label(); redraw(); });
  label();

  document.querySelectorAll("[data-run]").forEach((box) => box.addEventListener("change", () => signal("hidden", hidden())));
  document.querySelectorAll("[data-all]").forEach((button) => button.addEventListener("click", () => {
    document.querySelectorAll("[data-run]").forEach((box) => { box.checked = button.dataset.all === "yes"; });
    signal("hidden", hidden());
  }));
  // The span of time of the chosen step, in the unit of the axis of nodes over time.
  function tell() {
    const figure = page.figures.find((one) => one.key.startsWith("nodes"));
    if (!slider || !figure) return;
    figure.values ??= rows(figure.data);
    const row = figure.values.find((one) => one.run === select.value && one.step === Number(slider.value));
    const unit = figure.spec.layer[0].encoding.x.title.match(/^time \((.*)\)$/)?.[1] ?? "";
    document.getElementById("at").textContent = row ? `${Number(row.x.toPrecision(4))} to ${Number(row.x2.toPrecision(4))} ${unit}` : "";
  }
  select?.addEventListener("change", () => { signal("chosen", select.value); tell(); });
  const quantity = document.getElementById("quantity");
  quantity?.addEventListener("change", () => {
    for (const figure of document.querySelectorAll("[data-choice]")) {
      figure.hidden = figure.dataset.choice !== quantity.value;
      const chart = figure.querySelector(".chart");
      if (!figure.hidden && drawn.has(chart)) draw(chart);   // the page may have changed meanwhile
    }
  });
  slider?.addEventListener("input", () => { signal("moment", Number(slider.value)); tell(); });
  tell();

  // A heading is a button: a click, Enter or Space sorts, the next one turns the order around.
  document.querySelectorAll("thead th").forEach((heading, column) => heading.querySelector("button").addEventListener("click", () => {
    const upwards = heading.getAttribute("aria-sort") !== "ascending" && (column === 0 || heading.getAttribute("aria-sort") === "descending");
    document.querySelectorAll("thead th").forEach((other) => other.setAttribute("aria-sort", "none"));
    heading.setAttribute("aria-sort", upwards ? "ascending" : "descending");
    const body = document.querySelector("#summary tbody");
    const key = (row) => { const cell = row.children[column]; return column === 0 ? cell.textContent : cell.dataset.value === "" ? null : Number(cell.dataset.value); };
    const order = (a, b) => {
      const x = key(a), y = key(b);
      if (x === null || y === null) return (x === null) - (y === null);   // what is not known stands last
      const sign = column === 0 ? x.localeCompare(y, undefined, { numeric: true }) : x - y;
      return upwards ? sign : -sign;
    };
    body.append(...[...body.rows].sort(order));
  }));
})();
