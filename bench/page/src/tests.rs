use super::*;

fn page() -> Page {
    let mut page = Page::new("A <title> & more");
    page.add(Block::Heading("Rows a second".to_owned()));
    page.add(Block::Code("larch bench rows run --target 'larch:db' </script>".to_owned()));
    page.add(Block::Chart(Chart {
        title: "Rows </script> a second".to_owned(),
        x: Axis::logarithmic("rows of a batch"),
        y: Axis::logarithmic("rows/s"),
        lines: vec![
            Curve { name: "larch".to_owned(), points: vec![(1.0, 200_000.0), (10.0, 900_000.0)] },
            Curve { name: "postgres".to_owned(), points: vec![(10.0, 100_000.0)] },
        ],
        marks: Vec::new(),
    }));
    page
}

#[test]
fn what_comes_from_a_result_is_no_markup() {
    let html = page().html();
    assert!(html.contains("<title>A &lt;title&gt; &amp; more</title>"));
    assert!(html.contains("&#39;larch:db&#39; &lt;/script&gt;"));
    assert_eq!(html.matches("</script>").count(), 3, "those of the page itself");
}

#[test]
fn a_page_needs_no_other_file() {
    let html = page().html();
    for word in ["src=", "@import", "url(", "fetch(", "XMLHttpRequest"] {
        assert!(!html.contains(word), "{word}");
    }
    assert!(!Page::new("no chart").html().contains("<script"), "a page without a chart has no script");
}

#[test]
fn the_points_of_a_chart_are_a_table_too() {
    let html = page().html();
    assert!(html.contains("<th scope=\"row\">1</th><td>200,000</td><td></td>"));
    assert!(html.contains("<th scope=\"row\">10</th><td>900,000</td><td>100,000</td>"));
}

#[test]
fn figures_have_four_digits_that_count() {
    let shown = [1_234_567.0, 1000.0, 999.96, 12.345, 1.0, 0.0, 0.001_234_56, -5.5, -12_345.6].map(figure);
    assert_eq!(
        shown,
        ["1,234,567", "1,000", "1000", "12.35", "1", "0", "0.001235", "-5.5", "-12,346"].map(str::to_owned)
    );
    assert_eq!(figure(f64::NAN), "-");
}
