//! `larch bench picture`: renders a chart of a page as two SVG files, for light and dark backgrounds.

#![allow(clippy::disallowed_methods, reason = "a file of the user's, never simulated")]

use crate::args::PictureArgs;
use crate::{print, results};
use harness::Failure;
use page::picture::{Background, svg};
use std::path::PathBuf;

/// Reads the page and writes the pictures.
pub fn run(args: &PictureArgs) -> Result<(), Failure> {
    let refused = |why: String| Failure::session("target", format!("{}: {why}", args.page.display()));
    let html = std::fs::read_to_string(&args.page).map_err(|error| refused(error.to_string()))?;
    let pictures = [("light", Background::Light), ("dark", Background::Dark)].map(|(name, background)| {
        let mut path = args.out.as_os_str().to_owned();
        path.push(format!("-{name}.svg"));
        (PathBuf::from(path), svg(&html, args.chart.as_deref(), background))
    });
    for (path, picture) in pictures {
        let picture = picture.map_err(|error| refused(error.to_string()))?;
        results::check_one("--out", &path)?;
        results::write(&path, picture.as_bytes())?;
        print(&format!("{}\n", path.display()))?;
    }
    Ok(())
}
