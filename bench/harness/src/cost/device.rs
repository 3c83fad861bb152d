//! The bytes that the disks of the machine read and wrote, for all programs, as Linux counts them. They stand beside
//! what a store counts itself: a store does not see what the file system and the device add.

#[cfg(test)]
mod tests;

/// A sector of `/proc/diskstats` (kernel documentation, iostats), whatever the disk has.
const SECTOR_BYTES: u64 = 512;
/// The beginnings of the names of devices that pass their requests on to others, or that keep data in memory.
const NO_DISKS: [&str; 7] = ["dm-", "loop", "md", "ram", "sr", "zram", "fd"];

/// The bytes that all disks have read and written since the machine began. `None` if the system does not count them.
pub(super) fn bytes() -> Option<(u64, u64)> {
    let text = std::fs::read_to_string("/proc/diskstats").ok()?;
    sum(&text, |name| std::path::Path::new("/sys/block").join(name).exists())
}

/// The sums over the lines of `/proc/diskstats`. `is_whole` says whether a device is a whole disk and no partition.
fn sum(text: &str, is_whole: impl Fn(&str) -> bool) -> Option<(u64, u64)> {
    let mut all = None;
    for line in text.lines() {
        // major, minor, name, reads, merged, sectors read, ms, writes, merged, sectors written, …
        let fields: Vec<&str> = line.split_whitespace().collect();
        let [_, _, name, _, _, read, _, _, _, written, ..] = fields[..] else { continue };
        let (Ok(read), Ok(written)) = (read.parse::<u64>(), written.parse::<u64>()) else { continue };
        if !NO_DISKS.iter().any(|beginning| name.starts_with(beginning)) && is_whole(name) {
            let (reads, writes) = all.unwrap_or((0_u64, 0_u64));
            all = Some((reads.saturating_add(read * SECTOR_BYTES), writes.saturating_add(written * SECTOR_BYTES)));
        }
    }
    all
}
