//! Opens the addresses at which this process listens. This module does not know who connects.

use crate::failure::Failure;
use std::io::ErrorKind;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, ToSocketAddrs};

/// Listens at `address`, which is `HOST:PORT`, or a port of 127.0.0.1. Port 0 means any free port. `option` is the
/// option in which the address was given.
///
/// # Errors
///
/// Returns an error if `address` is no address of this machine, or if another program uses the address.
pub fn listen(option: &str, address: &str) -> Result<TcpListener, Failure> {
    let refused = |why: &str| Failure::session("target", format!("{option} {address}: {why}"));
    let addresses: Vec<SocketAddr> = match address.parse::<u16>() {
        Ok(port) => vec![(Ipv4Addr::LOCALHOST, port).into()],
        Err(_) => address
            .to_socket_addrs()
            .map_err(|error| refused(&format!("this is no address ({error}): write HOST:PORT, as 127.0.0.1:9464")))?
            .collect(),
    };
    TcpListener::bind(addresses.as_slice()).map_err(|error| match error.kind() {
        ErrorKind::AddrInUse => refused("another program has this address: name another port, or 0 for a free one"),
        ErrorKind::AddrNotAvailable => refused("this machine does not have this address"),
        _ => refused(&error.to_string()),
    })
}
