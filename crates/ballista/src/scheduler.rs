//! The process that cuts queries into tasks. It reads the index of a table, to cut it into partitions, and no rows.

use crate::codec::{LogicalCodec, PhysicalCodec};
use crate::databases::{Databases, PAUSE};
use ballista_core::config::TaskSchedulingPolicy;
use ballista_core::error::{BallistaError, Result};
use ballista_scheduler::cluster::BallistaCluster;
use ballista_scheduler::config::{SchedulerConfig, TaskDistributionPolicy};
use ballista_scheduler::scheduler_process::{create_scheduler, start_grpc_service_with_listener};
use datafusion_proto::protobuf::{LogicalPlanNode, PhysicalPlanNode};
use os::sync::Arc;
use std::net::SocketAddr;
use tokio::net::TcpListener;

/// What happens in a scheduler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Said {
    /// It takes queries and executors at this address.
    Listens(SocketAddr),
    /// It has as many executors as it was to wait for.
    Ready,
}

/// Takes queries and executors at an address until it is dropped. Port 0 is any free one. `say` hears what happens; one thing is
/// that there are `executors` of them.
///
/// # Errors
///
/// The address is in use.
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
        // An executor is given a task at once, and all get some.
        scheduling_policy: TaskSchedulingPolicy::PushStaged,
        task_distribution: TaskDistributionPolicy::RoundRobin,
        min_ready_executors: executors,
        override_logical_codec: Some(LogicalCodec::new(&databases)),
        override_physical_codec: Some(PhysicalCodec::new(&databases)),
        ..SchedulerConfig::default()
    };
    let cluster = BallistaCluster::new_from_config(&config).await?;
    let scheduler = create_scheduler::<LogicalPlanNode, PhysicalPlanNode>(cluster, Arc::new(config)).await?;
    let watched = scheduler.clone();
    let ready = async move {
        say(Said::Listens(address));
        while !watched.is_ready() {
            // Ballista does not say when an executor registers, so it is asked.
            tokio::time::sleep(PAUSE).await;
        }
        say(Said::Ready);
        Databases::watch(Arc::downgrade(&databases)).await;
        Ok(())
    };
    tokio::select! {
        served = start_grpc_service_with_listener(listener, scheduler) => served,
        ended = ready => ended,
    }
}
