//! The TLS of a session: certificate checks, handshake, and encryption. The only message of PostgreSQL that this
//! module knows is the request for TLS.
//!
//! A session waits for many sockets at once, and the system reports an arrival only once. So [`Tls::receive`] must
//! not keep decrypted bytes back: it moves all of them to the inbox, and says whether the socket may have more.

use crate::postgres::address::{Checked, Encryption, Place, Roots};
use crate::postgres::moved::Moved;
use crate::postgres::wire::Inbox;
use rustix::net::{RecvFlags, SendFlags};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{Resumption, verify_server_cert_signed_by_trust_anchor, verify_server_name};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, ClientConfig, ClientConnection, DigitallySignedStruct, RootCertStore, SignatureScheme};
use sha2::{Digest, Sha256, Sha384, Sha512};
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;

#[cfg(test)]
pub(crate) mod tests;

/// The SSLRequest, which asks a server whether it speaks TLS: a length, and a number that is no protocol version.
/// The server answers with one byte.
pub const REQUEST: [u8; 8] = [0, 0, 0, 8, 0x04, 0xd2, 0x16, 0x2f];
/// Most encrypted bytes that one receive takes.
const RECEIVE_BYTES: usize = 64 << 10;
/// Where Debian, Fedora and Alpine keep the certificates of trusted authorities.
const SYSTEM_ROOTS: [&str; 3] =
    ["/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/cert.pem"];

/// The TLS of one socket.
pub struct Tls {
    session: ClientConnection,
    /// Buffer for bytes that came from the socket and are not decrypted yet.
    encrypted: Box<[u8]>,
    checked: Checked,
}

/// Why a receive failed.
#[derive(Debug)]
pub enum Broken {
    /// The other side closed the connection.
    Closed,
    /// An error of the system or of TLS.
    Why(String),
}

/// Adapts a socket to `Read` and `Write` for `rustls`.
struct Socket<'s>(&'s OwnedFd, SendFlags);

impl Read for Socket<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        Ok(rustix::net::recv(self.0, into, RecvFlags::empty())?.0)
    }
}

impl Write for Socket<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Ok(rustix::net::send(self.0, bytes, self.1)?)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Tls {
    /// Performs the handshake with the server at `place`, which has agreed to TLS. Waits as long as the socket's
    /// time limits allow.
    ///
    /// # Errors
    ///
    /// Returns a sentence that says what is wrong with the certificate or the other side, and what to do.
    pub fn begin(socket: &OwnedFd, place: &Place, encryption: &Encryption) -> Result<Self, String> {
        let checked = encryption.checked();
        let host = match place {
            Place::Tcp { host, .. } => host.clone(),
            Place::Unix { .. } => return Err("a Unix socket has no TLS".to_owned()),
        };
        let name =
            ServerName::try_from(host.clone()).map_err(|_| format!("`{host}` is no name that a certificate has"))?;
        let config = config(checked, &encryption.roots)?;
        let mut session = ClientConnection::new(Arc::new(config), name).map_err(|error| error.to_string())?;
        // The default limit of 64 KiB is too small for a COPY.
        session.set_buffer_limit(None);
        let mut socket = Socket(socket, SendFlags::NOSIGNAL);
        while session.is_handshaking() {
            match session.complete_io(&mut socket) {
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    return Err("the server does not answer the handshake in time".to_owned());
                }
                Err(error) => return Err(handshake_advice(&error, &host)),
            }
        }
        Ok(Self { session, encrypted: vec![0; RECEIVE_BYTES].into(), checked })
    }

    /// Describes the session: version, cipher, and what was checked in the certificate.
    pub fn about(&self) -> String {
        let version = self.session.protocol_version().and_then(|version| version.as_str()).unwrap_or("TLS");
        let cipher =
            self.session.negotiated_cipher_suite().and_then(|suite| suite.suite().as_str()).unwrap_or("unknown");
        let checked = match self.checked {
            Checked::Nothing => "certificate not checked",
            Checked::Chain => "certificate checked",
            Checked::ChainAndName => "certificate and name checked",
        };
        format!("{}, {cipher}, {checked}", version.replace("TLSv1_", "TLS 1."))
    }

    /// Encrypts bytes for the next [`Tls::send`].
    pub fn put(&mut self, bytes: &[u8]) {
        self.session.writer().write_all(bytes).expect("the buffer has no limit");
    }

    /// Sends as many encrypted bytes as the socket takes.
    ///
    /// # Errors
    ///
    /// Returns the error of the system.
    pub fn send(&mut self, socket: &OwnedFd, flags: SendFlags) -> Result<Moved, rustix::io::Errno> {
        while self.session.wants_write() {
            match self.session.write_tls(&mut Socket(socket, flags)) {
                Ok(_) => {}
                Err(error) => match rustix::io::Errno::from_io_error(&error) {
                    Some(rustix::io::Errno::INTR) => {}
                    Some(rustix::io::Errno::AGAIN) => return Ok(Moved::Part),
                    other => return Err(other.unwrap_or(rustix::io::Errno::IO)),
                },
            }
        }
        Ok(Moved::All)
    }

    /// Receives, decrypts, and moves the bytes to the inbox. Returns the same as `Connection::receive`.
    ///
    /// # Errors
    ///
    /// Returns an error if the connection has ended.
    pub fn receive(&mut self, socket: &OwnedFd, inbox: &mut Inbox, flags: RecvFlags) -> Result<Option<Moved>, Broken> {
        loop {
            let received = match rustix::net::recv(socket, &mut *self.encrypted, flags) {
                Ok((0, _)) => return Err(Broken::Closed),
                Ok((received, _)) => received,
                Err(rustix::io::Errno::INTR) => continue,
                Err(rustix::io::Errno::AGAIN) => return Ok(None),
                Err(error) => return Err(Broken::Why(io::Error::from(error).to_string())),
            };
            let mut rest = &self.encrypted[..received];
            let mut has_some = false;
            while !rest.is_empty() {
                self.session.read_tls(&mut rest).map_err(|error| Broken::Why(error.to_string()))?;
                self.session.process_new_packets().map_err(|error| Broken::Why(format!("TLS: {error}")))?;
                has_some |= hand_over(&mut self.session, inbox)?;
            }
            let is_empty = received < self.encrypted.len();
            if has_some {
                return Ok(Some(if is_empty { Moved::All } else { Moved::Part }));
            }
            // Only a part of a record has arrived. A new event will report the rest.
            if is_empty && flags.contains(RecvFlags::DONTWAIT) {
                return Ok(None);
            }
        }
    }

    /// Queues the message that nothing more will be sent.
    pub fn end(&mut self) {
        self.session.send_close_notify();
    }

    /// The channel binding for SCRAM: a hash of the server's certificate (`tls-server-end-point`, RFC 5929). `None`
    /// if none is defined for the certificate's signature algorithm.
    pub fn end_point(&self) -> Option<Vec<u8>> {
        end_point(self.session.peer_certificates()?.first()?)
    }
}

/// Moves the decrypted bytes to the inbox. Returns whether there were any.
fn hand_over(session: &mut ClientConnection, inbox: &mut Inbox) -> Result<bool, Broken> {
    let mut has_some = false;
    loop {
        match session.reader().read(inbox.room()) {
            Ok(0) if has_some => return Ok(true),
            Ok(0) => return Err(Broken::Closed),
            Ok(bytes) => {
                inbox.filled(bytes);
                has_some = true;
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(has_some),
            Err(error) => return Err(Broken::Why(error.to_string())),
        }
    }
}

fn config(checked: Checked, roots: &Roots) -> Result<ClientConfig, String> {
    let provider = Arc::new(ring::default_provider());
    let trusted = match checked {
        Checked::Nothing => None,
        Checked::Chain | Checked::ChainAndName => Some(Trusted::read(roots)?),
    };
    let verifier = Verifier { trusted, has_name: checked == Checked::ChainAndName, provider: Arc::clone(&provider) };
    let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let builder = builder.map_err(|error| error.to_string())?;
    let mut config = builder.dangerous().with_custom_certificate_verifier(Arc::new(verifier)).with_no_client_auth();
    // Sessions stay open and are never resumed.
    config.resumption = Resumption::disabled();
    Ok(config)
}

/// The trusted certificates.
#[derive(Debug)]
struct Trusted {
    store: Arc<RootCertStore>,
    /// The same certificates as they were read. One of them may be the server's own.
    certificates: Vec<CertificateDer<'static>>,
}

impl Trusted {
    fn read(roots: &Roots) -> Result<Self, String> {
        let file = match roots {
            Roots::File(file) => file.as_path(),
            Roots::System => SYSTEM_ROOTS.iter().map(Path::new).find(|path| path.is_file()).ok_or(
                "this system has no list of authorities; name the certificate of the server's by sslrootcert=FILE",
            )?,
        };
        let bad = |why: String| format!("sslrootcert {}: {why}", file.display());
        let certificates = CertificateDer::pem_file_iter(file).map_err(|error| bad(error.to_string()))?;
        let certificates = certificates.collect::<Result<Vec<_>, _>>().map_err(|error| bad(error.to_string()))?;
        let mut store = RootCertStore::empty();
        store.add_parsable_certificates(certificates.iter().cloned());
        if store.is_empty() {
            return Err(bad("it has no certificate in PEM".to_owned()));
        }
        Ok(Self { store: Arc::new(store), certificates })
    }
}

/// Checks as much of a certificate as `sslmode` asks for. The handshake's signature is always checked.
#[derive(Debug)]
struct Verifier {
    trusted: Option<Trusted>,
    has_name: bool,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        _: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let Some(trusted) = &self.trusted else { return Ok(ServerCertVerified::assertion()) };
        let certificate = ParsedCertificate::try_from(end_entity)?;
        let algorithms = self.provider.signature_verification_algorithms.all;
        let chain =
            verify_server_cert_signed_by_trust_anchor(&certificate, &trusted.store, intermediates, now, algorithms);
        match chain {
            // A self-signed server certificate is one of an authority. If it is trusted, it is accepted; its dates
            // were checked already.
            Err(error) if is_authority(&error) && trusted.certificates.iter().any(|known| known == end_entity) => {}
            other => other?,
        }
        if self.has_name {
            verify_server_name(&certificate, server_name)?;
        }
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, certificate, signed, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, certificate, signed, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

/// Whether a certificate was refused only because it is one of an authority.
fn is_authority(error: &rustls::Error) -> bool {
    let rustls::Error::InvalidCertificate(CertificateError::Other(other)) = error else { return false };
    matches!(other.0.downcast_ref(), Some(webpki::Error::CaUsedAsEndEntity))
}

fn handshake_advice(error: &io::Error, host: &str) -> String {
    let advice = match error.get_ref().and_then(|inner| inner.downcast_ref()) {
        Some(rustls::Error::InvalidCertificate(
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
        )) => format!("the certificate is not one of `{host}`; use a name that it has, or sslmode=verify-ca, which checks none"),
        // `BadSignature` is the error if another authority has the same name but another key.
        Some(rustls::Error::InvalidCertificate(CertificateError::UnknownIssuer | CertificateError::BadSignature)) => {
            "no authority that is trusted has signed the certificate; name the file of the right one by sslrootcert=FILE"
                .to_owned()
        }
        _ => "see the log of the server".to_owned(),
    };
    format!("{error}; {advice}")
}

/// Hashes a certificate with the hash function of its own signature, or with SHA-256 if that is MD5 or SHA-1.
fn end_point(certificate: &[u8]) -> Option<Vec<u8>> {
    // Certificate ::= SEQUENCE { tbsCertificate SEQUENCE, signatureAlgorithm SEQUENCE { algorithm OBJECT IDENTIFIER …
    // }, … }
    let (whole, _) = element(certificate, 0x30)?;
    let (_, after) = element(whole, 0x30)?;
    let (algorithm, _) = element(after, 0x30)?;
    let (name, _) = element(algorithm, 0x06)?;
    const RSA: [u8; 8] = [0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01];
    const ECDSA: [u8; 6] = [0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04];
    let rsa = name.strip_prefix(RSA.as_slice());
    let ecdsa = name.strip_prefix(ECDSA.as_slice());
    match (rsa, ecdsa) {
        // MD5, SHA-1 and SHA-256 with RSA; SHA-1 and SHA-256 with ECDSA.
        (Some([4 | 5 | 11]), _) | (_, Some([1] | [3, 2])) => Some(Sha256::digest(certificate).to_vec()),
        (Some([12]), _) | (_, Some([3, 3])) => Some(Sha384::digest(certificate).to_vec()),
        (Some([13]), _) | (_, Some([3, 4])) => Some(Sha512::digest(certificate).to_vec()),
        _ => None,
    }
}

/// Parses the DER element with the tag `tag` at the start of `bytes`. Returns its content and the bytes after it.
fn element(bytes: &[u8], tag: u8) -> Option<(&[u8], &[u8])> {
    let [first, length, rest @ ..] = bytes else { return None };
    let (length, rest) = match *length {
        short @ 0..0x80 => (usize::from(short), rest),
        long => {
            let digits = usize::from(long & 0x7f);
            let (digits, rest) = rest.split_at_checked(digits).filter(|(digits, _)| (1..=4).contains(&digits.len()))?;
            (digits.iter().fold(0, |length, digit| length << 8 | usize::from(*digit)), rest)
        }
    };
    let (content, after) = rest.split_at_checked(length)?;
    (*first == tag).then_some((content, after))
}
