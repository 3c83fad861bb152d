//! Compares the sets of keys for filters with DataFusion's own evaluation of the filters on every possible key.
//! Random cases print their seed; `LARCH_SEED=n` runs one again.

use super::*;
use crate::fill::Filler;
use datafusion::arrow::array::{Array, BooleanArray, RecordBatch};
use datafusion::common::DFSchema;
use datafusion::logical_expr::{ColumnarValue, col, lit};
use datafusion::prelude::SessionContext;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};

fn columns(text: &str) -> Columns {
    text.parse().expect("columns")
}

/// The columns of the key in a test, and constants for each of them.
struct Universe {
    columns: Columns,
    constants: Vec<(&'static str, Vec<ScalarValue>)>,
    keys: Vec<Vec<u8>>,
    rows: RecordBatch,
}

impl Universe {
    fn new(text: &str, of_columns: Vec<(&'static str, Vec<ScalarValue>)>, keys: Vec<Vec<u8>>) -> Self {
        let columns = columns(text);
        let numbers: Vec<usize> = (0..columns.schema().fields().len()).collect();
        let mut filler = Filler::new(&columns, &numbers, &[], keys.len());
        for key in &keys {
            filler.push(key, &[]).expect("it is a key");
        }
        let rows = RecordBatch::try_new(columns.schema(), filler.take()).expect("the arrays fit");
        Self { columns, constants: of_columns, keys, rows }
    }

    /// For each row, whether a filter is true.
    fn truth(&self, filter: &Expr) -> Vec<bool> {
        let schema = DFSchema::try_from(self.columns.schema()).expect("no name is there twice");
        let filter = SessionContext::new().create_physical_expr(filter.clone(), &schema).expect("the filter has types");
        let answer = filter.evaluate(&self.rows).and_then(|answer: ColumnarValue| answer.into_array(self.keys.len()));
        let answer = answer.expect("it can be evaluated");
        let answer = answer.as_any().downcast_ref::<BooleanArray>().expect("a filter is true or false");
        (0..answer.len()).map(|row| answer.is_valid(row) && answer.value(row)).collect()
    }

    /// Compares the set of keys for the filters with the keys that DataFusion lets pass. Returns how well it fits
    /// each filter.
    fn check(&self, filters: &[Expr]) -> Vec<Fit> {
        let narrowed = narrow(&self.columns, &filters.iter().collect::<Vec<_>>());
        let truths: Vec<Vec<bool>> = filters.iter().map(|filter| self.truth(filter)).collect();
        let mut pinned: Vec<usize> = Vec::new();
        for (row, key) in self.keys.iter().enumerate() {
            let is_in = narrowed
                .keys
                .ranges()
                .iter()
                .any(|range| range.low <= *key && range.high.as_ref().is_none_or(|high| key < high));
            let fits = || narrowed.fits.iter().zip(&truths);
            let shown = || format!("{} in {narrowed:?} of {filters:?}", self.columns.show_key(key));
            if fits().all(|(fit, truth)| *fit == Fit::Unused || truth[row]) {
                let is_exact = fits().all(|(fit, _)| *fit != Fit::Inexact);
                assert!(is_in || !is_exact && !truths.iter().all(|truth| truth[row]), "missing: {}", shown());
            }
            for (fit, truth) in fits() {
                assert!(!is_in || *fit != Fit::Exact || truth[row], "too much: {}", shown());
            }
            if is_in {
                pinned.push(row);
            }
        }
        for field in 0..narrowed.pinned {
            let value = |row: usize| ScalarValue::try_from_array(self.rows.column(field), row).expect("there is a row");
            assert!(pinned.iter().all(|row| value(*row) == value(pinned[0])), "{narrowed:?}");
        }
        narrowed.fits
    }

    fn random_leaf(&self, random: &mut StdRng) -> Expr {
        let (name, constants) = self.constants.choose(random).expect("there are columns");
        let mut draw = || lit(constants.choose(random).expect("there are constants").clone());
        let (one, two, three) = (draw(), draw(), draw());
        let column = col(*name);
        let is_string = matches!(constants[0], ScalarValue::Utf8View(_));
        match random.random_range(0..13) {
            0 | 1 => column.eq(one),
            2 => column.not_eq(one),
            3 => column.lt(one),
            4 => column.lt_eq(one),
            5 => one.lt(column),
            6 => column.gt_eq(one),
            7 => column.between(one, two),
            8 => column.not_between(one, two),
            9 => column.in_list(vec![one, two, three], false),
            10 => column.in_list(vec![one, two, three], true),
            11 if is_string => column.like(lit(*["a%", "ab", "%", "a%b", "_", "b_%"].choose(random).expect("some"))),
            11 | 12 if random.random() => column.is_null(),
            _ => column.is_not_null(),
        }
    }

    fn random_filter(&self, random: &mut StdRng, depth: u32) -> Expr {
        if depth == 0 || random.random_range(0..3) == 0 {
            return self.random_leaf(random);
        }
        let (one, two) = (self.random_filter(random, depth - 1), self.random_filter(random, depth - 1));
        if random.random() { one.and(two) } else { one.or(two) }
    }
}

fn seeds() -> impl Iterator<Item = u64> {
    let given = std::env::var("LARCH_SEED").ok().and_then(|seed| seed.parse().ok());
    let seeds = given.map_or(0..400, |seed: u64| seed..seed + 1);
    seeds.inspect(|seed| println!("LARCH_SEED={seed}"))
}

/// A key with three fields: an optional one, a descending one, and one with strings.
fn three_fields() -> Universe {
    let strings = ["", "a", "a\0", "ab", "b", "b\u{7f}x"];
    let declaration: Declaration = "u8?, i16 desc, string".parse().expect("a declaration");
    let mut keys = Vec::new();
    for a in [FieldValue::None, FieldValue::Unsigned(0), FieldValue::Unsigned(7), FieldValue::Unsigned(255)] {
        for b in [-32768, -1, 0, 5, 32767] {
            for c in strings {
                let values = [a.clone(), FieldValue::Signed(b), FieldValue::String(c.into())];
                let mut key = Vec::new();
                declaration.encode(&values, &mut key).expect("the values fit");
                keys.push(key);
            }
        }
    }
    let constants = vec![
        ("a", [0, 1, 7, 255].map(|number| ScalarValue::UInt8(Some(number))).to_vec()),
        ("b", [-32768, -1, 0, 4, 5, 32767].map(|number| ScalarValue::Int16(Some(number))).to_vec()),
        ("c", strings.map(|text| ScalarValue::Utf8View(Some(text.to_owned()))).to_vec()),
    ];
    Universe::new("key.tuple(a u8?, b i16 desc, c string)", constants, keys)
}

#[test]
fn filters_leave_the_keys_for_which_they_are_true() {
    let universe = three_fields();
    let mut used = 0;
    for seed in seeds() {
        let mut random = StdRng::seed_from_u64(seed);
        for _ in 0..10 {
            let filters: Vec<Expr> =
                (0..random.random_range(1..4)).map(|_| universe.random_filter(&mut random, 2)).collect();
            used += universe.check(&filters).iter().filter(|fit| **fit > Fit::Unused).count();
        }
    }
    assert!(used > 0, "no filter was used");
}

#[test]
fn what_is_exact_alone_is_exact_beside_other_filters() {
    let universe = three_fields();
    for seed in seeds() {
        let mut random = StdRng::seed_from_u64(seed);
        let filters: Vec<Expr> = (0..4).map(|_| universe.random_filter(&mut random, 2)).collect();
        let fits = |filters: &[Expr]| narrow(&universe.columns, &filters.iter().collect::<Vec<_>>()).fits;
        let (one, two, all) = (fits(&filters[..2]), fits(&filters[2..]), fits(&filters));
        for (apart, together) in one.iter().chain(&two).zip(&all) {
            assert!(*apart != Fit::Exact || *together == Fit::Exact, "{filters:?}: {one:?} {two:?} {all:?}");
        }
    }
}

#[test]
fn a_last_field_without_an_end_is_compared_as_one_with_an_end() {
    let texts = ["", "a", "a\0", "a\0b", "ab", "b"];
    let keys = texts.iter().flat_map(|text| {
        [false, true].map(|flag| {
            let mut key = vec![u8::from(flag)];
            key.extend_from_slice(text.as_bytes());
            key
        })
    });
    let constants = vec![
        ("flag", [false, true].map(|flag| ScalarValue::Boolean(Some(flag))).to_vec()),
        ("text", texts.map(|text| ScalarValue::Utf8View(Some(text.to_owned()))).to_vec()),
    ];
    let universe = Universe::new("key.tuple(flag bool, text rest string)", constants, keys.collect());
    for seed in seeds() {
        let mut random = StdRng::seed_from_u64(seed);
        let filters: Vec<Expr> = (0..2).map(|_| universe.random_filter(&mut random, 2)).collect();
        universe.check(&filters);
    }
    let flagged = [col("flag"), Expr::Not(Box::new(col("flag")))];
    for filter in flagged {
        assert_eq!(universe.check(&[filter])[0], Fit::Exact);
    }
}

#[track_caller]
fn check_fits(declared: &str, filters: &[Expr], expected: &[Fit], ranges: usize) {
    let narrowed = narrow(&columns(declared), &filters.iter().collect::<Vec<_>>());
    assert_eq!(
        (&narrowed.fits[..], narrowed.keys.ranges().len()),
        (expected, ranges),
        "{filters:?}: {:?}",
        narrowed.keys
    );
}

#[test]
fn a_field_is_used_if_those_before_it_have_single_values() {
    use Fit::{Exact, Inexact, Unused};
    let declared = "key.tuple(a u32, b u32, c u32), value v bytes";
    check_fits(declared, &[col("a").eq(lit(1_u32)), col("b").gt(lit(2_u32))], &[Exact, Exact], 1);
    check_fits(declared, &[col("b").gt(lit(2_u32))], &[Unused], 1);
    check_fits(declared, &[col("a").gt(lit(1_u32)), col("b").eq(lit(2_u32))], &[Exact, Unused], 1);
    let two = col("a").in_list(vec![lit(1_u32), lit(2_u32), lit(4_u32)], false);
    check_fits(declared, &[two.clone(), col("b").eq(lit(2_u32))], &[Exact, Exact], 3);
    // Consecutive values become a single range.
    check_fits(declared, &[two], &[Exact], 2);
    // A filter that programs use to read an answer page by page.
    let after = col("a").gt(lit(1_u32)).or(col("a").eq(lit(1_u32)).and(col("b").gt(lit(2_u32))));
    check_fits(declared, &[after], &[Exact], 1);
    let beside = col("a").eq(lit(1_u32)).and(col("v").eq(lit(1_u32))).or(col("a").eq(lit(3_u32)));
    check_fits(declared, &[beside], &[Inexact], 2);
    check_fits(declared, &[col("v").eq(lit(1_u32))], &[Unused], 1);
}

#[test]
fn a_constant_outside_the_range_of_a_field_is_before_or_after_all_values() {
    use Fit::Exact;
    let wide = datafusion::logical_expr::cast(col("a"), DataType::Int64);
    let declared = "key.tuple(a u8)";
    check_fits(declared, &[wide.clone().lt(lit(-1_i64))], &[Exact], 0);
    check_fits(declared, &[wide.clone().gt(lit(-1_i64))], &[Exact], 1);
    check_fits(declared, &[wide.clone().eq(lit(256_i64))], &[Exact], 0);
    check_fits(declared, &[wide.clone().lt_eq(lit(256_i64))], &[Exact], 1);
    check_fits(declared, &[wide.gt(lit(7_i64))], &[Exact], 1);
    let narrow = datafusion::logical_expr::cast(col("a"), DataType::Int8);
    check_fits(declared, &[narrow.gt(lit(7_i8))], &[Fit::Unused], 1);
}

/// All comparisons of a column with each constant. The column is cast to the type of the constants.
fn comparisons(column: &str, constants: &[ScalarValue]) -> Vec<Expr> {
    let seen = || datafusion::logical_expr::cast(col(column), constants[0].data_type());
    let of = |constant: &ScalarValue| {
        let constant = || lit(constant.clone());
        let other = || lit(constants[constants.len() / 2].clone());
        [
            seen().eq(constant()),
            seen().not_eq(constant()),
            seen().lt(constant()),
            seen().lt_eq(constant()),
            seen().gt(constant()),
            constant().lt_eq(seen()),
            seen().between(constant(), other()),
            seen().not_between(constant(), other()),
            seen().in_list(vec![constant(), other()], false),
            seen().in_list(vec![constant(), other()], true),
        ]
    };
    constants.iter().flat_map(of).collect()
}

/// For a constant with a fraction, the query engine casts the field to a type with fractions.
#[test]
fn whole_numbers_are_compared_with_numbers_that_have_fractions() {
    let exact = 1_i64 << 53;
    let wide = [i64::MIN, i64::MIN + 1, -exact - 1, -11, -10, -1, 0, 1, 3, 4, 10, 11];
    let wide = [&wide[..], &[exact - 1, exact, exact + 1, exact + 2, exact + 3, i64::MAX - 1, i64::MAX]].concat();
    let doubles = [0.0, 0.5, 3.0, 10.5, -10.5, 1e10, -1e30, 1e30, exact as f64, exact as f64 + 2.0, i64::MAX as f64];
    let doubles = [&doubles[..], &[i64::MIN as f64, f64::INFINITY, f64::NEG_INFINITY]].concat();
    let doubles: Vec<_> = doubles.into_iter().map(|number| ScalarValue::Float64(Some(number))).collect();
    let singles: Vec<_> = [-1.5, 3.0, 16_777_216.0, 1e30].map(|number| ScalarValue::Float32(Some(number))).to_vec();
    let decimals = |precision| {
        [-105, -100, 0, 5, 30, 105, 99_999].map(|tenths| ScalarValue::Decimal128(Some(tenths), precision, 1)).to_vec()
    };
    for (declared, precision) in [("i64", 21), ("i64 desc", 38), ("i32", 11), ("u64", 21), ("u8", 4), ("i16? desc", 6)]
    {
        let declaration: Declaration = declared.parse().expect("a declaration");
        let mut keys = Vec::new();
        for number in &wide {
            let value = match number {
                0.. if declared.starts_with('u') => FieldValue::Unsigned(number.unsigned_abs().into()),
                number => FieldValue::Signed((*number).into()),
            };
            let mut key = Vec::new();
            if declaration.encode(&[value], &mut key).is_ok() {
                keys.push(key);
            }
        }
        assert!(keys.len() >= 5, "{declared}: {} keys", keys.len());
        let universe = Universe::new(&format!("key.tuple(a {declared})"), Vec::new(), keys);
        for constants in [doubles.clone(), singles.clone(), decimals(precision)] {
            for filter in comparisons("a", &constants) {
                assert_eq!(universe.check(std::slice::from_ref(&filter)), [Fit::Exact], "{declared}: {filter:?}");
            }
        }
    }
    // The query engine is not consistent in how it compares -0.0 and NaN.
    for number in [-0.0, f64::NAN] {
        let seen = datafusion::logical_expr::cast(col("a"), DataType::Float64);
        check_fits("key.tuple(a i64)", &[seen.eq(lit(number))], &[Fit::Unused], 1);
    }
    // A cast to a decimal type without room for all values of the field may fail, so such a filter is not used.
    let narrow = datafusion::logical_expr::cast(col("a"), DataType::Decimal128(20, 1));
    let constant = lit(ScalarValue::Decimal128(Some(5), 20, 1));
    check_fits("key.tuple(a i64)", &[narrow.eq(constant)], &[Fit::Unused], 1);
    // The matching values of the first field stay separate ranges, so the filter on the second field can be used,
    // too.
    let three = datafusion::logical_expr::cast(col("a"), DataType::Float64).eq(lit(255.0_f64));
    check_fits("key.tuple(a u32, b u32)", &[three, col("b").gt(lit(2_u32))], &[Fit::Exact, Fit::Exact], 1);
}

#[test]
fn numbers_of_32_bits_are_compared_with_numbers_of_64() {
    let numbers = [f32::NEG_INFINITY, f32::MIN, -1.5, -f32::MIN_POSITIVE, 0.0, f32::from_bits(1), 0.1, 1.5, f32::MAX];
    let numbers = [&numbers[..], &[f32::INFINITY, f32::NAN]].concat();
    for declared in ["f32", "f32 desc", "f32?"] {
        let declaration: Declaration = declared.parse().expect("a declaration");
        let key = |number: &f32| {
            let mut key = Vec::new();
            declaration.encode(&[FieldValue::F32(*number)], &mut key).expect("it fits");
            key
        };
        let universe =
            Universe::new(&format!("key.tuple(a {declared})"), Vec::new(), numbers.iter().map(key).collect());
        let constants = [0.0, 0.1, f64::from(0.1_f32), 1.5, -1.5, 1e-300, -1e-300, 1e300, -1e300, f64::INFINITY];
        let constants: Vec<_> = constants.into_iter().map(|number| ScalarValue::Float64(Some(number))).collect();
        for filter in comparisons("a", &constants) {
            assert_eq!(universe.check(std::slice::from_ref(&filter)), [Fit::Exact], "{declared}: {filter:?}");
        }
    }
}

#[test]
fn numbers_that_a_key_does_not_tell_apart_are_left_to_the_query_engine() {
    let declared = "key.tuple(a f64)";
    check_fits(declared, &[col("a").gt(lit(-0.0_f64))], &[Fit::Unused], 1);
    check_fits(declared, &[col("a").lt(lit(f64::NAN))], &[Fit::Unused], 1);
    check_fits(declared, &[col("a").gt(lit(0.0_f64))], &[Fit::Exact], 1);
}

#[test]
fn a_list_with_more_values_than_ranges_are_wanted_is_not_used() {
    let many: Vec<Expr> = (0..40_u32).map(|number| lit(number * 2)).collect();
    let list = |name: &str| col(name).in_list(many.clone(), false);
    check_fits("key.tuple(a u32, b u32)", &[list("a"), list("b")], &[Fit::Exact, Fit::Unused], 40);
}
