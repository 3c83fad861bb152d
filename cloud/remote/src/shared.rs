//! What all requests of one store share, and the requests that concern an object as a whole. This module does not
//! know who waits for the requests.

use crate::counts::{Counters, Kind};
use crate::failure::{Refused, describe};
use crate::patience::{Patient, Request};
use crate::url::Place;
use object_store::path::Path;
use object_store::{ObjectStoreExt, PutMode, PutOptions, PutPayload};
use os::sync::Arc;
use os::sync::atomic::Ordering;
use std::fmt;
use std::io;

/// What the requests of one store share.
pub struct Shared {
    pub place: Place,
    pub patient: Patient,
    pub counters: Arc<Counters>,
    /// Whether requests are counted when they are asked for. With HTTP they are not, because the connector counts
    /// the requests that are really sent.
    pub counts_asked: bool,
}

impl Shared {
    /// The key of an object. A name that begins with `/` starts at the root of the bucket.
    pub fn key(&self, name: &str) -> Path {
        let root = Path::default();
        let (folder, name) = name.strip_prefix('/').map_or((&self.place.prefix, name), |name| (&root, name));
        // The name of a listed object is already a path. Encoding it again would change it.
        let name = Path::parse(name).unwrap_or_else(|_| Path::from(name));
        Path::from_iter(folder.parts().chain(name.parts()))
    }

    /// Counts a request that is asked for, unless the connector counts.
    pub fn count(&self, kind: Kind) {
        if self.counts_asked {
            self.counters.count(kind);
        }
    }

    /// The error of a failed request for an object.
    pub fn failed(&self, action: &str, key: &Path, refused: &Refused) -> io::Error {
        describe(action, &self.place.bucket, key.as_ref(), refused)
    }

    /// Puts a whole object.
    ///
    /// # Errors
    ///
    /// `AlreadyExists` if the object exists and `mode` does not let the put replace it; other errors of the store.
    pub async fn put(&self, name: &str, bytes: PutPayload, mode: PutMode) -> io::Result<Option<String>> {
        let key = self.key(name);
        let length = bytes.content_length() as u64;
        let put = self.patient.ask(Request::Write(length), |_| {
            self.count(Kind::Put);
            self.counters.written_bytes.fetch_add(length, Ordering::Relaxed);
            self.place.store.put_opts(&key, bytes.clone(), PutOptions::from(mode.clone()))
        });
        put.await.map(|put| put.e_tag).map_err(|refused| self.failed("put", &key, &refused))
    }

    /// Checks that an uploaded object has the upload's length and, if it has a tag, the upload's tag.
    ///
    /// # Errors
    ///
    /// `InvalidData` if the length or the tag differs; other errors of the store.
    pub async fn check_upload(&self, name: &str, bytes: u64, tag: Option<&str>) -> io::Result<()> {
        let key = self.key(name);
        let head = self.patient.ask(Request::Read(0), |_| {
            self.count(Kind::Get);
            self.place.store.head(&key)
        });
        let head = head.await.map_err(|refused| self.failed("check", &key, &refused))?;
        let differs = tag.is_some_and(|tag| head.e_tag.as_deref().is_some_and(|found| found != tag));
        if head.size == bytes && !differs {
            return Ok(());
        }
        let bucket = &self.place.bucket;
        let why = match differs {
            true => "another object has its place".to_owned(),
            false => format!("{bytes} bytes were uploaded, and it has {}", head.size),
        };
        Err(io::Error::new(io::ErrorKind::InvalidData, format!("the upload of {key} to {bucket} is not whole: {why}")))
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared").field("bucket", &self.place.bucket).finish_non_exhaustive()
    }
}
