//! The executors that a scheduler knows. When one of them is lost, all running queries are ended.
//!
//! If an executor with rows of a stage is lost, Ballista 55 repeats the stage, but does not forget the rows that the
//! next stage has already taken from it, so these would come twice. Therefore all running queries are ended before
//! Ballista learns of the loss. Their clients then send them again.

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

/// How long a query waits for an executor if none is left, and how often this is checked in that time.
const WAIT: Duration = Duration::from_secs(12);
const LOOKS: u32 = 12;

/// Ballista's record of executors, with a channel to report lost ones.
pub struct Executors {
    known: Arc<dyn ClusterState>,
    losses: mpsc::UnboundedSender<Loss>,
}

/// The message about a lost executor, which [`end_queries`] answers when the running queries have ended.
pub type Loss = oneshot::Sender<()>;

impl Executors {
    /// Wraps `known`, Ballista's record of executors. Also returns the stream of losses for [`end_queries`].
    pub fn new(known: Arc<dyn ClusterState>) -> (Arc<Self>, mpsc::UnboundedReceiver<Loss>) {
        let (losses, taken) = mpsc::unbounded();
        (Arc::new(Self { known, losses }), taken)
    }
}

/// Ends all running queries whenever an executor is lost, or when no executor was there for a while.
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
        // Ballista does not report how long no executor has been there, so this loop counts in how many checks none
        // was.
        match tokio::time::timeout(WAIT / LOOKS, losses.next()).await {
            Ok(Some(loss)) => {
                end_all().await?;
                // The sender of the loss may have stopped waiting; then the send has no effect.
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

    /// Waits until the queries have ended before it removes the executor, because Ballista then begins stages again.
    async fn remove_executor(&self, executor: &str) -> Result<()> {
        let (loss, ended) = oneshot::channel();
        // Sending fails only if the scheduler is ending, and with it all its queries.
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
