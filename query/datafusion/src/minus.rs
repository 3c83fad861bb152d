//! Plans a minus before an unsigned number, which DataFusion's SQL planner refuses, by casting the number to a
//! signed type.
//!
//! The planner accepts custom operators with two operands but not with one. So each minus in a statement is replaced
//! by a custom operator, which [`Minus`] plans:
//!
//! ```text
//! SELECT -a FROM t      SELECT NULL <minus> a FROM t      a signed: Negative(a)    a unsigned: Negative(Cast(a))
//! ```

use datafusion::arrow::datatypes::DataType;
use datafusion::common::{DFSchema, plan_err};
use datafusion::error::Result;
use datafusion::logical_expr::planner::{ExprPlanner, PlannerResult, RawBinaryExpr};
use datafusion::logical_expr::type_coercion::{is_interval, is_signed_numeric, is_timestamp};
use datafusion::logical_expr::{Expr, ExprSchemable, cast};
use datafusion::sql::parser::{CopyToSource, Statement};
use datafusion::sql::sqlparser::ast;
use std::ops::ControlFlow;

/// The name of the custom operator, which cannot occur in SQL.
const MINUS: &str = "- of the right side";

/// Plans the operator [`MINUS`].
#[derive(Debug)]
pub struct Minus;

impl ExprPlanner for Minus {
    fn plan_binary_op(&self, expr: RawBinaryExpr, schema: &DFSchema) -> Result<PlannerResult<RawBinaryExpr>> {
        if expr.op != minus() {
            return Ok(PlannerResult::Original(expr));
        }
        let number = expr.right;
        let of = number.get_type(schema)?;
        let signed = match of {
            DataType::UInt8 => DataType::Int16,
            DataType::UInt16 => DataType::Int32,
            DataType::UInt32 => DataType::Int64,
            DataType::UInt64 => DataType::Decimal128(20, 0),
            of if of.is_null() || is_signed_numeric(&of) || is_interval(&of) || is_timestamp(&of) => {
                return Ok(PlannerResult::Planned(Expr::Negative(Box::new(number))));
            }
            of => return plan_err!("- cannot be used with {of}, as in -{number}; cast it to a number"),
        };
        Ok(PlannerResult::Planned(Expr::Negative(Box::new(cast(number, signed)))))
    }
}

fn minus() -> ast::BinaryOperator {
    ast::BinaryOperator::Custom(MINUS.to_owned())
}

/// Replaces each unary minus, except before a constant, by the operator [`MINUS`].
pub fn mark_minus(statement: &mut Statement) {
    match statement {
        Statement::Statement(statement) => mark_in(&mut **statement),
        Statement::CopyTo(copy) => {
            if let CopyToSource::Query(query) = &mut copy.source {
                mark_in(&mut **query);
            }
        }
        Statement::Explain(explain) => mark_minus(&mut explain.statement),
        Statement::CreateExternalTable(_) | Statement::Reset(_) => {}
    }
}

fn mark_in(what: &mut impl ast::VisitMut) {
    let ended = ast::visit_expressions_mut(what, |expr| {
        if let ast::Expr::UnaryOp { op: ast::UnaryOperator::Minus, expr: number } = expr
            && !matches!(**number, ast::Expr::Value(_) | ast::Expr::Interval(_))
        {
            let nothing = || Box::new(ast::Expr::Value(ast::Value::Null.into()));
            let number = std::mem::replace(number, nothing());
            *expr = ast::Expr::BinaryOp { left: nothing(), op: minus(), right: number };
        }
        ControlFlow::<()>::Continue(())
    });
    debug_assert!(ended.is_continue(), "nothing ends it early");
}
