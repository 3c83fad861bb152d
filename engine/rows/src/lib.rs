//! Typed rows on top of an engine that knows only bytes. This crate encodes several fields as a key whose bytes
//! sort in the order of the fields, and makes the keys of indexes from rows. It knows no table, no file and nothing
//! else of the engine. The engine does not know this crate.
//!
//! * A Rust [`Tuple`] becomes a key, and the key is read back as a tuple. [`Tuple::range`] is the range of all keys
//!   that begin with the fields of the tuple.
//! * A [`Declaration`] makes and reads such keys if the types are known only when the program runs. It can also
//!   write each key as text.
//! * An [`Extractor`] says which keys a row of a table has in an index, and a [`RowTime`] until when it is there.
//! * [`merge_patch`] changes a JSON value, as a function for merges.
//!
//! `docs/format/tuple.md` describes the bytes, and `docs/format/extractor.md` the language of extractors.
//!
//! ```
//! use larch_rows::{DecodeTuple, Tuple};
//!
//! let key = (17_u32, "Grace", 0.5_f64).to_key();
//! assert!(key < (17_u32, "Grace Hopper", f64::NEG_INFINITY).to_key());
//!
//! let (number, name, share) = <(u32, String, f64)>::decode(&key)?;
//! assert_eq!((number, &*name, share), (17, "Grace", 0.5));
//! # Ok::<(), larch_rows::BadTuple>(())
//! ```

mod declaration;
mod decoder;
mod extractor;
mod field;
mod field_type;
mod merge_patch;
#[cfg(test)]
mod random;
mod scanner;
mod stored;
mod tuple;
mod value;

pub use declaration::{BadValue, Declaration};
pub use decoder::{BadTuple, Decoder, Mistake};
pub use extractor::{BadRow, BadTime, Extractor, RowTime};
pub use field::{DecodeField, Descending, Field, encode_beginning};
pub use field_type::{FieldType, Kind};
pub use merge_patch::merge_patch;
pub use scanner::{BadText, quoted};
pub use stored::BadStored;
pub use tuple::{DecodeTuple, PrefixRange, Tuple, prefix_range};
pub use value::{FieldValue, Misfit};
