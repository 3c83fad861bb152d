//! The view of a run as a picture of text. It is computed from intervals alone, live ones or those of a result, and
//! knows no terminal. Of 80 columns and 24 rows:
//!
//! ```text
//!  workload a on larch:db                                               42 s of 60 s
//!  2 clients, open loop of 20,000 op/s                  840,000 operations, 0 failed
//!  operations a second: 20,010 now, 19,990 mean ────────────────────────────────────
//!   20,400│⠒⠒⠤⠤⠒⠒⠒…                          a line over the seconds of the run
//!        0│
//!  times: p50 41.2 us, p99 312 us, p99.9 1.20 ms, longest 8.10 ms ──────────────────
//!  8.10 ms│                                  three lines: p50, p99, longest
//!  20.1 us│                                  equal heights are equal ratios
//!  stalls: writes waited 12.0 ms a second, 3.10 ms mean ────────────────────────────
//!         │ ▂▁ █ ▃                           a bar for each moment
//!  flushes 12, compactions 4; cache hits 93.2 %; 2 threads wait for the store
//!                      op/s        mean         p50         p99     longest   failed
//!  READ              10,020     30.1 us     …
//!  client threads: 0.83 of 2 processors, 0.10 of it until operations were due
//!  the last message, if one was printed
//! ```
//!
//! If the workload is [known by another rate](KnownBy), the first chart is of that rate.

#[cfg(test)]
mod tests;

use harness::report::text::{grouped, nanos, nanos_or_blank, rate, three};
use harness::report::{Run, figures};
use harness::{Interval, Length, Measure, Pace, Plan};
use ratatui::buffer::Buffer;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::symbols::Marker;
use ratatui::text::Line;
use ratatui::widgets::{Axis, Block, Borders, Chart, Dataset, GraphType, Widget as _};
use std::collections::BTreeMap;

/// What is known of a run before it begins.
#[derive(Clone, Debug)]
pub struct Head {
    /// The name of the run.
    pub name: String,
    /// The target, without a password.
    pub target: String,
    /// How it is run. If it has no clients, their number is not known.
    pub plan: Plan,
    /// The processors of the client's machine.
    pub processors: u64,
    /// Processor time of an operation on a store that does nothing, if that is known.
    pub noop_nanos: Option<f64>,
    /// The rate of the first chart, if it is not the operations a second.
    pub known_by: Option<KnownBy>,
}

/// A rate that a workload is known by, other than its operations a second.
#[derive(Clone, Copy, Debug)]
pub struct KnownBy {
    /// The name of the rate.
    pub name: &'static str,
    /// What is counted: how much of it an interval has.
    pub count: fn(&Interval) -> u64,
    /// The rate's unit of time, in seconds.
    pub unit_seconds: f64,
}

/// The rate of the first chart, if the workload is known by no other one.
const OPERATIONS: KnownBy =
    KnownBy { name: "operations a second", count: |interval| interval.operations, unit_seconds: 1.0 };

impl Head {
    /// The head of a run that is about to begin on this machine.
    pub fn of_plan(name: String, target: &str, plan: &Plan) -> Self {
        let processors = std::thread::available_parallelism().map_or(1, |count| count.get() as u64);
        let target = harness::without_password(target);
        Self { name, target, plan: plan.clone(), processors, noop_nanos: None, known_by: None }
    }

    /// The head of a run of a result, which was made on a machine with `processors`.
    pub fn of_run(run: &Run, processors: u64) -> Self {
        let (name, target, plan) = (run.name.clone(), run.target.clone(), run.plan.clone());
        Self { name, target, plan, processors, noop_nanos: run.noop_nanos, known_by: None }
    }
}

/// The figures of an interval.
#[derive(Clone, Debug)]
struct Point {
    /// The end of the interval, in seconds from the beginning of the run.
    at: f64,
    seconds: f64,
    is_warming: bool,
    /// The bounds of the interval, by which late reports find it.
    from_nanos: u64,
    operations: u64,
    /// What the rate of the first chart counts.
    counted: u64,
    failed: u64,
    /// The 50th and the 99th percentile, if there are enough requests, and the longest time.
    times: [Option<f64>; 3],
    /// How long writes waited for background work, in seconds a second.
    waited: Option<f64>,
}

/// What a chart has besides its lines.
struct Drawn<'d> {
    title: &'d str,
    /// The least and the greatest value on the axis.
    bounds: [f64; 2],
    /// The labels of the axis, from the bottom to the top.
    labels: &'d [String],
    kind: GraphType,
}

/// The width of the labels, so that all charts begin in the same column.
const LABEL: usize = 10;

/// A view of a run.
pub struct View {
    head: Head,
    points: Vec<Point>,
    /// The last interval, of which the view shows more.
    last: Interval,
    /// When the window began, in seconds from the beginning of the run.
    window_at: f64,
    /// When the store's counters were read last, in seconds, and what they were.
    counted: Option<(f64, BTreeMap<String, u64>)>,
    /// The counters at the beginning.
    first_counted: Option<BTreeMap<String, u64>>,
}

/// At most this many points of a line are drawn. A chart has two for each column.
const MOST_POINTS: usize = 400;

const SECONDARY: Style = Style::new().add_modifier(Modifier::DIM);

impl View {
    /// A view of a run that has not begun.
    pub fn new(head: Head) -> Self {
        let last = Interval::default();
        Self { head, points: Vec::new(), last, window_at: 0.0, counted: None, first_counted: None }
    }

    /// The length of the run so far, in seconds.
    pub fn seconds(&self) -> f64 {
        self.points.last().map_or(0.0, |point| point.at)
    }

    /// Adds an interval, and what it says of earlier ones.
    pub fn add(&mut self, interval: &Interval) {
        for late in &interval.told_late {
            self.add_late(late);
        }
        if interval.warming {
            self.window_at = interval.to_nanos as f64 / 1e9;
        }
        let zero = if interval.warming { 0.0 } else { self.window_at };
        let sum = Measure::sum(&interval.kinds);
        let times = sum.times();
        let known = |quantile| times.known_quantile(quantile).map(|nanos| nanos as f64);
        let point = Point {
            at: zero + interval.to_nanos as f64 / 1e9,
            seconds: (interval.to_nanos.saturating_sub(interval.from_nanos).max(1)) as f64 / 1e9,
            is_warming: interval.warming,
            from_nanos: interval.from_nanos,
            operations: interval.operations,
            counted: (self.known_by().count)(interval),
            failed: interval.failed,
            times: [known(0.5), known(0.99), (!times.is_empty()).then(|| times.max() as f64)],
            waited: self.waited(interval, zero),
        };
        self.points.push(point);
        self.last = interval.clone();
    }

    /// Adds a late report to the point that it belongs to.
    fn add_late(&mut self, late: &Interval) {
        let counted = (self.known_by().count)(late);
        let same = |point: &&mut Point| point.is_warming == late.warming && point.from_nanos == late.from_nanos;
        if let Some(point) = self.points.iter_mut().rev().find(same) {
            point.operations += late.operations;
            point.counted += counted;
            point.failed += late.failed;
            let longest = Measure::sum(&late.kinds).times().max() as f64;
            point.times[2] = point.times[2].map(|before| before.max(longest));
        }
    }

    /// The rate of the first chart.
    fn known_by(&self) -> KnownBy {
        self.head.known_by.unwrap_or(OPERATIONS)
    }

    /// How long writes waited a second, since the counters were read before.
    fn waited(&mut self, interval: &Interval, zero: f64) -> Option<f64> {
        let counted = interval.counted.as_ref()?;
        let at = zero + counted.at_nanos as f64 / 1e9;
        self.first_counted.get_or_insert_with(|| counted.counters.clone());
        let before = self.counted.replace((at, counted.counters.clone()));
        let (before_at, before) = before?;
        let micros = grown(&before, &counted.counters, figures::WAITED)?;
        (at > before_at).then(|| micros as f64 / 1e6 / (at - before_at))
    }

    /// The window's points, or all of them before it begins.
    fn measured(&self) -> impl Iterator<Item = &Point> + Clone {
        let is_before = self.points.iter().all(|point| point.is_warming);
        self.points.iter().filter(move |point| is_before || !point.is_warming)
    }

    /// Draws the view into `area`. `message` stands in a row below it.
    pub fn draw(&self, message: Option<&str>, area: Rect, buffer: &mut Buffer) {
        let kinds = self.last.kinds.iter().filter(|kind| kind.done() + kind.failed_count() > 0).count() as u16;
        let kinds = kinds.min(area.height.saturating_sub(18)).max(1);
        let rows = Layout::vertical([
            Constraint::Length(2),
            Constraint::Fill(4),
            Constraint::Fill(5),
            Constraint::Length(4),
            Constraint::Length(kinds + 1),
            Constraint::Length(1),
            Constraint::Length(message.is_some().into()),
        ]);
        let [head, rates, times, stalls, table, client, below] = rows.areas(area);
        self.draw_head(head, buffer);
        self.draw_rates(rates, buffer);
        self.draw_times(times, buffer);
        self.draw_stalls(stalls, buffer);
        self.draw_kinds(table, buffer);
        Line::raw(self.client()).render(client, buffer);
        Line::styled(message.unwrap_or_default(), Modifier::BOLD).render(below, buffer);
    }

    /// The view as lines of text.
    pub fn text(&self, columns: u16, rows: u16) -> String {
        let mut buffer = Buffer::empty(Rect::new(0, 0, columns, rows));
        self.draw(None, buffer.area, &mut buffer);
        let line = |row| (0..columns).map(|column| buffer[(column, row)].symbol()).collect::<String>();
        (0..rows).map(|row| line(row).trim_end().to_owned() + "\n").collect()
    }

    fn draw_head(&self, area: Rect, buffer: &mut Buffer) {
        let Head { name, target, plan, .. } = &self.head;
        let pace = match plan.pace {
            Pace::Closed => "closed loop".to_owned(),
            Pace::Open { per_second } => format!("open loop of {} op/s", rate(per_second)),
        };
        let [operations, failed] = self
            .measured()
            .fold([0, 0], |[operations, failed], point| [operations + point.operations, failed + point.failed]);
        let done = format!("{} operations, {} failed", grouped(operations), grouped(failed));
        let how = if plan.clients == 0 { pace } else { format!("{}, {pace}", clients(plan.clients)) };
        let left = [format!("{name} on {target}"), how];
        for ((row, left), right) in area.rows().zip(left).zip([self.progress(), done]) {
            let style = if row.y == area.y { Style::new().add_modifier(Modifier::BOLD) } else { Style::new() };
            let width = u16::try_from(right.chars().count()).unwrap_or(u16::MAX);
            let [at_left, at_right] =
                Layout::horizontal([Constraint::Fill(1), Constraint::Length(width)]).spacing(1).areas(row);
            Line::styled(left, style).render(at_left, buffer);
            Line::styled(right, style).render(at_right, buffer);
        }
    }

    /// How far the run is: `warm-up, 2.0 s`, `42.0 s of 60.0 s`.
    fn progress(&self) -> String {
        let to = self.last.to_nanos as f64;
        match self.head.plan.length {
            _ if self.last.warming => format!("warm-up, {}", nanos(to)),
            Length::Time(time) => format!("{} of {}", nanos(to), nanos(time.as_nanos() as f64)),
            Length::Operations(all) => format!("{}, of {} operations", nanos(to), grouped(all)),
            Length::All => nanos(to),
        }
    }

    fn draw_rates(&self, area: Rect, buffer: &mut Buffer) {
        let KnownBy { name, unit_seconds, .. } = self.known_by();
        let rate_of = |point: &Point| unit_seconds * point.counted as f64 / point.seconds;
        let now = self.points.last().map_or(0.0, rate_of);
        let (counted, seconds) =
            self.measured().fold((0, 0.0), |(sum, time), point| (sum + point.counted, time + point.seconds));
        let mean = unit_seconds * counted as f64 / f64::max(seconds, 1e-9);
        let other = match (self.head.known_by, self.points.last()) {
            (Some(_), Some(point)) => format!("; {} op/s", rate(point.operations as f64 / point.seconds)),
            _ => String::new(),
        };
        let title = format!("{name}: {} now, {} mean{other}", rate(now), rate(mean));
        let line = self.line(|point| Some(rate_of(point)), mean_of);
        let most = line.iter().map(|(_, y)| *y).fold(0.0, f64::max).max(1e-9);
        let labels = ["0".to_owned(), rate(most)];
        let drawn = Drawn { title: &title, bounds: [0.0, most], labels: &labels, kind: GraphType::Line };
        self.draw_chart(&drawn, &[(Color::Green, &line)], area, buffer);
    }

    fn draw_times(&self, area: Rect, buffer: &mut Buffer) {
        let sum = Measure::sum(&self.last.kinds);
        let times = sum.times();
        let [p50, p99, p999] = [0.5, 0.99, 0.999].map(|quantile| nanos_or_blank(times.known_quantile(quantile)));
        let longest = nanos_or_blank((!times.is_empty()).then(|| times.max()));
        let title = format!("times: p50 {p50}, p99 {p99}, p99.9 {p999}, longest {longest}");
        let lines = [0, 1, 2].map(|which| {
            let logarithm = |point: &Point| point.times[which].map(|nanos| nanos.max(1.0).log10());
            self.line(logarithm, |values| values.fold(f64::NEG_INFINITY, f64::max))
        });
        let all = || lines.iter().flatten().map(|(_, y)| *y);
        let (least, most) = (all().fold(f64::INFINITY, f64::min), all().fold(f64::NEG_INFINITY, f64::max));
        let bounds = if least < most { [least, most] } else { [least.min(9.0) - 0.5, least.min(9.0) + 0.5] };
        let middle = f64::midpoint(bounds[0], bounds[1]);
        let labels = [bounds[0], middle, bounds[1]].map(|power| nanos(10_f64.powf(power)));
        let colours = [Color::Cyan, Color::Yellow, Color::Red];
        let lines: Vec<(Color, &[(f64, f64)])> = colours.into_iter().zip(lines.iter().map(Vec::as_slice)).collect();
        self.draw_chart(&Drawn { title: &title, bounds, labels: &labels, kind: GraphType::Line }, &lines, area, buffer);
    }

    fn draw_stalls(&self, area: Rect, buffer: &mut Buffer) {
        let known: Vec<f64> = self.points.iter().filter_map(|point| point.waited).collect();
        let title = match known.last() {
            Some(now) => {
                let mean = mean_of(&mut known.iter().copied());
                format!("stalls: writes waited {} a second now, {} mean", nanos(now * 1e9), nanos(mean * 1e9))
            }
            None => "stalls: the store does not count how long writes wait".to_owned(),
        };
        let [bars, below] = Layout::vertical([Constraint::Fill(1), Constraint::Length(1)]).areas(area);
        let heights = self.line(|point| point.waited, |values| values.fold(0.0, f64::max));
        let most = heights.iter().map(|(_, y)| *y).fold(0.0, f64::max);
        let labels = ["0".to_owned(), nanos(most * 1e9)];
        // A bar without height would be a dot.
        let heights: Vec<(f64, f64)> = heights.into_iter().filter(|(_, y)| *y > 0.0).collect();
        let drawn = Drawn { title: &title, bounds: [0.0, most.max(1e-9)], labels: &labels, kind: GraphType::Bar };
        self.draw_chart(&drawn, &[(Color::Magenta, &heights)], bars, buffer);
        Line::raw(self.store()).render(below, buffer);
    }

    /// What the store did, by its counters.
    fn store(&self) -> String {
        let mut parts = Vec::new();
        if let (Some(first), Some((_, last))) = (&self.first_counted, &self.counted) {
            let grown = |names: &[&str]| grown(first, last, names);
            let counts =
                [("flushes", figures::FLUSHES), ("compactions", figures::COMPACTIONS), ("stalls", figures::STALLS)];
            parts.extend(counts.iter().filter_map(|(name, names)| Some(format!("{name} {}", grouped(grown(names)?)))));
            if let (Some(hits), Some(reads)) = (grown(figures::HITS), grown(figures::READS))
                && hits + reads > 0
            {
                parts.push(format!("cache hits {} %", three(100.0 * hits as f64 / (hits + reads) as f64)));
            }
        }
        match self.last.late {
            0 => {}
            1 => parts.push("1 thread waits for the store".to_owned()),
            late => parts.push(format!("{late} threads wait for the store")),
        }
        parts.join(", ")
    }

    /// The kinds of requests of the last interval, a row for each.
    fn draw_kinds(&self, area: Rect, buffer: &mut Buffer) {
        let seconds = self.points.last().map_or(1.0, |point| point.seconds);
        let row = |[name, rate, mean, p50, p99, longest, failed]: [String; 7]| {
            format!("{name:<18}{rate:>10}{mean:>12}{p50:>11}{p99:>11}{longest:>11}{failed:>7}")
        };
        let head = ["", "op/s", "mean", "p50", "p99", "longest", "failed"].map(str::to_owned);
        let shown = |kind: &&Measure| kind.done() + kind.failed_count() > 0;
        let of_kind = |kind: &Measure| {
            let times = kind.times();
            let some = |value: f64| if times.is_empty() { "-".to_owned() } else { nanos(value) };
            let quantile = |quantile| nanos_or_blank(times.known_quantile(quantile));
            row([
                kind.name.chars().take(17).collect(),
                rate(kind.done() as f64 / seconds),
                some(times.mean()),
                quantile(0.5),
                quantile(0.99),
                some(times.max() as f64),
                grouped(kind.failed_count()),
            ])
        };
        let kinds = self.last.kinds.iter().filter(shown).map(of_kind);
        let lines = std::iter::once(Line::styled(row(head), SECONDARY)).chain(kinds.map(Line::raw));
        area.rows().zip(lines).for_each(|(area, line)| line.render(area, buffer));
    }

    /// What the client itself used in the last interval.
    fn client(&self) -> String {
        let nanos_of_interval = self.last.to_nanos.saturating_sub(self.last.from_nanos).max(1) as f64;
        let processors = |nanos: f64| format!("{:.2}", nanos / nanos_of_interval);
        let used = processors(self.last.client_nanos as f64);
        let of = self.head.processors;
        let pausing = match self.last.pausing_nanos {
            0 => String::new(),
            pausing => format!(", {} of it until operations were due", processors(pausing as f64)),
        };
        let own = self.head.noop_nanos.map_or(String::new(), |noop| {
            let own = noop * self.last.operations as f64 + self.last.pausing_nanos as f64;
            format!("; the client's own share {}", processors(own.min(self.last.client_nanos as f64)))
        });
        format!("client threads: {used} of {of} processors{pausing}{own}")
    }

    /// Draws lines over the seconds of the run, below a title.
    fn draw_chart(&self, what: &Drawn<'_>, lines: &[(Color, &[(f64, f64)])], area: Rect, buffer: &mut Buffer) {
        let sets = lines.iter().map(|(colour, points)| {
            Dataset::default().marker(Marker::Braille).graph_type(what.kind).style(*colour).data(points)
        });
        let labels = what.labels.iter().map(|label| Line::raw(format!("{label:>LABEL$}")));
        let y = Axis::default().bounds(what.bounds).labels(labels).style(SECONDARY);
        let x = Axis::default().bounds([0.0, self.seconds().max(1e-9)]).style(SECONDARY);
        let title = Line::styled(format!("{} ", what.title), Modifier::BOLD);
        let block = Block::new().borders(Borders::TOP).border_style(SECONDARY).title(title);
        Chart::new(sets.collect()).block(block).x_axis(x).y_axis(y).render(area, buffer);
    }

    /// A line over the run, with few enough points to draw. Several points become one by `joined`.
    fn line(
        &self,
        of: impl Fn(&Point) -> Option<f64>,
        joined: impl Fn(&mut dyn Iterator<Item = f64>) -> f64,
    ) -> Vec<(f64, f64)> {
        let chunk = self.points.len().div_ceil(MOST_POINTS).max(1);
        let point = |points: &[Point]| {
            let at = points.last()?.at;
            points.iter().any(|point| of(point).is_some()).then(|| (at, joined(&mut points.iter().filter_map(&of))))
        };
        self.points.chunks(chunk).filter_map(point).collect()
    }
}

/// `1 client`, `1,000 clients`.
fn clients(count: usize) -> String {
    format!("{} client{}", grouped(count as u64), if count == 1 { "" } else { "s" })
}

fn mean_of(values: &mut dyn Iterator<Item = f64>) -> f64 {
    let (count, sum) = values.fold((0_u32, 0.0), |(count, sum), value| (count + 1, sum + value));
    sum / f64::from(count.max(1))
}

/// How much the counters `names` grew together. `None` if the store has none of them.
fn grown(before: &BTreeMap<String, u64>, after: &BTreeMap<String, u64>, names: &[&str]) -> Option<u64> {
    let sum = |counters: &BTreeMap<String, u64>| {
        names.iter().filter_map(|name| counters.get(*name)).copied().reduce(u64::saturating_add)
    };
    Some(sum(after)?.saturating_sub(sum(before)?))
}
