use super::*;
use crate::base::options::TableOptions;
use crate::manifest::directory::leftovers::Leftovers;
use os::Machine;
use pages::PageCache;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use sst::Meta;

/// The meta of a file without rows.
pub fn meta(newest: u64) -> Meta {
    Meta {
        expiry: None,
        file_id: 9,
        file_bytes: 8192,
        main: None,
        history: None.into(),
        range_erases: None.into(),
        filter: None,
        bounds: KeyBounds::default(),
        oldest: Version(1),
        newest: Version(newest),
        value_bytes: 0,
        user_bytes: 0,
        groups: Vec::new(),
        has_origin: false,
        has_samples: false,
        has_zstd: false,
        has_merges: false,
        unknown: Default::default(),
    }
}

/// Applies `edits` to a file set with table 1. Returns the new file set, or the reason why an edit is refused.
fn applied(edits: &[Edit]) -> Result<FileSet, EditRefusal> {
    let (machine, _) = Machine::simulated(1);
    let cache = PageCache::new(0, 1, sst::validate);
    let leftovers = Leftovers::new(machine.disk.clone());
    let opener = FileOpener {
        directory: "db".into(),
        machine,
        cache,
        prefer_flat: false,
        early: Default::default(),
        known: Default::default(),
        leftovers,
    };
    let mut set = FileSet::default();
    let table = Edit::Table { id: TableId(1), name: "users".to_owned(), options: TableOptions::default() };
    set.apply(&table, &opener, &mut Vec::new()).expect("it is the first");
    edits.iter().try_for_each(|edit| set.apply(edit, &opener, &mut Vec::new()))?;
    Ok(set)
}

/// A build with both features refuses nothing. `cargo x ci` runs this test in a build without them, too.
#[test]
fn a_database_that_needs_a_codec_that_the_build_lacks_is_refused_by_the_feature() {
    for (compression, feature) in [(Compression::Lz4, "lz4"), (Compression::ZSTD, "zstd"), (Compression::None, "")] {
        let options = TableOptions { compression, ..TableOptions::default() };
        let created = options.check_for(Release::NEWEST);
        let altered = applied(&[Edit::AlterTable { id: TableId(1), since: 1, options }]);
        let opened = altered.expect("the table is there").check_codecs();
        if compression.missing_feature().is_none() {
            assert!(created.is_ok() && opened.is_ok());
            continue;
        }
        let needs = format!("this program was built without feature {feature} of larch-db");
        let created = created.expect_err("the build lacks it").to_string();
        assert!(created.contains(&needs), "{created}");
        let opened = opened.expect_err("the build lacks it").to_string();
        assert!(opened.contains("table users") && opened.contains(&needs), "{opened}");
    }
}

fn refusal(edits: &[Edit]) -> Option<String> {
    applied(edits).err().map(|refusal| refusal.to_string())
}

#[track_caller]
fn check(edit: Edit, expected: &str) {
    assert_eq!(refusal(&[edit]).as_deref(), Some(expected));
}

fn add_file(number: u64, version_offset: u64, newest: u64) -> Edit {
    Edit::AddFile(crate::manifest::NewFile {
        table: TableId(1),
        level: 0,
        number,
        epoch: 1,
        version_offset,
        meta: meta(newest),
    })
}

#[test]
fn numbers_that_nothing_can_follow_are_refused() {
    let table = |id| Edit::Table { id: TableId(id), name: "last".to_owned(), options: TableOptions::default() };
    check(table(u32::MAX), "table id 4294967295 is the last there can be");
    check(add_file(u64::MAX, 0, 1), "file number 18446744073709551615 is the last there can be");
    check(add_file(u64::MAX - 1, 0, 1), "file number 18446744073709551615 is the last there can be");
    check(add_file(3, u64::MAX, 1), "the versions of a file overflow");
    check(add_file(3, u64::MAX - 1, 1), "version 18446744073709551615 is the last there can be");
    check(Edit::NextNumber(u64::MAX), "file number 18446744073709551615 is the last there can be");
    check(alter(1, u64::MAX), "file number 18446744073709551615 is the last there can be");
    check(Edit::LastVersion(Version::MAX), "version 18446744073709551615 is the last there can be");
    for edit in [table(u32::MAX - 1), add_file(u64::MAX - 2, u64::MAX - 2, 1), Edit::NextNumber(u64::MAX - 1)] {
        assert_eq!(refusal(&[edit]), None);
    }
}

fn alter(id: u32, since: u64) -> Edit {
    let options = TableOptions { page_bytes: 512, ..TableOptions::default() };
    Edit::AlterTable { id: TableId(id), since, options }
}

#[test]
fn a_table_that_is_there_is_altered_but_for_its_groups() {
    check(alter(2, 5), "table 2 is not there");
    let options = TableOptions { groups: vec!["hot".to_owned()], ..TableOptions::default() };
    check(Edit::AlterTable { id: TableId(1), since: 5, options }, "the groups of table 1 change");
    let set = applied(&[alter(1, 5)]).expect("the table is there");
    assert_eq!((set.tables[&TableId(1)].info.options.page_bytes, set.next_number), (512, 5));
}

#[test]
fn a_set_tells_from_which_file_on_its_options_hold_as_long_as_one_is_older() {
    let (old, new) = (add_file(4, 0, 1), add_file(5, 0, 2));
    let altered = |edits: &[Edit]| {
        let set = applied(edits).expect("they apply");
        let edits: Vec<Edit> = set.edits().skip(7).collect();
        let again = applied(&[&[Edit::DropTable(TableId(1))], edits.as_slice()].concat()).expect("they apply");
        assert!(again.edits().skip(7).eq(edits.iter().cloned()), "a set describes itself");
        assert_eq!(again.tables[&TableId(1)].info.options, set.tables[&TableId(1)].info.options);
        edits.iter().any(|edit| *edit == alter(1, 5))
    };
    assert!(altered(&[old.clone(), alter(1, 5), new.clone()]));
    assert!(altered(&[alter(1, 5), new.clone(), old.clone()]), "a flush may end after the alter");
    assert!(!altered(&[alter(1, 5), new.clone()]));
    let gone = Edit::RemoveFile { table: TableId(1), level: 0, number: 4 };
    assert!(!altered(&[old, alter(1, 5), new, gone]));
}

#[test]
fn rows_of_a_file_have_as_many_parts_as_the_table_has_groups() {
    let table = |id, groups: &[&str]| {
        let groups = groups.iter().map(|&name| name.to_owned()).collect();
        Edit::Table { id: TableId(id), name: format!("t{id}"), options: TableOptions { groups, ..Default::default() } }
    };
    let add = |id, beside_main| {
        let meta = Meta { groups: vec![Default::default(); beside_main], ..meta(1) };
        let add = Edit::AddFile(crate::manifest::NewFile {
            table: TableId(id),
            level: 0,
            number: 3,
            epoch: 1,
            version_offset: 0,
            meta,
        });
        refusal(&[table(2, &["all"]), table(3, &["hot", "warm", "cold"]), add])
    };
    for (id, beside_main) in [(1, 0), (2, 0), (3, 2)] {
        assert_eq!(add(id, beside_main), None);
    }
    let why = |parts, of: &str| Some(format!("rows of 00000003-1.sst have {parts} parts, those of table {of}"));
    assert_eq!(add(1, 1), why(2, "users have 1"));
    assert_eq!(add(2, 15), why(16, "t2 have 1"));
    assert_eq!(add(3, 0), why(1, "t3 have 3"));
}

#[test]
fn a_file_is_added_once() {
    let file = add_file(3, 0, 1);
    assert_eq!(refusal(&[add_file(4, 0, 1), file.clone(), add_file(2, 0, 1)]), None);
    let why = "file 3 is in level 0 of table 1 already";
    assert_eq!(refusal(&[file.clone(), add_file(4, 0, 1), file]).as_deref(), Some(why));
}

/// Asks for keys within and around bounds of all kinds: cut ones, equal ones, and some without an upper end.
#[test]
fn the_files_that_may_hold_a_key_are_those_whose_bounds_have_it() {
    let mut rng = StdRng::seed_from_u64(1);
    for round in 0..300 {
        let shared = vec![b'k'; [0, 3, 8, 70][rng.random_range(0..4)]];
        let mut key = || {
            let len = rng.random_range(0..14);
            let tail = (0..len).map(|_| [0, b'a', b'b', 0xff][rng.random_range(0..4)]);
            shared.iter().copied().chain(tail).collect::<Vec<u8>>()
        };
        let mut ends: Vec<Vec<u8>> = (0..2 * (round % 20)).map(|_| key()).collect();
        ends.sort_unstable();
        ends.dedup();
        let keys: Vec<Vec<u8>> =
            (0..40).map(|i| if i % 2 == 0 || ends.is_empty() { key() } else { ends[i % ends.len()].clone() }).collect();
        let ends = ends.as_chunks::<2>().0;
        let file = |(i, [first, last]): (usize, &[Vec<u8>; 2])| {
            let mut bounds = KeyBounds::cut(first, last);
            if i + 1 == ends.len() && round % 5 == 0 {
                bounds.high = None;
            }
            Edit::AddFile(crate::manifest::NewFile {
                table: TableId(1),
                level: 1,
                number: i as u64 + 1,
                epoch: 1,
                version_offset: 0,
                meta: Meta { bounds, ..meta(1) },
            })
        };
        let edits: Vec<Edit> = ends.iter().enumerate().map(file).collect();
        let set = applied(&edits).expect("numbers grow");
        let files = &set.tables[&TableId(1)];
        for key in keys.iter().chain([&vec![], &vec![b'j'], &vec![b'l'], &vec![0xff; 9]]) {
            let found: Vec<u64> = files.files_with_key(key).map(|file| file.number).collect();
            let expected: Vec<u64> =
                files.levels[1].iter().filter(|file| file.may_contain(key)).map(|file| file.number).collect();
            assert_eq!(found, expected, "round {round}, key {}", key.escape_ascii());
        }
    }
}

fn index(id: u32, table: u32, name: &str) -> Edit {
    let (id, table, name, declaration) = (TableId(id), TableId(table), name.to_owned(), b"d".to_vec());
    let info =
        IndexInfo { id, table, name, is_unique: false, state: IndexState::Building, since: Version(0), declaration };
    Edit::Index { info, options: TableOptions::default() }
}

#[test]
fn an_index_has_a_table_and_a_name_of_its_own() {
    check(index(2, 7, "i"), "table 7 is not there");
    check(index(1, 1, "i"), "index 1, \"i\", has the id of another table");
    let alter = |id, table| Edit::AlterIndex { id: TableId(id), table: TableId(table), state: IndexState::Ready };
    check(alter(1, 1), "table 1 is no index");
    let refused = |edits: &[Edit]| refusal(&[&[index(2, 1, "i")], edits].concat());
    assert_eq!(refused(&[index(3, 1, "i")]).as_deref(), Some("table users has two indexes \"i\""));
    assert_eq!(refused(&[index(3, 2, "j")]).as_deref(), Some("table 2 is an index and has index \"j\""));
    assert_eq!(refused(&[Edit::DropTable(TableId(1))]).as_deref(), Some("table 1 is dropped, and it has an index"));
    assert_eq!(refused(&[alter(2, 9)]).as_deref(), Some("table 9 is not there"));
    assert_eq!(refused(&[Edit::DropTable(TableId(2)), Edit::DropTable(TableId(1))]), None);
    let (name, options) = ("i of users".to_owned(), TableOptions::default());
    assert_eq!(refused(&[Edit::Table { id: TableId(3), name, options }]), None, "an index names no table");
}

#[test]
fn a_set_describes_its_indexes_also_when_their_table_was_renamed() {
    let (name, options) = ("people".to_owned(), TableOptions::default());
    let edits = [
        index(2, 1, "i"),
        index(3, 1, "j"),
        Edit::Table { id: TableId(4), name, options },
        Edit::AlterIndex { id: TableId(2), table: TableId(4), state: IndexState::Ready },
        Edit::AlterIndex { id: TableId(3), table: TableId(4), state: IndexState::Building },
        Edit::DropTable(TableId(1)),
    ];
    let set = applied(&edits).expect("they apply");
    assert_eq!(set.tables.names().collect::<Vec<_>>(), ["people"]);
    let names = |of| set.tables.indexes_of(TableId(of)).map(|files| files.info.name.clone()).collect::<Vec<_>>();
    assert_eq!((names(1), names(4)), (vec![], vec!["i of people".to_owned(), "j of people".to_owned()]));
    let own: Vec<Edit> = set.edits().skip(7).collect();
    let again = applied(&[&[Edit::DropTable(TableId(1))], own.as_slice()].concat()).expect("they apply");
    assert!(again.edits().skip(7).eq(own), "a set describes itself");
}
