//! Options of runs that several processes do together, and of `larch bench worker`.

use clap::Args;
use harness::{Failure, Share};
use std::path::PathBuf;

/// Examples of the command.
pub const WORKER_EXAMPLES: &str = "\
Examples:
  (umask 077; openssl rand -hex 32 > secret)
  larch bench worker --listen 7001 --secret-file secret
  larch bench worker --listen 192.0.2.7:7001 --secret-file secret
  larch bench tpcc run --target noop: --warehouses 8 --workers localhost:7001,192.0.2.7:7001 --secret-file secret

A worker makes one run at a time and then waits for the next coordinator, until ^C. Whoever knows the secret can let it make any
run of `tpcc run`, `kv`, `ycsb load`, `ycsb run` and `rows run`. Files that a run names are the worker's. The secret is not sent,
but nothing is encrypted, not even the password of a target: use loopback, a network of your own, or a tunnel of ssh.

Exit codes: 0 with --once, a run was made; 2 wrong arguments; 3 the address failed; 130 ended by ^C.";

/// Options of `larch bench worker`.
#[derive(Clone, Debug, Args)]
pub struct WorkerArgs {
    /// Where coordinators connect; a port alone is one of 127.0.0.1, port 0 is any free port
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:0")]
    pub listen: String,
    /// File of the secret that coordinators know too [default: the variable LARCH_WORKER_SECRET]
    #[arg(long, value_name = "FILE")]
    pub secret_file: Option<PathBuf>,
    /// Ends after the first run
    #[arg(long)]
    pub once: bool,
}

/// Options of a run that several processes can do together.
#[derive(Clone, Debug, Default, Args)]
pub struct TogetherArgs {
    /// Lets processes of `larch bench worker` do the run together, each a share of its clients, and prints one result
    #[arg(long, value_name = "HOST:PORT,…", value_delimiter = ',')]
    pub workers: Vec<String>,
    /// File of the secret that the workers know too [default: the variable LARCH_WORKER_SECRET]
    #[arg(long, value_name = "FILE", requires = "workers")]
    pub secret_file: Option<PathBuf>,
    /// Does one share of the run, of several that are started by hand: 1/2. `larch bench merge` makes one result of
    /// them
    #[arg(long, value_name = "K/N", conflicts_with = "workers")]
    pub share: Option<Share>,
}

impl TogetherArgs {
    /// The value of `--workers` if it is a single number.
    pub fn number(&self) -> Option<&str> {
        match &self.workers[..] {
            [only] if only.bytes().all(|byte| byte.is_ascii_digit()) => Some(only),
            _ => None,
        }
    }

    /// The share that this process does itself.
    pub fn own_share(&self) -> Share {
        self.share.unwrap_or(Share::WHOLE)
    }

    /// The addresses of the workers.
    ///
    /// # Errors
    ///
    /// Fails if one of the values is not an address.
    pub fn addresses(&self) -> Result<Vec<String>, Failure> {
        match self.workers.iter().find(|address| !address.contains(':')) {
            Some(address) => {
                let text =
                    format!("--workers {address}: write HOST:PORT of processes of `larch bench worker`, with commas");
                Err(Failure::session("target", text))
            }
            None => Ok(self.workers.clone()),
        }
    }
}
