//! `larch options`, or `larch help options`: describes the options that many commands take, with their values and
//! where these come from.

use crate::args::{self, Common};
use crate::colours::{self, HEADING};
use crate::expiring;
use crate::failure::Result;
use crate::output::Output;
use crate::settings::{self, Setting};
use crate::size;
use clap::Arg;
use larch::TableOptions;
use os::Machine;

/// Runs the command.
pub fn run(common: &Common) -> Result<()> {
    let settable = args::settable();
    let settings = settings::read(&settable)?;
    let mut output = Output::new();
    output.line("The help of a command names the common options that it takes. A new table takes the others.")?;
    output
        .line("A value comes from the command line, or else from the variable, or else from the file, or else it is")?;
    output.line("the default.")?;
    for option in &settable {
        let Some(long) = option.get_long() else { continue };
        let value = option.get_value_names().filter(|_| option.get_action().takes_values());
        let value = value.into_iter().flatten().map(|name| format!(" {name}")).collect::<String>();
        let heading = colours::styled(HEADING, &format!("--{long}{value}"));
        output.line(format!("\n{heading}, {}", settings::variable(long)))?;
        let help = option.get_help().map(ToString::to_string).unwrap_or_default();
        output.line(format!("    {}", help.replace('\n', "\n    ")))?;
        let values = option.get_possible_values();
        for value in values.iter().filter(|_| option.get_action().takes_values()) {
            let about = value.get_help().map(ToString::to_string).unwrap_or_default();
            output.line(format!("      {}: {about}", value.get_name()))?;
        }
        let setting = settings.iter().find(|setting| setting.option == long);
        output.line(format!("    now {}", now(common, option, setting)?))?;
    }
    output.line(format!("\n{}", file()))?;
    output.finish()
}

/// The value of an option, and where it comes from.
fn now(common: &Common, option: &Arg, setting: Option<&Setting>) -> Result<String> {
    let variable = settings::variable(option.get_long().unwrap_or_default());
    if let Some((_, value)) = common.given.iter().find(|(name, _)| *name == variable) {
        return Ok(format!("{}, from the command line", value.display()));
    }
    if let Some(setting) = setting {
        setting.word(option)?;
        return Ok(format!("{}, from {}", setting.value, setting.origin));
    }
    let defaults = option.get_default_values();
    let default = match defaults.first() {
        Some(value) => value.display().to_string(),
        None if !option.get_action().takes_values() => "false".to_owned(),
        None => of_new_table(option.get_long().unwrap_or_default()).unwrap_or_else(|| "none".to_owned()),
    };
    Ok(format!("{default}, the default"))
}

/// The default of an option of new tables.
fn of_new_table(long: &str) -> Option<String> {
    let options = TableOptions::default();
    Some(match long {
        "page" => size::bytes(options.page_bytes.into()),
        "node" => size::bytes(options.node_bytes.into()),
        "index" => format!("{:?}", options.index).to_lowercase(),
        "compression" => options.compression.to_string(),
        "filters" => options.filters.to_string(),
        "filter-prefix" => options.filter_prefix_bytes.to_string(),
        "in-memory" => options.in_memory.to_string(),
        "expire-after" => expiring::text(&options.expiry),
        _ => return None,
    })
}

/// What is said about the file.
fn file() -> String {
    let Some(file) = settings::file() else {
        return format!("No file is read; {} names one, with lines as cache = 256MiB", settings::FILE);
    };
    let is_there = Machine::real().disk.exists(&file).unwrap_or(false);
    let there = if is_there { "" } else { ", which does not exist" };
    format!("The file is {}{there}; {} names another. Its lines are as cache = 256MiB", file.display(), settings::FILE)
}
