//! Makes plans that stay correct when Ballista divides them into stages.
//!
//! DataFusion plans for a single process, in which a hash exchange with a single input, or one that merges its
//! inputs, keeps the order of its rows, and a hash join that of one of its sides. The plan above may depend on this
//! order, for example a merge join, or an aggregate over sorted rows. But Ballista turns each exchange into a
//! shuffle, which keeps no order, and swaps the sides of joins when it divides the plan. It sorts the rows again in
//! some stages, but not in all.
//!
//! Therefore the rules that depend on orders see a plan in which every order ends at a [`Cut`] in place of an
//! exchange, or above a join. They then add sorts where they are needed:
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

/// How many times a rule may run before the plan is refused. Where a cut ends an order, the rule may add exchanges
/// that the order made unnecessary before. Each exchange is added only once.
const ATTEMPTS: usize = 8;

/// The session in which the scheduler plans a query.
///
/// A query is planned once, before it begins, whatever the client asks for. Ballista 55's adaptive planner plans the
/// rest of a query again after each stage. It may swap the sides of joins beneath a stage that has already ended.
/// The stage's readers then expect the new plan's number of partitions, and not the one that was written, so rows
/// are missing from the answer.
///
/// # Errors
///
/// Returns the errors of a session.
pub fn session(config: SessionConfig) -> Result<SessionState> {
    let state = default_session_builder(config.with_ballista_adaptive_query_planner(false))?;
    let rules = rules(state.physical_optimizers());
    Ok(SessionStateBuilder::new_from_existing(state).with_physical_optimizer_rules(rules).build())
}

/// DataFusion's rules, with those that depend on orders run within cuts, and [`MergeJoinFilters`] last. Ballista
/// uses merge joins where DataFusion uses hash joins.
fn rules(planned: &[Rule]) -> Vec<Rule> {
    let bounded = |rule: &Rule| -> Vec<Rule> {
        let within = Arc::new(WithinCuts(rule.clone()));
        match rule.name() {
            // Adds exchanges and sorts where they are needed. The first run, without cuts, adds the exchanges, as
            // for a single process.
            "EnsureRequirements" => vec![rule.clone(), within],
            "OptimizeAggregateOrder" | "PushdownSort" => vec![within],
            _ => vec![rule.clone()],
        }
    };
    let last: Rule = Arc::new(MergeJoinFilters);
    planned.iter().flat_map(bounded).chain([last]).collect()
}

/// Runs a rule on a plan in which no order continues beyond an exchange or a join.
#[derive(Debug)]
struct WithinCuts(Rule);

impl PhysicalOptimizerRule for WithinCuts {
    fn optimize(&self, plan: Plan, config: &ConfigOptions) -> Result<Plan> {
        let mut plan = plan.transform_up(|plan| Ok(cut_join(plan))).data()?;
        for _ in 0..ATTEMPTS {
            let exchanges = plan.transform_up(cut_exchange)?;
            plan = self.0.optimize(exchanges.data, config)?;
            // If the rule has added exchanges, the plan may depend on their order, so it runs again with cuts at
            // them.
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

/// A node in a plan at which every order ends.
#[derive(Debug)]
struct Cut {
    input: Plan,
    /// The exchange that the cut replaces, or `None` if the cut is above a join.
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

/// Replaces a cut by its exchange, or removes it above a join.
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

    /// The plan beneath the cut is already complete.
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
