//! Names of the objects of sheets. It does not know what is in a sheet.

/// The folder of the sheets.
pub const FOLDER: &str = "journal";

/// The name of the object of a sheet.
pub fn name_of(sheet: u64) -> String {
    format!("{FOLDER}/{sheet:016}")
}

/// The number in the name of an object.
pub fn number_of(name: &str) -> Option<u64> {
    let digits = name.strip_prefix(FOLDER)?.strip_prefix('/')?;
    digits.parse().ok().filter(|number| name_of(*number) == name)
}
