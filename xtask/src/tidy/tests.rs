use super::*;
use std::fs;

/// Applies `rule` to the tree that is written in `script`. Compares the findings with `expected`, which has one
/// finding on each line. In a script, a line `== path` begins each file. A `~` stands for nothing: it cuts words
/// that a search of this repository should not find here. `ORDER` stands for the order of the crates.
#[track_caller]
fn check(rule: Rule, script: &str, expected: &str) {
    let script = script.replace('~', "");
    let files = script.split("== ").skip(1).map(|file| file.split_once('\n').expect("a path stands on its own line"));
    let tree = Tree::from_texts(files.map(|(path, text)| (path, text.to_owned())));
    let mut findings = rule(&tree);
    findings.sort();
    let found: Vec<String> = findings.iter().map(Finding::to_string).collect();
    let expected = expected.replace('~', "").replace("ORDER", &dependencies::order());
    assert_eq!(found, expected.lines().collect::<Vec<_>>());
}

#[test]
fn a_file_without_a_mod_declaration_is_dead() {
    check(
        modules::files_are_reachable,
        r##"
== engine/a/Cargo.toml
[package]
== engine/a/src/lib.rs
mod alive;
// mod in_a_comment;
const TEXT: &str = "mod in_a_string;";
== engine/a/src/alive.rs
== engine/a/src/in_a_comment.rs
== engine/a/src/in_a_string.rs
== engine/a/src/alive/orphan.rs
"##,
        "\
engine/a/src/alive/orphan.rs:1: no `mod` declaration leads to this file: declare it or delete it
engine/a/src/in_a_comment.rs:1: no `mod` declaration leads to this file: declare it or delete it
engine/a/src/in_a_string.rs:1: no `mod` declaration leads to this file: declare it or delete it",
    );
}

#[test]
fn a_file_is_reached_by_every_kind_of_declaration() {
    check(
        modules::files_are_reachable,
        r##"
== cli/Cargo.toml
[package]
name = "cli"
[[bin]]
path = "src/odd.rs"
== cli/src/odd.rs
== cli/src/bin/second.rs
== cli/src/main.rs
pub(crate) mod plain;
mod folder;
#[path = "elsewhere/named.rs"]
#[cfg(test)]
mod renamed;
mod outer { fn f<'a>(x: &'a str) -> char { '{' } mod inner; }
mod after;
include!("included.rs");
== cli/src/plain.rs
//! With a child.
#[cfg(test)]
mod tests;
== cli/src/plain/tests.rs
== cli/src/folder/mod.rs
mod child;
== cli/src/folder/child.rs
== cli/src/elsewhere/named.rs
== cli/src/outer/inner.rs
== cli/src/after.rs
== cli/src/included.rs
"##,
        "",
    );
}

#[test]
fn a_file_that_does_not_say_what_it_is_is_found() {
    check(
        sources::files_say_what_they_are,
        "== engine/a/src/lib.rs\nmod b;\n== engine/a/src/b.rs\n\n//! Late.\n== engine/a/src/build.rs\nmod c;\n",
        "\
engine/a/src/b.rs:1: the first line is not `//!`: say what the file is and what it does not know
engine/a/src/build.rs:1: the first line is not `//!`: say what the file is and what it does not know
engine/a/src/lib.rs:1: the first line is not `//!`: say what the file is and what it does not know",
    );
}

#[test]
fn tests_benches_and_build_scripts_need_no_first_line() {
    check(
        sources::files_say_what_they_are,
        "\
== engine/a/src/lib.rs
//! A crate.
== engine/a/src/b/tests.rs
use super::*;
== engine/a/tests/whole.rs
use a::*;
== engine/a/benches/fast.rs
fn main() {}
== fuzz/fuzz_targets/page.rs
#![no_main]
== engine/a/Cargo.toml
[package]
== engine/a/build.rs
fn main() {}
",
        "",
    );
}

const PACKAGES: &str = r#"
== Cargo.toml
[workspace]
members = ["engine/*"]

[workspace.dependencies]
pages = { path = "engine/pages", package = "larch-pages" }
larch = { path = "engine/larch" }
== engine/pages/Cargo.toml
[package]
name = "larch-pages"
== engine/larch/Cargo.toml
[package]
name = "larch"
"#;

#[test]
fn a_dependency_that_points_up_is_found_in_every_section() {
    let sst = r#"
== engine/sst/Cargo.toml
[package]
name = "larch-sst"

[dependencies]
pages.workspace = true
larch.workspace = true # up

[dev-dependencies]
database = { path = "../larch", package = "larch" }

[target.'cfg(unix)'.dependencies.larch]
path = "../larch"
== engine/drawer/Cargo.toml
[package]
name = "drawer"
"#;
    check(
        dependencies::point_downward,
        &format!("{PACKAGES}{sst}"),
        "\
engine/drawer/Cargo.toml:1: `engine/drawer` has no place in the order ORDER
engine/sst/Cargo.toml:6: `engine/sst` may not depend on `engine/larch`: the order is ORDER
engine/sst/Cargo.toml:9: `engine/sst` may not depend on `engine/larch`: the order is ORDER
engine/sst/Cargo.toml:11: `engine/sst` may not depend on `engine/larch`: the order is ORDER",
    );
}

#[test]
fn a_lock_file_has_what_the_manifests_have() {
    let manifests = r#"
== Cargo.toml
[workspace]
members = ["engine/*"]

[workspace.package]
version = "0.2.0"

[workspace.dependencies]
pages = { path = "engine/pages", package = "larch-pages" }
serde = "1.0.200"
== engine/pages/Cargo.toml
[package]
name = "larch-pages"
version.workspace = true

[dependencies]
serde = { workspace = true, optional = true }
bytes = "1"
== engine/sst/Cargo.toml
[package]
name = "larch-sst"
version = "0.3.0"

[dependencies]
pages.workspace = true
serde.workspace = true

[dev-dependencies]
rand = "0.10.3"
== engine/alone/Cargo.toml
[package]
name = "larch-alone"
version = "0.1.0"

[workspace]

[dependencies]
pages = { path = "../pages", package = "larch-pages" }

[target.'cfg(unix)'.dev-dependencies]
sst = { path = "../sst", package = "larch-sst" }
"#;
    let lock = |packages: &[(&str, &str, &[&str])]| {
        let package = |(name, version, dependencies): &(&str, &str, &[&str])| {
            let source = if name.starts_with("larch") { "" } else { "source = \"registry\"\n" };
            let dependencies: String = dependencies.iter().map(|name| format!(" \"{name}\",\n")).collect();
            format!(
                "~[[package]]\nname = \"{name}\"\nversion = \"{version}\"\n{source}dependencies = [\n{dependencies}]\n"
            )
        };
        packages.iter().map(package).collect::<String>()
    };
    let pages = ("larch-pages", "0.2.0", &["bytes", "serde 1.0.300"][..]);
    let sst = ("larch-sst", "0.3.0", &["larch-pages", "rand", "serde 1.0.300"][..]);
    let fetched =
        [("bytes", "1.12.2", &[][..]), ("rand", "0.10.4", &[]), ("serde", "0.9.0", &[]), ("serde", "1.0.300", &[])];
    let right = format!(
        "{manifests}== Cargo.lock\n{}== engine/alone/Cargo.lock\n{}",
        lock(&[&[pages, sst][..], &fetched].concat()),
        // In the workspace of `engine/alone`, only the tests of its own package are built, and no optional
        // dependency is asked for.
        lock(&[
            ("larch-alone", "0.1.0", &["larch-pages", "larch-sst"]),
            ("larch-pages", "0.2.0", &["bytes"]),
            ("larch-sst", "0.3.0", &["larch-pages", "serde"]),
            fetched[0],
            fetched[3],
        ])
    );
    check(locks::locks_fit_the_manifests, &right, "");
    let stale = format!(
        "{manifests}== Cargo.lock\n{}== engine/alone/Cargo.lock\n{}",
        lock(&[
            ("larch-pages", "0.1.0", &["serde"]),
            ("larch-sst", "0.3.0", &["bytes", "larch-pages", "rand", "serde"]),
            ("rand", "0.9.4", &[]),
            ("serde", "1.0.100", &[]),
        ]),
        lock(&[("larch-alone", "0.1.0", &["larch-pages"]), ("larch-gone", "0.1.0", &[])]),
    );
    check(
        locks::locks_fit_the_manifests,
        &stale,
        "\
Cargo.lock:2: `larch-pages` depends on `bytes`, and here it does not: run `cargo metadata --manifest-path Cargo.toml`
Cargo.lock:2: `larch-pages` has version 0.2.0, and here 0.1.0: run `cargo metadata --manifest-path Cargo.toml`
Cargo.lock:8: `larch-sst` asks for `rand` 0.10.3, and here is no such version: run `cargo metadata --manifest-path Cargo.toml`
Cargo.lock:8: `larch-sst` asks for `serde` 1.0.200, and here is no such version: run `cargo metadata --manifest-path Cargo.toml`
Cargo.lock:8: `larch-sst` does not depend on `bytes`, and here it does: run `cargo metadata --manifest-path Cargo.toml`
engine/alone/Cargo.lock:2: `larch-alone` depends on `larch-sst`, and here it does not: run `cargo metadata --manifest-path engine/alone/Cargo.toml`
engine/alone/Cargo.lock:8: `larch-gone` is no package of the tree: run `cargo metadata --manifest-path engine/alone/Cargo.toml`",
    );
}

#[test]
fn nothing_but_the_command_line_depends_on_a_benchmark() {
    let benchmarks = r#"
== bench/kv/Cargo.toml
[package]
name = "larch-bench-kv"

[dependencies]
larch.workspace = true
== bench/unknown/Cargo.toml
[package]
name = "larch-bench-unknown"
== engine/larch/Cargo.toml
[package]
name = "larch"

[dev-dependencies]
larch-bench-kv = { path = "../../bench/kv" }
== cli/Cargo.toml
[package]
name = "larch-cli"

[dependencies]
larch-bench-kv = { path = "../bench/kv" }
"#;
    check(
        dependencies::point_downward,
        &format!("{PACKAGES}{benchmarks}"),
        "\
bench/unknown/Cargo.toml:1: `bench/unknown` has no place in the order ORDER
engine/larch/Cargo.toml:5: `engine/larch` may not depend on `bench/kv`: the order is ORDER",
    );
}

#[test]
fn a_dependency_that_points_down_or_outside_is_fine() {
    let cli = r#"
== cli/Cargo.toml
[package]
name = "larch-cli"

[[bin]]
name = "larch"

[dependencies]
larch.workspace = true
clap = { version = "4", features = ["derive"] }

[dev-dependencies]
pages.workspace = true
== xtask/Cargo.toml
[package]
name = "xtask"

[dependencies]
larch.workspace = true
"#;
    check(dependencies::point_downward, &format!("{PACKAGES}{cli}"), "");
}

#[test]
fn leftovers_are_found() {
    check(
        sources::no_leftovers,
        "\
== cli/src/main.rs
fn f() { to~do!() }
fn g() { d~bg!(1); un~implemented! { } }
// FIX~ME: later
/* XX~X */
#[ig~nore]
#[cfg_attr(miri, ig~nore)]
fn slow() { std::thread::sl~eep(time); }
",
        "\
cli/src/main.rs:1: `to~do!` is left over
cli/src/main.rs:2: `d~bg!` is left over
cli/src/main.rs:2: `unim~plemented!` is left over
cli/src/main.rs:3: FIX~ME is left over: do it, or write an issue
cli/src/main.rs:4: XX~X is left over: do it, or write an issue
cli/src/main.rs:5: an ignored test says why: `#[ig~nore = \"…\"]`
cli/src/main.rs:6: an ignored test says why: `#[ig~nore = \"…\"]`
cli/src/main.rs:7: sleeping is for `os::Clock` only; wait for what should happen",
    );
}

#[test]
fn words_that_only_resemble_leftovers_are_not_found() {
    check(
        sources::no_leftovers,
        r##"
== cli/src/main.rs
const TEXT: &str = "to~do!() d~bg!() thread::sl~eep"; // to~do!() in words
const RAW: &str = r#"un~implemented!() " d~bg!()"#;
fn f<'a>(quote: char) { let ignore = '"'; my_to~do!(ignore, ignore) }
#[ig~nore = "needs 10 GB of disk"]
#[cfg_attr(miri, ig~nore = "maps files")]
== engine/os/src/real.rs
fn sl~eep(time: Duration) { std::thread::sl~eep(time); }
"##,
        "",
    );
}

#[test]
fn atomics_around_os_are_found() {
    check(
        sources::atomics_come_from_os,
        "\
== engine/pages/src/cache.rs
use std::sync::atomic::AtomicU64;
use std::sync::{
    Arc,
    atomic::Ordering,
};
fn f() -> core::sync::atomic::AtomicBool {}
",
        "\
engine/pages/src/cache.rs:1: take atomics from `os::sync::atomic`
engine/pages/src/cache.rs:2: take atomics from `os::sync::atomic`
engine/pages/src/cache.rs:6: take atomics from `os::sync::atomic`",
    );
}

#[test]
fn atomics_from_os_are_fine() {
    check(
        sources::atomics_come_from_os,
        "\
== engine/pages/src/cache.rs
//! Not std::sync::atomic.
use os::sync::atomic::AtomicU64;
use std::sync::{Arc, Weak};
use std::sync::Arc as atomic;
== engine/os/src/sync.rs
pub use std::sync::atomic;
",
        "",
    );
}

#[test]
fn a_link_that_leads_nowhere_is_found() {
    check(
        links::links_lead_to_files,
        "\
== docs/a.md
[gone](gone.md) and ![picture](../pictures/tree.png)
[out](../../else.md), [root](/docs/a.md)

[named]: missing.md#part
",
        "\
docs/a.md:1: the link `../pictures/tree.png` leads nowhere
docs/a.md:1: the link `gone.md` leads nowhere
docs/a.md:2: the link `../../else.md` leads nowhere
docs/a.md:2: the link `/docs/a.md` leads nowhere
docs/a.md:4: the link `missing.md#part` leads nowhere",
    );
    check(
        links::links_lead_to_files,
        "== README.md\n<source srcset=\"docs/dark.svg\">\n<img alt=\"a tree\" src=\"docs/light.svg\">\n== docs/light.svg\n",
        "README.md:1: the link `docs/dark.svg` leads nowhere",
    );
}

#[test]
fn a_page_of_the_guide_without_a_link_in_the_readme_is_found() {
    check(
        links::guide_is_linked,
        "== README.md\n[one](docs/guide/one.md#part)\n== docs/guide/one.md\n[two](two.md)\n== docs/guide/two.md\n",
        "docs/guide/two.md:1: README.md has no link to this page",
    );
}

#[test]
fn a_link_that_leads_somewhere_is_fine() {
    check(
        links::links_lead_to_files,
        "\
== README.md
[a](docs/a.md#part), [folder](docs/), [web](https://example.com/x.md), [here](#part), `[code](gone.md)`
```
[code](gone.md)
```
== docs/a.md
[back](../README.md \"title\"), [itself](<a.md>)
",
        "",
    );
}

const HOUSE: &str = "== engine/sst/src/read/cursor.rs\n== docs/format/sst.md\n== docs/format/wal.md\n== .ci/run\n";

#[test]
fn architecture_naming_what_does_not_exist_is_found() {
    check(
        links::architecture_names_what_exists,
        &format!("{HOUSE}== ARCHITECTURE.md\n`engine/sst/src/gone.rs`, `sst/write/`\n`docs/format/{{sst,gone}}.md`\n"),
        "\
ARCHITECTURE.md:1: `engine/sst/src/gone.rs` does not exist
ARCHITECTURE.md:1: `sst/write/` does not exist
ARCHITECTURE.md:2: `docs/format/gone.md` does not exist",
    );
}

#[test]
fn architecture_naming_what_exists_is_fine() {
    let text = "`engine/sst/src/read/`, `sst/read/cursor.rs`, `cursor.rs`, `docs/format/{sst,wal}.md`, `.ci/run`, \
                `get/put`, `sst::read`, `and/or`, `engine/*/src`";
    check(links::architecture_names_what_exists, &format!("{HOUSE}== ARCHITECTURE.md\n{text}\n"), "");
}

#[test]
fn a_path_of_a_machine_is_found() {
    check(
        sources::no_paths_of_a_machine,
        "== docs/a.md\nrun it in /wo~rk/main\n\n\"/ro~ot/x\" and /tmp/~bash_1\n",
        "\
docs/a.md:1: `/wo~rk/` is a path of one machine
docs/a.md:3: `/ro~ot/` is a path of one machine",
    );
}

#[test]
fn a_path_inside_the_repository_or_of_the_build_server_is_fine() {
    check(
        sources::no_paths_of_a_machine,
        "== docs/a.md\nlook in frame/wo~rk/ or /tmp/larch\n== .ci/run\nexport HOME=/ro~ot/\n",
        "",
    );
}

#[test]
fn a_decision_without_a_number_of_its_own_is_found() {
    check(
        decisions::names_are_numbered,
        "\
== docs/decisions/0001-first.md
== docs/decisions/0001-second.md
== docs/decisions/12-short.md
== docs/decisions/0003-Upper.md
== docs/decisions/notes.md
",
        "\
docs/decisions/0001-second.md:1: number 0001 is taken by docs/decisions/0001-first.md
docs/decisions/0003-Upper.md:1: a decision note is named NNNN-title.md, in lower case
docs/decisions/12-short.md:1: a decision note is named NNNN-title.md, in lower case
docs/decisions/notes.md:1: a decision note is named NNNN-title.md, in lower case",
    );
}

#[test]
fn numbered_decisions_and_their_readme_are_fine() {
    check(
        decisions::names_are_numbered,
        "== docs/decisions/README.md\n== docs/decisions/0001-first.md\n== docs/decisions/0002-first-again.md\n",
        "",
    );
}

#[test]
fn a_tree_on_disk_is_read_without_what_git_ignores() {
    let root = std::env::temp_dir().join(format!("larch-tidy-{}", std::process::id()));
    for folder in ["a/b", "target/debug", "a/corpus", "out/x", "a/out", "a/target"] {
        fs::create_dir_all(root.join(folder)).unwrap();
    }
    for (path, bytes) in [
        (".gitignore", b"/out\n/target\n".as_slice()),
        ("a/.gitignore", b"corpus/\n"),
        ("a/b/text.md", b"words"),
        ("a/b/golden.sst", b"\xff\xfe"),
        ("a/corpus/1", b"ignored"),
        ("a/out/kept", b""),
        ("a/target/kept", b""),
        ("out/x/ignored", b""),
        ("target/debug/ignored", b""),
    ] {
        fs::write(root.join(path), bytes).unwrap();
    }
    let tree = Tree::read(&root);
    fs::remove_dir_all(&root).unwrap();
    let tree = tree.unwrap();
    assert_eq!(
        tree.paths().collect::<Vec<_>>(),
        [".gitignore", "a/.gitignore", "a/b/golden.sst", "a/b/text.md", "a/out/kept", "a/target/kept"]
    );
    assert_eq!(tree.text("a/b/text.md"), Some("words"));
    assert_eq!(tree.text("a/b/golden.sst"), None, "bytes that are not text have a name only");
}

#[test]
fn source_parts_keep_their_offsets() {
    let text = "let é = \"ü // no\"; // ö\nlet c = '\\''; /* a /* b */ c */ let r = br##\"x\"# \"##;\nfn f<'a>() {}\n";
    let source = source::Source::new(text);
    assert_eq!(source.code.len(), text.len());
    assert_eq!(source.comments.len(), text.len());
    assert_eq!(source.comments.split_whitespace().collect::<String>(), "//ö/*a/*b*/c*/");
    assert_eq!(source.code.split_whitespace().collect::<String>(), "leté=;letc=;letr=b;fnf<'a>(){}");
    assert_eq!(source.line(text.find("fn").unwrap()), 3);
}

/// Pages of results, one of which is wrong.
const RESULTS: &str = "\
== docs/benchmarks/peers.md
# Peers

Measured at commit 606d15d: engine/larch engine/os
== docs/benchmarks/ycsb.md
# How to run it
== docs/benchmarks/cold.md
# Cold
== docs/benchmarks/odd.md
Measured at commit today: engine/larch
Measured at commit 573ae97: engine/gone
== engine/larch/src/lib.rs
== engine/os/src/lib.rs
";

#[test]
fn results_say_which_commit_they_are_of() {
    check(
        measured::pages_name_their_commit,
        RESULTS,
        "\
docs/benchmarks/cold.md:1: results say what they are of: a line `Measured at commit 606d15d: engine/larch …`
docs/benchmarks/odd.md:1: this line is `Measured at commit `, seven or more digits of it, a colon, and folders
docs/benchmarks/odd.md:2: there is no folder `engine/gone`",
    );
}

#[test]
fn results_are_old_once_more_than_a_few_commits_changed_what_they_measured() {
    let old = |changes: &dyn Fn(&str, &[&str]) -> Option<u64>| {
        let findings = |tree: &Tree| measured::old_results(tree, changes);
        let files = RESULTS.split("== ").skip(1).map(|file| file.split_once('\n').expect("a path"));
        let tree = Tree::from_texts(files.map(|(path, text)| (path, text.to_owned())));
        findings(&tree).iter().map(Finding::to_string).collect::<Vec<_>>()
    };
    let told = ["docs/benchmarks/peers.md:3: 6 commits have changed what was measured at 606d15d: measure it again"];
    let of_peers = |commit: &str, folders: &[&str]| {
        let is_of_peers = commit == "606d15d" && folders == ["engine/larch", "engine/os"];
        Some(if is_of_peers { 6 } else { 5 })
    };
    assert_eq!(old(&of_peers), told);
    // Without git, or if git's history does not have the commit, the rule reports nothing.
    assert_eq!(old(&|_, _| None), Vec::<String>::new());
    let nowhere = std::env::temp_dir();
    assert_eq!(measured::changes_since(&nowhere, "0000000", &["crates"]), None);
}

#[test]
fn files_that_import_each_other_are_found_with_the_way_around() {
    check(
        circles::no_file_imports_in_a_circle,
        r##"
== engine/larch/Cargo.toml
[package]
== engine/larch/src/lib.rs
mod a;
mod b;
mod c;
== engine/larch/src/a.rs
use crate::b::{self, B};
pub struct A(B);
pub fn f() -> u32 { b::g() }
== engine/larch/src/b.rs
pub mod deep;
pub use deep::B;
== engine/larch/src/b/deep.rs
use super::super::c::C;
pub struct B(C);
== engine/larch/src/c.rs
pub struct C;
impl C { fn a(&self) -> Option<Box<crate::a::A>> { None } }
"##,
        "\
engine/larch/src/a:1: files or folders import each other in a circle: engine/larch/src/a -> engine/larch/src/b -> \
engine/larch/src/c -> engine/larch/src/a
engine/larch/src/a.rs:1: files import each other in a circle: engine/larch/src/a.rs -> engine/larch/src/b/deep.rs -> \
engine/larch/src/c.rs -> engine/larch/src/a.rs",
    );
}

#[test]
fn folders_do_not_import_each_other() {
    check(
        circles::no_file_imports_in_a_circle,
        r##"
== engine/rows/Cargo.toml
[package]
name = "rows"
== engine/rows/src/main.rs
mod a;
mod b;
pub struct Shared;
== engine/rows/src/a.rs
pub mod deep;
pub mod other;
== engine/rows/src/a/deep.rs
use crate::b::B;
use crate::Shared;
pub struct A(B, Shared);
== engine/rows/src/a/other.rs
pub struct Other;
== engine/rows/src/b.rs
use crate::a::other::Other;
pub struct B(Other);
"##,
        "engine/rows/src/a:1: files or folders import each other in a circle: engine/rows/src/a -> engine/rows/src/b -> engine/rows/src/a",
    );
}

#[test]
fn imports_go_from_higher_floors_to_lower_ones() {
    check(
        floors::imports_go_down,
        r##"
== docs/floors.md
## engine/larch

| floor | rooms | what they are |
|---|---|---|
| 2 | `top`, `gone` | what is above |
| 1 | `ground`, `beside` | what is below |
== engine/larch/src/lib.rs
mod top;
mod ground;
mod beside;
mod new;
use top::Top;
== engine/larch/src/top.rs
use crate::ground::Ground;
pub struct Top(Ground);
== engine/larch/src/ground.rs
pub mod deep;
pub struct Ground;
== engine/larch/src/ground/deep.rs
pub struct Deep(super::Ground, crate::top::Top);
== engine/larch/src/beside.rs
use crate::ground::Ground;
pub struct Beside(Ground);
== engine/larch/src/new.rs
pub struct New;
"##,
        "\
docs/floors.md:1: `engine/larch` has no `gone`
docs/floors.md:1: `new` of `engine/larch` has no floor
engine/larch/src/beside.rs:1: it imports Ground of engine/larch/src/ground.rs, which is not on a lower floor: see docs/floors.md
engine/larch/src/ground/deep.rs:1: it imports Top of engine/larch/src/top.rs, which is not on a lower floor: see docs/floors.md",
    );
}

#[test]
fn names_that_are_handed_on_and_tests_make_no_circle() {
    check(
        circles::no_file_imports_in_a_circle,
        r##"
== engine/larch/Cargo.toml
[package]
== engine/larch/src/lib.rs
pub use a::A;
mod a;
pub(crate) mod read;
== engine/larch/src/a.rs
use crate::read::Row;
pub struct A(Row);
== engine/larch/src/read.rs
mod row;
mod value;
pub use row::Row;
pub use value::Value;
== engine/larch/src/read/row.rs
use super::Value;
pub struct Row(Value);
== engine/larch/src/view/value.rs
pub struct Value;
#[cfg(test)]
mod tests {
    use super::super::Row;
    use crate::A;
    fn f(_: Row, _: A) {}
}
== engine/larch/src/read/value/tests.rs
use crate::A;
"##,
        "",
    );
}

#[test]
fn a_fault_names_a_test_that_exists() {
    check(
        faults::faults_have_their_tests,
        r##"
== docs/faults.md
| fault | test |
|---|---|
| a row was lost | `a/tests.rs::no_row_is_lost` |
| a row came twice | `a/tests.rs::rows_come_once`, `b/tests.rs::any` |
| a row was wrong | none |
== a/tests.rs
fn no_row_is_lost() {}
"##,
        "\
docs/faults.md:4: a/tests.rs has no function rows_come_once
docs/faults.md:4: there is no file b/tests.rs
docs/faults.md:5: a fault without the test that finds it now",
    );
}

#[test]
fn lines_and_sentences_that_are_hard_to_read_are_counted_for_each_crate() {
    let wide = "w ".repeat(61);
    check(
        words::hard_to_read,
        &format!(
            r##"
== engine/a/src/lib.rs
//! Of a file nobody ~knows the owner. Of two, the newer counts. It is made Of wood.
//!
//! ```text
//! there is a picture, {wide}
//! ```
//! | a table | {wide} |
//!
//! {wide}
//! * Of a list.
/// Part
/// Of a sentence, with ~so
/// many words.
const TEXT: &str = "there is no comment";
const WIDE: &str = "{wide}"; // there
== engine/a/src/b.rs
// There
// are two.
== docs/page.md
Measured at commit 606d15d: {wide}
There is one, and ~there is another.
== README.md
{wide}
== bench/c/src/lib.rs
//! there is
"##
        ),
        "\
README.md:1: lines wider than 120 columns in the root: 1, of which this is the first
bench/c/src/lib.rs:1: sentences with `there is` or `there are` in bench/c: 1, of which this is the first
docs/page.md:2: sentences with `there is` or `there are` in docs: 2, of which this is the first
engine/a/src/b.rs:2: sentences with `there is` or `there are` in engine/a: 1, of which this is the first
engine/a/src/lib.rs:1: sentences that begin with `Of` in engine/a: 3, of which this is the first
engine/a/src/lib.rs:8: lines wider than 120 columns in engine/a: 1, of which this is the first
engine/a/src/lib.rs:12: sentences with `so many` in engine/a: 1, of which this is the first",
    );
}
