//! Renders a page as HTML. Everything that comes from a result is escaped.

use super::drawn::{Drawn, thinned_by};
use super::{Block, Chart, Lane, Page, Table, Timeline, figure};
use std::fmt::Write as _;

const UPLOT_SCRIPT: &str = include_str!("../vendor/uplot/uPlot.iife.min.js");
const UPLOT_STYLE: &str = include_str!("../vendor/uplot/uPlot.min.css");
const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

/// The whole page.
pub fn html(page: &Page) -> String {
    let mut body = String::new();
    let mut charts = Vec::new();
    blocks(&page.blocks, &mut body, &mut charts);
    let title = escaped(&page.title);
    // `</script>` would end the script, so escape `<` in the JSON.
    let data = serde_json::to_string(&charts).expect("names are texts").replace('<', "\\u003c");
    let plot = match charts.is_empty() {
        true => String::new(),
        false => format!(
            "<style>{UPLOT_STYLE}</style>\n<script type=\"application/json\" id=\"charts\">{data}</script>\n\
             <script>{UPLOT_SCRIPT}</script>\n<script>{SCRIPT}</script>\n"
        ),
    };
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; script-src 'unsafe-inline'; style-src \
         'unsafe-inline'; img-src data:\">\n<meta name=\"color-scheme\" content=\"light dark\">\n<link rel=\"icon\" href=\"data:,\">\n\
         <title>{title}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<main>\n<h1>{title}</h1>\n{body}</main>\n{plot}\
         </body>\n</html>\n"
    )
}

fn blocks(all: &[Block], out: &mut String, charts: &mut Vec<Drawn>) {
    for block in all {
        match block {
            Block::Heading(text) => line(out, "h2", text),
            Block::Text(text) => line(out, "p", text),
            Block::Code(text) => {
                // `tabindex` makes a scrolling region reachable by keyboard.
                let text = escaped(text);
                push(out, format_args!("<pre tabindex=\"0\">{text}</pre>\n"));
            }
            Block::Table(shown) => table(shown, out),
            Block::Chart(chart) => figures(chart, &[], &[], out, charts),
            Block::Timeline(Timeline { chart, lanes, shades }) => figures(chart, lanes, shades, out, charts),
            Block::Folded(summary, inner) => {
                push(out, format_args!("<details><summary>{}</summary>\n", escaped(summary)));
                blocks(inner, out, charts);
                push(out, format_args!("</details>\n"));
            }
        }
    }
}

/// A chart, and a table of its points.
fn figures(chart: &Chart, lanes: &[Lane], shades: &[(f64, f64, String)], out: &mut String, charts: &mut Vec<Drawn>) {
    let (title, number) = (escaped(&chart.title), charts.len());
    push(out, format_args!("<figure><figcaption>{title}</figcaption>\n"));
    push(out, format_args!("<div class=\"chart\" data-chart=\"{number}\" aria-hidden=\"true\"></div>\n"));
    let longest = chart.lines.iter().map(|line| line.points.len()).max().unwrap_or(0);
    if let Some(each) = thinned_by(longest) {
        line(out, "p", &format!("Of every {each} points of a line, the least and the greatest are drawn."));
    }
    // The summary names its chart, for screen readers that jump from summary to summary.
    push(out, format_args!("<details><summary>Points: {title}</summary>\n"));
    table(&points(chart), out);
    if !lanes.is_empty() || !shades.is_empty() || !chart.marks.is_empty() {
        table(&events(chart, lanes, shades), out);
    }
    push(out, format_args!("</details></figure>\n"));
    charts.push(Drawn::of(chart, lanes, shades));
}

fn line(out: &mut String, tag: &str, text: &str) {
    push(out, format_args!("<{tag}>{}</{tag}>\n", escaped(text)));
}

fn push(out: &mut String, text: std::fmt::Arguments<'_>) {
    out.write_fmt(text).expect("a string takes all that is written");
}

/// A cell with more characters than this takes several lines.
const LONG: usize = 28;

fn table(shown: &Table, out: &mut String) {
    let caption = escaped(&shown.caption);
    // Columns without names are those of names and values.
    let class = if shown.columns.iter().all(String::is_empty) { " class=\"pairs\"" } else { "" };
    push(
        out,
        format_args!("<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"{caption}\"><table{class}>"),
    );
    push(out, format_args!("<caption><span>{caption}</span></caption>\n<thead><tr>"));
    for name in &shown.columns {
        push(out, format_args!("<th scope=\"col\">{}</th>", escaped(name)));
    }
    push(out, format_args!("</tr></thead>\n<tbody>\n"));
    for row in &shown.rows {
        push(out, format_args!("<tr>"));
        for (at, cell) in row.iter().enumerate() {
            let class = if cell.chars().count() > LONG { " class=\"long\"" } else { "" };
            let cell = escaped(cell);
            match at {
                0 => push(out, format_args!("<th scope=\"row\"{class}>{cell}</th>")),
                _ => push(out, format_args!("<td{class}>{cell}</td>")),
            }
        }
        push(out, format_args!("</tr>\n"));
    }
    push(out, format_args!("</tbody></table></div>\n"));
}

/// The most rows of a table of points, and the most spans listed for a lane. More would fill the page with points
/// that readers skip.
const MOST_ROWS: usize = 200;

/// The points of all lines, with a row for each x at which some line has a point, or for every n-th x if there are
/// too many.
fn points(chart: &Chart) -> Table {
    let mut places: Vec<f64> = chart.lines.iter().flat_map(|line| line.points.iter().map(|(x, _)| *x)).collect();
    places.sort_by(f64::total_cmp);
    places.dedup();
    let columns = std::iter::once(chart.x.label.clone()).chain(chart.lines.iter().map(|line| line.name.clone()));
    let row = |place: &f64| {
        let of_line = |line: &super::Curve| {
            let found = line.points.binary_search_by(|(x, _)| x.total_cmp(place));
            found.map_or(String::new(), |at| figure(line.points[at].1))
        };
        std::iter::once(figure(*place)).chain(chart.lines.iter().map(of_line)).collect()
    };
    let mut caption = format!("{}: {}", chart.title, chart.y.label);
    let each = places.len().div_ceil(MOST_ROWS).max(1);
    if each > 1 {
        caption.push_str(&format!("; one of {each} places of {} is listed", places.len()));
    }
    Table { caption, columns: columns.collect(), rows: places.iter().step_by(each).map(row).collect() }
}

/// The events, and when they happened.
fn events(chart: &Chart, lanes: &[Lane], shades: &[(f64, f64, String)]) -> Table {
    let span = |(from, to): &(f64, f64)| {
        if from == to { figure(*from) } else { format!("{} to {}", figure(*from), figure(*to)) }
    };
    let of_lane = |lane: &Lane| {
        let mut times: Vec<String> = lane.spans.iter().take(MOST_ROWS).map(span).collect();
        if lane.spans.len() > MOST_ROWS {
            times.push(format!("and {} more", lane.spans.len() - MOST_ROWS));
        }
        vec![lane.name.clone(), lane.spans.len().to_string(), times.join("; ")]
    };
    let single = |name: &String, times: String| vec![name.clone(), "1".to_owned(), times];
    let marks = chart.marks.iter().map(|(at, name)| single(name, figure(*at)));
    let shades = shades.iter().map(|(from, to, name)| single(name, span(&(*from, *to))));
    Table {
        caption: format!("{}: what happened, at which {}", chart.title, chart.x.label),
        columns: ["what", "how often", "when"].map(str::to_owned).into(),
        rows: marks.chain(shades).chain(lanes.iter().map(of_lane)).collect(),
    }
}

fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            other => out.push(other),
        }
    }
    out
}
