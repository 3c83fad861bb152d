//! The executors that a scheduler knows. This module also ends the queries that have lost an executor.
//!
//! Some stages of a query have left their rows on an executor. If this executor is lost, Ballista 55 repeats these
//! stages. But it does not forget the rows that these stages have already given to the next stage, so these rows
//! would come twice. Therefore, before Ballista learns that an executor is lost, all running queries are ended.
//! Their clients then ask them again.

use ballista_core::JobId;
use ballista_core::error::Result;
use ballista_core::serde::protobuf::ExecutorHeartbeat;
use ballista_core::serde::scheduler::{ExecutorData, ExecutorMetadata};
use ballista_scheduler::cluster::{BoundTask, ClusterState, ClusterStateEventStream, ExecutorSlot};
use ballista_scheduler::config::TaskDistributionPolicy;
use ballista_scheduler::scheduler_server::SchedulerServer;
use ballista_scheduler::state::task_manager::JobInfoCache;
use datafusion_proto::protobuf::{LogicalPlanNode, PhysicalPlanNode};
use futures::StreamExt as _;
use futures::channel::{mpsc, oneshot};
use os::sync::Arc;
use std::collections::{HashMap, HashSet};
use std::time::Duration;

/// A scheduler for plans in Ballista's own messages.
pub type Scheduler = SchedulerServer<LogicalPlanNode, PhysicalPlanNode>;

/// How long a query waits for the first executor, and how many checks are made in this time.
const WAIT: Duration = Duration::from_secs(12);
const LOOKS: u32 = 12;

/// Ballista's record of executors, and a channel that reports lost ones.
pub struct Executors {
    known: Arc<dyn ClusterState>,
    losses: mpsc::UnboundedSender<Loss>,
}

/// The message about a lost executor. When the running queries have ended, [`end_queries`] sends the answer.
pub type Loss = oneshot::Sender<()>;

impl Executors {
    /// Wraps `known`, Ballista's record of executors. Also returns the stream of messages about lost executors.
    pub fn new(known: Arc<dyn ClusterState>) -> (Arc<Self>, mpsc::UnboundedReceiver<Loss>) {
        let (losses, taken) = mpsc::unbounded();
        (Arc::new(Self { known, losses }), taken)
    }
}

/// If an executor is lost, ends all running queries. If no executor is left for a while, also ends the queries that
/// wait for one.
///
/// # Errors
///
/// Fails if the scheduler has ended.
pub async fn end_queries(
    scheduler: &Scheduler,
    executors: &Executors,
    mut losses: mpsc::UnboundedReceiver<Loss>,
) -> Result<()> {
    let end_all = || async {
        let running = scheduler.state.task_manager.get_running_job_cache();
        for query in running.keys() {
            scheduler.cancel_job(query.clone()).await?;
        }
        Result::Ok(())
    };
    let mut empty = 0;
    loop {
        // Ballista does not report how long there has been no executor at all, so this loop counts how many times
        // there was none.
        match tokio::time::timeout(WAIT / LOOKS, losses.next()).await {
            Ok(Some(loss)) => {
                end_all().await?;
                // If the task that waits for the answer does not exist any more, nothing has to be done.
                loss.send(()).unwrap_or(());
            }
            Ok(None) => return Ok(()),
            Err(_) if !executors.known.executor_heartbeats().is_empty() => empty = 0,
            Err(_) if empty < LOOKS => empty += 1,
            Err(_) => {
                empty = 0;
                end_all().await?;
            }
        }
    }
}

#[async_trait::async_trait]
impl ClusterState for Executors {
    async fn init(&self) -> Result<()> {
        self.known.init().await
    }

    async fn bind_schedulable_tasks(
        &self,
        distribution: TaskDistributionPolicy,
        queries: Arc<HashMap<JobId, JobInfoCache>>,
        executors: Option<HashSet<String>>,
    ) -> Result<Vec<BoundTask>> {
        self.known.bind_schedulable_tasks(distribution, queries, executors).await
    }

    async fn unbind_tasks(&self, slots: Vec<ExecutorSlot>) -> Result<()> {
        self.known.unbind_tasks(slots).await
    }

    async fn register_executor(&self, executor: ExecutorMetadata, threads: ExecutorData) -> Result<()> {
        self.known.register_executor(executor, threads).await
    }

    async fn save_executor_metadata(&self, executor: ExecutorMetadata) -> Result<()> {
        self.known.save_executor_metadata(executor).await
    }

    async fn get_executor_metadata(&self, executor: &str) -> Result<ExecutorMetadata> {
        self.known.get_executor_metadata(executor).await
    }

    async fn registered_executor_metadata(&self) -> Vec<ExecutorMetadata> {
        self.known.registered_executor_metadata().await
    }

    async fn save_executor_heartbeat(&self, heartbeat: ExecutorHeartbeat) -> Result<()> {
        self.known.save_executor_heartbeat(heartbeat).await
    }

    /// Ballista begins stages again after it has removed an executor. Therefore this function waits until the
    /// queries have ended, and then removes the executor.
    async fn remove_executor(&self, executor: &str) -> Result<()> {
        let (loss, ended) = oneshot::channel();
        // Sending fails only if the scheduler is ending. In this case, all its queries end as well.
        if self.losses.unbounded_send(loss).is_ok() {
            ended.await.unwrap_or(());
        }
        self.known.remove_executor(executor).await
    }

    fn executor_heartbeats(&self) -> HashMap<String, ExecutorHeartbeat> {
        self.known.executor_heartbeats()
    }

    fn get_executor_heartbeat(&self, executor: &str) -> Option<ExecutorHeartbeat> {
        self.known.get_executor_heartbeat(executor)
    }

    async fn cluster_state_events(&self) -> Result<ClusterStateEventStream> {
        self.known.cluster_state_events().await
    }
}
