//! Turns filters into sets of keys: comparisons of key fields with constants become ranges of keys. No key is read.
//!
//! ```text
//! key (a, b, c):  a = 1 AND b IN (2, 3) AND c > 4    the ranges (1, 2, 4)… to the end of (1, 2) and (1, 3, 4)… to that of (1, 3)
//!                 a > 1 AND b = 2                    the range of a alone; b = 2 is left to the query engine
//!                 a = 1 AND b > 2 OR a > 1           the ranges of both sides, together
//! ```
//!
//! The set for a filter contains every key that passes the filter, and possibly others. The result says for each
//! filter whether the set is exact. Further filters do not change this, because each only removes values of a field.

use crate::columns::{Columns, Form};
use crate::key_set::{KeyRange, KeySet};
use datafusion::arrow::datatypes::DataType;
use datafusion::common::ScalarValue;
use datafusion::logical_expr::expr::{Between, InList, Like};
use datafusion::logical_expr::{BinaryExpr, Expr, Operator};
use rows::{Declaration, FieldType, FieldValue, Kind};
use std::borrow::Cow;
use std::cmp::Ordering;

#[cfg(test)]
mod tests;

/// The most ranges of a set. A filter that lists values for a field makes a range for each combination with the
/// values of the fields before it.
const MAX_RANGES: usize = 1024;

/// How well a set of keys matches a filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fit {
    /// The filter was not used for the set.
    Unused,
    /// The set contains all keys that the filter allows, and possibly others.
    Inexact,
    /// The set contains the keys that the filter allows, and no others.
    Exact,
}

/// The keys that several filters allow together.
#[derive(Clone, Debug)]
pub struct Narrowed {
    /// The keys.
    pub keys: KeySet,
    /// How well the set describes each filter.
    pub fits: Vec<Fit>,
    /// How many of the first fields have a single value in all keys of the set.
    pub pinned: usize,
}

/// The keys that `filters` allow together, for a table with the columns `columns`.
pub fn narrow(columns: &Columns, filters: &[&Expr]) -> Narrowed {
    let key = KeyFields::of(columns);
    let narrowed = key.conjunction(filters);
    Narrowed { keys: narrowed.keys.joined(), ..narrowed }
}

/// What a filter says about one field of the key.
struct OfField {
    field: usize,
    /// The allowed values, as ranges of the bytes of a key from this field to the key's end.
    values: KeySet,
    is_exact: bool,
}

/// The fields of a key.
struct KeyFields<'c> {
    fields: Vec<KeyField<'c>>,
}

struct KeyField<'c> {
    name: Option<&'c str>,
    field_type: FieldType,
    /// The declaration of a tuple that has only this field, or `None` if the field takes all bytes to the end of
    /// the key.
    declaration: Option<Declaration>,
}

/// The constant with which a filter compares a field.
enum Operand {
    /// A value of the field's type, as its bytes.
    Value(Vec<u8>),
    /// The constant is less than all values of the field.
    Below,
    /// The constant is greater than all values of the field.
    Above,
}

impl<'c> KeyFields<'c> {
    fn of(columns: &'c Columns) -> Self {
        let Some(key) = columns.key() else { return Self { fields: Vec::new() } };
        let last = key.fields.len() - 1;
        let has_rest = matches!(key.form, Form::Whole | Form::Tuple { has_rest: true });
        let field = |(at, field): (usize, &'c crate::columns::Field)| KeyField {
            name: field.name.as_deref(),
            field_type: field.field_type,
            declaration: (!(has_rest && at == last)).then(|| Declaration::new([field.field_type])),
        };
        Self { fields: key.fields.iter().enumerate().map(field).collect() }
    }

    fn conjunction(&self, filters: &[&Expr]) -> Narrowed {
        let of_fields: Vec<Option<OfField>> = filters.iter().map(|filter| self.of_field(filter)).collect();
        let mut fits = vec![Fit::Unused; filters.len()];
        let (mut before, mut keys) = (vec![Vec::new()], KeySet::all());
        let (mut pinned, mut is_pinned) = (0, true);
        for (at, field) in self.fields.iter().enumerate() {
            let here = || of_fields.iter().zip(0..).filter_map(|(of, filter)| Some((of.as_ref()?, filter)));
            let here = || here().filter(|(of, _)| of.field == at);
            let Some(values) = here().map(|(of, _)| of.values.clone()).reduce(|all, values| all.intersection(&values))
            else {
                break;
            };
            if values.ranges().len() * before.len() > MAX_RANGES {
                break;
            }
            for (of, filter) in here() {
                fits[filter] = if of.is_exact { Fit::Exact } else { Fit::Inexact };
            }
            let below = |prefix: &Vec<u8>| values.ranges().iter().map(|range| range.below(prefix)).collect::<Vec<_>>();
            keys = KeySet::of(before.iter().flat_map(below).collect());
            is_pinned &= values.ranges().len() == 1;
            if !values.ranges().iter().all(|range| field.is_value(range)) {
                break;
            }
            pinned += usize::from(is_pinned);
            before = before
                .iter()
                .flat_map(|prefix| values.ranges().iter().map(move |range| [&prefix[..], &range.low].concat()))
                .collect();
        }
        for (filter, fit) in filters.iter().zip(&mut fits) {
            let branches = branches(filter);
            if *fit == Fit::Unused && branches.len() > 1 {
                let branches = branches.iter().map(|branch| self.conjunction(&conjuncts(branch)));
                let (mut union, mut is_exact) = (KeySet::none(), true);
                for branch in branches {
                    is_exact &= branch.fits.iter().all(|fit| *fit == Fit::Exact);
                    union = union.union(branch.keys);
                }
                if union.is_all() || union.ranges().len() > MAX_RANGES {
                    continue;
                }
                keys = keys.intersection(&union);
                *fit = if is_exact { Fit::Exact } else { Fit::Inexact };
            }
        }
        Narrowed { keys, fits, pinned }
    }

    /// What `filter` says about one field of the key. `None` if it concerns more than one field or no field, or if
    /// it cannot be used.
    fn of_field(&self, filter: &Expr) -> Option<OfField> {
        match filter {
            Expr::BinaryExpr(BinaryExpr { left, op: op @ (Operator::And | Operator::Or), right }) => {
                let (one, other) = (self.of_field(left)?, self.of_field(right)?);
                let values = match op {
                    Operator::And => one.values.intersection(&other.values),
                    _ => one.values.union(other.values),
                };
                let is_exact = one.is_exact && other.is_exact;
                (one.field == other.field).then_some(OfField { field: one.field, values, is_exact })
            }
            Expr::BinaryExpr(BinaryExpr { left, op, right }) => match (&**left, &**right) {
                (column, Expr::Literal(value, _)) => self.comparison(column, *op, value),
                (Expr::Literal(value, _), column) => self.comparison(column, op.swap()?, value),
                _ => None,
            },
            Expr::Between(Between { expr, negated, low, high }) => {
                let (Expr::Literal(low, _), Expr::Literal(high, _)) = (&**low, &**high) else { return None };
                let (field, low) = self.values(expr, if *negated { Operator::Lt } else { Operator::GtEq }, low)?;
                let (_, high) = self.values(expr, if *negated { Operator::Gt } else { Operator::LtEq }, high)?;
                let values = if *negated { low.union(high) } else { low.intersection(&high) };
                Some(OfField { field, values, is_exact: true })
            }
            Expr::InList(InList { expr, list, negated }) => {
                let (field, _) = self.seen(expr)?;
                let mut values = Vec::with_capacity(list.len());
                for value in list {
                    let Expr::Literal(value, _) = value else { return None };
                    // A NULL in a list equals nothing, and with `NOT IN` lets no row pass.
                    if value.is_null() {
                        return None;
                    }
                    let (_, equal) = self.values(expr, Operator::Eq, value)?;
                    values.extend_from_slice(equal.ranges());
                }
                let values = KeySet::of(values);
                let values = if *negated { values.complement_in(&self.fields[field].present()) } else { values };
                Some(OfField { field, values, is_exact: true })
            }
            Expr::IsNull(column) => {
                let field = self.field(column)?;
                let values = KeySet::of(vec![self.fields[field].present()]).complement_in(&KeyRange::all());
                Some(OfField { field, values, is_exact: true })
            }
            Expr::IsNotNull(column) => {
                let field = self.field(column)?;
                Some(OfField { field, values: KeySet::of(vec![self.fields[field].present()]), is_exact: true })
            }
            Expr::Not(column) => self.comparison(column, Operator::Eq, &ScalarValue::Boolean(Some(false))),
            Expr::Column(_) => self.comparison(filter, Operator::Eq, &ScalarValue::Boolean(Some(true))),
            Expr::Like(Like { negated: false, expr, pattern, escape_char: None, case_insensitive: false }) => {
                let Expr::Literal(pattern, _) = &**pattern else { return None };
                self.like(expr, pattern.try_as_str()??)
            }
            _ => None,
        }
    }

    /// The number of the field that is the column `column`.
    fn field(&self, column: &Expr) -> Option<usize> {
        let Expr::Column(column) = column else { return None };
        self.fields.iter().position(|field| field.name == Some(column.name.as_str()))
    }

    fn comparison(&self, column: &Expr, op: Operator, value: &ScalarValue) -> Option<OfField> {
        let (field, values) = self.values(column, op, value)?;
        Some(OfField { field, values, is_exact: true })
    }

    /// The number of the field that is the column `column`, and the type to which its values are cast before the
    /// comparison, if any.
    fn seen<'e>(&self, column: &'e Expr) -> Option<(usize, Option<&'e DataType>)> {
        match column {
            Expr::Cast(cast) => Some((self.field(&cast.expr)?, Some(cast.field.data_type()))),
            column => Some((self.field(column)?, None)),
        }
    }

    /// The values of a field for which the comparison is true.
    fn values(&self, column: &Expr, op: Operator, value: &ScalarValue) -> Option<(usize, KeySet)> {
        let (number, cast) = self.seen(column)?;
        let field = &self.fields[number];
        let values = match cast {
            Some(to) if !is_wider(to, field.field_type.kind) => field.compared_as(to, op, value)?,
            // A cast of a number to a wider type does not change the number.
            _ => field.compared(op, &field.operand(value)?)?,
        };
        Some((number, values))
    }

    /// The strings that match a pattern.
    fn like(&self, column: &Expr, pattern: &str) -> Option<OfField> {
        let number = self.field(column)?;
        let field = &self.fields[number];
        if field.field_type.kind != Kind::String || pattern.contains('\\') {
            return None;
        }
        let Some(wild) = pattern.find(['%', '_']) else {
            return self.comparison(column, Operator::Eq, &ScalarValue::from(pattern));
        };
        let is_exact = &pattern[wild..] == "%";
        if wild == 0 && !is_exact {
            return None;
        }
        let mut beginning = Vec::new();
        match &field.declaration {
            None => beginning.extend_from_slice(&pattern.as_bytes()[..wild]),
            Some(_) => {
                if field.field_type.is_optional {
                    beginning.push(1);
                }
                rows::encode_beginning(&pattern.as_bytes()[..wild], &mut beginning);
                if field.field_type.is_descending {
                    beginning.iter_mut().for_each(|byte| *byte = !*byte);
                }
            }
        }
        Some(OfField { field: number, values: KeySet::of(vec![KeyRange::of_prefix(beginning)]), is_exact })
    }
}

impl KeyField<'_> {
    /// The bytes of all values except NULL.
    fn present(&self) -> KeyRange {
        match (self.field_type.is_optional, self.field_type.is_descending) {
            (false, _) => KeyRange::all(),
            (true, false) => KeyRange::of_prefix(vec![1]),
            (true, true) => KeyRange::of_prefix(vec![!1]),
        }
    }

    /// Whether the range contains exactly the keys with a single value of the field.
    fn is_value(&self, range: &KeyRange) -> bool {
        match &self.declaration {
            None => *range == self.one(range.low.clone()),
            Some(declaration) => *range == self.one(range.low.clone()) && declaration.decode(&range.low).is_ok(),
        }
    }

    /// The keys with this value in the field.
    fn one(&self, value: Vec<u8>) -> KeyRange {
        match &self.declaration {
            Some(_) => KeyRange::of_prefix(value),
            // The field takes the rest of the key.
            None => KeyRange { high: Some([&value[..], &[0]].concat()), low: value },
        }
    }

    /// The bytes of all values for which a comparison with a constant is true.
    fn compared(&self, op: Operator, operand: &Operand) -> Option<KeySet> {
        let present = self.present();
        let (less, equal, greater) = match operand {
            Operand::Below => (KeySet::none(), KeySet::none(), KeySet::of(vec![present])),
            Operand::Above => (KeySet::of(vec![present]), KeySet::none(), KeySet::none()),
            Operand::Value(value) => {
                let equal = self.one(value.clone());
                let before = KeyRange { low: present.low, high: Some(equal.low.clone()) };
                let after = equal.high.clone().map(|low| KeyRange { low, high: present.high });
                let (before, after) = (KeySet::of(vec![before]), KeySet::of(after.into_iter().collect()));
                let (less, greater) = if self.field_type.is_descending { (after, before) } else { (before, after) };
                (less, KeySet::of(vec![equal]), greater)
            }
        };
        Some(match op {
            Operator::Eq => equal,
            Operator::NotEq => less.union(greater),
            Operator::Lt => less,
            Operator::LtEq => less.union(equal).joined(),
            Operator::Gt => greater,
            Operator::GtEq => equal.union(greater).joined(),
            _ => return None,
        })
    }

    /// The bytes of all values for which a comparison is true after a cast to a type with fractions, as in `id >
    /// 10.5`. The cast keeps the order of values, but may map several of them to the same number.
    fn compared_as(&self, to: &DataType, op: Operator, value: &ScalarValue) -> Option<KeySet> {
        if self.field_type.kind == Kind::F32 {
            return self.compared_as_double(to, op, value);
        }
        let (first, after) = borders(to, self.field_type.kind, value)?;
        let compared =
            |op, number: i128| self.compared(op, &self.operand(&ScalarValue::Decimal128(Some(number), 38, 0))?);
        match op {
            Operator::Lt => compared(Operator::Lt, first),
            Operator::LtEq => compared(Operator::Lt, after),
            Operator::Gt => compared(Operator::GtEq, after),
            Operator::GtEq => compared(Operator::GtEq, first),
            Operator::Eq | Operator::NotEq if after == first + 1 => compared(op, first),
            Operator::Eq => Some(compared(Operator::GtEq, first)?.intersection(&compared(Operator::Lt, after)?)),
            Operator::NotEq => Some(compared(Operator::Lt, first)?.union(compared(Operator::GtEq, after)?).joined()),
            _ => None,
        }
    }

    /// Compares a field of 32-bit floating-point numbers with a constant of 64 bits.
    fn compared_as_double(&self, to: &DataType, op: Operator, value: &ScalarValue) -> Option<KeySet> {
        let (DataType::Float64, ScalarValue::Float64(Some(number))) = (to, value) else { return None };
        if !is_plain(*number) {
            return None;
        }
        let near = *number as f32;
        let single = |number: f32| self.operand(&ScalarValue::Float32(Some(number)));
        if f64::from(near) == *number {
            return self.compared(op, &single(near)?);
        }
        // No value of the field equals the constant, so the field is compared with the least value above it. In a
        // key, -0.0 is written as 0.0.
        let above = if f64::from(near) > *number { near } else { near.next_up() } + 0.0;
        match op {
            Operator::Lt | Operator::LtEq => self.compared(Operator::Lt, &single(above)?),
            Operator::Gt | Operator::GtEq => self.compared(Operator::GtEq, &single(above)?),
            Operator::Eq => Some(KeySet::none()),
            Operator::NotEq => Some(KeySet::of(vec![self.present()])),
            _ => None,
        }
    }

    /// A constant as bytes of the field's type.
    fn operand(&self, value: &ScalarValue) -> Option<Operand> {
        if value.is_null() {
            return None;
        }
        let value = match self.field_type.kind {
            Kind::Bool => match value {
                ScalarValue::Boolean(value) => FieldValue::Bool((*value)?),
                _ => return None,
            },
            Kind::U8 | Kind::U16 | Kind::U32 | Kind::U64 | Kind::U128 => match whole(value)? {
                Whole::Negative(_) => return Some(Operand::Below),
                Whole::Natural(number) => FieldValue::Unsigned(number),
            },
            Kind::I8 | Kind::I16 | Kind::I32 | Kind::I64 | Kind::I128 => match whole(value)? {
                Whole::Negative(number) => FieldValue::Signed(number),
                Whole::Natural(number) => match i128::try_from(number) {
                    Ok(number) => FieldValue::Signed(number),
                    Err(_) => return Some(Operand::Above),
                },
            },
            // SQL tells -0.0 from 0.0 and knows many NaNs. A key has one zero and one NaN.
            Kind::F32 => match value {
                ScalarValue::Float32(Some(number)) if is_plain((*number).into()) => FieldValue::F32(*number),
                _ => return None,
            },
            Kind::F64 => match value {
                ScalarValue::Float64(Some(number)) if is_plain(*number) => FieldValue::F64(*number),
                _ => return None,
            },
            Kind::String => match value {
                ScalarValue::Utf8(text) | ScalarValue::LargeUtf8(text) | ScalarValue::Utf8View(text) => {
                    FieldValue::String(Cow::Borrowed(text.as_deref()?))
                }
                _ => return None,
            },
            Kind::Bytes => FieldValue::Bytes(Cow::Borrowed(bytes(value)?)),
            Kind::Fixed(width) => {
                let bytes = bytes(value)?;
                if bytes.len() != usize::from(width) {
                    return None;
                }
                FieldValue::Bytes(Cow::Borrowed(bytes))
            }
            _ => return None,
        };
        let Some(declaration) = &self.declaration else {
            return Some(Operand::Value(match value {
                FieldValue::String(text) => text.as_bytes().to_vec(),
                FieldValue::Bytes(bytes) => bytes.to_vec(),
                _ => return None,
            }));
        };
        let mut key = Vec::new();
        match (declaration.encode(std::slice::from_ref(&value), &mut key), value) {
            (Ok(()), _) => Some(Operand::Value(key)),
            // The number is too small or too large for the field.
            (Err(_), FieldValue::Signed(number)) if number < 0 => Some(Operand::Below),
            (Err(_), FieldValue::Signed(_) | FieldValue::Unsigned(_)) => Some(Operand::Above),
            (Err(_), _) => None,
        }
    }
}

/// A whole number of any integer type.
enum Whole {
    Negative(i128),
    Natural(u128),
}

fn whole(value: &ScalarValue) -> Option<Whole> {
    let number = match value {
        ScalarValue::UInt8(number) => i128::from((*number)?),
        ScalarValue::UInt16(number) => i128::from((*number)?),
        ScalarValue::UInt32(number) => i128::from((*number)?),
        ScalarValue::UInt64(number) => i128::from((*number)?),
        ScalarValue::Int8(number) => i128::from((*number)?),
        ScalarValue::Int16(number) => i128::from((*number)?),
        ScalarValue::Int32(number) => i128::from((*number)?),
        ScalarValue::Int64(number) => i128::from((*number)?),
        ScalarValue::Decimal128(number, _, 0) => (*number)?,
        ScalarValue::Decimal256(number, _, 0) => match (*number)?.to_i128() {
            Some(number) => number,
            None => return (*number)?.to_string().parse().ok().map(Whole::Natural),
        },
        _ => return None,
    };
    Some(u128::try_from(number).map_or(Whole::Negative(number), Whole::Natural))
}

/// Whether SQL compares this number in the same way as keys are compared.
fn is_plain(number: f64) -> bool {
    !number.is_nan() && number.to_bits() != (-0.0_f64).to_bits()
}

fn bytes(value: &ScalarValue) -> Option<&[u8]> {
    match value {
        ScalarValue::Binary(bytes)
        | ScalarValue::LargeBinary(bytes)
        | ScalarValue::BinaryView(bytes)
        | ScalarValue::FixedSizeBinary(_, bytes) => bytes.as_deref(),
        _ => None,
    }
}

/// The first whole number that, cast to the type `to`, is not less than a constant, and the first one that is
/// greater. `None` if `kind` is not a kind of whole numbers, or if the cast does not keep the order.
fn borders(to: &DataType, kind: Kind, value: &ScalarValue) -> Option<(i128, i128)> {
    let digits = digits(kind)?;
    match (to, value) {
        // Arrow's casts round as these do, and it compares in the same order.
        (DataType::Float64, ScalarValue::Float64(Some(value))) if is_plain(*value) => {
            Some(borders_by(|number| (number as f64).total_cmp(value)))
        }
        (DataType::Float32, ScalarValue::Float32(Some(value))) if is_plain((*value).into()) => {
            Some(borders_by(|number| (number as f32).total_cmp(value)))
        }
        (DataType::Decimal128(precision, scale @ 1..=18), ScalarValue::Decimal128(Some(value), _, value_scale))
            if scale == value_scale && *precision >= digits + scale.unsigned_abs() =>
        {
            let one = 10_i128.pow(u32::from(scale.unsigned_abs()));
            Some(borders_by(|number| (number * one).cmp(value)))
        }
        _ => None,
    }
}

/// The first whole number for which `compare` does not return `Less`, and the first one for which it returns
/// `Greater`. For growing numbers, `compare` must return `Less`, then `Equal`, then `Greater`. If no number of 64
/// bits qualifies, the result is one more than the largest.
fn borders_by(compare: impl Fn(i128) -> Ordering) -> (i128, i128) {
    let first = |is_past: &dyn Fn(Ordering) -> bool| {
        let (mut low, mut high) = (i128::from(i64::MIN), i128::from(u64::MAX) + 1);
        while low < high {
            let middle = low + (high - low) / 2;
            if is_past(compare(middle)) {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        low
    };
    (first(&Ordering::is_ge), first(&Ordering::is_gt))
}

/// The most digits of a whole number of this kind, or `None` if it is not a kind of whole numbers, or has 128 bits.
fn digits(kind: Kind) -> Option<u8> {
    match kind {
        Kind::U8 | Kind::I8 => Some(3),
        Kind::U16 | Kind::I16 => Some(5),
        Kind::U32 | Kind::I32 => Some(10),
        Kind::U64 | Kind::I64 => Some(20),
        _ => None,
    }
}

/// Whether the type `to` contains every whole number of `kind`.
fn is_wider(to: &DataType, kind: Kind) -> bool {
    let bits = |kind: Kind| kind.width().unwrap_or(16) * 8;
    let is_natural = matches!(kind, Kind::U8 | Kind::U16 | Kind::U32 | Kind::U64);
    digits(kind).is_some_and(|digits_of_kind| match to {
        DataType::UInt8 | DataType::UInt16 | DataType::UInt32 | DataType::UInt64 => {
            is_natural && to.primitive_width().is_some_and(|width| width * 8 >= bits(kind))
        }
        DataType::Int8 | DataType::Int16 | DataType::Int32 | DataType::Int64 => {
            to.primitive_width().is_some_and(|width| width * 8 >= bits(kind) + usize::from(is_natural))
        }
        DataType::Decimal128(digits, 0) | DataType::Decimal256(digits, 0) => *digits >= digits_of_kind,
        _ => false,
    })
}

/// The parts of a filter that are joined by OR at its top.
fn branches(filter: &Expr) -> Vec<&Expr> {
    sides(filter, Operator::Or)
}

/// The parts of a filter that are joined by AND at its top.
fn conjuncts(filter: &Expr) -> Vec<&Expr> {
    sides(filter, Operator::And)
}

fn sides(filter: &Expr, operator: Operator) -> Vec<&Expr> {
    let (mut all, mut left) = (Vec::new(), vec![filter]);
    while let Some(next) = left.pop() {
        match next {
            Expr::BinaryExpr(BinaryExpr { left: one, op, right: other }) if *op == operator => {
                left.extend([&**other, &**one]);
            }
            side => all.push(side),
        }
    }
    all
}
