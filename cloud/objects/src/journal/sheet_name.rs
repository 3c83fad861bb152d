//! The names of the objects that are sheets. This module does not know what is in a sheet.

/// The folder of the sheets.
pub const FOLDER: &str = "journal";

/// The name of the object for a sheet.
pub fn name_of(sheet: u64) -> String {
    format!("{FOLDER}/{sheet:016}")
}

/// The number of the sheet with this object name; `None` if the object is not a sheet.
pub fn number_of(name: &str) -> Option<u64> {
    let digits = name.strip_prefix(FOLDER)?.strip_prefix('/')?;
    digits.parse().ok().filter(|number| name_of(*number) == name)
}
