//! The process that does tasks of queries: it opens the databases that tasks name, and reads the key ranges in these
//! tasks.

use crate::codec::{LogicalCodec, PhysicalCodec};
use crate::databases::Databases;
use ballista_core::config::TaskSchedulingPolicy;
use ballista_core::error::{BallistaError, Result};
use ballista_executor::executor_process::{ExecutorProcessConfig, start_executor_process};
use os::sync::Arc;
use std::net::IpAddr;
use std::path::PathBuf;
use tokio::net::TcpListener;

/// The seconds between two heartbeats of an executor, many of which fit into the time after which the scheduler
/// counts it as lost.
const HEARTBEAT_SECONDS: u64 = 5;

/// The options of an executor.
#[derive(Clone, Debug)]
pub struct Options {
    /// The host of the scheduler and its port.
    pub scheduler: (String, u16),
    /// The address at which other processes reach the executor.
    pub address: IpAddr,
    /// The port for rows; tasks use the next one. `None` for any two free ports.
    pub port: Option<u16>,
    /// How many partitions the executor works on at the same time.
    pub threads: usize,
    /// Memory for the query engine, beside the memory of databases.
    pub memory_bytes: u64,
    /// The directory for rows that are sent between processes.
    pub work: PathBuf,
}

/// Does the tasks that the scheduler sends, until the scheduler asks the executor to stop or the future is dropped.
///
/// # Errors
///
/// Fails if no scheduler answers at the address, or if a port is in use.
pub async fn serve(options: Options, databases: Arc<Databases>) -> Result<()> {
    let Options { scheduler: (scheduler_host, scheduler_port), address, port, threads, memory_bytes, work } = options;
    let (port, grpc_port) = match port {
        Some(port) => (port, port + 1),
        None => (free_port(address).await?, free_port(address).await?),
    };
    let config = ExecutorProcessConfig {
        bind_host: address.to_string(),
        external_host: Some(address.to_string()),
        port,
        grpc_port,
        scheduler_host,
        scheduler_port,
        vcores: threads,
        task_scheduling_policy: TaskSchedulingPolicy::PushStaged,
        executor_heartbeat_interval_seconds: HEARTBEAT_SECONDS,
        work_dir: Some(work.display().to_string()),
        memory_pool_size: Some(memory_bytes),
        override_logical_codec: Some(LogicalCodec::new(&databases)),
        override_physical_codec: Some(PhysicalCodec::new(&databases)),
        ..ExecutorProcessConfig::default()
    };
    let watched = Arc::downgrade(&databases);
    tokio::select! {
        ended = start_executor_process(Arc::new(config)) => ended,
        () = Databases::watch(watched) => Ok(()),
    }
}

/// A port that is free now. Another process may take it before the executor binds it.
async fn free_port(address: IpAddr) -> Result<u16> {
    let listener = TcpListener::bind((address, 0)).await.map_err(BallistaError::IoError)?;
    Ok(listener.local_addr().map_err(BallistaError::IoError)?.port())
}
