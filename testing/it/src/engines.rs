//! Which of Basalt's engines may run statements: every answer has to be the same whichever does.

use crate::servers::BasaltOptions;
use anyhow::{Result, bail};
use rand::Rng;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;

/// What the planner may use beside the fallback.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub enum Engines {
    /// It chooses.
    #[default]
    Chosen,
    /// The column engine, and the fallback for what that does not run.
    Columns,
    Fallback,
}

const SETTINGS: [&str; 2] = ["basalt.enable_column_engine", "basalt.enable_row_engine"];

impl Engines {
    pub const ALL: [Engines; 3] = [Engines::Chosen, Engines::Columns, Engines::Fallback];

    pub fn name(self) -> &'static str {
        match self {
            Engines::Chosen => "chosen",
            Engines::Columns => "columns",
            Engines::Fallback => "fallback",
        }
    }

    /// Those of `BASALT_ENGINES`: names with commas between, or all.
    pub fn asked() -> Result<Vec<Engines>> {
        let Ok(names) = std::env::var("BASALT_ENGINES") else { return Ok(Engines::ALL.to_vec()) };
        let one = |name: &str| match Engines::ALL.into_iter().find(|engines| engines.name() == name) {
            Some(engines) => Ok(engines),
            None => bail!("BASALT_ENGINES={names}: {name} is none of chosen, columns, fallback"),
        };
        names.split(',').map(one).collect()
    }

    /// One of those that were asked for, most often the first.
    pub fn drawn(asked: &[Engines], rng: &mut StdRng) -> Engines {
        let one = if rng.random() { asked.first() } else { asked.choose(rng) };
        one.copied().unwrap_or_default()
    }

    /// Values of the settings that say so.
    fn values(self) -> [(&'static str, bool); 2] {
        let [column, row] = SETTINGS;
        [(column, self != Engines::Fallback), (row, self == Engines::Chosen)]
    }

    /// For a server on which sessions begin so.
    pub fn options(self) -> BasaltOptions {
        let off = self.values().into_iter().filter(|(_, on)| !on);
        off.fold(BasaltOptions::default(), |options, (name, _)| options.set(&format!("{name}=off")))
    }

    /// For one session.
    pub fn statements(self) -> [String; 2] {
        self.values().map(|(name, on)| format!("SET {name} = {}", if on { "on" } else { "off" }))
    }
}
