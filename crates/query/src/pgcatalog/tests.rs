use super::*;
use crate::database::{Database, DatabaseConfig};
use crate::settings::Settings;
use crate::syntax::Isolation;
use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Array, StringViewArray};
use basalt_engine::{CatalogEdit, CheckOption, Engine, EngineConfig, ViewDef, catalog};
use basalt_expr::EvalContext;
use basalt_expr::tree::Expr;
use basalt_sched::Os;
use basalt_types::schema::{Distribution, OnCommit, PartitionDef, PrimaryKey};
use basalt_types::{ColumnDef, ColumnId, Datum, ObjectId, Revision, TableDef, TabletId};
use std::sync::Arc;

fn column(id: u16, name: &str, ty: DataType, not_null: bool, default: Option<&str>) -> ColumnDef {
    ColumnDef { not_null, default: default.map(Into::into), ..ColumnDef::new(ColumnId(id), name, ty) }
}

fn orders() -> TableDef {
    let mut columns = vec![
        column(1, "id", DataType::Int8, true, None),
        column(2, "total", DataType::Numeric(Some((12, 2))), false, Some("0")),
        column(3, "gone", DataType::Text, true, None),
        column(4, "Note", DataType::Varchar(Some(20)), false, None),
    ];
    columns[2].dropped = true;
    TableDef {
        id: ObjectId(16400),
        namespace: catalog::PUBLIC,
        name: "orders".into(),
        owner: "basalt".into(),
        columns,
        primary_key: Some(PrimaryKey {
            constraint_id: ObjectId(16401),
            constraint_name: "orders_pkey".into(),
            columns: vec![ColumnId(1), ColumnId(4)],
            include: Vec::new(),
        }),
        partitions: vec![PartitionDef { name: "p0".into(), tablets: vec![TabletId(1)] }],
        distribution: Distribution::Range,
        options: vec![("orientation".into(), "row".into())],
        comment: Some("what was bought".into()),
        checks: Vec::new(),
        on_commit: OnCommit::PreserveRows,
        indexes: Vec::new(),
        foreign_keys: Vec::new(),
        materialized: None,
        revision: Revision::NEW,
    }
}

fn view() -> ViewDef {
    ViewDef {
        id: ObjectId(16402),
        namespace: catalog::PUBLIC,
        name: "pg_class".into(),
        owner: "basalt".into(),
        sql: "SELECT id FROM public.orders".into(),
        columns: vec![("id".into(), DataType::Int8)],
        comment: None,
        check_option: CheckOption::None,
        options: Vec::new(),
        time_modifiers: Vec::new(),
        revision: Revision::NEW,
    }
}

/// A session of user and database basalt. The view hides behind a table of pg_catalog.
fn system(dir: &tempfile::TempDir) -> SystemContext {
    let os = Os::real();
    let config = EngineConfig { background: false, ..EngineConfig::new(dir.path().join("data")) };
    let engine = Engine::open(os.clone(), config, &|_| ()).expect("an empty directory opens");
    let db = Database::new(engine.clone(), os, DatabaseConfig::new(dir.path().join("tmp"))).expect("starts");
    let edits = [CatalogEdit::PutTable(Arc::new(orders())), CatalogEdit::PutView(view())];
    SystemContext {
        login: engine.catalog().role_named("basalt").expect("made with the directory").clone(),
        catalog: Arc::new(engine.catalog().apply(&edits).expect("applies")),
        engine,
        db,
        user: "basalt".into(),
        session_user: "basalt".into(),
        database: "basalt".into(),
        search_path: vec!["public".into()],
        backend_pid: 7,
        client_addr: None,
        settings: Settings::new([]),
        prepared: Vec::new(),
        cursors: Vec::new(),
        asked: Arc::default(),
        notices: Arc::default(),
        failed: Arc::default(),
        lookup_path: vec!["public".into()],
        read_only: false,
        isolation: Isolation::ReadCommitted,
        sequences: Arc::default(),
        outgoing: Arc::default(),
    }
}

fn texts(system: &SystemContext, table: &str, column: &str) -> Vec<String> {
    let (schema, name) = table.split_once('.').unwrap_or(("pg_catalog", table));
    let table = find(schema, name).expect("exists");
    let index = table.columns.iter().position(|(name, _)| *name == column).expect("has the column");
    let array = table.rows(system).expect("has rows").swap_remove(index);
    match array.as_string_view_opt() {
        Some(array) => text_values(array),
        None => array.as_primitive::<Int64Type>().iter().map(|value| format!("{value:?}")).collect(),
    }
}

fn text_values(array: &StringViewArray) -> Vec<String> {
    array.iter().map(|value| value.unwrap_or("<null>").to_string()).collect()
}

/// The value of a call with constant arguments; texts alone.
fn call(system: &SystemContext, name: &str, args: &[(DataType, Datum)]) -> Result<Datum, basalt_expr::Error> {
    let context = EvalContext { system: Some(Arc::new(system.clone())), ..EvalContext::at(0) };
    let args = args.iter().map(|(ty, value)| Expr::Const { value: value.clone(), ty: ty.clone() }).collect();
    basalt_expr::resolve::call(registry(), name, args, &context)?.eval_scalar(&[], &context)
}

fn oid(id: u32) -> (DataType, Datum) {
    (DataType::Oid, Datum::I64(i64::from(id)))
}

#[test]
fn every_table_fills_its_columns() {
    let dir = tempfile::tempdir().expect("a directory");
    let system = system(&dir);
    assert!(tables().len() > 200);
    for table in tables() {
        let columns = table.rows(&system).unwrap_or_else(|error| panic!("{table:?}: {error}"));
        assert_eq!(columns.len(), table.columns.len(), "{table:?}");
        for ((name, ty), array) in table.columns.iter().zip(&columns) {
            assert_eq!(array.data_type(), &ty().to_arrow(), "{table:?}.{name}");
            assert_eq!(array.len(), columns[0].len(), "{table:?}.{name}");
        }
    }
}

#[test]
fn relations_of_the_database_are_listed_with_their_columns() {
    let dir = tempfile::tempdir().expect("a directory");
    let system = system(&dir);
    let names = texts(&system, "pg_class", "relname");
    for name in ["orders", "orders_pkey", "pg_class", "columns", "tablets"] {
        assert!(names.iter().any(|listed| listed == name), "{name} is not among {names:?}");
    }
    let attributes = texts(&system, "pg_attribute", "attname");
    assert_eq!(attributes[..4], ["id", "total", "........pg.dropped.3........", "Note"]);
    assert_eq!(texts(&system, "information_schema.columns", "column_name")[..3], ["id", "total", "Note"]);
    assert!(texts(&system, "pg_attrdef", "adbin")[0].starts_with("{DEFAULT "));
    assert_eq!(texts(&system, "pg_indexes", "indexdef").len(), 1);
    assert_eq!(texts(&system, "pg_description", "description"), ["standard public schema", "what was bought"]);
}

#[test]
fn definitions_are_told_as_sql() {
    let dir = tempfile::tempdir().expect("a directory");
    let system = system(&dir);
    let text = |name: &str, args: &[(DataType, Datum)]| match call(&system, name, args).expect("has a value") {
        Datum::Bytes(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
        other => format!("{other:?}"),
    };
    assert_eq!(
        text("pg_get_indexdef", &[oid(16401)]),
        "CREATE UNIQUE INDEX orders_pkey ON public.orders USING btree (id, \"Note\")"
    );
    let second = [oid(16401), (DataType::Int4, Datum::I32(2)), (DataType::Bool, Datum::Bool(true))];
    assert_eq!(text("pg_get_indexdef", &second), "\"Note\"");
    assert_eq!(text("pg_get_constraintdef", &[oid(16401)]), "PRIMARY KEY (id, \"Note\")");
    assert_eq!(text("pg_get_viewdef", &[oid(16402)]), " SELECT id FROM public.orders;");
    assert_eq!(text("pg_get_userbyid", &[oid(10)]), "basalt");
    assert_eq!(text("current_schema", &[]), "public");
    assert_eq!(text("pg_backend_pid", &[]), "I32(7)");
    assert!(text("version", &[]).starts_with("PostgreSQL 15"));
    assert_eq!(text("pg_table_is_visible", &[oid(16400)]), "Bool(true)");
    // pg_catalog comes before public.
    assert_eq!(text("pg_table_is_visible", &[oid(16402)]), "Bool(false)");
    assert_eq!(text("pg_table_is_visible", &[oid(4_000_000)]), "Null");
}

#[test]
fn types_are_named_with_their_modifiers() {
    for (oid, typmod, name) in [
        (1043, Some(24), "character varying(20)"),
        (1700, Some(786438), "numeric(12,2)"),
        (1700, Some((5 << 16 | 0x7fe) + 4), "numeric(5,-2)"),
        (1231, None, "numeric[]"),
        (1042, Some(-1), "bpchar"),
        (1042, None, "character"),
        (18, None, "\"char\""),
        (2276, None, "\"any\""),
    ] {
        assert_eq!(typing::format_type(oid, typmod).as_deref(), Some(name), "{oid} {typmod:?}");
    }
    for (text, oid) in [
        ("int4", 23),
        ("integer[]", 1007),
        ("timestamp(3) with time zone", 1184),
        ("character varying(20)", 1043),
        ("pg_catalog.text", 25),
        ("\"char\"", 18),
        ("char", 1042),
    ] {
        assert_eq!(typing::oid_of(text), Some(oid), "{text}");
    }
    assert_eq!(typing::oid_of("nothing"), None);
}

#[test]
fn names_are_found_along_the_search_path() {
    let dir = tempfile::tempdir().expect("a directory");
    let system = system(&dir);
    let scope = names::Scope::of(&system);
    let class = DataType::Regclass;
    assert_eq!(names::oid_of(scope, &class, "orders"), Ok(16400));
    assert_eq!(names::oid_of(scope, &class, "PUBLIC.Orders_pkey"), Ok(16401));
    assert_eq!(names::oid_of(scope, &class, "pg_class"), Ok(1259));
    assert_eq!(names::oid_of(scope, &class, "public.pg_class"), Ok(16402));
    let missing = names::oid_of(scope, &class, "public.\"Orders\"").expect_err("quoted names are not folded");
    assert_eq!((missing.sqlstate, missing.message.as_str()), ("42P01", "relation \"public.Orders\" does not exist"));
    assert_eq!(names::name_of(scope, &class, 16400).as_deref(), Some("orders"));
    assert_eq!(names::name_of(scope, &class, 16402).as_deref(), Some("public.pg_class"));
    assert_eq!(names::name_of(scope, &class, 13102).as_deref(), Some("basalt.tablets"));
    assert_eq!(names::name_of(scope, &DataType::Regproc, 1242).as_deref(), Some("boolin"));
}

#[test]
fn set_config_asks_the_session() {
    let dir = tempfile::tempdir().expect("a directory");
    let system = system(&dir);
    let text = |text: &str| (DataType::Text, Datum::text(text));
    let args = [text("search_path"), text("a, b"), (DataType::Bool, Datum::Bool(true))];
    call(&system, "set_config", &args).expect("is a setting");
    let asked = system.asked.lock();
    assert_eq!(asked.len(), 1);
    assert_eq!((asked[0].name.as_str(), asked[0].value.as_str(), asked[0].local), ("search_path", "a, b", true));
    drop(asked);
    let error = call(&system, "current_setting", &[text("no_such_setting")]).expect_err("is unknown");
    assert_eq!(error.sqlstate, "42704");
    let args = [text("no_such_setting"), (DataType::Bool, Datum::Bool(true))];
    assert_eq!(call(&system, "current_setting", &args), Ok(Datum::Null));
}
