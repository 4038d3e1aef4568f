//! System functions: they ask the catalog and the session, which reach them through
//! [`EvalContext::system`](basalt_expr::EvalContext).

mod about;
mod privileges;
pub(crate) mod sequences;
mod session;
mod sizes;
mod waiting;

use crate::system::SystemContext;
use basalt_expr::functions::{CallInfo, Function, Kernel, Registry, ScalarKernel};
use basalt_expr::{Error, Result};
use basalt_types::{DataType, Datum};
use std::sync::{Arc, LazyLock};

/// Built-in functions and those of this module. One for the whole process: plans point into it.
static REGISTRY: LazyLock<Arc<Registry>> = LazyLock::new(|| {
    let mut registry = Registry::builtin().clone();
    registry.bind_facts(|name, args| {
        if let Some(kernel) = session::listening(name) {
            return Some(kernel);
        }
        let kernel = about::bind(name, args)
            .or_else(|| privileges::bind(name, args))
            .or_else(|| sequences::bind(name, args))
            .or_else(|| session::bind(name, args))
            .or_else(|| sizes::bind(name, args))
            .or_else(|| waiting::bind(name, args))?;
        Some(Kernel::Native { scalar: kernel, vector: None })
    });
    for (oid, name, args, ret, kernel) in about::others().into_iter().chain(session::others()) {
        registry.register(Function { oid, ..Function::custom(name, &args, ret, kernel) });
    }
    for function in sequences::of_state() {
        registry.register(function);
    }
    Arc::new(registry)
});

pub fn registry() -> &'static Arc<Registry> {
    &REGISTRY
}

/// A function whose types in PostgreSQL are not Basalt's: oid, name, arguments, result, code.
type Other = (u32, &'static str, Vec<DataType>, DataType, ScalarKernel);

fn system<'a>(info: &'a CallInfo) -> Result<&'a SystemContext> {
    let system = SystemContext::of(info.ctx);
    system.ok_or_else(|| Error::internal(format!("{} was called without a session", info.function.name)))
}

/// An argument of type text or name.
fn text_arg(args: &[Datum], index: usize) -> Result<&str> {
    match args.get(index) {
        Some(Datum::Bytes(bytes)) => {
            std::str::from_utf8(bytes).map_err(|error| Error::invalid_utf8(bytes, error.valid_up_to()))
        }
        other => Err(Error::internal(format!("argument {index} is no text: {other:?}"))),
    }
}

/// An argument of type oid or of a reg type.
fn oid_arg(args: &[Datum], index: usize) -> Result<u32> {
    match args.get(index) {
        Some(Datum::I64(oid)) => Ok(*oid as u32),
        other => Err(Error::internal(format!("argument {index} is no oid: {other:?}"))),
    }
}

fn text_or_null(text: Option<impl AsRef<str>>) -> Datum {
    text.map_or(Datum::Null, |text| Datum::text(text.as_ref()))
}
