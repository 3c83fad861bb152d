//! Tests of TLS with a real server, whose certificates are made here.

use super::*;
use crate::postgres::address::Address;
use crate::postgres::connection::Connection;
use crate::postgres::error::Error;
use crate::postgres::server::tests::shared;
use crate::postgres::server::{Server, ServerOptions};
use crate::postgres::store::Postgres;
use harness::{Opening, Store, Strings, Table};
use kit::Scratch;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use std::sync::OnceLock;

/// A certificate authority.
pub struct Authority(CertifiedIssuer<'static, KeyPair>);

impl Authority {
    pub fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).expect("no name is no bad name");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(rcgen::DnType::CommonName, "an authority of a test");
        let key = KeyPair::generate().expect("the system has randomness");
        Self(CertifiedIssuer::self_signed(params, key).expect("the key signs"))
    }

    /// Settings and files of a server with a certificate for `name`.
    pub fn server(&self, name: &str) -> ServerOptions {
        let params = CertificateParams::new(vec![name.to_owned()]).expect("a good name");
        let key = KeyPair::generate().expect("the system has randomness");
        let certificate = params.signed_by(&key, &self.0).expect("the key signs");
        options(&certificate.pem(), &key.serialize_pem())
    }

    /// Writes its certificate to a file.
    fn file(&self, scratch: &Scratch, name: &str) -> String {
        file(scratch, name, &self.0.pem())
    }
}

fn file(scratch: &Scratch, name: &str, text: &str) -> String {
    let path = scratch.join(name);
    std::fs::write(&path, text).expect("the directory is ours");
    path.display().to_string()
}

fn options(certificate: &str, key: &str) -> ServerOptions {
    let settings = [("ssl", "on"), ("ssl_cert_file", "server.crt"), ("ssl_key_file", "server.key")];
    let files = [("server.crt", certificate), ("server.key", key)];
    ServerOptions {
        settings: settings.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec(),
        loopback: Some("scram-sha-256"),
        files: files.map(|(name, text)| (name.to_owned(), text.as_bytes().to_vec())).to_vec(),
    }
}

/// Starts a server with a superuser `owner`, whose password is `secret`.
fn start(options: &ServerOptions) -> Server {
    let server = Server::start(options).unwrap_or_else(|error| panic!("{error}"));
    let role = "CREATE ROLE owner SUPERUSER LOGIN PASSWORD 'secret'";
    server.connect().expect("it runs").query(role).expect("the superuser may");
    server
}

/// One server, certified as 127.0.0.1, for all tests that do not harm it, and a file with its authority's
/// certificate.
pub fn encrypted() -> &'static (Server, String) {
    static SERVER: OnceLock<(Server, String)> = OnceLock::new();
    SERVER.get_or_init(|| {
        let authority = Authority::new();
        let server = start(&authority.server("127.0.0.1"));
        // The file is beside the server's socket and is removed together with it.
        let root = server.socket_directory().join("root.crt");
        std::fs::write(&root, authority.0.pem()).expect("the directory is ours");
        (server, root.display().to_string())
    })
}

/// An address of the server over the loopback, to which parameters can be appended.
pub fn url(server: &Server) -> String {
    format!("{}?connect_timeout=10", server.loopback_url("owner:secret", "postgres"))
}

/// Opens a session, and returns how it is encrypted.
fn open(url: &str) -> Result<String, Error> {
    let mut connection = Connection::open(&Address::parse(url, |_| None)?)?;
    let about = connection.encryption();
    let told = connection.value("SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()")?;
    assert_eq!(told == "t", about != "none", "the server sees it as we do: {told}, {about}");
    Ok(about)
}

#[track_caller]
fn refused(url: &str, parts: &[&str]) {
    let error = open(url).expect_err("it is refused");
    assert!(error.is_lost(), "{error:?}");
    let text = error.to_string();
    parts.iter().for_each(|part| assert!(text.contains(part), "{part:?} is not in {text}"));
}

#[test]
fn each_mode_encrypts_and_checks_what_it_says() {
    let (server, root) = encrypted();
    let root = format!("&sslrootcert={root}");
    for (parameters, wanted) in [
        ("", "certificate not checked"),
        ("&sslmode=disable", "none"),
        ("&sslmode=allow", "none"),
        ("&sslmode=prefer", "certificate not checked"),
        ("&sslmode=require", "certificate not checked"),
        (&format!("&sslmode=require{root}"), "certificate checked"),
        (&format!("&sslmode=verify-ca{root}"), "certificate checked"),
        (&format!("&sslmode=verify-full{root}"), "certificate and name checked"),
    ] {
        let about = open(&format!("{}{parameters}", url(server))).expect("the server runs");
        assert!(about.ends_with(wanted), "{parameters}: {about}");
        assert_eq!(about.starts_with("TLS 1.3, "), wanted != "none", "{parameters}: {about}");
    }
}

#[test]
fn a_server_without_tls_is_refused_where_tls_is_wanted() {
    let plain = shared().loopback_url("ann:pa%25ss", "postgres");
    for mode in ["disable", "allow", "prefer"] {
        assert_eq!(open(&format!("{plain}?sslmode={mode}")).expect("the server runs"), "none", "{mode}");
    }
    let root = &encrypted().1;
    for mode in ["require", "verify-ca", "verify-full"] {
        let parts = ["no TLS with PostgreSQL at 127.0.0.1", "sslmode=disable"];
        refused(&format!("{plain}?sslmode={mode}&sslrootcert={root}"), &parts);
    }
}

#[test]
fn a_certificate_of_another_authority_is_refused() {
    let scratch = Scratch::new("tls");
    let (server, _) = encrypted();
    let other = Authority::new().file(&scratch, "other.crt");
    for mode in ["require", "verify-ca", "verify-full"] {
        refused(&format!("{}&sslmode={mode}&sslrootcert={other}", url(server)), &["sslrootcert=FILE"]);
    }
    // No authority of the system has signed the certificate, so it is refused without `sslrootcert`, too.
    let system = open(&format!("{}&sslmode=verify-full", url(server))).expect_err("it is refused");
    assert!(matches!(system, Error::Tls { .. }), "{system}");
    // With `sslmode=prefer`, the certificate is not checked.
    open(&format!("{}&sslmode=prefer&sslrootcert={other}", url(server))).expect("it is not checked");
}

#[test]
fn a_certificate_of_another_host_is_refused_where_names_are_checked() {
    let scratch = Scratch::new("tls");
    let authority = Authority::new();
    let server = start(&authority.server("db.example"));
    let root = authority.file(&scratch, "root.crt");
    open(&format!("{}&sslmode=verify-ca&sslrootcert={root}", url(&server))).expect("the name is not checked");
    let parts = ["the certificate is not one of `127.0.0.1`", "sslmode=verify-ca"];
    refused(&format!("{}&sslmode=verify-full&sslrootcert={root}", url(&server)), &parts);
}

#[test]
fn a_server_that_signed_its_own_certificate_is_trusted_if_that_is_named() {
    let scratch = Scratch::new("tls");
    // Like a certificate of `openssl req -x509`: self-signed, and marked as one of an authority.
    let mut params = CertificateParams::new(vec!["127.0.0.1".to_owned()]).expect("a good name");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate().expect("the system has randomness");
    let own = params.self_signed(&key).expect("the key signs");
    let server = start(&options(&own.pem(), &key.serialize_pem()));
    let root = file(&scratch, "server.crt", &own.pem());
    let about = open(&format!("{}&sslmode=verify-full&sslrootcert={root}", url(&server))).expect("it is trusted");
    assert!(about.ends_with("certificate and name checked"), "{about}");
    let other = Authority::new().file(&scratch, "other.crt");
    refused(&format!("{}&sslmode=verify-ca&sslrootcert={other}", url(&server)), &["no TLS with PostgreSQL"]);
}

#[test]
fn what_the_server_insists_on_is_found_by_allow_and_prefer() {
    let authority = Authority::new();
    for (access, mode, wanted) in [("hostssl", "allow", true), ("hostnossl", "prefer", false)] {
        let mut options = authority.server("127.0.0.1");
        let rules = format!("local all all trust\n{access} all all 127.0.0.1/32 scram-sha-256\n");
        options.files.push(("pg_hba.conf".to_owned(), rules.into_bytes()));
        let server = start(&options);
        let about = open(&format!("{}&sslmode={mode}", url(&server))).expect("the other way is tried");
        assert_eq!(about != "none", wanted, "{access}: {about}");
        let other = if wanted { "disable" } else { "require" };
        let error = open(&format!("{}&sslmode={other}", url(&server))).expect_err("the server refuses it");
        assert!(error.to_string().contains("pg_hba.conf"), "{error}");
        // The error is about the password, whether or not the session begins with TLS.
        let wrong = url(&server).replace("secret", "wrong");
        let error = open(&format!("{wrong}&sslmode={mode}")).expect_err("the password is wrong");
        assert!(error.to_string().contains("password"), "{error}");
    }
}

#[test]
fn a_password_is_proved_for_its_session_alone() {
    let (server, _) = encrypted();
    for binding in ["disable", "prefer", "require"] {
        let url = format!("{}&sslmode=require&channel_binding={binding}", url(server));
        open(&url).unwrap_or_else(|error| panic!("{binding}: {error}"));
    }
    refused(&format!("{}&sslmode=disable&channel_binding=require", url(server)), &["SCRAM-SHA-256-PLUS"]);
    let wrong = url(server).replace("secret", "wrong");
    let error = open(&format!("{wrong}&sslmode=require&channel_binding=require")).expect_err("the password is wrong");
    assert!(error.to_string().contains("password"), "{error}");
}

#[test]
fn bad_files_of_roots_are_named() {
    let scratch = Scratch::new("tls");
    let (server, _) = encrypted();
    let empty = file(&scratch, "empty.crt", "no certificate\n");
    refused(&format!("{}&sslmode=verify-ca&sslrootcert={empty}", url(server)), &["empty.crt", "no certificate"]);
    refused(&format!("{}&sslmode=verify-ca&sslrootcert=/nonexistent.crt", url(server)), &["/nonexistent.crt"]);
}

#[test]
fn a_table_is_loaded_and_read_over_tls() {
    struct Numbered(u32);
    impl harness::Rows for Numbered {
        fn next_row(&mut self, key: &mut Vec<u8>, record: &mut Strings) -> bool {
            key.clear();
            key.extend_from_slice(format!("{:08}", self.0).as_bytes());
            record.clear();
            record.push(&[b'v'; 1000]);
            self.0 += 1;
            self.0 <= 5_000
        }
    }
    let (server, _) = encrypted();
    let address = Address::parse(&format!("{}&sslmode=require", url(server)), |_| None).expect("a good address");
    let table = Table::numbered("over_tls", "field", 1);
    let store = Postgres::open(address, &table, Opening::Recreate).expect("the server runs");
    let encryption = store.settings().into_iter().find(|setting| setting.name == "encryption").expect("it is told");
    assert!(encryption.value.starts_with("TLS 1.3"), "{encryption:?}");
    assert_eq!(store.bulk_load(&mut Numbered(0)).expect("the server takes it"), Some(5_000));
    let mut connection = Connection::open(&Address::parse(&url(server), |_| None).expect("good")).expect("it runs");
    // Five megabytes come back, in many records.
    let rows = connection.query("SELECT * FROM over_tls").expect("it is SQL");
    assert_eq!(rows.len(), 5_000);
    assert!(rows.iter().all(|row| row[1].as_ref().is_some_and(|value| value.len() == 1000)));
}

#[test]
fn the_hash_of_a_certificate_is_found_by_its_signature() {
    // The authority signs with ECDSA and SHA-256.
    let authority = Authority::new();
    let certificate = authority.0.der();
    assert_eq!(end_point(certificate), Some(Sha256::digest(certificate).to_vec()));
    for cut in 0..certificate.len().min(600) {
        // Bytes that are no certificate give `None`, not a panic.
        assert_eq!(end_point(&certificate[..cut]), None, "cut at {cut}");
    }
    assert_eq!(end_point(&[0x30, 0x84, 0xff, 0xff, 0xff, 0xff]), None);
}
