//! An object that is written from front to back: with one put if it is small, otherwise as an upload in parts, some
//! of which are sent while the next one is written. This module does not know what the bytes mean.
//!
//! S3 checks each part against the hash in the signature of its request. The finished object is checked by its
//! length and its tag.

use crate::counts::Kind;
use crate::event_loop::wait_in;
use crate::failure::Refused;
use crate::last_answer::LastAnswer;
use crate::patience::{Pauses, Request, no_answer};
use crate::shared::Shared;
use object_store::path::Path;
use object_store::retry::{RetryContext, RetryFailure, RetryPolicy};
use object_store::{MultipartUpload, ObjectStoreExt, PutMode, PutMultipartOptions, PutPayload};
use os::Upload;
use os::sync::atomic::Ordering;
use std::fmt;
use std::io;
use std::sync::Arc;
use tokio::runtime::Handle;
use tokio::task::JoinHandle;
use tokio::time::timeout;

/// Bytes of a part. S3 takes up to 10,000 parts of at least 5 MiB each; with this size, that is 78 GiB.
const PART_BYTES: usize = 8 << 20;

/// How many parts may be under way. Together with the part that is being filled, they take 40 MiB of memory.
const PARTS_UNDER_WAY: usize = 4;

/// An upload of one object.
pub struct RemoteUpload {
    shared: Arc<Shared>,
    event_loop: Handle,
    name: String,
    /// Gathered bytes, less than a part.
    buffer: Vec<u8>,
    bytes: u64,
    parts: Option<Box<dyn MultipartUpload>>,
    under_way: Vec<JoinHandle<object_store::Result<()>>>,
}

impl RemoteUpload {
    pub fn new(shared: Arc<Shared>, event_loop: Handle, name: &str) -> RemoteUpload {
        RemoteUpload {
            shared,
            event_loop,
            name: name.to_owned(),
            buffer: Vec::new(),
            bytes: 0,
            parts: None,
            under_way: Vec::new(),
        }
    }

    fn key(&self) -> Path {
        self.shared.key(&self.name)
    }

    /// Sends the gathered bytes as a part, once fewer than [`PARTS_UNDER_WAY`] parts are under way.
    fn send_part(&mut self) -> io::Result<()> {
        if self.parts.is_none() {
            let (shared, key) = (Arc::clone(&self.shared), self.key());
            let begun = wait_in(&self.event_loop, async move {
                let begun = shared.patient.ask(Request::Write(0), |_| {
                    shared.count(Kind::Put);
                    let policy = Arc::new(PartPolicy { shared: Arc::clone(&shared) });
                    let options = PutMultipartOptions::default().with_retry_policy(policy);
                    shared.place.store.put_multipart_opts(&key, options)
                });
                begun.await.map_err(|refused| shared.failed("begin to upload", &key, &refused))
            });
            self.parts = Some(begun?);
        }
        while self.under_way.len() >= PARTS_UNDER_WAY {
            let oldest = self.under_way.remove(0);
            self.wait_for_part(oldest)?;
        }
        let payload = PutPayload::from(std::mem::take(&mut self.buffer));
        self.shared.count(Kind::Put);
        self.shared.counters.written_bytes.fetch_add(payload.content_length() as u64, Ordering::Relaxed);
        // The parts are numbered when their futures are made, so make them here, in order. They run in the event
        // loop.
        let _entered = self.event_loop.enter();
        let part = self.parts.as_mut().expect("it was begun").put_part(payload);
        self.under_way.push(self.event_loop.spawn(part));
        Ok(())
    }

    fn wait_for_part(&self, part: JoinHandle<object_store::Result<()>>) -> io::Result<()> {
        let (shared, key) = (Arc::clone(&self.shared), self.key());
        wait_in(&self.event_loop, async move {
            // Each attempt has a time limit, and the retry policy decides which attempt is the last.
            match part.await {
                Ok(sent) => {
                    sent.map_err(|error| shared.failed("upload a part of", &key, &Refused { error, answer: None }))
                }
                Err(error) => Err(io::Error::other(format!("a part of {key} was not uploaded: {error}"))),
            }
        })
    }

    /// Ends the upload in parts, and returns the tag of the object.
    fn complete(&mut self) -> io::Result<Option<String>> {
        if !self.buffer.is_empty() {
            self.send_part()?;
        }
        for part in std::mem::take(&mut self.under_way) {
            self.wait_for_part(part)?;
        }
        let (shared, key) = (Arc::clone(&self.shared), self.key());
        let mut parts = self.parts.take().expect("there are parts");
        wait_in(&self.event_loop, async move {
            shared.count(Kind::Put);
            // Not repeated: if the upload succeeded and only the answer was lost, the check below finds out.
            let (outcome, answer) = LastAnswer::of(timeout(shared.patient.patience.reads, parts.complete())).await;
            let error = match outcome {
                Ok(Ok(put)) => return Ok(put.e_tag),
                Ok(Err(error)) => shared.failed("finish the upload of", &key, &Refused { error, answer }),
                Err(_) => {
                    let error = no_answer(shared.patient.patience.reads);
                    shared.failed("finish the upload of", &key, &Refused { error, answer })
                }
            };
            // If only the answer was lost, the object exists. If it does not, the parts are removed.
            let head = shared.patient.ask(Request::Write(0), |_| {
                shared.count(Kind::Get);
                shared.place.store.head(&key)
            });
            match head.await {
                Ok(_) => Ok(None),
                Err(_) => {
                    take_back(parts, &shared).await;
                    Err(error)
                }
            }
        })
    }
}

/// Removes the parts of an upload, if the store answers in time. Otherwise the store removes them by its own rule
/// for unfinished uploads.
async fn take_back(mut parts: Box<dyn MultipartUpload>, shared: &Shared) {
    drop(timeout(shared.patient.patience.attempt, parts.abort()).await);
}

/// Sends failed parts again, with the same patience as other writes.
#[derive(Debug)]
struct PartPolicy {
    shared: Arc<Shared>,
}

#[async_trait::async_trait]
impl RetryPolicy for PartPolicy {
    async fn retry(&self, context: RetryContext) -> bool {
        let patient = &self.shared.patient;
        if let RetryFailure::Status(status) = context.failure
            && matches!(status.as_u16(), 301 | 307 | 308 | 401 | 403 | 404)
        {
            return false;
        }
        let pause = Pauses::of_attempt(&patient.patience, context.attempt).next();
        if patient.limit(Request::Write(0)).is_some_and(|limit| context.elapsed + pause >= limit) {
            return false;
        }
        tokio::time::sleep(pause).await;
        patient.counters.retries.fetch_add(1, Ordering::Relaxed);
        true
    }
}

impl Upload for RemoteUpload {
    fn write(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            let (now, later) = bytes.split_at(bytes.len().min(PART_BYTES - self.buffer.len()));
            self.buffer.extend_from_slice(now);
            self.bytes += now.len() as u64;
            bytes = later;
            if self.buffer.len() == PART_BYTES {
                self.send_part()?;
            }
        }
        Ok(())
    }

    fn finish(mut self: Box<Self>) -> io::Result<()> {
        let tag = if self.parts.is_some() {
            self.complete()?
        } else {
            let payload = PutPayload::from(std::mem::take(&mut self.buffer));
            let (shared, name) = (Arc::clone(&self.shared), self.name.clone());
            wait_in(&self.event_loop, async move { shared.put(&name, payload, PutMode::Overwrite).await })?
        };
        let (shared, name, bytes) = (Arc::clone(&self.shared), self.name.clone(), self.bytes);
        wait_in(&self.event_loop, async move { shared.check_upload(&name, bytes, tag.as_deref()).await })
    }
}

impl Drop for RemoteUpload {
    fn drop(&mut self) {
        if let Some(parts) = self.parts.take() {
            let shared = Arc::clone(&self.shared);
            self.event_loop.spawn(async move { take_back(parts, &shared).await });
        }
    }
}

impl fmt::Debug for RemoteUpload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RemoteUpload").field("name", &self.name).field("bytes", &self.bytes).finish_non_exhaustive()
    }
}
