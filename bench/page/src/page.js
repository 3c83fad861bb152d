// Draws the charts of the page by uPlot, anew when the window or the colour scheme changes.
"use strict";
(function () {
  const charts = JSON.parse(document.getElementById("charts").textContent);
  const dark = matchMedia("(prefers-color-scheme: dark)");
  // Colours that people with colour blindness can tell apart (Okabe and Ito), a set for each ground.
  // Those of `picture.rs` are the same.
  const LIGHT = ["#0072b2", "#d55e00", "#007a5a", "#a8558a", "#8a6d00", "#2a8fc4", "#444444", "#c0392b", "#6a3fb5", "#4d7c0f"];
  const DARK = ["#56b4e9", "#ff9f4a", "#3ecf9f", "#e39ac6", "#f0e442", "#8ecbf0", "#cccccc", "#ff7b6b", "#b79cff", "#a9d65c"];
  // A line has the same colour in every chart: that of its name.
  const order = new Map();
  for (const chart of charts) for (const [name] of chart.lines) if (!order.has(name)) order.set(name, order.size);
  // Behind the chosen colours, each further one is a turn of the golden angle away, so that as many can be told apart as
  // there are lines.
  const colour = (number) => {
    const chosen = isDark() ? DARK : LIGHT;
    return number < chosen.length ? chosen[number] : `hsl(${Math.round(number * 137.508) % 360} 65% ${isDark() ? 70 : 38}%)`;
  };
  let printing = false;
  const isDark = () => dark.matches && !printing;
  const FONT = "12px system-ui, sans-serif";
  const LANE = 18;
  const short = (value) => {
    if (value === null || value === undefined) return "";
    const size = Math.abs(value);
    for (const [unit, name] of [[1e9, "G"], [1e6, "M"], [1e3, "K"]]) {
      if (size >= unit) return +(value / unit).toPrecision(4) + " " + name;
    }
    return String(+value.toPrecision(4));
  };

  // Times are in microseconds, and are read with the unit that fits.
  const time = (value) => {
    if (value === null || value === undefined) return "";
    for (const [unit, name] of [[1e6, "s"], [1e3, "ms"]]) if (value >= unit) return +(value / unit).toPrecision(3) + " " + name;
    return +value.toPrecision(3) + " us";
  };

  // Seconds, rows and the like are read whole.
  const whole = (value) => (Math.abs(value) < 1e6 && value === Math.round(value) ? value.toLocaleString("en") : short(value));

  // Lines with places of their own become columns over all places. A logarithm has no place for 0.
  function columns(chart) {
    const good = (value, log) => !log || value > 0;
    const places = [...new Set(chart.places.flat())].filter((place) => good(place, chart.log[0])).sort((a, b) => a - b);
    const rows = chart.lines.map(([, number, values]) => {
      const at = new Map(chart.places[number].map((place, index) => [place, values[index]]));
      return places.map((place) => {
        const value = at.get(place);
        return value !== undefined && good(value, chart.log[1]) ? value : null;
      });
    });
    return [places, ...rows];
  }

  function axis(label, log, style, text) {
    const line = { stroke: style.getPropertyValue("--line"), width: 1 };
    return {
      label,
      font: FONT,
      labelFont: FONT,
      labelSize: 22,
      stroke: style.getPropertyValue("--text"),
      grid: line,
      ticks: line,
      // A logarithmic axis has a line for each digit; the powers of ten have their number.
      values: (plot, splits) =>
        splits.map((split) => {
          const power = split > 0 ? Math.log10(split) : 0;
          return split === null || (log && Math.abs(power - Math.round(power)) > 1e-9) ? "" : text(split);
        }),
    };
  }

  const textWidth = (text) => {
    const context = document.createElement("canvas").getContext("2d");
    context.font = FONT;
    return context.measureText(text).width;
  };

  // What lies over a chart or below its axis: shades, marks, and a lane for each kind of events.
  function events(chart, style) {
    const [soft, text] = [style.getPropertyValue("--soft"), style.getPropertyValue("--text")];
    const place = (plot, value) => {
      const { left, width } = plot.bbox;
      return Math.min(Math.max(plot.valToPos(value, "x", true), left), left + width);
    };
    const scale = devicePixelRatio;
    const prepare = (plot) => {
      const context = plot.ctx;
      context.save();
      context.font = `${12 * scale}px system-ui, sans-serif`;
      context.textBaseline = "middle";
      context.textAlign = "left";
      return context;
    };
    return {
      hooks: {
        drawClear: [(plot) => {
          const context = prepare(plot);
          for (const [from, to, name] of chart.shades) {
            const [left, right] = [place(plot, from), place(plot, to)];
            context.fillStyle = soft;
            context.globalAlpha = 0.14;
            context.fillRect(left, plot.bbox.top, right - left, plot.bbox.height);
            context.globalAlpha = 1;
            if (right - left > context.measureText(name).width + 8 * scale) {
              context.fillText(name, left + 4 * scale, plot.bbox.top + 10 * scale);
            }
          }
          context.restore();
        }],
        draw: [(plot) => {
          const context = prepare(plot);
          context.strokeStyle = context.fillStyle = soft;
          context.setLineDash([3 * scale, 3 * scale]);
          // A text is left out where the one before it needs the room; all are in the table.
          let free = -Infinity;
          for (const [at, name] of chart.marks) {
            const x = Math.round(plot.valToPos(at, "x", true));
            context.beginPath();
            context.moveTo(x, plot.bbox.top);
            context.lineTo(x, plot.bbox.top + plot.bbox.height);
            context.stroke();
            const width = context.measureText(name).width;
            if (x > free && x + width < plot.bbox.left + plot.bbox.width) {
              context.fillText(name, x + 3 * scale, plot.bbox.top + 8 * scale);
              free = x + width + 6 * scale;
            }
          }
          chart.lanes.forEach(([name, spans], number) => {
            const middle = plot.bbox.top + plot.bbox.height + (16 + number * LANE) * scale;
            context.fillStyle = text;
            context.textAlign = "right";
            context.fillText(name, plot.bbox.left - 6 * scale, middle);
            context.fillStyle = soft;
            for (let at = 0; at < spans.length; at += 2) {
              const left = place(plot, spans[at]);
              const right = Math.max(place(plot, spans[at + 1]), left + 2 * scale);
              context.fillRect(left, middle - 5 * scale, right - left, 10 * scale);
            }
          });
          context.restore();
        }],
      },
    };
  }

  function draw(place) {
    const chart = charts[+place.dataset.chart];
    const style = getComputedStyle(document.documentElement);
    const shown = chart.y === "us" ? time : short;
    const dense = chart.places.some((places) => places.length > 600);
    const sparse = chart.places.every((places) => places.length < 50);
    const scale = (log) => ({ time: false, distr: log ? 3 : 1 });
    const height = chart.lanes.length > 0 ? 8 + chart.lanes.length * LANE : 0;
    const names = Math.max(0, ...chart.lanes.map(([name]) => textWidth(name)));
    const below = { size: 44 + height, gap: 5 + height, ticks: { show: height === 0, stroke: style.getPropertyValue("--line") } };
    const axes = [
      { ...axis(chart.x, chart.log[0], style, chart.log[0] ? short : whole), ...below },
      { ...axis(chart.y === "us" ? "time" : chart.y, chart.log[1], style, shown), size: Math.max(62, names - 14) },
    ];
    const lines = chart.lines.map(([label]) => ({
      label,
      stroke: colour(order.get(label)),
      width: dense ? 1 : 2,
      spanGaps: true,
      points: { show: sparse, size: 7 },
      value: (plot, value) => shown(value),
    }));
    const y = scale(chart.log[1]);
    if (!chart.log[1]) y.range = (plot, least, most) => [Math.min(0, least), most > 0 ? most * 1.05 : 1];
    place.replaceChildren();
    new uPlot({
      width: printing ? Math.min(place.clientWidth, 680) : place.clientWidth,
      height: 320 + height,
      scales: { x: scale(chart.log[0]), y },
      axes,
      series: [{ label: chart.x, value: (plot, value) => short(value) }, ...lines],
      plugins: [events(chart, style)],
    }, columns(chart), place);
  }

  const all = () => document.querySelectorAll(".chart").forEach((place) => { if (place.clientWidth > 0) draw(place); });
  let waiting = 0;
  addEventListener("resize", () => { cancelAnimationFrame(waiting); waiting = requestAnimationFrame(all); });
  dark.addEventListener("change", all);
  // Paper is light, and narrower than a screen.
  for (const [event, is] of [["beforeprint", true], ["afterprint", false]]) addEventListener(event, () => { printing = is; all(); });
  document.addEventListener("toggle", (event) => {
    if (event.target.open) event.target.querySelectorAll(".chart").forEach(draw);
  }, true);
  all();
})();
