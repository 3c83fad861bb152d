//! The process that divides queries into tasks. It reads a table's index to divide it into partitions, but no rows.

use crate::codec::{LogicalCodec, PhysicalCodec};
use crate::databases::{Databases, PAUSE};
use crate::executors::{Executors, Scheduler, end_queries};
use ballista_core::config::TaskSchedulingPolicy;
use ballista_core::error::{BallistaError, Result};
use ballista_scheduler::cluster::BallistaCluster;
use ballista_scheduler::config::{SchedulerConfig, TaskDistributionPolicy};
use ballista_scheduler::scheduler_process::{create_scheduler, start_grpc_service_with_listener};
use os::sync::Arc;
use std::net::SocketAddr;
use tokio::net::TcpListener;

/// After this many seconds without a heartbeat, an executor counts as lost. Then the running queries end, and their
/// clients send them again.
const LOST_AFTER_SECONDS: u64 = 60;

/// The seconds between two looks for lost executors.
const LOOK_SECONDS: u64 = 5;

/// A message from a scheduler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Said {
    /// The scheduler accepts queries and executors at this address.
    Listens(SocketAddr),
    /// All executors that the scheduler waits for have registered.
    Ready,
}

/// Accepts queries and executors at an address until the future is dropped. Port 0 stands for any free port. `say`
/// gets the scheduler's messages, such as that `executors` executors have registered.
///
/// # Errors
///
/// Fails if the address is in use.
pub async fn serve(
    address: SocketAddr,
    executors: usize,
    databases: Arc<Databases>,
    mut say: impl FnMut(Said),
) -> Result<()> {
    let listener = TcpListener::bind(address).await.map_err(BallistaError::IoError)?;
    let address = listener.local_addr().map_err(BallistaError::IoError)?;
    let config = SchedulerConfig {
        bind_host: address.ip().to_string(),
        external_host: address.ip().to_string(),
        bind_port: address.port(),
        // The scheduler pushes tasks to executors at once, in turn to each.
        scheduling_policy: TaskSchedulingPolicy::PushStaged,
        task_distribution: TaskDistributionPolicy::RoundRobin,
        min_ready_executors: executors,
        executor_timeout_seconds: LOST_AFTER_SECONDS,
        expire_dead_executor_interval_seconds: LOOK_SECONDS,
        // If the rows of a stage cannot be fetched, the whole query ends instead of the stage being begun again; see
        // `executors`.
        stage_max_failures: 1,
        override_session_builder: Some(Arc::new(crate::stages::session)),
        override_logical_codec: Some(LogicalCodec::new(&databases)),
        override_physical_codec: Some(PhysicalCodec::new(&databases)),
        ..SchedulerConfig::default()
    };
    let cluster = BallistaCluster::new_from_config(&config).await?;
    let (executors, losses) = Executors::new(cluster.cluster_state());
    let cluster = BallistaCluster::new(executors.clone(), cluster.job_state());
    let scheduler: Scheduler = create_scheduler(cluster, Arc::new(config)).await?;
    let ending = scheduler.clone();
    let watched = scheduler.clone();
    let ready = async move {
        say(Said::Listens(address));
        while !watched.is_ready() {
            // Ballista does not report when an executor registers, so this polls.
            tokio::time::sleep(PAUSE).await;
        }
        say(Said::Ready);
        Databases::watch(Arc::downgrade(&databases)).await;
        Ok(())
    };
    tokio::select! {
        served = start_grpc_service_with_listener(listener, scheduler) => served,
        ended = ready => ended,
        ended = end_queries(&ending, &executors, losses) => ended,
    }
}
