//! `f(VARIADIC array)` where `f` takes `VARIADIC "any"`: the array's elements are the last arguments (manual
//! 38.5.6). How many there are is seen when the call is computed.

use super::{CallInfo, Function, Kernel, Registry};
use crate::array_value;
use crate::error::{Error, Result};
use ahash::AHashMap;
use basalt_types::{DataType, Datum};
use std::sync::{Arc, LazyLock};

/// A function that takes an array for the last arguments of `inner`, which has a kernel over single values.
fn spread(inner: &'static Function) -> Option<Function> {
    let Kernel::Native { scalar, .. } = inner.kernel else { return None };
    let call = move |args: &[Datum], info: &CallInfo| -> Result<Datum> {
        let Some(((array, fixed), (array_ty, fixed_types))) = args.split_last().zip(info.arg_types.split_last()) else {
            return Err(Error::internal(format!("{} is called without its array", inner.name)));
        };
        let (Datum::Bytes(bytes), DataType::Array(element)) = (array, array_ty) else { return Ok(Datum::Null) };
        let elements = array_value::elements(element, bytes)?;
        let types: Vec<DataType> =
            fixed_types.iter().cloned().chain(elements.iter().map(|_| (**element).clone())).collect();
        let args: Vec<Datum> = fixed.iter().cloned().chain(elements).collect();
        if inner.strict && args.iter().any(Datum::is_null) {
            return Ok(Datum::Null);
        }
        scalar(&args, &CallInfo { function: inner, arg_types: &types, ty: info.ty, ctx: info.ctx })
    };
    Some(Function {
        oid: inner.oid,
        name: inner.name.clone(),
        args: inner.args.clone(),
        variadic: false,
        optional: 0,
        ret: inner.ret.clone(),
        returns_set: false,
        strict: false,
        volatility: inner.volatility,
        kernel: Kernel::Custom(Arc::new(call)),
    })
}

static SPREAD: LazyLock<AHashMap<u32, &'static Function>> = LazyLock::new(|| {
    let variadic = Registry::builtin().all_functions().filter(|function| function.variadic && function.oid != 0);
    variadic.filter_map(|function| Some((function.oid, &*Box::leak(Box::new(spread(function)?))))).collect()
});

/// The form of a variadic function that takes an array in the place of its last arguments.
pub fn spread_of(function: &Function) -> Option<&'static Function> {
    SPREAD.get(&function.oid).copied()
}
