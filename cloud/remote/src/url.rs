//! Locates a database by its URL. This module does not know what lies at that place.
//!
//! URLs are `s3://bucket/prefix`, `gs://bucket/prefix`, `az://container/prefix`, `file:///directory`,
//! `memory:///prefix`, and the other forms that `object_store` knows. Credentials, regions and endpoints come from
//! where the providers' tools find them: variables such as `AWS_ACCESS_KEY_ID`, `AWS_ENDPOINT`, `AWS_REGION`, or
//! the machine's role.

use crate::connector::CountingConnector;
use crate::counts::Counters;
use crate::failure::{kind_of, without_queries};
use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};
use object_store::azure::{AzureConfigKey, MicrosoftAzureBuilder};
use object_store::gcp::{GoogleCloudStorageBuilder, GoogleConfigKey};
use object_store::local::LocalFileSystem;
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{BackoffConfig, ClientConfigKey, ObjectStore, ObjectStoreScheme, RetryConfig};
use std::io::{self, ErrorKind};
use std::sync::Arc;
use std::time::Duration;
use url::Url;

/// A store, and a prefix in it.
#[derive(Clone, Debug)]
pub struct Place {
    /// The store.
    pub store: Arc<dyn ObjectStore>,
    /// All names begin with this prefix.
    pub prefix: Path,
    /// The bucket or container, without credentials, for people.
    pub bucket: String,
    /// Counts the requests that are really sent by HTTP. `None` for stores without HTTP, for which the requests
    /// that are asked for are counted.
    pub(crate) counters: Option<Arc<Counters>>,
}

/// Whether a text is the URL of a store, with a scheme and `//`, and not a path.
pub fn is_url(text: &str) -> bool {
    let scheme = text.split_once("://").map(|(scheme, _)| scheme);
    scheme.is_some_and(|scheme| scheme.len() > 1 && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric()))
}

impl Place {
    /// The place that a URL names.
    ///
    /// # Errors
    ///
    /// `InvalidInput` if the text is not the URL of a store, if it has credentials, if the environment lacks a
    /// required setting, or if a part of the text would be ignored: what follows a `#`, the segments `.` and `..`,
    /// or a port beside a bucket.
    pub fn of_url(text: &str) -> io::Result<Place> {
        let url = Url::parse(text).map_err(|error| wrong(format!("this is no URL of a store: {error}")))?;
        if !url.username().is_empty() || url.password().is_some() || url.query().is_some() {
            return Err(wrong(format!(
                "a URL of a store has no credentials and no `?`: {}://{}{}; set variables of the environment instead",
                url.scheme(),
                url.host_str().unwrap_or_default(),
                url.path()
            )));
        }
        refuse_what_is_left_out(text, &url)?;
        let (scheme, path) = ObjectStoreScheme::parse(&url).map_err(|error| wrong(error.to_string()))?;
        // In some addresses, the bucket is not the host but the beginning of the path, which is then not part of an
        // object's path.
        let segments: Vec<&str> = url.path().split('/').filter(|segment| !segment.is_empty()).collect();
        let before = segments.len().saturating_sub(path.parts().count());
        let place = segments[..before].iter().map(|segment| format!("/{segment}")).collect::<String>();
        let bucket = format!("{}://{}{place}", url.scheme(), url.host_str().unwrap_or_default());
        let failed = |error: object_store::Error| {
            io::Error::new(
                kind_of(&error, None),
                format!("cannot open {bucket}: {}", without_queries(&error.to_string())),
            )
        };
        let counters = Arc::new(Counters::default());
        let connector = || CountingConnector { counters: Arc::clone(&counters) };
        let store: Arc<dyn ObjectStore> = match scheme {
            ObjectStoreScheme::Local => {
                let store = LocalFileSystem::new().with_fsync(true);
                return Ok(Place { store: Arc::new(store), prefix: path, bucket, counters: None });
            }
            ObjectStoreScheme::Memory => {
                return Ok(Place { store: Arc::new(InMemory::new()), prefix: path, bucket, counters: None });
            }
            ObjectStoreScheme::AmazonS3 => {
                let builder = HTTP.into_iter().fold(AmazonS3Builder::from_env(), |builder, (key, value)| {
                    builder.with_config(AmazonS3ConfigKey::Client(key), value)
                });
                check_endpoint(&builder)?;
                let builder = builder.with_url(text).with_http_connector(connector()).with_retry(retries());
                Arc::new(builder.build().map_err(failed)?)
            }
            ObjectStoreScheme::GoogleCloudStorage => {
                let builder = HTTP.into_iter().fold(GoogleCloudStorageBuilder::from_env(), |builder, (key, value)| {
                    builder.with_config(GoogleConfigKey::Client(key), value)
                });
                let builder = builder.with_url(text).with_http_connector(connector()).with_retry(retries());
                Arc::new(builder.build().map_err(failed)?)
            }
            ObjectStoreScheme::MicrosoftAzure => {
                let builder = HTTP.into_iter().fold(MicrosoftAzureBuilder::from_env(), |builder, (key, value)| {
                    builder.with_config(AzureConfigKey::Client(key), value)
                });
                let builder = builder.with_url(text).with_http_connector(connector()).with_retry(retries());
                Arc::new(builder.build().map_err(failed)?)
            }
            other => {
                return Err(wrong(format!("{bucket}: a database cannot lie on {other:?}; s3, gs, az or file can")));
            }
        };
        Ok(Place { store, prefix: path, bucket, counters: Some(counters) })
    }

    /// A place in an existing store.
    pub fn within(store: Arc<dyn ObjectStore>, prefix: &str) -> Place {
        let bucket = store.to_string();
        Place { store, prefix: Path::from(prefix), bucket, counters: None }
    }
}

fn wrong(why: String) -> io::Error {
    io::Error::new(ErrorKind::InvalidInput, why)
}

/// Refuses an address of which a part would have no effect. Otherwise two different texts could name the same
/// database by accident.
fn refuse_what_is_left_out(text: &str, url: &Url) -> io::Result<()> {
    if let Some(fragment) = url.fragment() {
        let name = &text[..text.len() - fragment.len() - 1];
        return Err(wrong(format!(
            "in {text}, what follows the `#` is no part of a name; write {name}%23{fragment} if the name has a `#` in it"
        )));
    }
    if !matches!(url.scheme(), "http" | "https") && url.port().is_some() {
        return Err(wrong(format!(
            "in {text}, the port has no effect; give the address of a server in a variable of the environment, as in \
             AWS_ENDPOINT=http://127.0.0.1:9000"
        )));
    }
    // The parser resolves `.` and `..`, and drops tabs, line ends, and spaces at both ends. That it writes some
    // characters as %XX does not change the meaning.
    let understood = decoded(url.as_str());
    if understood.trim_end_matches('/') != decoded(text).trim_end_matches('/') {
        return Err(wrong(format!(
            "{} would be understood as {understood}; write it so, without the segments `.` and `..` and without spaces around it",
            text.escape_debug()
        )));
    }
    Ok(())
}

/// `text` with each `%XX` replaced by its byte.
fn decoded(text: &str) -> String {
    percent_encoding::percent_decode_str(text).decode_utf8_lossy().into_owned()
}

/// Refuses the address of a server that `object_store` cannot use: it panics at some, and fails every request at
/// others.
fn check_endpoint(builder: &AmazonS3Builder) -> io::Result<()> {
    for (key, variable) in [
        (AmazonS3ConfigKey::S3Endpoint, "AWS_ENDPOINT_URL_S3"),
        (AmazonS3ConfigKey::Endpoint, "AWS_ENDPOINT_URL or AWS_ENDPOINT"),
    ] {
        let Some(endpoint) = builder.get_config_value(&key) else { continue };
        let parsed = Url::parse(&endpoint).ok().filter(|url| url.has_host() && url.scheme().starts_with("http"));
        let Some(url) = parsed else {
            return Err(wrong(format!(
                "{variable} is `{}`, which is no address of a server; unset it, or write it as http://127.0.0.1:9000 or \
                 https://s3.example.com",
                without_queries(&endpoint)
            )));
        };
        let allows_http = builder.get_config_value(&AmazonS3ConfigKey::Client(ClientConfigKey::AllowHttp));
        if url.scheme() == "http" && allows_http.as_deref() != Some("true") {
            return Err(wrong(format!(
                "{variable} is {}, and http without TLS is not allowed; set AWS_ALLOW_HTTP=true if the way to the server is trusted",
                url.as_str()
            )));
        }
    }
    Ok(())
}

/// The retries that `object_store` makes itself: few, because this crate repeats requests, too.
fn retries() -> RetryConfig {
    let backoff =
        BackoffConfig { init_backoff: Duration::from_millis(50), max_backoff: Duration::from_secs(1), base: 2.0 };
    RetryConfig { backoff, max_retries: 3, retry_timeout: Duration::from_secs(10) }
}

/// HTTP settings, in addition to those of the environment.
const HTTP: [(ClientConfigKey, &str); 3] = [
    // Long, because each attempt has its own time limit, which grows with its bytes.
    (ClientConfigKey::Timeout, "1 hour"),
    (ClientConfigKey::ConnectTimeout, "5 seconds"),
    (ClientConfigKey::PoolMaxIdlePerHost, "512"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_with_credentials_is_refused_and_not_shown() {
        for text in ["s3://key:SECRET@bucket/db", "https://a.blob.core.windows.net/c/db?sig=SECRET"] {
            let error = Place::of_url(text).expect_err("it has credentials");
            assert_eq!(error.kind(), ErrorKind::InvalidInput);
            assert!(!error.to_string().contains("SECRET"), "{error}");
        }
    }

    #[test]
    fn a_url_of_which_a_part_would_be_left_out_is_refused() {
        for text in [
            "memory:///db#old",
            "memory:///db#",
            "s3://bucket/db#2",
            "memory:///a/../db",
            "memory:///a/./db",
            "memory:///..",
            "memory:///a/%2e%2E/db",
            "memory:///db\n",
            "memory:///d\tb",
            " memory:///db",
            "s3://bucket:9000/db",
            "gs://bucket:1/db",
        ] {
            let error = Place::of_url(text).map(drop).expect_err(text);
            assert_eq!(error.kind(), ErrorKind::InvalidInput, "{text}: {error}");
        }
        let advice = Place::of_url("memory:///db#old").expect_err("a fragment").to_string();
        assert!(advice.contains("memory:///db%23old"), "{advice}");
    }

    #[test]
    fn a_name_of_any_characters_names_one_place() {
        for (text, prefix) in [
            ("memory:///db%23old", "db#old"),
            ("memory:///db/", "db"),
            ("memory:///d b", "d b"),
            ("memory:///ü", "ü"),
            ("memory:///a.b/..c", "a.b/..c"),
        ] {
            let place = Place::of_url(text).expect(text);
            assert_eq!(place.prefix.as_ref(), prefix);
        }
    }

    #[test]
    fn paths_are_no_urls() {
        assert!(is_url("s3://bucket/db") && is_url("file:///tmp/db") && is_url("memory:///db"));
        assert!(!is_url("/tmp/db") && !is_url("db") && !is_url("a/b://c") && !is_url("c:\\db"));
        assert_eq!(Place::of_url("ftp://host/db").map(drop).expect_err("no store").kind(), ErrorKind::InvalidInput);
    }
}
