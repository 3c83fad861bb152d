use super::*;
use crate::experiment::tests::ground;
use kit::Scratch;

fn fill(place: &Path) -> larch::Result<()> {
    let db = Database::open(place)?;
    let table = db.table("t")?;
    table.insert(b"a", b"1")?;
    db.flush()?;
    table.insert(b"b", b"2")?;
    drop(table);
    db.close()
}

#[test]
fn what_a_copy_writes_does_not_reach_the_database_or_the_next_copy() {
    let scratch = Scratch::new("made");
    let mut ground = ground(&scratch);
    let build = |place: &Path, _: &Stop| {
        fill(place).expect("the disk works");
        Ok(())
    };
    let (made, ()) = ground.built("db", build).expect("there is room");
    let lengths = file_bytes(made.place()).expect("it can be read");
    assert!(!lengths.is_empty());
    for _ in 0..2 {
        let copy = made.copy().expect("there is room");
        let db = Database::open(copy.place()).expect("it is a database");
        let table = db.table("t").expect("it is there");
        assert_eq!(table.get(b"a").expect("the disk works").as_deref(), Some(&b"1"[..]));
        assert_eq!(table.get(b"b").expect("the disk works").as_deref(), Some(&b"2"[..]));
        table.insert(b"a", b"other").expect("the disk works");
        table.compact().expect("the disk works");
        drop(table);
        db.close().expect("the disk works");
    }
    assert_eq!(file_bytes(made.place()).expect("it can be read"), lengths);
    let names: Vec<_> = fs::read_dir(ground.data("").expect("there is room")).expect("it is there").collect();
    assert_eq!(names.len(), 1, "the database is left: {names:?}");
}
