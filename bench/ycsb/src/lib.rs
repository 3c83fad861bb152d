//! YCSB.

mod ceiling;
mod draw;
mod generator;
mod key;
mod keyspace;
mod kinds;
mod load;
mod properties;
mod random;
mod report;
mod run;
mod settings;
mod value;
#[cfg(test)]
mod vectors;

pub use ceiling::Ceiling;
pub use generator::{BadHistogram, Histogram};
pub use key::KeyNames;
pub use load::{Load, LoadClient, LoadRows};
pub use properties::{BadSyntax, Properties};
pub use random::Random;
pub use report::{Status, export, seed_line};
pub use run::{Run, RunClient};
pub use settings::{
    BadProperty, Drive, FieldLength, Format, Interval, KeyDistribution, Measure, Operations, Output, Records, Settings,
};
pub use value::Text;

/// The properties of the official workload `name`, from `a` to `f`.
pub fn built_in(name: &str) -> Option<Properties> {
    let file = match name {
        "a" => include_str!("../workloads/a.properties"),
        "b" => include_str!("../workloads/b.properties"),
        "c" => include_str!("../workloads/c.properties"),
        "d" => include_str!("../workloads/d.properties"),
        "e" => include_str!("../workloads/e.properties"),
        "f" => include_str!("../workloads/f.properties"),
        _ => return None,
    };
    let mut properties = Properties::new();
    properties.load(file.as_bytes()).expect("the tests read all of them");
    Some(properties)
}
