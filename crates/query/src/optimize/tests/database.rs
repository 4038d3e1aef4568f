//! A database in a temporary directory, whose queries are bound, run and optimized.

use crate::bind::{ParamTypes, bind_query};
use crate::database::{Database, DatabaseConfig};
use crate::optimize::facts::Statistics;
use crate::optimize::node::Node;
use crate::optimize::optimize;
use crate::plan::Query;
use crate::session::{Outcome, Session, StartupParams};
use crate::syntax::{self, Statement};
use ahash::AHashMap;
use basalt_engine::{Engine, EngineConfig};
use basalt_expr::eval::vector::value_at;
use basalt_sched::Os;
use basalt_types::{Datum, ObjectId};
use std::sync::Arc;

pub type Rows = Vec<Vec<Datum>>;

pub struct Place {
    pub session: Session,
    pub statistics: Statistics,
    runtime: tokio::runtime::Runtime,
    _dir: tempfile::TempDir,
}

impl Place {
    pub fn new(setup: &str) -> Place {
        let dir = tempfile::tempdir().unwrap();
        let engine = Engine::open(Os::real(), EngineConfig::new(dir.path().join("data")), &|_| {}).unwrap();
        let db = Database::new(engine, Os::real(), DatabaseConfig::new(dir.path().join("tmp"))).unwrap();
        let params = StartupParams { user: "basalt".into(), database: "basalt".into(), ..StartupParams::default() };
        let session = Session::open(&db, params).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let mut place = Place { session, statistics: Statistics::default(), runtime, _dir: dir };
        place.run(setup).unwrap();
        place
    }

    /// The rows of the last statement, or its error.
    pub fn run(&mut self, sql: &str) -> Result<Rows, String> {
        let session = &mut self.session;
        self.runtime.block_on(async {
            let rows = rows(session, sql).await;
            let ended = session.finish_simple().await;
            ended.map_err(|error| error.to_string()).and(rows)
        })
    }

    pub fn bind(&self, sql: &str) -> Query {
        let parsed = syntax::parse(sql).unwrap().remove(0);
        let catalog = self.session.catalog_now();
        let eval = self.session.eval_context(Vec::new(), &catalog);
        let ctx = self.session.bind_context(&catalog, &parsed.sql, &eval);
        let Statement::Query(query) = &parsed.statement else { panic!("{sql} is no query") };
        bind_query(&ctx, query, &mut ParamTypes::none()).unwrap_or_else(|error| panic!("{sql}: {error}"))
    }

    pub fn optimize(&self, sql: &str) -> Result<Node, &'static str> {
        optimize(&self.bind(sql), &self.statistics)
    }

    pub fn table(&self, name: &str) -> Arc<basalt_types::TableDef> {
        let catalog = self.session.catalog_now();
        catalog.tables.values().find(|table| table.name == name).unwrap().clone()
    }

    /// All rows of these tables.
    pub fn contents(&mut self, tables: &[&str]) -> AHashMap<ObjectId, Rows> {
        let read = |name: &&str| {
            let id = self.table(name).id;
            (id, self.run(&format!("SELECT * FROM {name}")).unwrap())
        };
        tables.iter().map(read).collect()
    }
}

async fn rows(session: &mut Session, sql: &str) -> Result<Rows, String> {
    let mut out = Rows::new();
    for parsed in session.parse_simple(sql).map_err(|error| error.to_string())? {
        out.clear();
        match session.run_simple(&parsed).await.map_err(|error| error.to_string())? {
            Outcome::Rows(mut rows) => {
                while let Some(batch) = rows.next(session).await.map_err(|error| error.to_string())? {
                    for row in 0..batch.num_rows() {
                        let columns = rows.columns.iter().zip(batch.columns());
                        out.push(columns.map(|(column, array)| value_at(&column.ty, array, row)).collect());
                    }
                }
            }
            Outcome::Empty | Outcome::Command { .. } => {}
            _ => panic!("{sql} copies"),
        }
    }
    Ok(out)
}
