use super::*;
use kit::Scratch;
use page::Block;

#[test]
fn a_tiny_experiment_reads_as_many_bytes_as_pages_have() {
    let scratch = Scratch::new("page-size");
    let args = ExperimentArgs { scale: Scale::Tiny, out: Some(scratch.join("out")), check: false, price: None };
    let size = Size::of(Scale::Tiny);
    let mut ground = Ground::with_stop("page-size", &args, 1 << 20, Stop::never()).expect("there is room");
    assert!(measure_all(&mut ground, &size).expect("the disk works"));
    let bytes = PAGES.map(|page| {
        let (form, work, memory) = (Form::of_page(page), Work::Reads, Memory::Cold);
        let subject = Subject::Larch { form, work, memory, threads: 1 };
        let cell: Cell = ground.known(&subject.name(0)).expect("it was measured");
        cell.each(cell.read_bytes)
    });
    assert!(bytes.is_sorted() && bytes[0] > 0.0, "{bytes:?}");
    let outcome = tables::outcome(&ground, &size);
    for block in &outcome.blocks {
        let Block::Table(table) = block else { continue };
        assert!(table.rows.iter().all(|row| row.len() == table.columns.len()), "{}", table.caption);
    }
    assert_eq!(outcome.finish("page-size", &ground, &args).expect("there is room"), Ending::Good);
}

#[test]
fn every_form_is_made_once_and_every_subject_measured_once() {
    let forms = Form::all();
    assert_eq!(forms.len(), PAGES.len() + NODES.len() - 1 + FILES.len() - 1);
    let names: std::collections::BTreeSet<String> = Subject::all().iter().map(|subject| subject.name(0)).collect();
    assert_eq!(names.len(), Subject::all().len());
    let places: std::collections::BTreeSet<String> = forms.iter().map(|form| form.place()).collect();
    assert_eq!(places.len(), forms.len());
}
