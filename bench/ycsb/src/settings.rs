//! Turns properties into settings. Every property of the core workload is checked and has its default. A property
//! that has no effect here gets a warning.

mod known;
#[cfg(test)]
mod tests;

use crate::generator::Histogram;
use crate::key::KeyNames;
use crate::properties::Properties;
use harness::{Length, Pace, Plan, Table};
use std::fmt;
use std::str::FromStr;
use std::time::Duration;
use thiserror::Error;

/// What a run has to do, and how its results are reported.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The records.
    pub records: Records,
    /// The operations on the records.
    pub operations: Operations,
    /// How the run is driven.
    pub drive: Drive,
    /// How results are printed.
    pub output: Output,
    /// Messages for people about properties that have no effect in this program, or another effect than in the
    /// original.
    pub warnings: Vec<String>,
}

/// The records: `recordcount`, and how they are made.
#[derive(Clone, Debug)]
pub struct Records {
    /// `table`.
    pub table: String,
    /// `recordcount`, or 2147483647 if it is not set.
    pub count: i64,
    /// Whether `recordcount` is set. A load needs it.
    pub count_is_set: bool,
    /// `insertstart`: the first record that is loaded or asked for.
    pub start: i64,
    /// `insertcount`: the number of records that are loaded or asked for.
    pub span: i64,
    /// `fieldcount`.
    pub fields: u32,
    /// `fieldnameprefix`.
    pub field_prefix: String,
    /// `fieldlength`, `fieldlengthdistribution` and related properties.
    pub field_length: FieldLength,
    /// `insertorder`, `zeropadding`.
    pub key_names: KeyNames,
    /// `dataintegrity`: whether values follow from keys, so that each read can check them.
    pub checkable: bool,
}

/// The lengths of values, in bytes.
#[derive(Clone, Debug)]
pub enum FieldLength {
    /// All values have this length.
    Constant(i64),
    /// Lengths from the first number to the second number, all equally likely.
    Uniform(i64, i64),
    /// Lengths from the first number to the second number. A shorter length is likelier than a longer one.
    Zipfian(i64, i64),
    /// Lengths drawn from a histogram.
    Histogram(Histogram),
}

/// The operations: the proportion of each kind, and the records that they use.
#[derive(Clone, Debug)]
pub struct Operations {
    /// `operationcount`: the number of all operations. `None` if the run ends only after a time.
    pub count: Option<u64>,
    /// `readproportion`.
    pub read: f64,
    /// `updateproportion`.
    pub update: f64,
    /// `insertproportion`.
    pub insert: f64,
    /// `scanproportion`.
    pub scan: f64,
    /// `readmodifywriteproportion`.
    pub read_modify_write: f64,
    /// `requestdistribution` and related properties.
    pub keys: KeyDistribution,
    /// `minscanlength`.
    pub min_scan: i64,
    /// `maxscanlength`.
    pub max_scan: i64,
    /// Whether `scanlengthdistribution` is `zipfian`. Otherwise it is `uniform`.
    pub scan_is_zipfian: bool,
    /// `readallfields`: whether a read reads all fields. Otherwise it reads one field.
    pub read_all_fields: bool,
    /// `writeallfields`: whether an update writes all fields. Otherwise it writes one field.
    pub write_all_fields: bool,
    /// `core_workload_insertion_retry_limit`: how many times the load repeats an insert that fails.
    pub insert_retries: u32,
    /// `core_workload_insertion_retry_interval`: about how many seconds lie between two attempts.
    pub insert_retry_seconds: u32,
}

/// The distribution of the records that are asked for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum KeyDistribution {
    /// All records are equally likely.
    Uniform,
    /// Some records are much likelier than others. The likely records are spread over the range.
    Zipfian,
    /// The latest records are the likeliest.
    Latest,
    /// A part of the records gets a fixed share of the operations.
    Hotspot {
        /// `hotspotdatafraction`.
        data: f64,
        /// `hotspotopnfraction`.
        operations: f64,
    },
    /// The records are taken one after the other.
    Sequential,
    /// The latest records are the likeliest. The older a record is, the less likely it is.
    Exponential {
        /// `exponential.percentile`.
        percentile: f64,
        /// `exponential.frac`.
        fraction: f64,
    },
}

impl KeyDistribution {
    /// The name that the distribution has as the value of a property.
    pub fn name(&self) -> &'static str {
        match self {
            KeyDistribution::Uniform => "uniform",
            KeyDistribution::Zipfian => "zipfian",
            KeyDistribution::Latest => "latest",
            KeyDistribution::Hotspot { .. } => "hotspot",
            KeyDistribution::Sequential => "sequential",
            KeyDistribution::Exponential { .. } => "exponential",
        }
    }
}

/// How a run is driven. If a field is `None`, the command decides the value.
#[derive(Clone, Debug, PartialEq)]
pub struct Drive {
    /// `dotransactions`: `false` for a load.
    pub transactions: Option<bool>,
    /// `threadcount`.
    pub threads: Option<u32>,
    /// `target`: operations per second of all clients together. `None` for as fast as possible.
    pub rate: Option<f64>,
    /// `maxexecutiontime`.
    pub max_seconds: Option<u64>,
}

/// How the results of a run are printed.
#[derive(Clone, Debug, PartialEq)]
pub struct Output {
    /// `measurementtype`.
    pub measure: MeasurementType,
    /// `measurement.interval`: the moment from which times are counted.
    pub interval: MeasurementInterval,
    /// `hdrhistogram.percentiles`.
    pub percentiles: Vec<f64>,
    /// `measurement.histogram.verbose`: histograms are also printed.
    pub verbose: bool,
    /// `histogram.buckets`: the number of buckets in a histogram of times. Each bucket is one millisecond wide.
    pub buckets: u32,
    /// `timeseries.granularity`.
    pub granularity_millis: u64,
    /// `measurement.raw.output_file`: the file for single times. `None` for standard output.
    pub raw_file: Option<String>,
    /// Whether single times have a summary: the opposite of `measurement.raw.no_summary`.
    pub raw_summary: bool,
    /// `hdrhistogram.output.path`: the prefix of the paths of files with logs of histograms. `None` if
    /// `hdrhistogram.fileoutput` is not set.
    pub hdr_path: Option<String>,
    /// `exporter`.
    pub format: Format,
    /// `exportfile`. `None` for standard output.
    pub file: Option<String>,
    /// `status`: whether a status line is printed regularly.
    pub status: bool,
    /// `status.interval`.
    pub status_seconds: u64,
    /// `label`: the text with which the status line begins.
    pub label: String,
}

/// `measurementtype`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MeasurementType {
    /// `hdrhistogram`.
    Hdr,
    /// `histogram`.
    Buckets,
    /// `hdrhistogram+histogram`.
    HdrAndBuckets,
    /// `timeseries`.
    Series,
    /// `raw`.
    Raw,
    /// `hdrhistogram+raw`.
    HdrAndRaw,
}

impl MeasurementType {
    /// Whether every single time is written.
    pub fn is_raw(self) -> bool {
        matches!(self, MeasurementType::Raw | MeasurementType::HdrAndRaw)
    }

    /// Whether times are printed as an HDR histogram (high dynamic range).
    pub fn is_hdr(self) -> bool {
        matches!(self, MeasurementType::Hdr | MeasurementType::HdrAndBuckets | MeasurementType::HdrAndRaw)
    }
}

/// `measurement.interval`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MeasurementInterval {
    /// Times count from when a request was sent.
    Operation,
    /// Times count from when a request was due.
    Intended,
    /// Both kinds of times.
    Both,
}

/// `exporter`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Lines.
    Text,
    /// JSON objects, one after the other.
    Json,
    /// One JSON array.
    JsonArray,
}

/// A property value that is not allowed.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("property `{name}` is `{value}` and should be {allowed}")]
pub struct BadProperty {
    /// Its name.
    pub name: String,
    /// The value that was given.
    pub value: String,
    /// The values that are allowed.
    pub allowed: String,
}

/// Returns the text of a file, for `fieldlengthhistogram`. The error says why the file cannot be read.
type ReadFile<'f> = &'f dyn Fn(&str) -> Result<String, String>;

impl Settings {
    /// The settings that `properties` describe. `read` returns the text of a file that a property names, or an
    /// error that says why the file cannot be read.
    ///
    /// # Errors
    ///
    /// Returns an error about the first value that is not allowed.
    pub fn new(properties: &Properties, read: ReadFile<'_>) -> Result<Settings, BadProperty> {
        let reader = Reader { properties };
        reader.one_of("workload", known::WORKLOADS, ())?;
        let records = reader.records(read)?;
        let operations = reader.operations(&records)?;
        let drive = reader.drive()?;
        let output = reader.output()?;
        let warnings = known::warnings(properties);
        let mut settings = Settings { records, operations, drive, output, warnings };
        settings.warn();
        Ok(settings)
    }

    /// The plan that the properties describe, of a load if `loading` is true, and of a run otherwise.
    pub fn plan(&self, loading: bool) -> Plan {
        let count = self.operations.count.map_or(Length::All, Length::Operations);
        let series = self.output.measure == MeasurementType::Series;
        let interval = if series { self.output.granularity_millis } else { 1000 };
        Plan {
            clients: self.drive.threads.unwrap_or(1) as usize,
            pace: self.drive.rate.map_or(Pace::Closed, |per_second| Pace::Open { per_second }),
            length: if loading { Length::All } else { count },
            limit: self.drive.max_seconds.map(Duration::from_secs),
            interval: Duration::from_millis(interval),
            loading,
            ..Plan::default()
        }
    }

    /// Checks that the workload can be loaded. If `recordcount` is not set, the original loads without end.
    ///
    /// # Errors
    ///
    /// Fails if `recordcount` is not set.
    pub fn check_load(&self) -> Result<(), BadProperty> {
        let is_set = self.records.count_is_set;
        is_set.then_some(()).ok_or_else(|| bad("recordcount", "0", "set for a load: `-p recordcount=1000000`"))
    }

    /// The table that holds the records.
    pub fn table(&self) -> Table {
        Table::numbered(&self.records.table, &self.records.field_prefix, self.records.fields as usize)
    }

    /// Adds warnings about settings that are valid but do something else than users may expect.
    fn warn(&mut self) {
        let operations = &self.operations;
        if operations.insert > 0.0 && operations.count.is_none() && operations.keys == KeyDistribution::Zipfian {
            self.warnings.push(
                "`operationcount` is not set: requests with `requestdistribution=zipfian` never go to records that the \
                 run inserts, as the range of keys is made from the number of inserts expected"
                    .to_owned(),
            );
        }
        let output = &self.output;
        if output.hdr_path.is_some() && !output.measure.is_hdr() {
            self.warnings.push("`hdrhistogram.fileoutput` needs a `measurementtype` with `hdrhistogram`".to_owned());
        }
        if output.raw_file.is_some() && !output.measure.is_raw() {
            self.warnings.push("`measurement.raw.output_file` needs a `measurementtype` with `raw`".to_owned());
        }
        if output.measure.is_raw() {
            self.warnings.push("single times cost every request two looks at the clock, measured with it".to_owned());
        }
        if self.records.checkable && operations.read + operations.read_modify_write <= 0.0 {
            self.warnings.push("`dataintegrity` checks reads, and there are none".to_owned());
        }
    }
}

struct Reader<'p> {
    properties: &'p Properties,
}

fn bad(name: &str, value: &str, allowed: impl fmt::Display) -> BadProperty {
    BadProperty { name: name.to_owned(), value: value.to_owned(), allowed: allowed.to_string() }
}

impl Reader<'_> {
    fn text(&self, name: &str) -> Option<&str> {
        self.properties.get(name).map(str::trim)
    }

    /// The value of a number property, which must be from `min` to `max`; `None` if it is not set.
    fn number<T: FromStr + PartialOrd + fmt::Display>(
        &self,
        name: &str,
        min: T,
        max: T,
    ) -> Result<Option<T>, BadProperty> {
        let Some(text) = self.text(name) else { return Ok(None) };
        let number = text.parse().ok().filter(|number| min <= *number && *number <= max);
        number.map(Some).ok_or_else(|| bad(name, text, format_args!("a whole number from {min} to {max}")))
    }

    fn fraction(&self, name: &str, default: f64, min: f64, max: f64) -> Result<f64, BadProperty> {
        let Some(text) = self.text(name) else { return Ok(default) };
        let number = text.parse().ok().filter(|number| (min..=max).contains(number));
        let upper = || if max == f64::MAX { String::new() } else { format!(" and at most {max}") };
        number.ok_or_else(|| bad(name, text, format_args!("a number of at least {min}{}", upper())))
    }

    fn truth(&self, name: &str, default: bool) -> Result<bool, BadProperty> {
        let Some(text) = self.text(name) else { return Ok(default) };
        match text.to_ascii_lowercase().as_str() {
            "true" => Ok(true),
            "false" => Ok(false),
            _ => Err(bad(name, text, "`true` or `false`")),
        }
    }

    fn one_of<T: Copy>(&self, name: &str, choices: &[(&str, T)], default: T) -> Result<T, BadProperty> {
        let Some(text) = self.text(name) else { return Ok(default) };
        let choice = choices.iter().find(|(choice, _)| *choice == text).map(|(_, meaning)| *meaning);
        choice.ok_or_else(|| {
            let names: Vec<&str> = choices.iter().map(|(choice, _)| *choice).collect();
            bad(name, text, format_args!("one of {}", names.join(", ")))
        })
    }

    fn records(&self, read: ReadFile<'_>) -> Result<Records, BadProperty> {
        let most = i64::MAX / 4;
        let set = self.number("recordcount", 0, most)?.filter(|count| *count > 0);
        let count = set.unwrap_or(i64::from(i32::MAX));
        let start = self.number("insertstart", 0, count - 1)?.unwrap_or(0);
        // If `insertcount` were greater than `count - start`, the run would ask for records that do not exist.
        let span = self.number("insertcount", 1, count - start)?.unwrap_or(count - start);
        let checkable = self.truth("dataintegrity", false)?;
        let field_length = self.field_length(read)?;
        if checkable && !matches!(field_length, FieldLength::Constant(_)) {
            let text = self.text("fieldlengthdistribution").unwrap_or_default();
            return Err(bad("fieldlengthdistribution", text, "`constant` where `dataintegrity` is `true`"));
        }
        let ordered = self.one_of("insertorder", &[("hashed", false), ("ordered", true)], false)?;
        let zero_padding = self.number("zeropadding", 0, 1000)?.unwrap_or(1) as usize;
        Ok(Records {
            table: self.text("table").unwrap_or("usertable").to_owned(),
            count,
            count_is_set: set.is_some(),
            start,
            span,
            fields: self.number("fieldcount", 1, 10_000)?.unwrap_or(10),
            field_prefix: self.text("fieldnameprefix").unwrap_or("field").to_owned(),
            field_length,
            key_names: KeyNames { ordered, zero_padding },
            checkable,
        })
    }

    fn field_length(&self, read: ReadFile<'_>) -> Result<FieldLength, BadProperty> {
        const MOST: i64 = 64 << 20;
        let kinds = [("constant", 0), ("uniform", 1), ("zipfian", 2), ("histogram", 3)];
        let kind = self.one_of("fieldlengthdistribution", &kinds, 0)?;
        let max = self.number("fieldlength", 0, MOST)?.unwrap_or(100);
        let min = self.number("minfieldlength", 0, MOST)?.unwrap_or(1);
        if (kind == 1 || kind == 2) && min > max {
            return Err(bad("minfieldlength", &min.to_string(), format_args!("at most `fieldlength`, which is {max}")));
        }
        Ok(match kind {
            0 => FieldLength::Constant(max),
            1 => FieldLength::Uniform(min, max),
            2 => FieldLength::Zipfian(min, max),
            _ => {
                let name = "fieldlengthhistogram";
                let file = self.text(name).unwrap_or("hist.txt");
                let text = read(file).map_err(|why| bad(name, file, format_args!("a file that can be read: {why}")))?;
                let histogram = Histogram::parse(&text)
                    .map_err(|why| bad(name, file, format_args!("a histogram file, and is not: {why}")))?;
                if histogram.max() > MOST {
                    return Err(bad(name, file, format_args!("a histogram of at most {MOST} bytes")));
                }
                FieldLength::Histogram(histogram)
            }
        })
    }

    fn operations(&self, records: &Records) -> Result<Operations, BadProperty> {
        let share = |name: &str, default: f64| self.fraction(name, default, 0.0, f64::MAX);
        let most = i64::from(i32::MAX);
        let max_scan = self.number("maxscanlength", 1, most)?.unwrap_or(1000);
        let operations = Operations {
            count: self.number("operationcount", 0, u64::MAX)?.filter(|count| *count > 0),
            read: share("readproportion", 0.95)?,
            update: share("updateproportion", 0.05)?,
            insert: share("insertproportion", 0.0)?,
            scan: share("scanproportion", 0.0)?,
            read_modify_write: share("readmodifywriteproportion", 0.0)?,
            keys: self.keys(records)?,
            min_scan: self.number("minscanlength", 1, max_scan)?.unwrap_or(1),
            max_scan,
            scan_is_zipfian: self.one_of("scanlengthdistribution", &[("uniform", false), ("zipfian", true)], false)?,
            read_all_fields: self.truth("readallfields", true)?,
            write_all_fields: self.truth("writeallfields", false)?,
            insert_retries: self.number("core_workload_insertion_retry_limit", 0, u32::MAX)?.unwrap_or(0),
            insert_retry_seconds: self.number("core_workload_insertion_retry_interval", 0, 86_400)?.unwrap_or(3),
        };
        let sum = operations.read + operations.update + operations.insert + operations.scan;
        if sum + operations.read_modify_write <= 0.0 {
            return Err(bad("readproportion", "0", "more than 0, or another proportion: no operation is left"));
        }
        Ok(operations)
    }

    fn keys(&self, records: &Records) -> Result<KeyDistribution, BadProperty> {
        let data = self.fraction("hotspotdatafraction", 0.2, 0.0, 1.0)?;
        let operations = self.fraction("hotspotopnfraction", 0.8, 0.0, 1.0)?;
        let percentile = self.fraction("exponential.percentile", 95.0, f64::MIN_POSITIVE, 99.999_999)?;
        let fraction = self.fraction("exponential.frac", 0.857_142_857_1, f64::MIN_POSITIVE, f64::MAX)?;
        let kinds = [
            ("uniform", KeyDistribution::Uniform),
            ("zipfian", KeyDistribution::Zipfian),
            ("latest", KeyDistribution::Latest),
            ("hotspot", KeyDistribution::Hotspot { data, operations }),
            ("sequential", KeyDistribution::Sequential),
            ("exponential", KeyDistribution::Exponential { percentile, fraction }),
        ];
        let keys = self.one_of("requestdistribution", &kinds, KeyDistribution::Uniform)?;
        if keys == kinds[3].1 && crate::generator::Hotspot::new(0, records.span - 1, data, operations).is_none() {
            let allowed = format!(
                "such that there is a record for every request: {operations} of them go to {data} of {} records",
                records.span
            );
            return Err(bad("hotspotdatafraction", &data.to_string(), allowed));
        }
        if keys == KeyDistribution::Latest && records.count < 2 {
            return Err(bad("recordcount", &records.count.to_string(), "at least 2 for `requestdistribution=latest`"));
        }
        Ok(keys)
    }

    fn drive(&self) -> Result<Drive, BadProperty> {
        let rate = self.fraction("target", 0.0, 0.0, 1e12)?;
        Ok(Drive {
            transactions: self.text("dotransactions").map(|_| self.truth("dotransactions", true)).transpose()?,
            threads: self.number("threadcount", 1, 1_000_000)?,
            rate: (rate > 0.0).then_some(rate),
            max_seconds: self.number("maxexecutiontime", 0, u64::from(u32::MAX))?.filter(|seconds| *seconds > 0),
        })
    }

    fn output(&self) -> Result<Output, BadProperty> {
        let intervals = [
            ("op", MeasurementInterval::Operation),
            ("intended", MeasurementInterval::Intended),
            ("both", MeasurementInterval::Both),
        ];
        Ok(Output {
            measure: self.measure()?,
            interval: self.one_of("measurement.interval", &intervals, MeasurementInterval::Operation)?,
            percentiles: self.percentiles()?,
            verbose: self.truth("measurement.histogram.verbose", false)?,
            buckets: self.number("histogram.buckets", 1, 10_000_000)?.unwrap_or(1000),
            granularity_millis: self.number("timeseries.granularity", 1, 86_400_000)?.unwrap_or(1000),
            raw_file: self.text("measurement.raw.output_file").filter(|file| !file.is_empty()).map(str::to_owned),
            raw_summary: !self.truth("measurement.raw.no_summary", false)?,
            hdr_path: self
                .truth("hdrhistogram.fileoutput", false)?
                .then(|| self.text("hdrhistogram.output.path").unwrap_or_default().to_owned()),
            format: self.one_of("exporter", known::EXPORTERS, Format::Text)?,
            file: self.text("exportfile").map(str::to_owned),
            status: self.truth("status", false)?,
            status_seconds: self.number("status.interval", 1, 86_400)?.unwrap_or(10),
            label: self.text("label").unwrap_or_default().to_owned(),
        })
    }

    fn measure(&self) -> Result<MeasurementType, BadProperty> {
        let kinds = [
            ("hdrhistogram", MeasurementType::Hdr),
            ("histogram", MeasurementType::Buckets),
            ("hdrhistogram+histogram", MeasurementType::HdrAndBuckets),
            ("hdrhistogram+raw", MeasurementType::HdrAndRaw),
            ("timeseries", MeasurementType::Series),
            ("raw", MeasurementType::Raw),
        ];
        self.one_of("measurementtype", &kinds, MeasurementType::Hdr)
    }

    fn percentiles(&self) -> Result<Vec<f64>, BadProperty> {
        let name = "hdrhistogram.percentiles";
        let text = self.text(name).unwrap_or("95,99");
        let read = |item: &str| item.trim().parse().ok().filter(|number| (0.0..=100.0).contains(number));
        let percentiles: Option<Vec<f64>> = text.split(',').map(read).collect();
        percentiles.ok_or_else(|| bad(name, text, "numbers from 0 to 100 with commas between"))
    }
}
