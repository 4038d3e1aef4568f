//! EXPLAIN: the plan as lines of text or as JSON. With ANALYZE the statement is run.

use super::define::{exists, skipping};
use super::resolve;
use super::rows::text_rows;
use crate::bind::point::point_query;
use crate::bind::{BoundWith, InsertSource, PointAccess, RowSource, Write};
use crate::error::{Result, SqlError};
use crate::explain::document::{self, Object, Value, quoted};
use crate::explain::{Fact, Shown, Step};
use crate::plan::{HeldRows, Plan, Query};
use crate::row::{RowPlan, point_get};
use crate::session::Session;
use crate::session::outcome::{Outcome, ResultColumn, StreamSource};
use crate::session::params::Given;
use crate::session::prepared::Bound;
use crate::syntax::{Definition, ExplainFormat, ExplainOptions, Name, Rows, Statement, Utility};
use crate::system::SystemContext;
use arrow_array::RecordBatch;
use basalt_expr::EvalContext;
use basalt_expr::tree::Expr;
use basalt_types::{DataType, TableDef};
use std::sync::Arc;

/// What a client is told about the result.
pub(crate) fn columns(options: &ExplainOptions) -> Vec<ResultColumn> {
    let ty = if options.format == ExplainFormat::Json { DataType::Json } else { DataType::Text };
    vec![ResultColumn { ty, ..ResultColumn::text("QUERY PLAN") }]
}

pub(crate) async fn run(
    session: &mut Session,
    options: &ExplainOptions,
    statement: &Statement,
    sql: &Arc<str>,
    given: Given,
) -> Result<Outcome> {
    session.next_statement()?;
    match statement {
        Statement::Utility(utility) => match &**utility {
            Utility::Execute { name, args } => {
                let (prepared, values) = super::utility::arguments(session, name, args, sql)?;
                let Some(statement) = prepared.statement() else { return Ok(Outcome::Empty) };
                let given = Given { values, types: prepared.types.clone(), style: prepared.style };
                explained(session, options, None, statement, &prepared.sql, given).await
            }
            Utility::Declare(declared) => {
                let query = Statement::Query(declared.query.clone());
                explained(session, options, None, &query, sql, given).await
            }
            other => Err(SqlError::internal(format!("{} has no plan", other.tag()))),
        },
        Statement::Define(definition) => of_definition(session, options, definition, sql, given).await,
        statement => explained(session, options, None, statement, sql, given).await,
    }
}

/// CREATE TABLE AS and CREATE MATERIALIZED VIEW by the plan of their query, REFRESH without one.
async fn of_definition(
    session: &mut Session,
    options: &ExplainOptions,
    definition: &Definition,
    sql: &Arc<str>,
    given: Given,
) -> Result<Outcome> {
    let (kind, name, if_not_exists, rows) = match definition {
        Definition::CreateTable(create) => {
            let Some((rows, _, _)) = &create.query else { return Err(SqlError::internal("no query to explain")) };
            ("Table", &create.name, create.if_not_exists, rows.clone())
        }
        Definition::CreateMaterialized(create) => {
            let rows = Rows::Query(create.query.clone());
            ("Materialized View", &create.name, create.if_not_exists, rows)
        }
        Definition::RefreshMaterialized { .. } => {
            return without_plan(options, "Utility Statement", Some("Utility statements have no plan structure"));
        }
        other => return Err(SqlError::internal(format!("{} has no plan", other.tag()))),
    };
    if is_there(session, name)? {
        if !if_not_exists {
            return Err(exists("42P07", "relation", &name.name));
        }
        skipping(session, "42P07", format!("relation \"{}\" already exists", name.name));
        return without_plan(options, definition.tag(), None);
    }
    let creation = Creation { head: format!("Create {kind} {name}"), definition, sql };
    match &rows {
        Rows::Query(query) => {
            let query = Statement::Query(query.clone());
            explained(session, options, Some(creation), &query, sql, given).await
        }
        Rows::Execute(name, args) => {
            let (prepared, values) = super::utility::arguments(session, name, args, sql)?;
            let Some(statement) = prepared.statement() else { return Ok(Outcome::Empty) };
            let given = Given { values, types: prepared.types.clone(), style: prepared.style };
            explained(session, options, Some(creation), statement, &prepared.sql, given).await
        }
    }
}

/// Whether a relation of the name is in the schema that a new one would go to.
fn is_there(session: &mut Session, name: &Name) -> Result<bool> {
    let namespace = resolve::creation_namespace_of(session, name, false)?;
    Ok(session.txn()?.catalog().relation_exists(namespace.id, &name.name))
}

/// The answer for what has no plan: as text, a line or nothing.
fn without_plan(options: &ExplainOptions, what: &str, line: Option<&str>) -> Result<Outcome> {
    let told = match options.format {
        ExplainFormat::Text => line.map(str::to_string),
        ExplainFormat::Json => Some(format!("[\n  {}\n]", quoted(what))),
        ExplainFormat::Xml => {
            let tag = what.replace(' ', "-");
            Some(format!("<explain xmlns=\"http://www.postgresql.org/2009/explain\">\n  <{tag} />\n</explain>"))
        }
        ExplainFormat::Yaml => Some(format!("- {}", quoted(what))),
    };
    outcome(options, told.into_iter().collect())
}

fn outcome(options: &ExplainOptions, lines: Vec<String>) -> Result<Outcome> {
    let rows: Vec<Vec<String>> = lines.into_iter().map(|line| vec![line]).collect();
    let Outcome::Rows(mut stream) = text_rows(vec![ResultColumn::text("QUERY PLAN")], &rows, "EXPLAIN")? else {
        return Err(SqlError::internal("a plan is told in rows"));
    };
    stream.columns = columns(options).into();
    Ok(Outcome::Rows(stream))
}

/// A definition that is told by the plan of its query; ANALYZE makes what it defines.
struct Creation<'a> {
    head: String,
    definition: &'a Definition,
    sql: &'a Arc<str>,
}

async fn explained(
    session: &mut Session,
    options: &ExplainOptions,
    creation: Option<Creation<'_>>,
    statement: &Statement,
    sql: &Arc<str>,
    given: Given,
) -> Result<Outcome> {
    if options.analyze {
        session.check_writes(statement)?;
        if let Some(creation) = &creation {
            session.refuse_if_read_only(creation.definition.tag())?;
        }
    }
    let clock = session.db.os().clock.clone();
    let started = clock.unix_micros();
    let (bound, eval, _) = session.plan(statement, sql, given.values.clone(), given.param_types()).await?;
    let bound_at = clock.unix_micros();
    let (mut steps, mut rows) = of_bound(session, &bound, &eval, options.analyze && creation.is_none()).await?;
    if options.analyze && rows.is_none() {
        let given = match &creation {
            Some(creation) => count_of(&super::define::run(session, creation.definition, creation.sql, given).await?),
            None => executed(session, &bound, &eval).await?,
        };
        steps.iter_mut().for_each(|step| step.rows = Some(given));
        rows = Some(given);
    }
    let ran = (clock.unix_micros() - bound_at) as f64 / 1e3;
    if let Some(creation) = creation {
        steps = vec![Step::over(creation.head, steps)];
    }
    // Plans are optimized and lowered after they are bound.
    let lowering = session.run_stats().planning().as_secs_f64() * 1e3;
    let told = Told {
        planning: (bound_at - started) as f64 / 1e3 + lowering,
        execution: options.analyze.then_some((ran - lowering).max(0.0)),
        output: match (options.verbose, bound.columns()) {
            (true, Some(columns)) => columns.into_iter().map(|column| column.name).collect(),
            _ => Vec::new(),
        },
        engine: session.run_stats().engine().unwrap_or("row"),
        steps,
        rows,
    };
    outcome(options, told.lines(options))
}

/// A plan and what is said of the whole.
struct Told {
    steps: Vec<Step>,
    engine: &'static str,
    /// With VERBOSE, names of the result's columns.
    output: Vec<String>,
    /// Rows that it gave, if it ran.
    rows: Option<usize>,
    /// Milliseconds, as the next.
    planning: f64,
    execution: Option<f64>,
}

impl Told {
    fn lines(&self, options: &ExplainOptions) -> Vec<String> {
        let shown = Shown { costs: options.costs.unwrap_or(true), timing: options.timing.unwrap_or(true) };
        match options.format {
            ExplainFormat::Text => self.text(options, shown),
            ExplainFormat::Json => vec![document::json(&self.object(options, shown))],
            ExplainFormat::Xml => vec![document::xml(&self.object(options, shown))],
            ExplainFormat::Yaml => vec![document::yaml(&self.object(options, shown))],
        }
    }

    fn text(&self, options: &ExplainOptions, shown: Shown) -> Vec<String> {
        let mut lines = Vec::new();
        for (at, step) in self.steps.iter().enumerate() {
            step.lines(shown, if at == 0 { &self.output } else { &[] }, &mut lines);
        }
        if let Some(rows) = self.rows.filter(|_| options.analyze) {
            lines.push(format!("Rows: {rows}"));
        }
        if options.summary.unwrap_or(options.analyze) {
            lines.push(format!("Planning Time: {:.3} ms", self.planning));
            lines.extend(self.execution.map(|millis| format!("Execution Time: {millis:.3} ms")));
        }
        lines
    }

    fn object(&self, options: &ExplainOptions, shown: Shown) -> Object {
        let root = match self.steps.as_slice() {
            [one] => one.object(shown),
            several => Step::over("Plans", several.to_vec()).object(shown),
        };
        let engine = Value::Text(self.engine.to_string());
        let mut object: Object = vec![("Plan".into(), Value::Object(root)), ("Engine".into(), engine)];
        if !self.output.is_empty() {
            object.push(("Output".into(), Value::Texts(self.output.clone())));
        }
        if options.summary.unwrap_or(options.analyze) {
            object.push(("Planning Time".into(), Value::millis(self.planning)));
            object.extend(self.execution.map(|millis| ("Execution Time".to_string(), Value::millis(millis))));
        }
        object
    }
}

/// The plan's steps; how many rows it gave if it was run for them.
async fn of_bound(
    session: &mut Session,
    bound: &Bound,
    eval: &Arc<EvalContext>,
    analyze: bool,
) -> Result<(Vec<Step>, Option<usize>)> {
    match bound {
        Bound::Query(query) => match point_query(query, eval) {
            Some(point) => {
                point.check_constants(eval)?;
                let beside = point.asks_more.then_some(&point.filter);
                let get = of_point(&point.table, &point.access, beside, eval)?;
                let step = match point.lock {
                    Some(_) => Step::over("Lock Rows", vec![get]),
                    None => get,
                };
                Ok((vec![step], None))
            }
            None if matches!(query.plan, Plan::LockRows(_)) || !query.row_locks.is_empty() => {
                let few = match &query.plan {
                    // How many rows it asks for at first does not matter, only that it asks for some.
                    Plan::LockRows(step) => {
                        let some = step.limit.as_ref().map(|_| 1);
                        RowPlan::of_more(&super::lock_rows::found_query(step, query, some), eval)
                    }
                    _ => None,
                };
                let inputs = match few {
                    Some(plan) => vec![of_row_plan(&plan, eval)?],
                    None => of_query(session, query.clone(), eval, false).await?.0,
                };
                Ok((vec![Step::over("Lock Rows", inputs)], None))
            }
            None => {
                let by_rows = RowPlan::of_more(query, eval).map(|plan| of_row_plan(&plan, eval)).transpose()?;
                match by_rows {
                    Some(step) if !analyze => Ok((vec![step], None)),
                    Some(step) => by_rows_or_not(session, query, step, eval).await,
                    None => {
                        let (steps, rows) = of_query(session, query.clone(), eval, analyze).await?;
                        Ok((steps, analyze.then_some(rows)))
                    }
                }
            }
        },
        Bound::Write(write) => Ok((vec![of_write(session, write, eval).await?], None)),
        Bound::With(with) => {
            let mut steps = Vec::with_capacity(with.writes.len() + 1);
            for write in &with.writes {
                steps.push(of_write(session, &write.with_given(&no_rows(with)), eval).await?);
            }
            let main = match &with.main {
                Bound::Query(query) => of_query(session, query.with_given(&no_rows(with)), eval, false).await?.0,
                Bound::Write(write) => vec![of_write(session, &write.with_given(&no_rows(with)), eval).await?],
                Bound::With(_) => return Err(SqlError::internal("WITH in WITH")),
            };
            steps.splice(0..0, main);
            Ok((steps, None))
        }
    }
}

/// Runs a query that the row engine begins, and that others do if it reaches too many rows: what ran is told.
async fn by_rows_or_not(
    session: &mut Session,
    query: &Arc<Query>,
    step: Step,
    eval: &Arc<EvalContext>,
) -> Result<(Vec<Step>, Option<usize>)> {
    if let Some(batches) = super::row_query::run(session, query, eval).await? {
        let rows = batches.iter().map(RecordBatch::num_rows).sum();
        return Ok((vec![Step { rows: Some(rows), ..step }], Some(rows)));
    }
    let (mut steps, rows) = of_query(session, query.clone(), eval, true).await?;
    if let Some(first) = steps.first_mut() {
        first.facts.push(("Row Engine Gave Up On", Fact::Text(step.what)));
    }
    Ok((steps, Some(rows)))
}

fn of_row_plan(plan: &RowPlan, eval: &EvalContext) -> Result<Step> {
    plan.exprs().into_iter().try_for_each(|expr| expr.check_constants(eval))?;
    Ok(plan.explained(system_of(eval)?))
}

fn of_point(table: &TableDef, access: &PointAccess, beside: Option<&Expr>, eval: &EvalContext) -> Result<Step> {
    let key: Vec<&Expr> = access.key.iter().collect();
    Ok(point_get(table, &key, beside, system_of(eval)?))
}

fn system_of(eval: &EvalContext) -> Result<&SystemContext> {
    SystemContext::of(eval).ok_or_else(|| SqlError::internal("EXPLAIN outside of a session"))
}

/// The commands of WITH are not run for EXPLAIN: what they would give is taken as no rows.
fn no_rows(with: &BoundWith) -> Vec<Option<HeldRows>> {
    with.writes.iter().map(|_| Some(HeldRows { batches: Vec::new(), memory: None })).collect()
}

/// A command, and the query that finds its rows below it.
async fn of_write(session: &mut Session, write: &Write, eval: &Arc<EvalContext>) -> Result<Step> {
    write.exprs().into_iter().try_for_each(|expr| expr.check_constants(eval))?;
    let verb = match write {
        Write::Insert(_) => "Insert",
        Write::Update(_) => "Update",
        Write::Delete(_) => "Delete",
        Write::Merge(_) => "Merge",
        Write::Read(_) => "Read",
    };
    let table = write.table().map_or("", |table| table.name.as_str()).to_string();
    let inputs = match write {
        Write::Insert(insert) => match &insert.source {
            InsertSource::Query(query) => of_query(session, query.clone(), eval, false).await?.0,
            InsertSource::Values(rows) => vec![Step::new(format!("Values ({} rows)", rows.len()))],
        },
        Write::Update(modify) | Write::Delete(modify) | Write::Merge(modify) => match &modify.source {
            RowSource::Search(search) => {
                let query = super::search::explained(search);
                match RowPlan::of_more(&query, eval) {
                    Some(plan) => vec![of_row_plan(&plan, eval)?],
                    None => of_query(session, query, eval, false).await?.0,
                }
            }
            RowSource::Point(point) => {
                let beside = point.beside_key.as_ref().map(|_| &point.filter);
                vec![of_point(&modify.table, &point.access, beside, eval)?]
            }
        },
        Write::Read(query) => of_query(session, query.clone(), eval, false).await?.0,
    };
    Ok(Step::over(format!("{verb} on {table}"), inputs))
}

async fn of_query(
    session: &mut Session,
    query: Arc<Query>,
    eval: &Arc<EvalContext>,
    analyze: bool,
) -> Result<(Vec<Step>, usize)> {
    let ctx = session.run_context(eval)?;
    session.db.runtime().explain(query, ctx, analyze).await
}

/// Runs the statement to its end; how many rows it gave or changed.
async fn executed(session: &mut Session, bound: &Bound, eval: &Arc<EvalContext>) -> Result<usize> {
    match session.run_bound(bound, eval).await? {
        Outcome::Rows(stream) => {
            let StreamSource::Own(mut source) = stream.source else { return Ok(0) };
            let mut rows = 0;
            while let Some(batch) = source.next(usize::MAX).await? {
                rows += batch.num_rows();
            }
            Ok(rows)
        }
        other => Ok(count_of(&other)),
    }
}

/// The number at the end of a command's tag.
fn count_of(outcome: &Outcome) -> usize {
    let Outcome::Command { tag } = outcome else { return 0 };
    tag.rsplit(' ').next().and_then(|count| count.parse().ok()).unwrap_or(0)
}
