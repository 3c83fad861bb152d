//! Tests where files end.

use super::is_long_enough;
use crate::Database;
use crate::options::LevelOptions;
use os::Machine;

#[test]
fn a_file_ends_at_its_length_or_at_a_border_that_comes_late_enough() {
    assert!(is_long_enough(100, 100, false) && !is_long_enough(99, 100, false));
    assert!(is_long_enough(25, 100, true) && !is_long_enough(24, 100, true));
}

#[test]
fn files_of_a_compaction_end_where_files_of_the_next_level_begin() {
    const FILE_BYTES: u64 = 64 << 10;
    const ROWS: u32 = 16_000;
    let levels = LevelOptions { base_bytes: 512 << 10, file_bytes: FILE_BYTES, ..LevelOptions::default() };
    let (machine, _) = Machine::simulated(1);
    let db = Database::builder("db").machine(machine).levels(levels).open().expect("it opens");
    let table = db.table("t").expect("the disk works");
    let mut import = table.import().expect("the disk works");
    for i in 0..ROWS {
        import.add(&i.to_be_bytes(), &[7; 100]).expect("the disk works");
    }
    import.finish(|_| {}).expect("the disk works");
    for flush in 0..4 {
        for i in 0..800 {
            table.insert(((i * 20 + flush * 7) % ROWS).to_be_bytes(), [8; 100]).expect("the disk works");
        }
        db.flush().expect("the disk works");
    }
    db.compact_due().expect("the disk works");
    let view = db.core().views.newest();
    let [.., base, deepest] = &view.files.tables[&table.id()].levels;
    assert!(base.len() > 3 && deepest.len() > 3, "{} files above {}", base.len(), deepest.len());
    let mut at_borders = 0;
    for pair in base.windows(2) {
        let (last, next) = (pair[0].sst.bounds().high.clone().expect("keys are short"), &pair[1].sst.bounds().low);
        let is_at_border = deepest.iter().any(|file| last < file.sst.bounds().low && file.sst.bounds().low <= *next);
        assert!(is_at_border || pair[0].bytes() >= FILE_BYTES, "a file of {} bytes", pair[0].bytes());
        at_borders += usize::from(is_at_border);
    }
    assert!(at_borders >= 3, "{at_borders} of {} files", base.len());
}
