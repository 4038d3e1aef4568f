//! Names and defaults of parameters, for calls with named arguments (manual 4.3). From PostgreSQL's catalog.

use ahash::AHashMap;
use std::sync::LazyLock;

pub struct Parameter {
    pub name: &'static str,
    /// As a literal of the parameter's type.
    pub default: Option<&'static str>,
}

static PARAMETERS: LazyLock<AHashMap<u32, Vec<Parameter>>> =
    LazyLock::new(|| include_str!("parameters.txt").lines().filter_map(read).collect());

/// The parameters of a function of `pg_proc` whose parameters have names.
pub fn parameters(oid: u32) -> Option<&'static [Parameter]> {
    PARAMETERS.get(&oid).map(Vec::as_slice)
}

/// `oid function name,name=default,…`.
fn read(line: &'static str) -> Option<(u32, Vec<Parameter>)> {
    let mut words = line.splitn(3, ' ');
    let (oid, _function, list) = (words.next()?, words.next()?, words.next()?);
    let parameter = |text: &'static str| match text.split_once('=') {
        Some((name, default)) => Parameter { name, default: Some(default) },
        None => Parameter { name: text, default: None },
    };
    Some((oid.parse().ok()?, list.split(',').map(parameter).collect()))
}
