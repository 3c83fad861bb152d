//! The process that cuts queries into tasks. It reads the index of a table, to cut it into partitions, and no rows.

use crate::codec::{LogicalCodec, PhysicalCodec};
use crate::databases::{Databases, PAUSE};
use ballista_core::config::TaskSchedulingPolicy;
use ballista_core::error::{BallistaError, Result};
use ballista_core::extension::SessionConfigExt as _;
use ballista_core::utils::default_session_builder;
use ballista_scheduler::cluster::BallistaCluster;
use ballista_scheduler::config::{SchedulerConfig, TaskDistributionPolicy};
use ballista_scheduler::scheduler_process::{create_scheduler, start_grpc_service_with_listener};
use datafusion::prelude::SessionConfig;
use datafusion_proto::protobuf::{LogicalPlanNode, PhysicalPlanNode};
use os::sync::Arc;
use std::net::SocketAddr;
use tokio::net::TcpListener;

/// The seconds without a heartbeat after which an executor counts as lost. Other executors then run its tasks, and run those again whose
/// results it had.
const LOST_AFTER_SECONDS: u64 = 60;

/// How often the scheduler looks for lost executors, in seconds.
const LOOK_SECONDS: u64 = 5;

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
        executor_timeout_seconds: LOST_AFTER_SECONDS,
        expire_dead_executor_interval_seconds: LOOK_SECONDS,
        // A query that no executor is left for ends with an error, unless one comes meanwhile.
        no_executors_grace_period_seconds: LOST_AFTER_SECONDS,
        override_session_builder: Some(Arc::new(|config| default_session_builder(planned_once(config)))),
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

/// A query is planned once, before it begins, whatever the client asks for. The other planner of Ballista 55 plans what is left of it
/// again after each stage, and sides of joins beneath a stage that has ended change with it: such a stage then has as many
/// partitions for its readers as the new plan has, and no longer as many as it has written, and rows are missing in the answer.
fn planned_once(config: SessionConfig) -> SessionConfig {
    config.with_ballista_adaptive_query_planner(false)
}
