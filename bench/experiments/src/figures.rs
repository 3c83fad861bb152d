//! Figures of several repeats: medians, paired ratios and spreads, and their texts in tables.

#[cfg(test)]
mod tests;

use kit::median;
use kit::median::extremes;
use page::figure;

/// The median of `what`. `None` if nothing was measured, or if a repeat has no such figure: the median of the others
/// would be that of other repeats than the figures beside it.
pub fn middle<T, F: Into<Option<f64>>>(measured: &[T], what: impl Fn(&T) -> F) -> Option<f64> {
    let figures: Vec<f64> = measured.iter().map(|measured| what(measured).into()).collect::<Option<_>>()?;
    (!figures.is_empty()).then(|| median(&figures))
}

/// For the captions of tables with ratios by [`ratio`].
pub const PAIRED: &str =
    "a ratio is the median of paired ratios, one of each repeat, and not the ratio of the medians beside it";

/// The ratio of `what` between two sides: the median over the ratios of the single repeats, in which other load on
/// the machine affects both sides. `None` if nothing was measured, or if a repeat of a side has no such figure.
pub fn ratio<T, F: Into<Option<f64>>>(ours: &[T], other: &[T], what: impl Fn(&T) -> F) -> Option<f64> {
    let pairs: Vec<(&T, &T)> = ours.iter().zip(other).collect();
    middle(&pairs, |(ours, other)| Some(what(ours).into()? / what(other).into()?.max(f64::MIN_POSITIVE)))
}

/// `median (least-most)` of `what`.
pub fn spread<T>(measured: &[T], what: impl Fn(&T) -> f64) -> String {
    let figures: Vec<f64> = measured.iter().map(what).collect();
    let (least, most) = extremes(&figures);
    format!("{} ({}-{})", shown(middle(&figures, |figure| *figure)), figure(least), figure(most))
}

/// A figure that may be missing.
pub fn shown(number: Option<f64>) -> String {
    number.map_or("-".to_owned(), figure)
}

/// The median of `what` as text.
pub fn shown_middle<T, F: Into<Option<f64>>>(measured: &[T], what: impl Fn(&T) -> F) -> String {
    shown(middle(measured, what))
}

/// Bytes in KiB.
pub fn kib(bytes: f64) -> f64 {
    bytes / 1024.0
}

/// Bytes in MiB.
pub fn mib(bytes: f64) -> f64 {
    bytes / f64::from(1 << 20)
}
