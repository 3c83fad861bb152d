use super::*;
use crate::experiment::tests::tiny;

#[test]
fn a_tiny_experiment_reads_as_many_bytes_as_pages_have() {
    let [once, again] = [0, 1].map(|_| PageSize::of(Scale::Tiny));
    let (_, ground, _) = tiny(once, again);
    let bytes = PAGES.map(|page| {
        let (form, work, memory) = (Form::of_page(page), Work::Reads, Memory::Cold);
        let cell = Cell(0, Subject::Larch { form, work, memory, threads: 1 });
        let run: YcsbRun = ground.known(cell).expect("it was measured");
        run.each(run.read_bytes)
    });
    assert!(bytes.is_sorted() && bytes[0] > 0.0, "{bytes:?}");
}

#[test]
fn every_form_is_made_once() {
    let forms = Form::all();
    assert_eq!(forms.len(), PAGES.len() + NODES.len() - 1 + FILES.len() - 1);
    let places: std::collections::BTreeSet<String> = forms.iter().map(|form| form.place()).collect();
    assert_eq!(places.len(), forms.len());
}
