//! The property names and values that the original knows, and warnings for names that have no effect in this
//! program.

use super::Format;
use crate::properties::Properties;

/// Values of `workload`.
pub const WORKLOADS: &[(&str, ())] =
    &[("site.ycsb.workloads.CoreWorkload", ()), ("com.yahoo.ycsb.workloads.CoreWorkload", ()), ("core", ())];

/// Values of `exporter`.
pub const EXPORTERS: &[(&str, Format)] = &[
    ("site.ycsb.measurements.exporter.TextMeasurementsExporter", Format::Text),
    ("site.ycsb.measurements.exporter.JSONMeasurementsExporter", Format::Json),
    ("site.ycsb.measurements.exporter.JSONArrayMeasurementsExporter", Format::JsonArray),
    ("com.yahoo.ycsb.measurements.exporter.TextMeasurementsExporter", Format::Text),
    ("com.yahoo.ycsb.measurements.exporter.JSONMeasurementsExporter", Format::Json),
    ("com.yahoo.ycsb.measurements.exporter.JSONArrayMeasurementsExporter", Format::JsonArray),
];

/// The names of the properties that `settings` reads.
pub(super) const READ: &[&str] = &[
    "core_workload_insertion_retry_interval",
    "core_workload_insertion_retry_limit",
    "dataintegrity",
    "dotransactions",
    "exponential.frac",
    "exponential.percentile",
    "exporter",
    "exportfile",
    "fieldcount",
    "fieldlength",
    "fieldlengthdistribution",
    "fieldlengthhistogram",
    "fieldnameprefix",
    "hdrhistogram.fileoutput",
    "hdrhistogram.output.path",
    "hdrhistogram.percentiles",
    "histogram.buckets",
    "hotspotdatafraction",
    "hotspotopnfraction",
    "insertcount",
    "insertorder",
    "insertproportion",
    "insertstart",
    "label",
    "maxexecutiontime",
    "maxscanlength",
    "measurement.histogram.verbose",
    "measurement.interval",
    "measurement.raw.no_summary",
    "measurement.raw.output_file",
    "measurementtype",
    "minfieldlength",
    "minscanlength",
    "operationcount",
    "readallfields",
    "readmodifywriteproportion",
    "readproportion",
    "recordcount",
    "requestdistribution",
    "scanlengthdistribution",
    "scanproportion",
    "status",
    "status.interval",
    "table",
    "target",
    "threadcount",
    "timeseries.granularity",
    "updateproportion",
    "workload",
    "writeallfields",
    "zeropadding",
];

/// Names that have no effect in this program, each with the reason. A name that ends with a dot stands for all
/// names that begin with it.
const WITHOUT_EFFECT: &[(&str, &str)] = &[
    ("db", "the store is named by --target"),
    ("readallfieldsbyname", "stores are asked for all fields in one way only"),
    ("measurement.trackjvm", "there is no Java machine; the result has processor time, memory and context switches"),
    ("reportlatencyforeacherror", "failures are counted by kind, with the time of all together"),
    ("latencytrackederrors", "failures are counted by kind, with the time of all together"),
    ("spin.sleep", "the clock is waited for in one way only"),
    ("htrace.", "nothing is traced"),
    ("basicdb.", "the target `noop:` has no options"),
];

/// The warnings about `properties`: a line for each property that has no effect in this program.
pub fn warnings(properties: &Properties) -> Vec<String> {
    let about = |(name, value): (&str, &str)| {
        if READ.binary_search(&name).is_ok() {
            return None;
        }
        let is_meant = |known: &str| name == known || (known.ends_with('.') && name.starts_with(known));
        let why = WITHOUT_EFFECT.iter().find(|(known, _)| is_meant(known)).map(|(_, why)| *why);
        // A property with the value `false` asks for nothing, so it needs no warning.
        let asks_nothing = value.trim().eq_ignore_ascii_case("false");
        match why {
            Some(_) if asks_nothing => None,
            Some(why) => Some(format!("property `{name}` has no effect: {why}")),
            None => Some(format!("property `{name}` is unknown to the core workload and has no effect")),
        }
    };
    properties.iter().filter_map(about).collect()
}
