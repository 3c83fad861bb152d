// Draws the charts of the page by uPlot, anew when the window or the colour scheme changes.
"use strict";
(function () {
  const charts = JSON.parse(document.getElementById("charts").textContent);
  const dark = matchMedia("(prefers-color-scheme: dark)");
  // Colours that people with colour blindness can tell apart (Okabe and Ito), a set for each ground.
  const LIGHT = ["#0072b2", "#d55e00", "#007a5a", "#a8558a", "#8a6d00", "#2a8fc4", "#444444"];
  const DARK = ["#56b4e9", "#ff9f4a", "#3ecf9f", "#e39ac6", "#f0e442", "#8ecbf0", "#cccccc"];
  const DASHES = [[], [8, 4], [2, 3], [10, 3, 2, 3]];
  const short = (value) => {
    if (value === null || value === undefined) return "";
    const size = Math.abs(value);
    for (const [unit, name] of [[1e9, "G"], [1e6, "M"], [1e3, "K"]]) {
      if (size >= unit) return +(value / unit).toPrecision(4) + " " + name;
    }
    return String(+value.toPrecision(4));
  };

  // Lines with places of their own become columns over all places.
  function columns(lines) {
    const places = [...new Set(lines.flatMap((line) => line.points.map((point) => point[0])))].sort((a, b) => a - b);
    const rows = lines.map((line) => {
      const at = new Map(line.points);
      return places.map((place) => (at.has(place) ? at.get(place) : null));
    });
    return [places, ...rows];
  }

  function axis(of, style) {
    return {
      label: of.label,
      stroke: style.getPropertyValue("--text"),
      grid: { stroke: style.getPropertyValue("--line"), width: 1 },
      ticks: { stroke: style.getPropertyValue("--line"), width: 1 },
      values: (plot, splits) => splits.map((split) => (split === null ? "" : short(split))),
    };
  }

  function marks(chart, colour) {
    return {
      hooks: {
        draw: [(plot) => {
          const context = plot.ctx;
          context.save();
          context.strokeStyle = colour;
          context.setLineDash([3, 3]);
          for (const [place] of chart.marks) {
            const x = Math.round(plot.valToPos(place, "x", true));
            context.beginPath();
            context.moveTo(x, plot.bbox.top);
            context.lineTo(x, plot.bbox.top + plot.bbox.height);
            context.stroke();
          }
          context.restore();
        }],
      },
    };
  }

  function draw(place) {
    const chart = charts[+place.dataset.chart];
    const style = getComputedStyle(document.documentElement);
    const colours = dark.matches ? DARK : LIGHT;
    const sparse = chart.lines.every((line) => line.points.length < 50);
    const scale = (of) => ({ time: false, distr: of.is_logarithmic ? 3 : 1 });
    const axes = [axis(chart.x, style), { ...axis(chart.y, style), size: 70 }];
    const lines = chart.lines.map((line, at) => ({
      label: line.name,
      stroke: colours[at % colours.length],
      width: 2,
      dash: DASHES[Math.floor(at / colours.length) % DASHES.length],
      spanGaps: true,
      points: { show: sparse, size: 7 },
      value: (plot, value) => short(value),
    }));
    const y = scale(chart.y);
    if (!chart.y.is_logarithmic) y.range = (plot, least, most) => [Math.min(0, least), most > 0 ? most * 1.05 : 1];
    place.replaceChildren();
    new uPlot({
      width: place.clientWidth,
      height: 320,
      scales: { x: scale(chart.x), y },
      axes,
      series: [{ label: chart.x.label, value: (plot, value) => short(value) }, ...lines],
      plugins: [marks(chart, style.getPropertyValue("--soft"))],
    }, columns(chart.lines), place);
  }

  const all = () => document.querySelectorAll(".chart").forEach((place) => { if (place.clientWidth > 0) draw(place); });
  let waiting = 0;
  addEventListener("resize", () => { cancelAnimationFrame(waiting); waiting = requestAnimationFrame(all); });
  dark.addEventListener("change", all);
  document.addEventListener("toggle", (event) => {
    if (event.target.open) event.target.querySelectorAll(".chart").forEach(draw);
  }, true);
  all();
})();
