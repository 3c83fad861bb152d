//! Plays text scripts. `REWRITE=1` updates the expected output in the scripts. A script in `testdata/any` gives the
//! same output on every database. Those in `testdata/files` print what depends on the options of their database.

use testkit::script::Script;

#[test]
fn scripts_say_the_same_whatever_the_options() {
    datadriven::walk("tests/testdata/any", |file| {
        let mut script = Script::on_all_options();
        file.run(|case| script.run(case));
    });
}

#[test]
fn scripts_show_which_files_there_are() {
    datadriven::walk("tests/testdata/files", |file| {
        let mut script = Script::on_small_files();
        file.run(|case| script.run(case));
    });
}
