use super::said::{missing, missing_in_text, numbers, of_csv, of_json};
use super::*;

#[test]
fn numbers_in_a_text_are_found_with_their_units() {
    let texts = |text: &str| numbers(text).into_iter().map(|number| number.text).collect::<Vec<_>>();
    let line = "READ 1,234 (mean 12.3 us, p99 4.56 ms), 24,690/s, 25 % of 1.00 KiB; 1,23 p50 e1";
    assert_eq!(texts(line), ["1,234", "12.3 us", "4.56 ms", "24,690", "25 %", "1.00 KiB", "1", "23"]);
}

#[test]
fn a_number_that_is_rounded_is_found_and_another_one_is_missing() {
    let mut all = Figures::default();
    all.add("READ", "service p50", 12_345.0, NANOS);
    all.counts("READ", [("requests", 1_234)]);
    all.text("run", "deviation", "at most 7 warehouses");
    assert_eq!(missing("12.3 us of 1,234, in 7", &all.0), Vec::<String>::new());
    assert_eq!(missing("12.5 us, 12.3 ms, 1,235, 8", &all.0), ["12.5 us", "12.3 ms", "1,235", "8"]);
    assert_eq!(missing_in_text("12.34 us and 5", "12.3 us"), ["5"]);
}

#[test]
fn files_have_the_figures_and_a_quantile_from_few_requests_has_no_value() {
    let mut run = crate::report::tests::known();
    run.figures = figures(&run);
    let table = crate::report::csv::csv([&run]);
    let json = serde_json::to_value(&run).expect("names are texts");
    assert_eq!(of_csv(&table), run.figures.iter().map(without_unit_of_rates).collect::<Vec<_>>());
    assert_eq!(of_json(&json).len(), run.figures.len());
    let value = |name: &str| run.figures.iter().find(|one| one.of == "READ" && one.name == name).map(|one| one.value);
    assert_eq!(value("service p50"), Some(None), "three requests have no median");
    assert_eq!(value("service greatest"), Some(Some(1_000_447.0)));
    assert_eq!(
        [value("retries"), value("rolled back"), value("failed")],
        [Some(Some(0.0)), Some(Some(0.0)), Some(Some(1.0))]
    );
}

/// A table has rates as numbers, whose unit no text names.
fn without_unit_of_rates(figure: &Figure) -> Figure {
    Figure { unit: if figure.unit == PER_SECOND { "" } else { figure.unit }, ..figure.clone() }
}

#[test]
fn a_text_has_no_number_that_the_figures_lack() {
    let run = crate::report::tests::known();
    let text = crate::report::text::text(&run);
    // The first two lines name the target and the settings.
    let told = text.lines().skip(2).collect::<Vec<_>>().join("\n");
    let told = told.replace("1 client", "client");
    assert_eq!(missing(&told, &figures(&run)), Vec::<String>::new(), "{told}");
}
