use super::*;
use crate::{Axis, Block, Chart, Curve, Page};

fn page() -> String {
    let line = |name: &str, by: f64| Curve {
        name: name.to_owned(),
        points: (1..5).map(|at| (f64::from(at), f64::from(at) * by)).collect(),
    };
    let mut page = Page::new("Result");
    for (title, y) in [("first", Axis::linear("rows/s")), ("second </script>", Axis::logarithmic("us"))] {
        let lines = vec![line("larch", 1000.0), line("another", 3.0)];
        let x = Axis::logarithmic("rows of a batch");
        page.add(Block::Chart(Chart { title: title.to_owned(), x, y, lines, marks: Vec::new() }));
    }
    page.html()
}

#[test]
fn a_chart_of_a_page_is_a_picture_on_either_ground() {
    for (title, name) in [(None, "first"), (Some("second </script>"), "second &lt;/script&gt;")] {
        let light = svg(&page(), title, Background::Light).expect("it is there");
        let dark = svg(&page(), title, Background::Dark).expect("it is there");
        for part in [name, "larch", "another", "rows of a batch", "<polyline"] {
            assert!(light.contains(part) && dark.contains(part), "{part}: {light}");
        }
        assert!(light.to_lowercase().contains("#0072b2") && dark.to_lowercase().contains("#56b4e9"));
        assert!(light.starts_with("<svg") && light.trim_end().ends_with("</svg>"));
    }
}

#[test]
fn a_chart_that_is_not_there_is_named_with_those_that_are() {
    let error = svg(&page(), Some("third"), Background::Light).expect_err("there is none");
    assert_eq!(error.to_string(), "no chart is called `third`; there are: first; second </script>");
    assert!(matches!(svg("<html></html>", None, Background::Light), Err(PictureError::NoCharts)));
}

#[test]
fn a_chart_without_points_is_refused() {
    let mut page = Page::new("Result");
    page.add(Block::Chart(Chart { title: "empty".to_owned(), ..Chart::default() }));
    let error = svg(&page.html(), None, Background::Light).expect_err("nothing is there to draw");
    assert!(error.to_string().contains("it has no points"), "{error}");
}
