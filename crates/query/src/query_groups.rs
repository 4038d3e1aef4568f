//! Query groups: whose statements get which share of the query threads (`sched::fair`), and how many of them run at once
//! (`sched::admission`).
//!
//! `basalt.query_groups` names them, `basalt.query_group` says which one a session's statements belong to. There is always
//! one named `default`, for those that say nothing, and for those whose group is gone.

use crate::error::{Result, SqlError};
use basalt_sched::admission::Limits;
use basalt_sched::fair::Scheduler;
use parking_lot::Mutex;
use std::sync::Arc;

pub const DEFAULT_GROUP: &str = "default";
const DEFAULT_SHARE: u32 = 100;
const SHARE_MAX: u32 = 10_000;
const GROUPS_MAX: usize = 64;
const SETTING: &str = "basalt.query_groups";

/// Slots of the query runtime, in groups as they were set last.
pub(crate) struct QueryGroups {
    scheduler: Arc<Scheduler>,
    /// What `ALTER SYSTEM` says, as far as it was applied.
    applied: Mutex<Option<String>>,
}

impl QueryGroups {
    /// `setting`: the value of `basalt.query_groups`; `altered`: what `ALTER SYSTEM` says of it.
    pub fn new(slots: usize, limits: Limits, setting: &str, altered: Option<&String>) -> QueryGroups {
        QueryGroups { scheduler: Scheduler::new(slots, &of(setting), limits), applied: Mutex::new(altered.cloned()) }
    }

    /// `setting` is asked for the value where `ALTER SYSTEM` says something new.
    pub fn current(&self, altered: Option<&String>, setting: impl FnOnce() -> String) -> &Arc<Scheduler> {
        let mut applied = self.applied.lock();
        if applied.as_ref() != altered {
            *applied = altered.cloned();
            self.scheduler.set_groups(&of(&setting()));
        }
        &self.scheduler
    }
}

/// All groups, the default one first.
fn of(setting: &str) -> Vec<(String, u32)> {
    // It was checked when it was given.
    let mut groups = parse(setting).unwrap_or_default();
    match groups.iter().position(|(name, _)| name == DEFAULT_GROUP) {
        Some(at) => groups[..=at].rotate_right(1),
        None => groups.insert(0, (DEFAULT_GROUP.to_string(), DEFAULT_SHARE)),
    }
    groups
}

fn invalid(detail: String) -> SqlError {
    SqlError::new("22023", format!("invalid value for parameter \"{SETTING}\": {detail}"))
        .with_hint("Write names and shares, as in 'etl = 20, dashboards = 80'.")
}

fn parse(text: &str) -> Result<Vec<(String, u32)>> {
    let mut groups: Vec<(String, u32)> = Vec::new();
    if text.trim().is_empty() {
        return Ok(groups);
    }
    for part in text.split(',') {
        let (name, share) = part.split_once('=').ok_or_else(|| invalid(format!("\"{}\" has no share", part.trim())))?;
        let (name, share) = (name_of(name), share.trim());
        let is_name = name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
            && name.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_')
            && name.len() <= 63;
        if !is_name {
            return Err(invalid(format!("\"{name}\" is no name of a group")));
        }
        let share = share.parse().ok().filter(|share| (1..=SHARE_MAX).contains(share));
        let Some(share) = share else {
            return Err(invalid(format!("the share of group \"{name}\" is not in the range 1 .. {SHARE_MAX}")));
        };
        if groups.iter().any(|(known, _)| *known == name) {
            return Err(invalid(format!("group \"{name}\" is named twice")));
        }
        groups.push((name, share));
    }
    match groups.len() <= GROUPS_MAX {
        true => Ok(groups),
        false => Err(invalid(format!("there are more than {GROUPS_MAX} groups"))),
    }
}

/// The form in which a value of `basalt.query_groups` is kept; 22023 if it says something else than names and shares.
pub(crate) fn canonical(text: &str) -> Result<String> {
    let groups: Vec<String> = parse(text)?.iter().map(|(name, share)| format!("{name} = {share}")).collect();
    Ok(groups.join(", "))
}

/// A group's name as it is kept: case does not matter.
pub(crate) fn name_of(text: &str) -> String {
    text.trim().to_ascii_lowercase()
}

/// 22023 if there is no such group.
pub(crate) fn require(scheduler: &Scheduler, name: &str) -> Result<()> {
    if scheduler.has_group(name) {
        return Ok(());
    }
    let known: Vec<String> = scheduler.report().iter().map(|group| group.name.to_string()).collect();
    Err(SqlError::new("22023", format!("query group \"{name}\" does not exist"))
        .with_hint(format!("Groups are: {}. ALTER SYSTEM SET {SETTING} makes others.", known.join(", "))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_read_and_written_in_one_form() {
        assert_eq!(canonical("").unwrap(), "");
        assert_eq!(canonical(" Etl=20,dashboards =  80 ").unwrap(), "etl = 20, dashboards = 80");
        let named =
            |setting: &str| of(setting).iter().map(|(name, share)| format!("{name} {share}")).collect::<Vec<_>>();
        assert_eq!(named("etl = 20"), ["default 100", "etl 20"]);
        assert_eq!(named("etl = 20, default = 5, b = 1"), ["default 5", "etl 20", "b 1"]);
    }

    #[test]
    fn what_is_no_list_of_shares_is_said_precisely() {
        for (text, message) in [
            ("etl", "\"etl\" has no share"),
            ("etl = 20,", "\"\" has no share"),
            ("etl = 0", "the share of group \"etl\" is not in the range 1 .. 10000"),
            ("etl = 10001", "the share of group \"etl\" is not in the range 1 .. 10000"),
            ("etl = many", "the share of group \"etl\" is not in the range 1 .. 10000"),
            ("2nd = 20", "\"2nd\" is no name of a group"),
            ("a b = 20", "\"a b\" is no name of a group"),
            ("a = 1, A = 2", "group \"a\" is named twice"),
        ] {
            let error = canonical(text).unwrap_err();
            assert_eq!(error.sqlstate, "22023");
            assert!(error.message.ends_with(message), "{text}: {}", error.message);
        }
        let many: Vec<String> = (0..65).map(|n| format!("g{n} = 1")).collect();
        assert!(canonical(&many.join(", ")).unwrap_err().message.ends_with("there are more than 64 groups"));
        assert!(canonical(&many[..64].join(", ")).is_ok());
    }

    #[test]
    fn changes_are_taken_over_once() {
        let limits = Limits { active_max: 1, queued_max: 1 };
        let groups = QueryGroups::new(2, limits, "etl = 20", None);
        let none = || -> String { panic!("nothing has changed") };
        assert!(require(groups.current(None, none), "etl").is_ok());
        let altered = "other = 5".to_string();
        let scheduler = groups.current(Some(&altered), || altered.clone());
        let error = require(scheduler, "etl").unwrap_err();
        assert_eq!((error.sqlstate, error.message.as_str()), ("22023", "query group \"etl\" does not exist"));
        assert!(error.hint.unwrap().starts_with("Groups are: default, other."));
        groups.current(Some(&altered), none);
    }
}
