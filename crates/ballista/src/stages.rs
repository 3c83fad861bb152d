//! Plans that stay right when Ballista cuts them into stages.
//!
//! DataFusion plans for one process. There, a hash exchange that has one input, or that merges, keeps the order of
//! its rows. One side of a hash join keeps its order, too. The plan above may depend on this order: it may have a
//! merge join, or an aggregate that reads its rows as they come. Ballista turns each exchange into a shuffle, which
//! keeps no order. When it cuts the plan, it also exchanges the sides of joins. In some stages it sorts again, in
//! others not.
//!
//! So the rules that depend on an order see a plan in which no order goes beyond a [`Cut`], and they add a sort where
//! one is needed:
//!
//! ```text
//! as DataFusion plans it                       as its rules see it                    what Ballista gets
//!   SortMergeJoin: a = b                         SortMergeJoin: a = b                   SortMergeJoin: a = b
//!     Aggregate: gby=b, sorted by b                Sort: b                                Sort: b
//!       Repartition: hash b, keeps the order         Aggregate: gby=b                       Aggregate: gby=b
//!         scan in the order of b                       Cut                                    Repartition: hash b
//!                                                        scan                                   scan
//! ```

use ballista_core::extension::SessionConfigExt as _;
use ballista_core::utils::default_session_builder;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult as _, TreeNode as _, TreeNodeRecursion};
use datafusion::common::{internal_err, plan_err};
use datafusion::error::Result;
use datafusion::execution::TaskContext;
use datafusion::execution::session_state::{SessionState, SessionStateBuilder};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::joins::{CrossJoinExec, HashJoinExec, NestedLoopJoinExec};
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties as _, Partitioning, PlanProperties,
    SendableRecordBatchStream,
};
use datafusion::prelude::SessionConfig;
use larch_datafusion::MergeJoinFilters;
use os::sync::Arc;
use std::fmt;

type Plan = Arc<dyn ExecutionPlan>;
type Rule = Arc<dyn PhysicalOptimizerRule + Send + Sync>;

/// How often an exchange may be added because the order that made it unnecessary is gone. Each exchange is added
/// once. If there are more, the rules do not agree about the plan.
const ATTEMPTS: usize = 8;

/// The session in which the scheduler plans a query.
///
/// A query is planned once, before it begins, whatever the client asks for. Ballista 55 has another planner, which
/// plans the rest of a query again after each stage. It may exchange the sides of joins beneath a stage that has
/// ended. The readers of such a stage then expect as many partitions as the new plan has, and not as many as the
/// stage has written. So rows are missing in the answer.
///
/// # Errors
///
/// The errors of a session.
pub fn session(config: SessionConfig) -> Result<SessionState> {
    let state = default_session_builder(config.with_ballista_adaptive_query_planner(false))?;
    let rules = rules(state.physical_optimizers());
    Ok(SessionStateBuilder::new_from_existing(state).with_physical_optimizer_rules(rules).build())
}

/// The rules of DataFusion; for the rules that depend on an order, cuts end the order. Ballista joins by merging
/// where DataFusion joins by hash, so most filters of outer joins are filters of merge joins.
fn rules(planned: &[Rule]) -> Vec<Rule> {
    let bounded = |rule: &Rule| -> Vec<Rule> {
        let within = Arc::new(WithinCuts(rule.clone()));
        match rule.name() {
            // This rule adds exchanges and sorts where they are needed. First it adds all exchanges, as in one
            // process.
            "EnsureRequirements" => vec![rule.clone(), within],
            "OptimizeAggregateOrder" | "PushdownSort" => vec![within],
            _ => vec![rule.clone()],
        }
    };
    let last: Rule = Arc::new(MergeJoinFilters);
    planned.iter().flat_map(bounded).chain([last]).collect()
}

/// A rule that sees no order beyond an exchange or a join.
#[derive(Debug)]
struct WithinCuts(Rule);

impl PhysicalOptimizerRule for WithinCuts {
    fn optimize(&self, plan: Plan, config: &ConfigOptions) -> Result<Plan> {
        let mut plan = plan.transform_up(|plan| Ok(cut_join(plan))).data()?;
        for _ in 0..ATTEMPTS {
            let exchanges = plan.transform_up(cut_exchange)?;
            plan = self.0.optimize(exchanges.data, config)?;
            // The rule may have added exchanges that it rests on.
            let has_more = plan.exists(|plan| Ok(hash_of(plan).is_some()))?;
            if !has_more {
                return plan.transform_up(mend).data();
            }
        }
        plan_err!("{} does not come to an end for a plan in stages", self.0.name())
    }

    fn name(&self) -> &str {
        "WithinCuts"
    }

    fn schema_check(&self) -> bool {
        self.0.schema_check()
    }
}

/// A place in a plan beyond which no order goes.
#[derive(Debug)]
struct Cut {
    input: Plan,
    /// The exchange that it stands for. `None`: it stands above a join.
    exchange: Option<Partitioning>,
    properties: Arc<PlanProperties>,
}

impl Cut {
    fn of(input: Plan, exchange: Option<Partitioning>) -> Plan {
        let mut known = input.equivalence_properties().clone();
        known.clear_orderings();
        if exchange.is_some() {
            known.clear_per_partition_constants();
        }
        let partitioning = exchange.clone().unwrap_or_else(|| input.output_partitioning().clone());
        let properties = PlanProperties::new(known, partitioning, input.pipeline_behavior(), input.boundedness());
        Arc::new(Self { input, exchange, properties: Arc::new(properties) })
    }
}

fn hash_of(plan: &Plan) -> Option<&Partitioning> {
    let exchange = plan.downcast_ref::<RepartitionExec>()?;
    Some(exchange.partitioning()).filter(|by| matches!(by, Partitioning::Hash(..)))
}

fn cut_exchange(plan: Plan) -> Result<Transformed<Plan>> {
    Ok(match hash_of(&plan) {
        Some(by) => Transformed::yes(Cut::of(plan.children()[0].clone(), Some(by.clone()))),
        None => Transformed::no(plan),
    })
}

fn cut_join(plan: Plan) -> Transformed<Plan> {
    if plan.is::<HashJoinExec>() || plan.is::<CrossJoinExec>() || plan.is::<NestedLoopJoinExec>() {
        Transformed::yes(Cut::of(plan, None))
    } else {
        Transformed::no(plan)
    }
}

/// The plan that a cut stands for.
fn mend(plan: Plan) -> Result<Transformed<Plan>> {
    let Some(cut) = plan.downcast_ref::<Cut>() else { return Ok(Transformed::no(plan)) };
    Ok(Transformed::yes(match &cut.exchange {
        Some(by) => Arc::new(RepartitionExec::try_new(cut.input.clone(), by.clone())?),
        None => cut.input.clone(),
    }))
}

impl DisplayAs for Cut {
    fn fmt_as(&self, _: DisplayFormatType, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Cut")
    }
}

impl ExecutionPlan for Cut {
    fn name(&self) -> &str {
        "Cut"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Plan> {
        vec![&self.input]
    }

    /// What is beneath it was planned before.
    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        vec![false]
    }

    fn with_new_children(self: Arc<Self>, children: Vec<Plan>) -> Result<Plan> {
        let [input] = &children[..] else { return internal_err!("a cut has one child") };
        Ok(Self::of(input.clone(), self.exchange.clone()))
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn execute(&self, _: usize, _: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        internal_err!("a cut is gone before a plan is executed")
    }
}
