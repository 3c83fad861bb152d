//! Renders charts of a page as SVG pictures for documents, on a light or dark background. Charts are read from the
//! page's HTML, so this works for any page that this crate wrote.

#[cfg(test)]
mod tests;

use crate::drawn::Drawn;
use crate::figure;
use plotters::coord::ranged1d::{AsRangedCoord, ValueFormatter};
use plotters::prelude::*;
use std::fmt::Debug;

/// The background of a picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Background {
    /// Dark on light.
    Light,
    /// Light on dark.
    Dark,
}

/// Why no picture was made.
#[derive(Debug, thiserror::Error)]
pub enum PictureError {
    /// The page was written by another program, or by another release of this crate.
    #[error("there are no charts in it: name a page that this release of `larch bench` has written")]
    NoCharts,
    /// The page has charts, but not this one.
    #[error("no chart is called `{asked}`; there are: {}", .there.join("; "))]
    NoSuchChart {
        /// The name that was asked for.
        asked: String,
        /// The names that exist.
        there: Vec<String>,
    },
    /// The chart has no point, or it cannot be drawn.
    #[error("the chart cannot be drawn: {0}")]
    Drawing(String),
}

const SIZE: (u32, u32) = (860, 400);
const FONT: (&str, u32) = ("system-ui, sans-serif", 14);
/// [`Page::html`](crate::Page::html) writes the data of the charts between these.
const BEGIN: &str = "<script type=\"application/json\" id=\"charts\">";
const END: &str = "</script>";

/// Renders the chart called `title`, or the first one, as SVG.
///
/// # Errors
///
/// [`PictureError::NoCharts`] if the page has no chart data; [`PictureError::NoSuchChart`] if none is called
/// `title`; [`PictureError::Drawing`] if the chart has no points or cannot be drawn.
pub fn svg(html: &str, title: Option<&str>, background: Background) -> Result<String, PictureError> {
    let json = html.split_once(BEGIN).and_then(|(_, rest)| rest.split_once(END)).ok_or(PictureError::NoCharts)?.0;
    let charts: Vec<Drawn> = serde_json::from_str(json).map_err(|_| PictureError::NoCharts)?;
    let asked = |chart: &&Drawn| title.is_none_or(|title| chart.title == title);
    let chart = charts.iter().find(asked).ok_or_else(|| PictureError::NoSuchChart {
        asked: title.unwrap_or_default().to_owned(),
        there: charts.iter().map(|chart| chart.title.clone()).collect(),
    })?;
    let mut svg = String::new();
    drawn(chart, background, &mut svg)?;
    Ok(svg)
}

/// The page's colours, those of `page.js`.
struct Colours {
    text: RGBColor,
    grid: RGBColor,
    lines: [RGBColor; 10],
}

impl Colours {
    fn of(background: Background) -> Self {
        let rgb = |hex: u32| RGBColor((hex >> 16) as u8, (hex >> 8) as u8, hex as u8);
        match background {
            Background::Light => Self {
                text: rgb(0x1b1f24),
                grid: rgb(0xd0d7de),
                lines: [
                    0x0072b2, 0xd55e00, 0x007a5a, 0xa8558a, 0x8a6d00, 0x2a8fc4, 0x444444, 0xc0392b, 0x6a3fb5, 0x4d7c0f,
                ]
                .map(rgb),
            },
            Background::Dark => Self {
                text: rgb(0xe6edf3),
                grid: rgb(0x30363d),
                lines: [
                    0x56b4e9, 0xff9f4a, 0x3ecf9f, 0xe39ac6, 0xf0e442, 0x8ecbf0, 0xcccccc, 0xff7b6b, 0xb79cff, 0xa9d65c,
                ]
                .map(rgb),
            },
        }
    }
}

fn drawn(chart: &Drawn, background: Background, svg: &mut String) -> Result<(), PictureError> {
    let points = |of: fn(f64, f64) -> f64| {
        let all = chart.lines.iter().flat_map(|(_, number, values)| chart.places[*number].iter().zip(values));
        all.map(|(x, y)| of(*x, *y)).fold(None, |ends: Option<(f64, f64)>, value| {
            Some(ends.map_or((value, value), |(least, most)| (least.min(value), most.max(value))))
        })
    };
    let (x, y) = points(|x, _| x).zip(points(|_, y| y)).ok_or_else(|| failed("it has no points"))?;
    let y = if chart.log.1 { (y.0 / 1.2, y.1 * 1.2) } else { (y.0.min(0.0), y.1.max(0.0) * 1.05) };
    if (chart.log.0 && x.0 <= 0.0) || (chart.log.1 && y.0 <= 0.0) {
        return Err(failed("a logarithmic axis has no place for 0"));
    }
    let (x, y) = (widened(x), widened(y));
    match chart.log {
        (false, false) => on_axes(chart, background, svg, x.0..x.1, y.0..y.1),
        (true, false) => on_axes(chart, background, svg, (x.0..x.1).log_scale(), y.0..y.1),
        (false, true) => on_axes(chart, background, svg, x.0..x.1, (y.0..y.1).log_scale()),
        (true, true) => on_axes(chart, background, svg, (x.0..x.1).log_scale(), (y.0..y.1).log_scale()),
    }
}

/// Widens an axis whose ends are equal.
fn widened((from, to): (f64, f64)) -> (f64, f64) {
    if from < to { (from, to) } else { (from, if from > 0.0 { from * 2.0 } else { from + 1.0 }) }
}

fn failed(why: impl ToString) -> PictureError {
    PictureError::Drawing(why.to_string())
}

fn on_axes<X, Y>(chart: &Drawn, background: Background, svg: &mut String, x: X, y: Y) -> Result<(), PictureError>
where
    X: AsRangedCoord<Value = f64>,
    Y: AsRangedCoord<Value = f64>,
    X::CoordDescType: ValueFormatter<f64>,
    Y::CoordDescType: ValueFormatter<f64>,
{
    let colours = Colours::of(background);
    let text = FONT.into_font().color(&colours.text);
    let whole = SVGBackend::with_string(svg, SIZE).into_drawing_area();
    // Put the names of lines at the side, where they cover no line.
    let longest = chart.lines.iter().map(|(name, ..)| name.chars().count()).max().unwrap_or(0) as u32;
    let names_width = if chart.lines.len() > 1 { (44 + 7 * longest).min(SIZE.0 / 3) } else { 0 };
    let edge = i32::try_from(SIZE.0 - names_width).expect("a picture is no wider");
    let (area, names) = whole.split_horizontally(edge);
    let mut plot = ChartBuilder::on(&area)
        .caption(&chart.title, FONT.into_font().color(&colours.text))
        .margin(12)
        .x_label_area_size(46)
        .y_label_area_size(76)
        .build_cartesian_2d(x, y)
        .map_err(failed)?;
    plot.configure_mesh()
        .axis_style(colours.grid)
        .bold_line_style(colours.grid)
        .light_line_style(TRANSPARENT)
        .label_style(text.clone())
        .axis_desc_style(text.clone())
        .x_desc(&chart.x)
        .y_desc(&chart.y)
        .x_label_formatter(&|value| figure(*value))
        .y_label_formatter(&|value| figure(*value))
        .draw()
        .map_err(failed)?;
    for (at, (name, number, values)) in chart.lines.iter().enumerate() {
        let colour = colours.lines[at % colours.lines.len()];
        let points = || chart.places[*number].iter().copied().zip(values.iter().copied());
        plot.draw_series(LineSeries::new(points(), colour.stroke_width(2))).map_err(failed)?;
        if names_width > 0 {
            let y = 50 + 22 * i32::try_from(at).unwrap_or(i32::MAX / 22);
            names.draw(&PathElement::new([(4, y), (24, y)], colour.stroke_width(3))).map_err(failed)?;
            names.draw(&Text::new(name.as_str(), (32, y - 6), text.clone())).map_err(failed)?;
        }
        if values.len() < 50 {
            plot.draw_series(points().map(|place| Circle::new(place, 3, colour.filled()))).map_err(failed)?;
        }
    }
    drop(plot);
    whole.present().map_err(failed)
}
