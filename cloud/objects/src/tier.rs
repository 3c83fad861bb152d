//! A cache tier on a local disk, between memory and a store: it keeps blocks of the store's objects, so that bytes
//! that were read from the store once can be read from the disk the next time, even after a restart. This module
//! does not know what the bytes mean, or how requests to the store are made.
//!
//! ```text
//! BLOCKS   slots of 16 KiB, one block of an object in each
//! KEYS     32 bytes for each slot: which block is in it, and the checksum of the object, the place and the bytes
//! ```
//!
//! An object is identified by its name and by the identity of the database; a block's hash and checksum include
//! both. If a database is removed and made again, its files have the same names as before, and only the identity
//! differs. Until `bind` sets the identity, the tier neither keeps blocks nor looks for any.
//!
//! After a crash, `BLOCKS` and `KEYS` may contradict each other. A block that does not match its checksum counts as
//! missing, and is read from the store. The checksum detects the effects of a crash, flipped bits, and two objects
//! with the same hash, so the tier need not sync its files.
//!
//! If no slot is free, the CLOCK algorithm finds one for a new block: a hand goes round the slots, passes over
//! those that were used since its last visit, and takes the first that was not. The block there is dropped. If the
//! disk is full, the tier shrinks by an eighth; a full disk never makes a read fail.
//!
//! Thread safe. No lock is held while a request to the disk or to the store is under way.

use os::store::{Bill, PutDone, RangeDone};
use os::sync::atomic::{AtomicU64, Ordering};
use os::sync::{Arc, Mutex};
use os::{Access, Buffer, Disk, File, ReadRequest, Reads, Store, StoredObject, Threads, Upload, Urgency};
use std::collections::HashMap;
use std::io::{self, ErrorKind};
use std::ops::Range;
use std::path::Path;

/// The size of a block of an object; the last block of an object may be shorter.
pub const TIER_BLOCK_BYTES: u64 = 16 << 10;

/// The length of an entry in `KEYS`.
const KEY_BYTES: usize = 32;

/// The most bytes that may wait to be written to the disk. A block that would exceed this is not kept.
const MOST_WAITING_BYTES: u64 = 16 << 20;

/// The tier keeps only blocks of files in this folder of a database, because they never change.
const KEPT_FOLDER: &str = "sst";

/// Whether the tier keeps blocks of an object, which may be of any database in the store: the checksum includes the
/// object's whole name.
fn is_kept(object: &str) -> bool {
    let folder = object.rsplit_once('/').map_or("", |(folder, _)| folder);
    folder.rsplit('/').next() == Some(KEPT_FOLDER)
}

/// What a tier needs.
#[derive(Clone, Debug)]
pub struct TierOptions {
    /// The disk.
    pub disk: Arc<dyn Disk>,
    /// Makes the reads from this disk, many of them at the same time.
    pub reads: Arc<dyn Reads>,
    /// The threads that write blocks to the disk.
    pub threads: Arc<dyn Threads>,
    /// The most bytes that the blocks may take on the disk.
    pub budget_bytes: u64,
}

/// What a tier has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TierCounts {
    /// Reads whose blocks were all in the tier, even if some of them turned out to be damaged.
    pub hits: u64,
    /// Reads for which the tier lacked a block.
    pub misses: u64,
    /// Blocks on the disk that did not match their checksums.
    pub damaged: u64,
    /// Blocks in the tier.
    pub blocks: u64,
    /// The most blocks that the tier may have at present.
    pub slots: u64,
}

/// A store that keeps blocks of its objects on a disk.
#[derive(Debug)]
pub struct TieredStore {
    store: Arc<dyn Store>,
    tier: Arc<Tier>,
}

#[derive(Debug)]
struct Tier {
    blocks: Arc<dyn File>,
    keys: Arc<dyn File>,
    reads: Arc<dyn Reads>,
    threads: Arc<dyn Threads>,
    state: Mutex<TierState>,
    waiting_bytes: AtomicU64,
    tickets: AtomicU64,
    /// The identity of the database; 0 until it is known. Accesses are relaxed: a read that does not see the
    /// identity yet just does not use the tier.
    database: AtomicU64,
}

#[derive(Debug, Default)]
struct TierState {
    slots: Vec<Slot>,
    places: HashMap<BlockKey, u32>,
    hand: usize,
    /// The most slots that the tier may have.
    most: usize,
    counts: TierCounts,
}

/// Identifies a block: the hash of its object, and the number of the block in the object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct BlockKey {
    object: u64,
    block: u64,
}

#[derive(Clone, Copy, Debug)]
struct Slot {
    /// `None` if the slot has no block, or if its block is still being written.
    key: Option<BlockKey>,
    bytes: u32,
    crc: u32,
    is_used: bool,
}

const EMPTY: Slot = Slot { key: None, bytes: 0, crc: 0, is_used: false };

/// An object's identity in the tier.
#[derive(Clone, Debug)]
struct TierObject {
    /// The identity of the database.
    database: u64,
    name: String,
}

impl TierObject {
    /// FNV-1a, because names are short. If two objects have the same hash, the checksum tells them apart.
    fn hash(&self) -> u64 {
        let bytes = self.database.to_le_bytes().into_iter().chain(self.name.bytes());
        bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
    }

    /// The checksum of a block's bytes, its object, and its number in the object.
    fn checksum(&self, block: u64, bytes: &[u8]) -> u32 {
        let place = [&self.database.to_le_bytes(), self.name.as_bytes(), &block.to_le_bytes()].concat();
        crc_fast::crc32_iscsi(bytes) ^ crc_fast::crc32_iscsi(&place).rotate_left(7)
    }
}

impl Slot {
    /// ```text
    /// object u64 | block u64 | bytes u32 | crc u32 of the block | crc u32 of the 24 bytes before | 0u32
    /// ```
    fn encode(&self) -> [u8; KEY_BYTES] {
        let mut out = [0; KEY_BYTES];
        let Some(key) = self.key else { return out };
        out[..8].copy_from_slice(&key.object.to_le_bytes());
        out[8..16].copy_from_slice(&key.block.to_le_bytes());
        out[16..20].copy_from_slice(&self.bytes.to_le_bytes());
        out[20..24].copy_from_slice(&self.crc.to_le_bytes());
        let crc = crc_fast::crc32_iscsi(&out[..24]);
        out[24..28].copy_from_slice(&crc.to_le_bytes());
        out
    }

    fn decode(bytes: &[u8; KEY_BYTES]) -> Slot {
        let u32_at = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("4 bytes"));
        let u64_at = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("8 bytes"));
        let length = u32_at(16);
        if crc_fast::crc32_iscsi(&bytes[..24]) != u32_at(24) || length == 0 || u64::from(length) > TIER_BLOCK_BYTES {
            return EMPTY;
        }
        let key = Some(BlockKey { object: u64_at(0), block: u64_at(8) });
        Slot { key, bytes: length, crc: u32_at(20), is_used: false }
    }
}

impl TierState {
    /// Takes a slot for a block: a new one, or one that was not used for a while. It has no key until the block is
    /// written.
    fn take(&mut self) -> Option<u32> {
        if self.slots.len() < self.most {
            self.slots.push(EMPTY);
            return u32::try_from(self.slots.len() - 1).ok();
        }
        // The hand goes round twice. In the first round, each slot with a block loses its mark. If the second round
        // finds no slot either, all slots have blocks that are still being written.
        for _ in 0..2 * self.slots.len() {
            let at = self.hand;
            self.hand = (at + 1) % self.slots.len();
            let slot = &mut self.slots[at];
            let Some(key) = slot.key else { continue };
            if !std::mem::take(&mut slot.is_used) {
                *slot = EMPTY;
                self.places.remove(&key);
                return u32::try_from(at).ok();
            }
        }
        None
    }

    fn forget(&mut self, slot: u32) {
        if let Some(slot) = self.slots.get_mut(slot as usize)
            && let Some(key) = std::mem::replace(slot, EMPTY).key
        {
            self.places.remove(&key);
        }
    }

    /// Drops slots at the end of the files until at most `most` are left.
    fn shrink(&mut self, most: usize) {
        self.most = most;
        while self.slots.len() > most {
            if let Some(key) = self.slots.pop().and_then(|slot| slot.key) {
                self.places.remove(&key);
            }
        }
        self.hand = 0;
    }
}

impl Tier {
    fn open(directory: &Path, options: TierOptions) -> io::Result<Tier> {
        let TierOptions { disk, reads, threads, budget_bytes } = options;
        disk.create_dir(directory)?;
        let open = |name: &str| {
            let path = directory.join(name);
            match disk.open(&path, Access::Create) {
                Err(error) if error.kind() == ErrorKind::AlreadyExists => disk.open(&path, Access::Write),
                opened => opened,
            }
        };
        let (blocks, keys) = (open("BLOCKS")?, open("KEYS")?);
        let most = usize::try_from(budget_bytes / TIER_BLOCK_BYTES).unwrap_or(usize::MAX).min(u32::MAX as usize);
        let known = (keys.len()? / KEY_BYTES as u64).min(most as u64);
        let mut bytes = vec![0; known as usize * KEY_BYTES];
        let read = keys.read_at(&mut bytes, 0)?;
        bytes.truncate(read);
        let mut state = TierState { most, ..TierState::default() };
        for bytes in bytes.as_chunks::<KEY_BYTES>().0 {
            let mut slot = Slot::decode(bytes);
            let at = state.slots.len() as u32;
            if let Some(key) = slot.key
                && state.places.insert(key, at).is_some()
            {
                // Two slots have the same key. A lookup never finds the earlier one, so it is never marked as used,
                // and the hand takes it later.
                slot.is_used = false;
            }
            state.slots.push(slot);
        }
        // The budget may be smaller than it was at the last open.
        blocks.set_len(blocks.len()?.min(most as u64 * TIER_BLOCK_BYTES))?;
        let (waiting_bytes, tickets) = (AtomicU64::new(0), AtomicU64::new(1 << 63));
        let (state, database) = (Mutex::new(state), AtomicU64::new(0));
        Ok(Tier { blocks, keys, reads, threads, state, waiting_bytes, tickets, database })
    }

    /// The slots with all blocks of a range; `None` if the tier lacks one of them.
    fn find(&self, object: &TierObject, range: &Range<u64>) -> Option<Vec<(u32, u64, Slot)>> {
        let object = object.hash();
        let mut state = self.state.lock();
        let state = &mut *state;
        let mut found = Vec::new();
        for block in range.start / TIER_BLOCK_BYTES..range.end.div_ceil(TIER_BLOCK_BYTES) {
            let place = state.places.get(&BlockKey { object, block });
            let slot = place.and_then(|at| Some((*at, state.slots.get_mut(*at as usize)?)));
            let Some((at, slot)) = slot else {
                state.counts.misses += 1;
                return None;
            };
            slot.is_used = true;
            found.push((at, block, *slot));
            // Only an object's last block may be shorter than a whole block.
            if u64::from(slot.bytes) < TIER_BLOCK_BYTES {
                break;
            }
        }
        state.counts.hits += 1;
        Some(found)
    }

    /// Writes the blocks of `bytes`, which were read from the offset `start` in the object, a multiple of the block
    /// size. If the object ends in the last block, that block may be shorter. A block that the tier already has is
    /// replaced only with [`Anew::Yes`].
    fn keep(self: &Arc<Tier>, object: TierObject, start: u64, bytes: Vec<u8>, anew: Anew) {
        let length = bytes.len() as u64;
        if self.waiting_bytes.fetch_add(length, Ordering::Relaxed) + length > MOST_WAITING_BYTES {
            self.waiting_bytes.fetch_sub(length, Ordering::Relaxed);
            return;
        }
        let tier = Arc::clone(self);
        self.threads.hand_over(Box::new(move || {
            for (number, block) in bytes.chunks(TIER_BLOCK_BYTES as usize).enumerate() {
                tier.write(&object, start / TIER_BLOCK_BYTES + number as u64, block, anew);
            }
            tier.waiting_bytes.fetch_sub(length, Ordering::Relaxed);
        }));
    }

    fn write(&self, object: &TierObject, block: u64, bytes: &[u8], anew: Anew) {
        let key = BlockKey { object: object.hash(), block };
        let at = {
            let mut state = self.state.lock();
            match (state.places.get(&key).copied(), anew) {
                (None, _) => {}
                (Some(_), Anew::No) => return,
                (Some(at), Anew::Yes) => state.forget(at),
            }
            let Some(at) = state.take() else { return };
            at
        };
        let crc = object.checksum(block, bytes);
        let slot = Slot { key: Some(key), bytes: bytes.len() as u32, crc, is_used: false };
        let written = self.blocks.write_at(bytes, u64::from(at) * TIER_BLOCK_BYTES);
        let written = written.and_then(|()| self.keys.write_at(&slot.encode(), u64::from(at) * KEY_BYTES as u64));
        let most = {
            let state = &mut *self.state.lock();
            if written.is_ok() {
                if let Some(place) = state.slots.get_mut(at as usize) {
                    *place = slot;
                    state.places.insert(key, at);
                }
                return;
            }
            let most = state.slots.len() - state.slots.len().div_ceil(8);
            state.shrink(most);
            most
        };
        // The disk is full or has failed. If the files cannot be truncated either, the bytes at their ends are just
        // not used.
        self.blocks.set_len(most as u64 * TIER_BLOCK_BYTES).ok();
        self.keys.set_len(most as u64 * KEY_BYTES as u64).ok();
    }
}

/// Whether a range is read again because the bytes of an earlier read were damaged, so that the new bytes replace
/// the tier's blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Anew {
    No,
    Yes,
}

/// A read of blocks that is under way.
struct Gathering {
    store: Arc<dyn Store>,
    tier: Arc<Tier>,
    object: TierObject,
    range: Range<u64>,
    state: Mutex<GatheringState>,
}

struct GatheringState {
    left: usize,
    parts: Vec<Option<Vec<u8>>>,
    done: Option<RangeDone>,
}

impl Gathering {
    /// Takes the outcome of the read of one block. The last one ends the whole read.
    fn take(self: &Arc<Self>, place: usize, (at, block, slot): (u32, u64, Slot), read: Option<&[u8]>) {
        let bytes = read.filter(|bytes| self.object.checksum(block, bytes) == slot.crc).map(<[u8]>::to_vec);
        if bytes.is_none() {
            let mut state = self.tier.state.lock();
            state.counts.damaged += 1;
            state.forget(at);
        }
        let (parts, done) = {
            let mut state = self.state.lock();
            state.parts[place] = bytes;
            state.left -= 1;
            if state.left > 0 {
                return;
            }
            (std::mem::take(&mut state.parts), state.done.take().expect("a read ends once"))
        };
        match parts.into_iter().collect::<Option<Vec<_>>>() {
            Some(parts) => {
                let all = parts.concat();
                let start = (self.range.start % TIER_BLOCK_BYTES) as usize;
                let wanted = all.get(start..).unwrap_or_default();
                let length = usize::try_from(self.range.end - self.range.start).expect("what is read fits in memory");
                done(Ok(&[&wanted[..wanted.len().min(length)]]));
            }
            None => fetch(&self.store, &self.tier, self.object.clone(), self.range.clone(), (Anew::No, done)),
        }
    }
}

/// Reads whole blocks from the store, gives the caller the range that it asked for, and keeps the blocks.
fn fetch(
    store: &Arc<dyn Store>,
    tier: &Arc<Tier>,
    object: TierObject,
    range: Range<u64>,
    (anew, done): (Anew, RangeDone),
) {
    let start = range.start / TIER_BLOCK_BYTES * TIER_BLOCK_BYTES;
    let end = range.end.next_multiple_of(TIER_BLOCK_BYTES);
    let (tier, name) = (Arc::clone(tier), object.name.clone());
    let keep = move |read: io::Result<&[&[u8]]>| match read {
        Ok(pieces) => {
            let bytes = pieces.concat();
            let wanted = bytes.get((range.start - start) as usize..).unwrap_or_default();
            let length = usize::try_from(range.end - range.start).expect("what is read fits in memory");
            done(Ok(&[&wanted[..wanted.len().min(length)]]));
            tier.keep(object, start, bytes, anew);
        }
        Err(error) => done(Err(error)),
    };
    match anew {
        Anew::No => store.begin_read(&name, start..end, Box::new(keep)),
        Anew::Yes => store.begin_read_anew(&name, start..end, Box::new(keep)),
    }
}

impl TieredStore {
    /// Opens a tier that keeps blocks of the objects of `store` in `directory`. No other tier may use this
    /// directory.
    ///
    /// # Errors
    ///
    /// An error of the disk.
    pub fn open(store: Arc<dyn Store>, directory: &Path, options: TierOptions) -> io::Result<TieredStore> {
        Ok(TieredStore { store, tier: Arc::new(Tier::open(directory, options)?) })
    }

    /// The identity of an object; `None` if the tier keeps no blocks of it.
    fn kept_object(&self, name: &str, range: &Range<u64>) -> Option<TierObject> {
        let database = self.tier.database.load(Ordering::Relaxed);
        let is_kept = is_kept(name) && !range.is_empty() && database != 0;
        is_kept.then(|| TierObject { database, name: name.to_owned() })
    }

    /// What the tier has done.
    pub fn counts(&self) -> TierCounts {
        let state = self.tier.state.lock();
        TierCounts { blocks: state.places.len() as u64, slots: state.most as u64, ..state.counts }
    }
}

impl Store for TieredStore {
    fn create(&self, name: &str) -> io::Result<Box<dyn Upload>> {
        self.store.create(name)
    }

    fn put_if_absent(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        self.store.put_if_absent(name, bytes)
    }

    fn begin_put_if_absent(&self, name: &str, bytes: Vec<u8>, done: PutDone) {
        self.store.begin_put_if_absent(name, bytes, done);
    }

    fn get(&self, name: &str) -> io::Result<Vec<u8>> {
        self.store.get(name)
    }

    fn read_at(&self, name: &str, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let (sender, receiver) = std::sync::mpsc::sync_channel(1);
        let range = offset..offset + buffer.len() as u64;
        // This function waits for the answer, so the receiver still exists when `done` is called.
        let done = move |read: io::Result<&[&[u8]]>| sender.send(read.map(<[_]>::concat)).unwrap_or_default();
        self.begin_read(name, range, Box::new(done));
        let bytes = receiver.recv().map_err(|_| io::Error::other("the read was given up"))??;
        buffer[..bytes.len()].copy_from_slice(&bytes);
        Ok(bytes.len())
    }

    fn begin_read(&self, name: &str, range: Range<u64>, done: RangeDone) {
        let Some(object) = self.kept_object(name, &range) else { return self.store.begin_read(name, range, done) };
        let Some(found) = self.tier.find(&object, &range) else {
            return fetch(&self.store, &self.tier, object, range, (Anew::No, done));
        };
        let state = GatheringState { left: found.len(), parts: vec![None; found.len()], done: Some(done) };
        let gathering = Arc::new(Gathering {
            store: self.store.clone(),
            tier: self.tier.clone(),
            object,
            range,
            state: Mutex::new(state),
        });
        let requests = found.into_iter().enumerate().map(|(place, found)| {
            let (at, _, slot) = found;
            let gathering = gathering.clone();
            ReadRequest {
                source: self.tier.blocks.clone(),
                offset: u64::from(at) * TIER_BLOCK_BYTES,
                buffer: Buffer::zeroed(slot.bytes as usize),
                urgency: Urgency::Needed,
                ticket: self.tier.tickets.fetch_add(1, Ordering::Relaxed),
                done: Box::new(move |buffer, read| {
                    let whole = read.is_ok_and(|read| read == buffer.len());
                    gathering.take(place, found, whole.then_some(&buffer[..]));
                }),
            }
        });
        self.tier.reads.submit(requests.collect());
    }

    fn begin_read_anew(&self, name: &str, range: Range<u64>, done: RangeDone) {
        match self.kept_object(name, &range) {
            Some(object) => fetch(&self.store, &self.tier, object, range, (Anew::Yes, done)),
            None => self.store.begin_read_anew(name, range, done),
        }
    }

    fn len(&self, name: &str) -> io::Result<u64> {
        self.store.len(name)
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        // Nobody reads the blocks of a removed object again, so the hand takes their slots later.
        self.store.remove(name)
    }

    fn list(&self, folder: &str) -> io::Result<Vec<StoredObject>> {
        self.store.list(folder)
    }

    fn bill(&self) -> Option<Bill> {
        self.store.bill()
    }

    fn bind(&self, database: u64) {
        self.tier.database.store(database, Ordering::Relaxed);
        self.store.bind(database);
    }
}

#[cfg(test)]
mod tests;
