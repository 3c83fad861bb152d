//! Tests that rows which were split into groups can be read back, as a whole and in part.

use super::*;
use crate::schema::groups::GroupSpec;

/// In the tables of these tests, the key and the groups name this many columns.
const NAMED: usize = 4;

/// How the columns of a table are split. The tested code gets only the result of [`Self::layout`].
#[derive(Debug)]
struct Split {
    format: Format,
    header: bool,
    /// The key columns, counted from 0, the most significant one first. The flag says whether a column is a number.
    key: Vec<(usize, bool)>,
    /// For each column that is not in the key, the number of its group. If no group names a column, its number
    /// here is that of the group that takes the rest.
    group_of: Vec<usize>,
    groups: usize,
    rest: Option<usize>,
}

impl Split {
    fn plain(&self) -> Schema {
        let names = ["a", "b", "c", "d"].map(str::to_string).to_vec();
        let columns = if self.header { names } else { Vec::new() };
        let key = self.key.iter().map(|(at, number)| format!("{}{}", at + 1, if *number { ":int" } else { "" }));
        let key: Vec<KeySpec> = key.map(|spec| spec.parse().expect("a key specification")).collect();
        Schema::new(self.format, columns, &key).expect("the columns exist")
    }

    /// The layout. Within each group, columns are named in this order.
    fn layout(&self, order: &[usize]) -> Layout {
        let specs: Vec<GroupSpec> = (0..self.groups)
            .map(|group| {
                let columns = order.iter().filter(|at| self.is_named(**at) && self.group_of[**at] == group);
                let columns: Vec<String> = columns.map(|at| (at + 1).to_string()).collect();
                let columns = if self.rest == Some(group) { "*".to_string() } else { columns.join(",") };
                format!("g{group}:{columns}").parse().expect("a group")
            })
            .collect();
        Layout::new(Some(self.plain().with_groups(&specs).expect("they fit")))
    }

    fn in_key(&self, at: usize) -> Option<bool> {
        self.key.iter().find(|(key, _)| *key == at).map(|(_, number)| *number)
    }

    fn is_named(&self, at: usize) -> bool {
        self.in_key(at).is_none() && self.rest != Some(self.group_of[at])
    }

    fn group(&self, at: usize) -> Option<usize> {
        if at < NAMED { Some(self.group_of[at]) } else { self.rest }
    }

    /// The columns of `record` that must be printed when the groups with the numbers in `read` are read.
    fn shown(&self, record: &[Vec<u8>], read: &[usize]) -> Vec<(usize, Vec<u8>)> {
        let numbers = self.key.iter().any(|(_, number)| *number);
        let shown = |(at, field): (usize, &Vec<u8>)| match self.in_key(at) {
            // The first group contains the text of a number, and the other groups do not.
            Some(true) if !(numbers && read.contains(&0)) => Some((at, b"7".to_vec())),
            Some(_) => Some((at, field.clone())),
            None => read.contains(&self.group(at)?).then(|| (at, field.clone())),
        };
        record.iter().enumerate().filter_map(shown).collect()
    }
}

/// Calls `check` with all ways to split four columns into up to three groups, for several keys. One group may also
/// take the rest.
fn every_split(mut check: impl FnMut(&Split)) {
    let keys = [&[(0, false)][..], &[(2, false), (0, false)], &[(1, true)], &[(3, false), (1, true)]];
    for (format, header) in [(Format::Csv, true), (Format::Csv, false), (Format::Tsv, true), (Format::Tsv, false)] {
        for key in keys {
            for groups in 1..=3_usize {
                for rest in (0..groups).map(Some).chain([None]) {
                    for code in 0..groups.pow(NAMED as u32) {
                        let group_of: Vec<usize> = (0..NAMED as u32).map(|at| code / groups.pow(at) % groups).collect();
                        let split = Split { format, header, key: key.to_vec(), group_of, groups, rest };
                        let is_first = key.iter().all(|(at, _)| split.group_of[*at] == 0);
                        let named = |group| (0..NAMED).any(|at| split.is_named(at) && split.group_of[at] == group);
                        if is_first && (0..groups).all(|group| rest == Some(group) || named(group)) {
                            check(&split);
                        }
                    }
                }
            }
        }
    }
}

/// Every way to choose one or more groups, in every order.
fn every_choice(groups: usize) -> Vec<Vec<usize>> {
    let mut choices: Vec<Vec<usize>> = (0..groups).map(|group| vec![group]).collect();
    for at in 0.. {
        let Some(choice) = choices.get(at).cloned() else { return choices };
        for group in (0..groups).filter(|group| !choice.contains(group)) {
            choices.push([&choice[..], &[group]].concat());
        }
    }
    unreachable!("there are only so many choices")
}

/// All records of `columns` columns in which each column is empty or is easily confused with an empty column.
fn every_record(split: &Split, columns: usize) -> impl Iterator<Item = Vec<Vec<u8>>> + '_ {
    let other: &[u8] = if split.format == Format::Csv { b"\0\t\\n" } else { b"\0\\t" };
    (0..1 << columns).map(move |code| {
        let field = |at| match (split.in_key(at), code >> at & 1 == 0) {
            (Some(true), true) => b"7".to_vec(),
            (Some(true), false) => b"007".to_vec(),
            (_, true) => Vec::new(),
            (_, false) => other.to_vec(),
        };
        (0..columns).map(field).collect()
    })
}

fn tsv_of(split: &Split, shown: &[(usize, Vec<u8>)]) -> Vec<u8> {
    let mut line = Vec::new();
    for (place, (_, field)) in shown.iter().enumerate() {
        if place > 0 {
            line.push(b'\t');
        }
        if split.format == Format::Csv { escape(field, &mut line) } else { line.extend_from_slice(field) }
    }
    line.push(b'\n');
    line
}

fn json_of(split: &Split, shown: &[(usize, Vec<u8>)]) -> Vec<u8> {
    let names = ["a", "b", "c", "d"];
    let members = shown.iter().map(|(at, field)| {
        let name = names.get(*at).filter(|_| split.header).map_or((at + 1).to_string(), ToString::to_string);
        // In a column that is ordered as numbers, a text that is a number of JSON is a number.
        let is_number = split.in_key(*at) == Some(true) && field == b"7";
        let text = std::str::from_utf8(field).expect("text");
        let text = if is_number { text.to_owned() } else { object::string(text) };
        format!("\"{name}\":{text}")
    });
    format!("{{{}}}\n", members.collect::<Vec<_>>().join(",")).into_bytes()
}

#[test]
fn every_row_comes_back_from_every_split_whole_and_in_part() {
    let mut rows = 0;
    every_split(|split| {
        let plain = Layout::new(Some(split.plain()));
        let layout = split.layout(&[0, 1, 2, 3]);
        let choices = every_choice(split.groups);
        let mut printers: Vec<Printer> = choices.iter().map(|choice| Printer::of_parts(&layout, choice)).collect();
        let shortest = split.key.iter().map(|(at, _)| at + 1).max().expect("there is a key");
        let longest = if split.rest.is_some() { NAMED + 2 } else { NAMED };
        let (mut row, mut whole, mut line) = (Row::default(), Row::default(), Vec::new());
        for record in (shortest..=longest).flat_map(|columns| every_record(split, columns)) {
            layout.encode(&record, &mut row).expect("a row");
            plain.encode(&record, &mut whole).expect("a row");
            assert_eq!((&row.key, row.parts.len()), (&whole.key, split.groups));
            for (choice, printer) in choices.iter().zip(&mut printers) {
                let parts: Vec<&[u8]> = choice.iter().map(|group| &row.parts[*group][..]).collect();
                let shown = split.shown(&record, choice);
                let mut same = |what: &str, expected: &[u8], print: &mut dyn FnMut(&mut Vec<u8>)| {
                    line.clear();
                    print(&mut line);
                    assert_eq!(
                        line.escape_ascii().to_string(),
                        expected.escape_ascii().to_string(),
                        "{what} of {record:?}, groups {choice:?} of {split:?}"
                    );
                };
                same("tsv", &tsv_of(split, &shown), &mut |line| printer.tsv(&row.key, &parts, line));
                same("json", &json_of(split, &shown), &mut |line| printer.json(&row.key, &parts, line));
                let beside: Vec<_> = shown.iter().filter(|(at, _)| split.in_key(*at).is_none()).cloned().collect();
                same("value", &tsv_of(split, &beside), &mut |line| printer.value(&parts, line));
            }
            let mut put = Vec::new();
            Printer::new(&plain).tsv(&whole.key, &whole.parts, &mut put);
            assert_eq!(tsv_of(split, &split.shown(&record, &Vec::from_iter(0..split.groups))), put);
            rows += 1;
        }
    });
    assert!(rows > 10_000, "{rows}");
}

#[test]
fn the_order_in_which_columns_are_named_does_not_matter() {
    every_split(|split| {
        let schema = |order: &[usize]| split.layout(order).schema().cloned();
        let first = schema(&[0, 1, 2, 3]);
        for order in [[3, 2, 1, 0], [1, 3, 0, 2], [2, 0, 3, 1]] {
            assert_eq!(schema(&order), first);
        }
    });
}

/// The layout of a table of JSON lines.
fn lines(key: &str, groups: &str) -> Layout {
    let keys: Vec<KeySpec> = key.split(',').map(|spec| spec.parse().expect("a key specification")).collect();
    let groups: Vec<GroupSpec> = groups.split(';').map(|spec| spec.parse().expect("a group")).collect();
    let schema = Schema::new(Format::Jsonl, Vec::new(), &keys).expect("members are looked for in each row");
    Layout::new(Some(schema.with_groups(&groups).expect("they fit")))
}

#[test]
fn objects_come_back_from_every_split_whole_and_in_part() {
    let members =
        [("id", "\"\\u006b\\t\""), ("a", "1.50"), ("b", "{\"x\": [ ],\"a\":0}"), ("c", "null"), ("\\u0064", "\"}{\"")];
    // For each of a, b, c and d, the number of its group. Group 2 takes all members that no other group names.
    for code in 0..81_usize {
        let group_of: Vec<usize> = (0..4).map(|at| code / 3_usize.pow(at) % 3).collect();
        let of = |group: usize| -> String {
            let names = ["a", "b", "c", "d"].iter().zip(&group_of).filter(|(_, of)| **of == group);
            names.map(|(name, _)| *name).collect::<Vec<_>>().join(",")
        };
        if of(0).is_empty() || of(1).is_empty() {
            continue;
        }
        let layout = lines("id", &format!("g0:{};g1:{};g2:*", of(0), of(1)));
        let group = |at: usize| if at == 0 { 0 } else { group_of[at - 1] };
        for chosen in every_choice(members.len()).iter().filter(|chosen| chosen.contains(&0)) {
            let text = |members: Vec<String>, comma: &str| format!("{{{}}}", members.join(comma));
            let member = |at: usize, colon: &str| format!("\"{}\"{colon}{}", members[at].0, members[at].1);
            let line = text(chosen.iter().map(|at| member(*at, " : ")).collect(), " ,  ");
            let mut row = Row::default();
            layout.encode_object(&line, &mut row).expect("an object");
            for choice in every_choice(3) {
                let parts: Vec<&[u8]> = choice.iter().map(|group| &row.parts[*group][..]).collect();
                let inside = choice.iter().flat_map(|of| chosen.iter().filter(|at| group(**at) == *of));
                let expected = text(inside.map(|at| member(*at, ":")).collect(), ",");
                let mut printer = Printer::of_parts(&layout, &choice);
                let mut lines = [(); 3].map(|()| Vec::new());
                printer.tsv(&row.key, &parts, &mut lines[0]);
                printer.json(&row.key, &parts, &mut lines[1]);
                printer.value(&parts, &mut lines[2]);
                let lines = lines.map(|line| String::from_utf8(line).expect("text"));
                assert_eq!(lines, [format!("k\\t\t{expected}\n"), format!("{expected}\n"), format!("{expected}\n")]);
            }
        }
    }
}

#[test]
fn keys_are_printed_without_a_part() {
    let layout = lines("id,n:int", "hot:a;cold:*");
    let mut row = Row::default();
    layout.encode_object(r#"{"n":7,"id":"k\t"}"#, &mut row).expect("an object");
    let mut printer = Printer::of_parts(&layout, &[]);
    let mut line = Vec::new();
    printer.key(&row.key, &mut line);
    printer.key_json(&row.key, &mut line);
    assert_eq!(line.escape_ascii().to_string(), r#"k\\t\t7\n[\"k\\t\",7]\n"#);
}

#[test]
fn what_no_import_made_is_shown_raw() {
    let split = Split {
        format: Format::Tsv,
        header: false,
        key: vec![(0, false), (1, true)],
        group_of: vec![0, 0, 0, 1],
        groups: 2,
        rest: Some(1),
    };
    let show = |layout: &Layout, choice: &[usize], parts: &[&str]| {
        let mut printer = Printer::of_parts(layout, choice);
        let (mut tsv, mut json) = (Vec::new(), Vec::new());
        printer.tsv(b"k", parts, &mut tsv);
        printer.json(b"k", parts, &mut json);
        [tsv, json].map(|line| String::from_utf8(line).expect("text"))
    };
    let layout = split.layout(&[0, 1, 2, 3]);
    assert_eq!(show(&layout, &[1], &["v"]), ["\\?k\tv\n", "{\"key\":\"\\\\?k\",\"value\":\"v\"}\n"]);
    let raw = ["k\tv\tw\n", "{\"key\":\"k\",\"values\":[\"v\",\"w\"]}\n"];
    assert_eq!(show(&Layout::new(None), &[0, 1], &["v", "w"]), raw);
    assert_eq!(show(&lines("id", "hot:a;cold:*"), &[0, 1], &["v", "w"]), ["k\tv\tw\n", "v\tw\n"]);
}
