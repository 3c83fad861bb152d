//! Plays text scripts. `REWRITE=1` writes what the scripts print into their files, as the expected output. A
//! script in `testdata/any` gives the same output on every database on which it runs. A script in `testdata/files`
//! prints things that depend on the options of its database.

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
