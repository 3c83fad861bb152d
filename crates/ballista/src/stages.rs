//! Makes plans that stay right when Ballista divides them into stages.
//!
//! DataFusion plans for a single process. In one process, a hash exchange keeps the order of its rows if it has a
//! single input or merges its inputs. A hash join keeps the order of one of its sides. The plan above may depend
//! on this order: it may have a merge join, or an aggregate that reads its rows in order. Ballista turns each
//! exchange into a shuffle, which does not keep an order. When Ballista divides the plan, it also swaps the sides
//! of joins. In some stages, Ballista sorts the rows again after this, and in others it does not.
//!
//! Therefore, for the rules that depend on an order, every order in the plan ends at a [`Cut`]. The rules add a
//! sort where one is needed:
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

/// How many times a rule may run. If a cut has ended an order, the rule may have to add exchanges that the order
/// made unnecessary. Each exchange is added only once. If a rule needs more runs than this, the plan is refused.
const ATTEMPTS: usize = 8;

/// The session in which the scheduler plans a query.
///
/// A query is planned once, before it begins, whatever the client asks for. Ballista 55 has another planner, which
/// plans the rest of a query again after each stage. This planner may swap the sides of joins beneath a stage that
/// has already ended. The new plan then has another number of partitions for this stage than the stage has
/// written, and the readers of the stage use the number in the plan. As a result, rows are missing in the answer.
///
/// # Errors
///
/// Returns the errors of a session.
pub fn session(config: SessionConfig) -> Result<SessionState> {
    let state = default_session_builder(config.with_ballista_adaptive_query_planner(false))?;
    let rules = rules(state.physical_optimizers());
    Ok(SessionStateBuilder::new_from_existing(state).with_physical_optimizer_rules(rules).build())
}

/// The rules of DataFusion. For rules that depend on an order, cuts end every order. The rule [`MergeJoinFilters`]
/// comes last. This rule matters more here than in DataFusion, because Ballista uses merge joins where DataFusion
/// uses hash joins.
fn rules(planned: &[Rule]) -> Vec<Rule> {
    let bounded = |rule: &Rule| -> Vec<Rule> {
        let within = Arc::new(WithinCuts(rule.clone()));
        match rule.name() {
            // The rule `EnsureRequirements` adds exchanges and sorts where they are needed. First it runs without
            // cuts and adds all exchanges, as for a single process.
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
            // The rule may have added exchanges, and the plan may depend on the order of their rows. Therefore the
            // rule runs again, with cuts at these exchanges.
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
    /// The exchange for which the cut stands; `None` if the cut stands above a join.
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

/// Replaces a cut by the plan for which it stands.
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

    /// The plan beneath the cut was planned before.
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
