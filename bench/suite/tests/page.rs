//! Opens report pages in a browser, and checks what a person sees, hears from a screen reader and reaches by the
//! keyboard. The pages stay in the target directory, so that one can look at them.

#![allow(clippy::disallowed_types, clippy::disallowed_methods, reason = "a real browser reads real files")]

use harness::report::{Environment, Pair, Report, Run};
use harness::{Change, Counted, Interval, Length, Measure, Measured, Plan, Times};
use kit::Scratch;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// The script that examines the page in the browser. It is appended to a copy of the page.
const QUESTIONS: &str = r#"<script>
addEventListener("load", () => setTimeout(() => {
  document.querySelectorAll("details").forEach((one) => { one.open = true; });
  const all = (what) => [...document.querySelectorAll(what)];
  const heard = (what) => all(what).filter((one) => !one.closest('[aria-hidden="true"]'));
  const colours = (canvas) => {
    const pixels = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
    const seen = new Set();
    for (let at = 0; at < pixels.length; at += 4) if (pixels[at + 3] > 200) seen.add(pixels.slice(at, at + 3).join());
    return seen.size;
  };
  const timing = performance.timing;
  const answer = {
    width: innerWidth,
    overflow: document.documentElement.scrollWidth - innerWidth,
    dark: matchMedia("(prefers-color-scheme: dark)").matches,
    ground: getComputedStyle(document.body).backgroundColor,
    charts: all(".chart").length,
    canvases: all(".chart canvas").map(colours),
    hidden_charts: all('.chart[aria-hidden="true"]').length,
    requests: performance.getEntriesByType("resource").map((one) => one.name),
    refused: window.refused,
    errors: window.errors,
    tables_without_caption: heard("table").filter((one) => !one.caption || !one.caption.textContent).length,
    heads_without_scope: heard("th").filter((one) => !one.scope).length,
    wide_regions_out_of_reach: all(".scroll, pre")
      .filter((one) => one.scrollWidth > one.clientWidth && (one.tabIndex < 0 || (one.className && !one.ariaLabel))).length,
    captions_cut: all("caption span, figcaption")
      .filter((one) => { const { left, right } = one.getBoundingClientRect(); return right > innerWidth || left < 0; }).length,
    colours_by_chart: all(".chart").map((chart) => [...chart.querySelectorAll(".u-legend .u-series")].slice(1).map((one) => [
      one.querySelector(".u-label").textContent, getComputedStyle(one.querySelector(".u-marker")).borderTopColor])),
    names_of_summaries: new Set(all("summary").map((one) => one.textContent)).size,
    summaries: all("summary").length,
    landmarks: [all("main").length, all("h1").length, document.documentElement.lang, document.title.length > 0],
    focus: all("summary, [tabindex]").filter((one) => { one.focus(); return document.activeElement !== one; }).length,
    nodes: all("*").length,
    load_millis: timing.loadEventEnd - timing.navigationStart,
  };
  parent.postMessage(JSON.stringify(answer), "*");
}, 0));
</script>"#;

/// Shows the tested page in a frame, because a browser window is never as narrow as a phone.
const FRAME: &str = r#"<!doctype html><html style="color-scheme: light dark"><body style="margin: 0"><script>
addEventListener("message", (event) => {
  document.body.replaceChildren(Object.assign(document.createElement("pre"), { id: "answer", textContent: event.data }));
});
</script><iframe src="PAGE" width="WIDTH" height="900" style="border: 0"></iframe></body></html>"#;

/// Comes first in the page, so that it sees every error.
const LISTENERS: &str = r#"<script>
window.errors = []; window.refused = [];
addEventListener("error", (event) => window.errors.push(String(event.message)));
addEventListener("securitypolicyviolation", (event) => window.refused.push(event.blockedURI));
</script>"#;

/// Opens a page in a window of width `width`, and returns the answers to [`QUESTIONS`].
fn asked(name: &str, html: &str, width: u32, is_dark: bool) -> Value {
    let scratch =
        Scratch::new_in(Path::new(env!("CARGO_TARGET_TMPDIR")), "browser").expect("a test can make a directory");
    let page = scratch.join(format!("{name}.html"));
    let asking = html.replacen("<title>", &format!("{LISTENERS}<title>"), 1).replacen(
        "</body>",
        &format!("{QUESTIONS}</body>"),
        1,
    );
    std::fs::write(&page, asking).expect("a test can write a file");
    let frame = scratch.join("frame.html");
    let framed = FRAME.replace("PAGE", &format!("{name}.html")).replace("WIDTH", &width.to_string());
    std::fs::write(&frame, framed).expect("a test can write a file");
    let scheme = if is_dark { 0 } else { 1 };
    let output = Command::new("chromium")
        .args(["--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-first-run"])
        .args(["--disable-background-networking", "--virtual-time-budget=20000", "--enable-logging=stderr"])
        .arg(format!("--user-data-dir={}", scratch.join("profile").display()))
        .arg("--window-size=1400,1000")
        .arg(format!("--blink-settings=preferredColorScheme={scheme}"))
        .arg("--dump-dom")
        .arg(format!("file://{}", frame.display()))
        .output()
        .expect("chromium starts; on Debian: sudo apt-get install chromium, or cargo x test, which installs it");
    let (dom, log) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    let said: Vec<&str> = log.lines().filter(|line| line.contains(":CONSOLE")).collect();
    assert_eq!(said, Vec::<&str>::new(), "the browser's console");
    let answer = dom.split_once("<pre id=\"answer\">").and_then(|(_, rest)| rest.split_once("</pre>"));
    let answer = answer.unwrap_or_else(|| panic!("the page did not answer: {log}")).0;
    serde_json::from_str(&answer.replace("&amp;", "&").replace("&lt;", "<").replace("&gt;", ">")).expect("it is JSON")
}

/// Checks what must be true of every page.
#[track_caller]
fn check(answer: &Value, charts: usize) {
    assert_eq!(answer["errors"], serde_json::json!([]), "{answer}");
    assert_eq!(answer["requests"], serde_json::json!([]), "it asks for nothing: {answer}");
    assert_eq!(answer["refused"], serde_json::json!([]), "{answer}");
    assert_eq!(answer["charts"], charts, "{answer}");
    assert_eq!(answer["hidden_charts"], charts, "a canvas says nothing to a screen reader; the table beside it does");
    let canvases = answer["canvases"].as_array().expect("a list");
    assert!(canvases.len() == charts && canvases.iter().all(|seen| seen.as_u64() > Some(2)), "all are drawn: {answer}");
    let each = ["tables_without_caption", "heads_without_scope", "wide_regions_out_of_reach", "focus", "captions_cut"];
    for none in each {
        assert_eq!(answer[none], 0, "{none}: {answer}");
    }
    assert_eq!(answer["summaries"], answer["names_of_summaries"], "each is told from the others by its text");
    assert_eq!(answer["landmarks"], serde_json::json!([1, 1, "en", true]));
    assert!(answer["overflow"].as_i64() <= Some(0), "nothing is wider than the window: {answer}");
}

fn times(nanos: impl IntoIterator<Item = u64>) -> Times {
    let mut histogram = hdrhistogram::Histogram::new(3).expect("three digits are allowed");
    nanos.into_iter().for_each(|nanos| histogram.record(nanos).expect("it grows"));
    Times::from_hdr(&histogram)
}

/// A result of `minutes` with a warm-up, reads and updates, flushes and an occasional stall.
fn result(name: &str, minutes: u64, began_unix_millis: u64) -> Report {
    const SECOND: u64 = 1_000_000_000;
    let warming = 5;
    // A Lehmer generator, so that the page is the same each time.
    let mut state = 48_271 + began_unix_millis % 1_000_003;
    let mut random = move |most: u64| {
        state = state * 48_271 % 2_147_483_647;
        state % most
    };
    let mut counts = [0_u64; 6];
    let names = ["page reads", "cache hits", "bytes read", "bytes written", "flushes", "stops at level 0"];
    let mut interval = |number: u64| {
        let is_warming = number < warming;
        let from = if is_warming { number } else { number - warming } * SECOND;
        let mut kind = |name: &str, least: u64| {
            let oks = 3_000 + random(2_000);
            let of_one = |_| least + random(least) + if random(100) == 0 { random(50) * least } else { 0 };
            Measure { name: name.to_owned(), service: times((0..oks / 20).map(of_one)), oks, ..Measure::default() }
        };
        let kinds = vec![kind("READ", 20_000), kind("UPDATE", 8_000)];
        let grown = [4_000, 90_000, 4_000 << 14, 9 << 20, u64::from(random(7) == 0), u64::from(random(150) == 0)];
        counts.iter_mut().zip(grown).for_each(|(count, more)| *count += more);
        let counters = names.iter().map(|name| (*name).to_owned()).zip(counts).collect::<BTreeMap<_, _>>();
        Interval {
            warming: is_warming,
            from_nanos: from,
            to_nanos: from + SECOND,
            operations: kinds.iter().map(|kind| kind.oks).sum(),
            kinds,
            counted: Some(Counted { at_nanos: from + SECOND, counters }),
            ..Interval::default()
        }
    };
    let intervals: Vec<Interval> = (0..warming + minutes * 60).map(&mut interval).collect();
    let window: Vec<&Interval> = intervals.iter().filter(|interval| !interval.warming).collect();
    let kinds = (0..2).map(|number| Measure::sum(window.iter().map(|interval| &interval.kinds[number]))).collect();
    let operations = window.iter().map(|interval| interval.operations).sum();
    let change = |(name, after): (&&str, u64)| Change { name: (*name).to_owned(), before: 0, after, gauge: false };
    let counters = names.iter().zip(counts).map(change).collect();
    let nanos = minutes * 60 * SECOND;
    let measured = Measured { began_unix_millis, nanos, operations, kinds, intervals, counters, ..Measured::default() };
    let plan = Plan {
        warmup: Duration::from_secs(warming),
        length: Length::Time(Duration::from_secs(minutes * 60)),
        ..Plan::default()
    };
    let mut run = Run::new(name, "larch:db?cache=64MiB", &plan, measured);
    run.settings = vec![Pair::new("engine", "Larch"), Pair::new("cache", "64 MiB")];
    let mut report = Report::new(Environment::gather("0.2.0", Path::new(".")));
    report.environment.command =
        ["larch", "bench", "ycsb", "run", "-P", "a", "--target", "larch:db"].map(str::to_owned).into();
    report.runs = vec![run];
    report
}

/// The page of results, which is also written to a file that stays.
fn page(name: &str, reports: &[(String, Report)]) -> String {
    let html = suite::report_page::page(reports, Some(0.04)).html();
    let kept: PathBuf = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}.html"));
    std::fs::write(&kept, &html).expect("a test can write a file");
    html
}

#[test]
fn half_an_hour_is_a_page_below_two_megabytes() {
    let html = page("half-an-hour", &[("a".to_owned(), result("workload a", 30, 1_700_000_000_000))]);
    assert!(html.len() < 2_000_000, "{} bytes", html.len());
    let answer = asked("half-an-hour", &html, 1280, false);
    check(&answer, html.matches("class=\"chart\"").count());
    assert!(answer["nodes"].as_u64() < Some(40_000), "{answer}");
    // The time to load and draw the page depends on the machine and on the other programs that run on it.
    eprintln!("half an hour: {} bytes, loaded and drawn in {} ms", html.len(), answer["load_millis"]);
}

#[test]
fn several_results_are_read_on_a_phone_in_the_dark() {
    let mut other = result("workload a", 1, 1_700_000_020_000);
    other.environment.machine.processor = "Another Processor of a rather long name, @ 2.00 GHz".to_owned();
    other.runs[0].settings[1].value = "1 GiB".to_owned();
    let results = [("one".to_owned(), result("workload a", 1, 1_700_000_000_000)), ("another".to_owned(), other)];
    let html = page("several", &results);
    let charts = html.matches("class=\"chart\"").count();
    let mut grounds = Vec::new();
    for (width, is_dark) in [(360, true), (360, false), (1280, true)] {
        let answer = asked("several", &html, width, is_dark);
        assert_eq!((answer["width"].as_u64(), answer["dark"].as_bool()), (Some(width.into()), Some(is_dark)));
        check(&answer, charts);
        grounds.push(answer["ground"].clone());
    }
    assert_eq!(grounds[0], grounds[2]);
    assert_ne!(grounds[0], grounds[1], "the dark is darker");
}

#[test]
fn nine_runs_have_nine_colours_which_are_the_same_in_every_chart() {
    let mut report = result("load a", 1, 1_700_000_000_000);
    report.runs[0].plan.loading = true;
    let names = ["a", "b", "c", "f", "d", "e", "c in 512 MiB", "e with scans of a thousand rows"];
    for (number, name) in (1..).zip(names) {
        report.runs.extend(result(&format!("workload {name}"), 1, 1_700_000_000_000 + number * 90_000).runs);
    }
    report.runs[1].warnings.push("a warning of some length, which takes more than one line on a phone".to_owned());
    let html = page("nine-runs", &[("this run".to_owned(), report)]);
    let charts = html.matches("class=\"chart\"").count();
    for (width, is_dark) in [(420, false), (1280, true)] {
        let answer = asked("nine-runs", &html, width, is_dark);
        check(&answer, charts);
        let mut colours: BTreeMap<&str, &str> = BTreeMap::new();
        for line in
            answer["colours_by_chart"].as_array().into_iter().flatten().flat_map(|lines| lines.as_array()).flatten()
        {
            let (name, colour) = (line[0].as_str().expect("a name"), line[1].as_str().expect("a colour"));
            assert_eq!(*colours.entry(name).or_insert(colour), colour, "{name} is the same in every chart: {answer}");
        }
        let different: std::collections::BTreeSet<&str> = colours.values().copied().collect();
        assert_eq!((colours.len(), different.len()), (9, 9), "{colours:?}");
    }
}
