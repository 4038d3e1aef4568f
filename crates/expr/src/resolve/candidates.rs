//! Choosing among overloads: sections 10.2 and 10.3, and the polymorphic types of 38.2.5.

use super::category::{Category, category, is_preferred};
use super::coerce::{is_implicit, resolve_common_type};
use crate::error::{Error, Result};
use crate::functions::TypePattern;
use basalt_types::{DataType, RangeKind};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Choice {
    One(usize),
    None,
    Many,
}

/// Index of the candidate for `inputs`. All candidates take as many arguments as there are inputs.
pub fn choose(candidates: &[&[TypePattern]], inputs: &[DataType], operator: bool) -> Choice {
    let inputs: Vec<DataType> = inputs.iter().map(|ty| ty.underlying().base()).collect();
    if let Some(index) = exact(candidates, &inputs, operator) {
        return Choice::One(index);
    }
    let mut alive: Vec<usize> =
        (0..candidates.len()).filter(|index| accepts_all(candidates[*index], &inputs)).collect();
    if alive.len() > 1 {
        keep_best(&mut alive, |index| score(candidates[index], &inputs, is_exact));
    }
    if alive.len() > 1 {
        keep_best(&mut alive, |index| score(candidates[index], &inputs, is_exact_or_preferred));
    }
    if alive.len() > 1 && inputs.contains(&DataType::Unknown) {
        match by_unknowns(candidates, &alive, &inputs) {
            Some(kept) => alive = kept,
            None => return by_same_type(candidates, &alive, &inputs),
        }
        if alive.len() > 1 {
            return by_same_type(candidates, &alive, &inputs);
        }
    }
    match alive.as_slice() {
        [] => Choice::None,
        [one] => Choice::One(*one),
        _ => Choice::Many,
    }
}

/// A candidate that takes exactly the input types. An operator's unknown operand is tried as of the
/// other operand's type first.
fn exact(candidates: &[&[TypePattern]], inputs: &[DataType], operator: bool) -> Option<usize> {
    let mut wanted = inputs.to_vec();
    if operator && inputs.len() == 2 {
        match (&inputs[0], &inputs[1]) {
            (DataType::Unknown, DataType::Unknown) => return None,
            (DataType::Unknown, other) => wanted[0] = other.clone(),
            (other, DataType::Unknown) => wanted[1] = other.clone(),
            _ => {}
        }
    }
    candidates.iter().position(|patterns| {
        patterns.iter().zip(&wanted).all(|(pattern, ty)| pattern.exact().is_some_and(|exact| exact == ty))
    })
}

fn accepts_all(patterns: &[TypePattern], inputs: &[DataType]) -> bool {
    patterns.iter().zip(inputs).all(|(pattern, ty)| accepts(pattern, ty)) && polymorphic_fits(patterns, inputs)
}

fn accepts(pattern: &TypePattern, ty: &DataType) -> bool {
    if *ty == DataType::Unknown {
        return true;
    }
    match pattern {
        TypePattern::Exact(exact) => exact == ty || is_implicit(ty, exact),
        TypePattern::Any | TypePattern::AnyElement | TypePattern::AnyCompatible => true,
        TypePattern::AnyArray | TypePattern::AnyCompatibleArray => matches!(ty, DataType::Array(_)),
        TypePattern::AnyEnum => matches!(ty, DataType::Enum(_)),
        TypePattern::AnyRange => matches!(ty, DataType::Range(_)),
        TypePattern::AnyMultirange => matches!(ty, DataType::Multirange(_)),
        TypePattern::AnyNonArray | TypePattern::AnyCompatibleNonArray => !matches!(ty, DataType::Array(_)),
    }
}

/// Whether the polymorphic arguments agree with one another.
fn polymorphic_fits(patterns: &[TypePattern], inputs: &[DataType]) -> bool {
    // Nothing says that literals of unknown type alone are of an enum.
    let of_enums = patterns.iter().zip(inputs).filter(|(pattern, _)| **pattern == TypePattern::AnyEnum);
    if of_enums.clone().count() > 0 && of_enums.clone().all(|(_, ty)| *ty == DataType::Unknown) {
        return false;
    }
    !patterns.iter().any(TypePattern::is_polymorphic) || solve(patterns, inputs).is_ok()
}

fn keep_best(alive: &mut Vec<usize>, score: impl Fn(usize) -> usize) {
    let best = alive.iter().map(|index| score(*index)).max().unwrap_or(0);
    alive.retain(|index| score(*index) == best);
}

fn score(patterns: &[TypePattern], inputs: &[DataType], counts: impl Fn(&TypePattern, &DataType) -> bool) -> usize {
    patterns.iter().zip(inputs).filter(|(pattern, ty)| **ty != DataType::Unknown && counts(pattern, ty)).count()
}

fn is_exact(pattern: &TypePattern, ty: &DataType) -> bool {
    pattern.exact().is_some_and(|exact| exact == ty)
}

fn is_exact_or_preferred(pattern: &TypePattern, ty: &DataType) -> bool {
    pattern.exact().is_some_and(|exact| exact == ty || (category(exact) == category(ty) && is_preferred(exact)))
}

fn slot_category(pattern: &TypePattern) -> Category {
    match pattern {
        TypePattern::Exact(ty) => category(ty),
        TypePattern::AnyArray | TypePattern::AnyCompatibleArray => Category::Pseudo,
        _ => Category::Pseudo,
    }
}

/// Step 10.3.4.e: unknown literals take the string category if any candidate offers it, otherwise the one
/// that all offer. `None` if that decides nothing.
fn by_unknowns(candidates: &[&[TypePattern]], alive: &[usize], inputs: &[DataType]) -> Option<Vec<usize>> {
    let mut kept = alive.to_vec();
    let slots: Vec<usize> = (0..inputs.len()).filter(|slot| inputs[*slot] == DataType::Unknown).collect();
    let mut wanted = Vec::with_capacity(slots.len());
    for &slot in &slots {
        let offered: Vec<Category> = alive.iter().map(|index| slot_category(&candidates[*index][slot])).collect();
        let chosen = if offered.contains(&Category::String) {
            Category::String
        } else if offered.iter().all(|category| *category == offered[0]) {
            offered[0]
        } else {
            return None;
        };
        let preferred = alive.iter().any(|index| {
            let pattern = &candidates[*index][slot];
            slot_category(pattern) == chosen && pattern.exact().is_some_and(is_preferred)
        });
        wanted.push((slot, chosen, preferred));
    }
    kept.retain(|index| {
        wanted.iter().all(|(slot, chosen, preferred)| {
            let pattern = &candidates[*index][*slot];
            slot_category(pattern) == *chosen && (!preferred || pattern.exact().is_some_and(is_preferred))
        })
    });
    Some(if kept.is_empty() { alive.to_vec() } else { kept })
}

/// Step 10.3.4.f: if all known inputs are of one type, the unknown ones are assumed to be as well.
fn by_same_type(candidates: &[&[TypePattern]], alive: &[usize], inputs: &[DataType]) -> Choice {
    let mut known = inputs.iter().filter(|ty| **ty != DataType::Unknown);
    let Some(first) = known.next() else { return Choice::Many };
    if known.any(|ty| ty != first) {
        return Choice::Many;
    }
    let assumed = vec![first.clone(); inputs.len()];
    let mut fitting = alive.iter().filter(|index| accepts_all(candidates[**index], &assumed));
    match (fitting.next(), fitting.next()) {
        (Some(one), None) => Choice::One(*one),
        _ => Choice::Many,
    }
}

/// Types that polymorphic names stand for in one call.
#[derive(Default)]
struct Solution {
    element: Option<DataType>,
    range: Option<RangeKind>,
    compatible: Option<DataType>,
}

pub(super) const NOT_ALIKE: &str = "are not all alike";

fn not_alike(pattern: &str) -> Error {
    Error::new("42804", format!("arguments declared \"{pattern}\" {NOT_ALIKE}"))
}

fn solve(patterns: &[TypePattern], inputs: &[DataType]) -> Result<Solution> {
    let mut solution = Solution::default();
    let mut compatible = Vec::new();
    for (pattern, ty) in patterns.iter().zip(inputs).filter(|(_, ty)| **ty != DataType::Unknown) {
        let element = match (pattern, ty) {
            (TypePattern::AnyArray, ty) if ty.element().is_some() => ty.element().cloned().unwrap_or(DataType::Unknown),
            (TypePattern::AnyElement | TypePattern::AnyNonArray, ty) => ty.clone(),
            (TypePattern::AnyEnum, ty) => ty.underlying().clone(),
            (TypePattern::AnyRange | TypePattern::AnyMultirange, ty) => match ty.underlying() {
                DataType::Range(kind) | DataType::Multirange(kind) => {
                    if solution.range.is_some_and(|found| found != *kind) {
                        return Err(not_alike("anyrange"));
                    }
                    solution.range = Some(*kind);
                    kind.subtype()
                }
                _ => continue,
            },
            (TypePattern::AnyCompatibleArray, ty) if ty.element().is_some() => {
                compatible.extend(ty.element().cloned());
                continue;
            }
            (TypePattern::AnyCompatible | TypePattern::AnyCompatibleNonArray, ty) => {
                compatible.push(ty.clone());
                continue;
            }
            _ => continue,
        };
        match &solution.element {
            None => solution.element = Some(element),
            Some(found) if found.base() == element.base() => {
                if *found != element {
                    solution.element = Some(element.base());
                }
            }
            Some(found) => {
                return Err(not_alike("anyelement").with_detail(format!(
                    "{} versus {}",
                    found.sql_name(),
                    element.sql_name()
                )));
            }
        }
    }
    let is_open = |(pattern, ty): (&TypePattern, &DataType)| pattern.is_polymorphic() && *ty == DataType::Unknown;
    if patterns.iter().zip(inputs).any(is_open) {
        // A literal has no length or scale of its own, and takes none.
        solution.element = solution.element.map(|element| element.base());
        compatible.push(DataType::Unknown);
    }
    if compatible.iter().any(|ty| *ty != DataType::Unknown) {
        solution.compatible = Some(resolve_common_type("", &compatible)?);
    }
    Ok(solution)
}

/// The types to cast arguments to, and the result type.
pub fn settle_types(
    patterns: &[TypePattern],
    ret: &TypePattern,
    inputs: &[DataType],
) -> Result<(Vec<DataType>, DataType)> {
    let solution = solve(patterns, inputs)?;
    let element = || match &solution.element {
        Some(ty) => Ok(ty.clone()),
        None => Err(Error::new("42804", "could not determine polymorphic type because input has type unknown")),
    };
    let range = || match solution.range {
        Some(kind) => Ok(kind),
        None => Err(Error::new("42804", "could not determine polymorphic type because input has type unknown")),
    };
    let compatible = || solution.compatible.clone().unwrap_or(DataType::Text);
    let array = |element: DataType| match element {
        // An array of arrays is one with more dimensions.
        DataType::Array(_) => {
            Err(Error::new("42704", format!("could not find array type for data type {}", element.sql_name())))
        }
        element => Ok(DataType::Array(Box::new(element))),
    };
    let settle = |pattern: &TypePattern, input: &DataType| -> Result<DataType> {
        Ok(match pattern {
            TypePattern::Exact(exact) if input.underlying().base() == *exact => input.underlying().clone(),
            TypePattern::Exact(DataType::Record) if input.composite().is_some() => input.underlying().clone(),
            TypePattern::Exact(DataType::Numeric(None)) => super::decimal::physical_of(input.underlying()),
            TypePattern::Exact(exact) => exact.clone(),
            TypePattern::AnyElement | TypePattern::AnyNonArray | TypePattern::AnyEnum => element()?,
            TypePattern::AnyArray => array(element()?)?,
            TypePattern::AnyRange => DataType::Range(range()?),
            TypePattern::AnyMultirange => DataType::Multirange(range()?),
            TypePattern::AnyCompatible | TypePattern::AnyCompatibleNonArray => compatible(),
            TypePattern::AnyCompatibleArray => array(compatible())?,
            TypePattern::Any if *input == DataType::Unknown => DataType::Text,
            TypePattern::Any => input.clone(),
        })
    };
    let args = patterns.iter().zip(inputs).map(|(pattern, input)| settle(pattern, input)).collect::<Result<_>>()?;
    let ty = match ret {
        TypePattern::Exact(exact) => exact.clone(),
        ret => settle(ret, &DataType::Unknown)?,
    };
    Ok((args, ty))
}
