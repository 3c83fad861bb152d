//! Makes self-contained HTML pages of text, tables and charts, which open without a network and can be sent as one
//! file. The crate knows nothing of measurements.
//!
//! On a chart *by the clock*, a run is drawn at the time of day when it ran. On other charts, each run begins at 0.
//! A *lane* is a strip below the axis with the events of one kind. A *shade* marks a stretch of time, such as the
//! warm-up.
//!
//! Charts are drawn by [uPlot](https://github.com/leeoniya/uPlot), whose code is part of the page (`vendor/uplot`,
//! version 1.6.32, MIT). Each chart comes with a table of its points, for screen readers, keyboards and browsers
//! without scripts.

mod drawn;
mod html;
pub mod picture;
#[cfg(test)]
mod tests;

use serde::Serialize;

/// A page.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Page {
    /// Its title.
    pub title: String,
    /// The blocks of the page, from top to bottom.
    pub blocks: Vec<Block>,
}

/// A piece of a page.
#[derive(Clone, Debug, PartialEq)]
pub enum Block {
    /// A heading of a section.
    Heading(String),
    /// A paragraph.
    Text(String),
    /// Text that keeps its lines and spaces, for example a command or a plan.
    Code(String),
    /// A table.
    Table(Table),
    /// A chart.
    Chart(Chart),
    /// A chart over time, with events.
    Timeline(Timeline),
    /// Blocks that are shown when their summary is opened.
    Folded(String, Vec<Block>),
}

/// A table. The first column is the head of each row.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Table {
    /// What the table shows.
    pub caption: String,
    /// Names of the columns.
    pub columns: Vec<String>,
    /// The cells of each row, one for each column.
    pub rows: Vec<Vec<String>>,
}

/// A chart of lines over one axis.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Chart {
    /// What the chart shows.
    pub title: String,
    /// The axis from left to right.
    pub x: Axis,
    /// The axis from bottom to top.
    pub y: Axis,
    /// The lines.
    pub lines: Vec<Curve>,
    /// Labelled moments on the x axis.
    pub marks: Vec<(f64, String)>,
}

/// A chart over time, with events.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Timeline {
    /// The chart.
    pub chart: Chart,
    /// The events. Each kind has its own lane below the axis.
    pub lanes: Vec<Lane>,
    /// Shaded stretches of time, such as a warm-up: (from, to, name).
    pub shades: Vec<(f64, f64, String)>,
}

/// Events of one kind.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Lane {
    /// The kind of event: `flushes`.
    pub name: String,
    /// The beginning and end of each event, in order.
    pub spans: Vec<(f64, f64)>,
}

/// An axis of a chart.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Axis {
    /// The quantity that the axis shows, with its unit.
    pub label: String,
    /// Whether equal lengths on the axis stand for equal ratios.
    pub is_logarithmic: bool,
}

/// A line of a chart.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Curve {
    /// Its name.
    pub name: String,
    /// Its points, from left to right.
    pub points: Vec<(f64, f64)>,
}

impl Page {
    /// An empty page.
    pub fn new(title: impl Into<String>) -> Self {
        Self { title: title.into(), blocks: Vec::new() }
    }

    /// Adds a block at the end.
    pub fn add(&mut self, block: Block) {
        self.blocks.push(block);
    }

    /// The whole page as HTML.
    pub fn html(&self) -> String {
        html::html(self)
    }
}

impl Axis {
    /// An axis on which equal lengths stand for equal differences.
    pub fn linear(label: impl Into<String>) -> Self {
        Self { label: label.into(), is_logarithmic: false }
    }

    /// An axis on which equal lengths stand for equal ratios.
    pub fn logarithmic(label: impl Into<String>) -> Self {
        Self { label: label.into(), is_logarithmic: true }
    }
}

/// A figure with four digits, as people read it: `1,234,567`, `12.34`, `0.001234`.
pub fn figure(number: f64) -> String {
    if !number.is_finite() {
        return "-".to_owned();
    }
    let size = number.abs();
    if size >= 1000.0 || number == 0.0 {
        let digits = format!("{size:.0}");
        let mut text = String::new();
        for (at, digit) in digits.chars().enumerate() {
            if at > 0 && (digits.len() - at).is_multiple_of(3) {
                text.push(',');
            }
            text.push(digit);
        }
        return if number < 0.0 { format!("-{text}") } else { text };
    }
    let before_point = size.log10().floor() as i32 + 1;
    let decimals = (4 - before_point).clamp(0, 9) as usize;
    let text = format!("{number:.decimals$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}
