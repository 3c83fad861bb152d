//! The page as text. Everything that comes from a result is escaped.

use super::{Block, Chart, Page, Table, figure};
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
    // In a script, `</script>` would end it: `<` is written as JSON can write any character.
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
         <meta name=\"color-scheme\" content=\"light dark\">\n<link rel=\"icon\" href=\"data:,\">\n\
         <title>{title}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<main>\n<h1>{title}</h1>\n{body}</main>\n{plot}\
         </body>\n</html>\n"
    )
}

fn blocks<'p>(all: &'p [Block], out: &mut String, charts: &mut Vec<&'p Chart>) {
    for block in all {
        match block {
            Block::Heading(text) => line(out, "h2", text),
            Block::Text(text) => line(out, "p", text),
            Block::Code(text) => {
                // A region that scrolls is reached by the keyboard.
                let text = escaped(text);
                push(out, format_args!("<pre tabindex=\"0\">{text}</pre>\n"));
            }
            Block::Table(shown) => table(shown, out),
            Block::Chart(chart) => {
                push(
                    out,
                    format_args!(
                        "<figure><figcaption>{}</figcaption>\n<div class=\"chart\" data-chart=\"{}\" aria-hidden=\"true\"></div>\n\
                         <details><summary>Points of the chart</summary>\n",
                        escaped(&chart.title),
                        charts.len()
                    ),
                );
                charts.push(chart);
                table(&points(chart), out);
                push(out, format_args!("</details></figure>\n"));
            }
            Block::Folded(summary, inner) => {
                push(out, format_args!("<details><summary>{}</summary>\n", escaped(summary)));
                blocks(inner, out, charts);
                push(out, format_args!("</details>\n"));
            }
        }
    }
}

fn line(out: &mut String, tag: &str, text: &str) {
    push(out, format_args!("<{tag}>{}</{tag}>\n", escaped(text)));
}

fn push(out: &mut String, text: std::fmt::Arguments<'_>) {
    out.write_fmt(text).expect("a string takes all that is written");
}

fn table(shown: &Table, out: &mut String) {
    let caption = escaped(&shown.caption);
    push(out, format_args!("<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"{caption}\"><table>"));
    push(out, format_args!("<caption>{caption}</caption>\n<thead><tr>"));
    for name in &shown.columns {
        push(out, format_args!("<th scope=\"col\">{}</th>", escaped(name)));
    }
    push(out, format_args!("</tr></thead>\n<tbody>\n"));
    for row in &shown.rows {
        push(out, format_args!("<tr>"));
        for (at, cell) in row.iter().enumerate() {
            let cell = escaped(cell);
            match at {
                0 => push(out, format_args!("<th scope=\"row\">{cell}</th>")),
                _ => push(out, format_args!("<td>{cell}</td>")),
            }
        }
        push(out, format_args!("</tr>\n"));
    }
    push(out, format_args!("</tbody></table></div>\n"));
}

/// The points of all lines, a row for each place on the axis.
fn points(chart: &Chart) -> Table {
    let mut places: Vec<f64> = chart.lines.iter().flat_map(|line| line.points.iter().map(|(x, _)| *x)).collect();
    places.sort_by(f64::total_cmp);
    places.dedup();
    let columns = std::iter::once(chart.x.label.clone()).chain(chart.lines.iter().map(|line| line.name.clone()));
    let row = |place: &f64| {
        let of_line = |line: &super::Line| {
            let found = line.points.binary_search_by(|(x, _)| x.total_cmp(place));
            found.map_or(String::new(), |at| figure(line.points[at].1))
        };
        std::iter::once(figure(*place)).chain(chart.lines.iter().map(of_line)).collect()
    };
    Table {
        caption: format!("{}: {}", chart.title, chart.y.label),
        columns: columns.collect(),
        rows: places.iter().map(row).collect(),
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
