//! Measures how much each page compression saves and costs, on TPC-C tables and on the lines of files:
//!
//! ```console
//! $ cargo run --release -p larch-bench-stores --example compression [FILE …]
//! ```
//!
//! The rows of each table become data pages of 16 KiB; the lines of a file become keys with empty values. For each
//! compression, the output gives the compressed size relative to the uncompressed size, and the times to compress
//! and to read relative to LZ4. "Read" is what the cache does with a page that came from the disk: verify its
//! checksum, decompress it and copy it.

#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "it measures the machine and is never simulated"
)]

use os::sim::SimDisk;
use os::{Access, BLOCK_BYTES, Buffer, Disk};
use pages::page::{Packer, Unpacker, decode_page, pack_page, seal_page};
use pages::{Address, Compression, Packing, PageHeader, PageKind};
use sst::{BuildOptions, RowKind, SstBuilder, Version};
use std::collections::BTreeSet;
use std::error::Error;
use std::path::Path;
use std::time::{Duration, Instant};
use tpcc::encoding::Encoded;
use tpcc::schema::{CUSTOMERS, Customer, DISTRICTS, ITEMS, ORDERS, Order, OrderLine, Stock};
use tpcc::{Population, Row};

/// Runs of each measurement. The shortest time counts, since other programs can only make a run longer.
const REPEATS: usize = 5;

const FILE_ID: u64 = 1;

const COMPRESSIONS: [Compression; 6] = [
    Compression::None,
    Compression::Lz4,
    Compression::Zstd { level: 1 },
    Compression::Zstd { level: 3 },
    Compression::Zstd { level: 9 },
    Compression::Zstd { level: 19 },
];

fn main() -> Result<(), Box<dyn Error>> {
    let population = Population::new(1, 1_700_000_000_000_000);
    report("customer", &customers(&population)?);
    report("stock", &stock(&population)?);
    report("order_line", &order_lines(&population)?);
    for file in std::env::args().skip(1) {
        let text = std::fs::read(&file)?;
        let lines: BTreeSet<&[u8]> = text.split(|byte| *byte == b'\n').collect();
        let mut pages = PageMaker::new()?;
        for line in lines {
            pages.add(line, &[])?;
        }
        report(&file, &pages.finish()?);
    }
    Ok(())
}

/// The customers of a warehouse, without column groups.
fn customers(population: &Population) -> Result<Vec<Vec<u8>>, Box<dyn Error>> {
    let (mut pages, mut row, mut encoded) = (PageMaker::new()?, Customer::default(), Encoded::default());
    for district in 1..=DISTRICTS {
        for customer in 1..=CUSTOMERS {
            population.customer(1, district, customer, &mut row);
            encoded.set(Row::Customer(&row), 0);
            pages.add(encoded.key(), &encoded.parts().concat())?;
        }
    }
    pages.finish()
}

/// The stock of a warehouse, without column groups.
fn stock(population: &Population) -> Result<Vec<Vec<u8>>, Box<dyn Error>> {
    let (mut pages, mut row, mut encoded) = (PageMaker::new()?, Stock::default(), Encoded::default());
    for item in 1..=ITEMS {
        population.stock(1, item, &mut row);
        encoded.set(Row::Stock(&row), 0);
        pages.add(encoded.key(), &encoded.parts().concat())?;
    }
    pages.finish()
}

fn order_lines(population: &Population) -> Result<Vec<Vec<u8>>, Box<dyn Error>> {
    let (mut pages, mut encoded) = (PageMaker::new()?, Encoded::default());
    let (mut order, mut row) = (Order::default(), OrderLine::default());
    for district in 1..=DISTRICTS {
        let customers = population.customers_of_orders(1, district);
        for number in 1..=ORDERS {
            population.order(1, district, number, &customers, &mut order);
            for line in 1..=order.lines {
                population.order_line(&order, line, &mut row);
                encoded.set(Row::OrderLine(&row), 0);
                pages.add(encoded.key(), encoded.parts().concat().as_slice())?;
            }
        }
    }
    pages.finish()
}

/// Builds data pages from rows in key order.
struct PageMaker {
    disk: os::sync::Arc<SimDisk>,
    builder: SstBuilder,
}

impl PageMaker {
    fn new() -> Result<Self, Box<dyn Error>> {
        let disk = SimDisk::new(0);
        let file = disk.open(Path::new("pages"), Access::Create)?;
        Ok(Self { disk, builder: SstBuilder::new(file, "pages".into(), FILE_ID, BuildOptions::default()) })
    }

    fn add(&mut self, key: &[u8], value: &[u8]) -> Result<(), Box<dyn Error>> {
        Ok(self.builder.add(key, Version(1), RowKind::Put, &[value])?)
    }

    /// Returns the data pages, without their padding.
    fn finish(self) -> Result<Vec<Vec<u8>>, Box<dyn Error>> {
        self.builder.finish()?;
        let file = self.disk.read_all(Path::new("pages"))?;
        let (mut pages, mut left) = (Vec::new(), file.as_slice());
        while let Ok(header) = PageHeader::decode(left) {
            let bytes = header.memory_bytes as usize;
            if header.kind == PageKind::Data {
                pages.push(left[..bytes].to_vec());
            }
            left = &left[bytes.next_multiple_of(BLOCK_BYTES).min(left.len())..];
        }
        Ok(pages)
    }
}

/// What one compression did with a table's pages.
struct Packed {
    stored_bytes: u64,
    packing: Duration,
    reading: Duration,
}

fn report(name: &str, pages: &[Vec<u8>]) {
    let bytes: usize = pages.iter().map(Vec::len).sum();
    println!("{name}: {} pages of {} bytes together", pages.len(), bytes);
    let measured = COMPRESSIONS.map(|compression| measure(pages, compression));
    let [none, lz4, ..] = &measured;
    for (compression, found) in COMPRESSIONS.iter().zip(&measured) {
        println!(
            "  {:8} {:4.2} of the file, {:5.1} x the time to compress ({:.0} MB/s), {:4.2} x the time to read ({:.0} MB/s)",
            compression.to_string(),
            found.stored_bytes as f64 / none.stored_bytes as f64,
            found.packing.as_secs_f64() / lz4.packing.as_secs_f64(),
            bytes as f64 / found.packing.as_secs_f64() / 1e6,
            found.reading.as_secs_f64() / lz4.reading.as_secs_f64(),
            bytes as f64 / found.reading.as_secs_f64() / 1e6,
        );
    }
}

fn measure(pages: &[Vec<u8>], compression: Compression) -> Packed {
    let mut packer = Packer::default();
    let unpacker = Unpacker::default();
    let (mut packing, mut reading) = (Duration::MAX, Duration::MAX);
    let mut stored: Vec<(Address, Vec<u8>)> = Vec::new();
    for _ in 0..REPEATS {
        let mut copies: Vec<Vec<u8>> = pages.to_vec();
        let start = Instant::now();
        for page in &mut copies {
            pack_page(page, (PageKind::Data, 0), compression, Packing::Block, &mut packer);
        }
        packing = packing.min(start.elapsed());
        stored = copies.into_iter().map(|mut page| (seal_page(&mut page, Packing::Block, FILE_ID, 0), page)).collect();
        let mut memory = Some(Buffer::zeroed(64 << 10));
        let start = Instant::now();
        for (at, page) in &stored {
            let lent = |bytes| {
                let buffer = memory.take().filter(|buffer| buffer.len() == bytes);
                buffer.unwrap_or_else(|| Buffer::zeroed(bytes))
            };
            let decoded = decode_page(page, PageKind::Data, at, FILE_ID, &unpacker, lent);
            memory = Some(decoded.expect("the page is whole").0);
        }
        reading = reading.min(start.elapsed());
    }
    Packed { stored_bytes: stored.iter().map(|(at, _)| u64::from(at.bytes)).sum(), packing, reading }
}
