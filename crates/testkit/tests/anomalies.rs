//! The anomalies that have names, each as a script: what it shows under both levels. REWRITE=1 writes down what they
//! say.

use testkit::isolation::script::play_script;

#[test]
fn named_anomalies_show_where_their_level_allows_them() {
    datadriven::walk("tests/testdata/isolation", |file| {
        file.run(|case| {
            assert_eq!(case.directive, "play", "what a script says");
            play_script(&case.input)
        });
    });
}
