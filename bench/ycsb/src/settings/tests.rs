use super::{BadProperty, FieldLength, Format, KeyDistribution, MeasurementInterval, MeasurementType, Settings};
use crate::properties::Properties;
use harness::{Length, Pace};
use std::time::Duration;

fn settings(text: &str) -> Result<Settings, BadProperty> {
    let mut properties = Properties::new();
    properties.load(text.as_bytes()).expect("good syntax");
    Settings::new(&properties, &|file| match file {
        "lengths.txt" => Ok("BlockSize\t10\n0\t1\n".to_owned()),
        _ => Err("there is no such file".to_owned()),
    })
}

fn good(text: &str) -> Settings {
    settings(text).expect("good values")
}

fn said(text: &str) -> String {
    settings(text).expect_err("a bad value").to_string()
}

#[test]
fn defaults_are_those_of_the_original() {
    let Settings { records, operations, drive, output, warnings } = good("");
    assert_eq!(records.table, "usertable");
    assert_eq!((records.count, records.count_is_set), (2_147_483_647, false));
    assert_eq!((records.start, records.span), (0, 2_147_483_647));
    assert_eq!((records.fields, records.field_prefix.as_str()), (10, "field"));
    assert!(matches!(records.field_length, FieldLength::Constant(100)));
    assert!(!records.key_names.ordered && records.key_names.zero_padding == 1 && !records.checkable);

    let shares = (operations.read, operations.update, operations.insert, operations.scan);
    assert_eq!(shares, (0.95, 0.05, 0.0, 0.0));
    assert_eq!((operations.read_modify_write, operations.count), (0.0, None));
    assert_eq!(operations.keys, KeyDistribution::Uniform);
    assert_eq!((operations.min_scan, operations.max_scan, operations.scan_is_zipfian), (1, 1000, false));
    assert!(operations.read_all_fields && !operations.write_all_fields);
    assert_eq!((operations.insert_retries, operations.insert_retry_seconds), (0, 3));

    assert_eq!((drive.transactions, drive.threads, drive.rate, drive.max_seconds), (None, None, None, None));

    assert_eq!(
        (output.measure, output.interval, output.format),
        (MeasurementType::Hdr, MeasurementInterval::Operation, Format::Text)
    );
    assert_eq!(output.percentiles, [95.0, 99.0]);
    assert_eq!((output.buckets, output.granularity_millis, output.verbose), (1000, 1000, false));
    assert_eq!((output.status, output.status_seconds, output.label.as_str()), (false, 10, ""));
    assert_eq!(warnings, Vec::<String>::new());
}

#[test]
fn what_is_set_counts() {
    let all = good(
        "recordcount=2000\ninsertstart=500\ninsertcount=100\nfieldlengthdistribution=zipfian\nfieldlength=50\n\
         requestdistribution=hotspot\nhotspotdatafraction=0.5\nhotspotopnfraction=0.9\noperationcount=77\n\
         target=1000\nthreadcount=8\nmaxexecutiontime=60\nmeasurement.interval=both\ninsertorder=ordered\n\
         exporter=site.ycsb.measurements.exporter.JSONArrayMeasurementsExporter\nhdrhistogram.percentiles=50,99.9\n\
         dotransactions=false\nmeasurementtype=timeseries\nreadallfields=FALSE",
    );
    assert_eq!((all.records.count, all.records.start, all.records.span), (2000, 500, 100));
    assert!(matches!(all.records.field_length, FieldLength::Zipfian(1, 50)));
    assert_eq!(all.operations.keys, KeyDistribution::Hotspot { data: 0.5, operations: 0.9 });
    assert_eq!((all.operations.count, all.operations.read_all_fields), (Some(77), false));
    assert_eq!((all.drive.rate, all.drive.threads, all.drive.max_seconds), (Some(1000.0), Some(8), Some(60)));
    assert_eq!(all.drive.transactions, Some(false));
    assert_eq!((all.output.interval, all.output.format), (MeasurementInterval::Both, Format::JsonArray));
    assert_eq!(
        (all.output.percentiles.as_slice(), all.output.measure),
        ([50.0, 99.9].as_slice(), MeasurementType::Series)
    );
    let histogram = good("fieldlengthdistribution=histogram\nfieldlengthhistogram=lengths.txt");
    assert!(matches!(histogram.records.field_length, FieldLength::Histogram(_)));
}

#[test]
fn zero_means_what_it_means_in_the_original() {
    let zeros = good("recordcount=0\noperationcount=0\ntarget=0\nmaxexecutiontime=0");
    assert_eq!((zeros.records.count, zeros.records.count_is_set), (2_147_483_647, false));
    assert_eq!((zeros.operations.count, zeros.drive.rate, zeros.drive.max_seconds), (None, None, None));
}

#[test]
fn a_bad_value_is_named_with_what_is_allowed() {
    for (text, expected) in [
        ("fieldcount=ten", "property `fieldcount` is `ten` and should be a whole number from 1 to 10000"),
        ("readproportion=-1", "property `readproportion` is `-1` and should be a number of at least 0"),
        ("readproportion=NaN", "property `readproportion` is `NaN` and should be a number of at least 0"),
        (
            "hotspotopnfraction=1.5",
            "property `hotspotopnfraction` is `1.5` and should be a number of at least 0 and at most 1",
        ),
        ("readallfields=yes", "property `readallfields` is `yes` and should be `true` or `false`"),
        (
            "requestdistribution=zipf",
            "property `requestdistribution` is `zipf` and should be one of uniform, zipfian, latest, hotspot, \
             sequential, exponential",
        ),
        (
            "minscanlength=9\nmaxscanlength=5",
            "property `minscanlength` is `9` and should be a whole number from 1 to 5",
        ),
        (
            "recordcount=100\ninsertstart=50\ninsertcount=51",
            "property `insertcount` is `51` and should be a whole number from 1 to 50",
        ),
        (
            "fieldlengthdistribution=uniform\nfieldlength=5\nminfieldlength=6",
            "property `minfieldlength` is `6` and should be at most `fieldlength`, which is 5",
        ),
        (
            "fieldlengthdistribution=histogram",
            "property `fieldlengthhistogram` is `hist.txt` and should be a file that can be read: there is no such file",
        ),
        (
            "dataintegrity=true\nfieldlengthdistribution=uniform",
            "property `fieldlengthdistribution` is `uniform` and should be `constant` where `dataintegrity` is `true`",
        ),
        (
            "readproportion=0\nupdateproportion=0",
            "property `readproportion` is `0` and should be more than 0, or another proportion: no operation is left",
        ),
        (
            "recordcount=3\nrequestdistribution=hotspot",
            "property `hotspotdatafraction` is `0.2` and should be such that there is a record for every request: 0.8 \
             of them go to 0.2 of 3 records",
        ),
        (
            "measurementtype=single",
            "property `measurementtype` is `single` and should be one of hdrhistogram, histogram, \
             hdrhistogram+histogram, hdrhistogram+raw, timeseries, raw",
        ),
        (
            "workload=site.ycsb.workloads.RestWorkload",
            "property `workload` is `site.ycsb.workloads.RestWorkload` and should be one of \
             site.ycsb.workloads.CoreWorkload, com.yahoo.ycsb.workloads.CoreWorkload, core",
        ),
        (
            "hdrhistogram.percentiles=95;99",
            "property `hdrhistogram.percentiles` is `95;99` and should be numbers from 0 to 100 with commas between",
        ),
    ] {
        assert_eq!(said(text), expected);
    }
}

#[test]
fn what_has_no_effect_is_answered() {
    let warned =
        good("db=site.ycsb.BasicDB\nmeasurement.trackjvm=true\nspin.sleep=false\nhtrace.span=x\nrecordcunt=5\ntable=t");
    assert_eq!(
        warned.warnings,
        [
            "property `db` has no effect: the store is named by --target",
            "property `htrace.span` has no effect: nothing is traced",
            "property `measurement.trackjvm` has no effect: there is no Java machine; the result has processor time, \
             memory and context switches",
            "property `recordcunt` is unknown to the core workload and has no effect",
        ]
    );
}

#[test]
fn files_of_times_are_named() {
    let output =
        good("measurementtype=raw\nmeasurement.raw.output_file= times.csv \nmeasurement.raw.no_summary=true").output;
    assert_eq!(
        (output.measure, output.raw_file.as_deref(), output.raw_summary),
        (MeasurementType::Raw, Some("times.csv"), false)
    );
    assert_eq!(good("measurementtype=hdrhistogram+raw").output.raw_file, None);
    assert_eq!(good("hdrhistogram.output.path=dir/").output.hdr_path, None);
    assert_eq!(good("hdrhistogram.fileoutput=true").output.hdr_path.as_deref(), Some(""));
    assert_eq!(
        good("hdrhistogram.fileoutput=true\nmeasurementtype=raw\nrecordcount=5").warnings,
        [
            "`hdrhistogram.fileoutput` needs a `measurementtype` with `hdrhistogram`",
            "single times cost every request two looks at the clock, measured with it",
        ]
    );
    assert_eq!(
        good("measurement.raw.output_file=times.csv").warnings,
        ["`measurement.raw.output_file` needs a `measurementtype` with `raw`"]
    );
}

#[test]
fn the_built_in_workloads_are_the_official_ones() {
    let shares = |name: &str| {
        let properties = crate::built_in(name).expect("it is built in");
        let settings = Settings::new(&properties, &|_| Err(String::new())).expect("good values");
        assert_eq!(settings.warnings, Vec::<String>::new());
        assert_eq!((settings.records.count, settings.operations.count), (1000, Some(1000)));
        assert!(settings.operations.read_all_fields);
        let Settings { operations: o, .. } = settings;
        (o.read, o.update, o.insert, o.scan, o.read_modify_write, o.keys.name(), o.max_scan)
    };
    assert_eq!(shares("a"), (0.5, 0.5, 0.0, 0.0, 0.0, "zipfian", 1000));
    assert_eq!(shares("b"), (0.95, 0.05, 0.0, 0.0, 0.0, "zipfian", 1000));
    assert_eq!(shares("c"), (1.0, 0.0, 0.0, 0.0, 0.0, "zipfian", 1000));
    assert_eq!(shares("d"), (0.95, 0.0, 0.05, 0.0, 0.0, "latest", 1000));
    assert_eq!(shares("e"), (0.0, 0.0, 0.05, 0.95, 0.0, "zipfian", 100));
    assert_eq!(shares("f"), (0.5, 0.0, 0.0, 0.0, 0.5, "zipfian", 1000));
    assert!(crate::built_in("g").is_none());
}

#[test]
fn names_that_are_read_are_in_order() {
    assert!(super::known::READ.is_sorted(), "they are searched");
}

#[test]
fn properties_say_how_a_run_is_driven() {
    let plan = good("").plan(false);
    assert_eq!((plan.clients, plan.pace, plan.length, plan.limit), (1, Pace::Closed, Length::All, None));
    let set = good("threadcount=4\ntarget=500\noperationcount=9\nmaxexecutiontime=7\ntimeseries.granularity=100");
    let plan = set.plan(false);
    assert_eq!((plan.clients, plan.pace), (4, Pace::Open { per_second: 500.0 }));
    assert_eq!((plan.length, plan.limit), (Length::Operations(9), Some(Duration::from_secs(7))));
    assert_eq!((plan.interval, plan.loading), (Duration::from_secs(1), false));
    let plan = set.plan(true);
    assert_eq!((plan.length, plan.loading), (Length::All, true));
    let series = good("measurementtype=timeseries\ntimeseries.granularity=100");
    assert_eq!(series.plan(false).interval, Duration::from_millis(100));
}

#[test]
fn a_load_needs_to_know_how_many_records() {
    good("recordcount=5").check_load().expect("it is set");
    assert_eq!(
        good("recordcount=0").check_load().expect_err("it is not set").to_string(),
        "property `recordcount` is `0` and should be set for a load: `-p recordcount=1000000`"
    );
}
