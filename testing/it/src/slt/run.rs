//! Runs a script on both servers.

use super::parse::{Action, Against, Statement, Step, parse};
use super::render::{render, render_expected};
use crate::engines::Engines;
use crate::servers::{Basalt, Postgres};
use crate::wire::{Answer, Wire};
use anyhow::{Context, Result, bail};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

/// How long a statement that must wait is watched.
const BLOCKED_FOR: Duration = Duration::from_millis(150);
const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);
const MAIN: &str = "main";

#[derive(Default)]
pub struct Outcome {
    pub compared: usize,
    /// Answers that tell of engines which the planner did not choose.
    pub passed_over: usize,
    /// Statements that both servers ran, and whether they answered the same.
    pub statements: Vec<(String, bool)>,
    /// Readable, with the place in the script.
    pub failures: Vec<String>,
}

/// `postgres` must have an empty database.
pub fn run_file(path: &Path, postgres: &Postgres, engines: Engines) -> Result<Outcome> {
    let text = std::fs::read_to_string(path).with_context(|| path.display().to_string())?;
    let steps = parse(&text).with_context(|| path.display().to_string())?;
    let mut script = Script {
        name: path.display().to_string(),
        basalt: Basalt::start_with(engines.options())?,
        postgres,
        engines,
        sessions: BTreeMap::new(),
        current: MAIN.to_string(),
        state: "",
        outcome: Outcome::default(),
    };
    let states = steps.iter().position(|step| step.action == Action::States);
    let (setup, queries) = steps.split_at(states.unwrap_or(steps.len()));
    script.steps(setup)?;
    if let Some((_, queries)) = queries.split_first() {
        let answers = script.in_state("hot", queries, None)?;
        script.vacuum(false)?;
        script.in_state("frozen", queries, Some(&answers))?;
        script.restart()?;
        script.in_state("restarted", queries, Some(&answers))?;
        script.vacuum(true)?;
        script.in_state("compacted", queries, Some(&answers))?;
        script.orient("row")?;
        script.vacuum(true)?;
        script.in_state("in row files", queries, Some(&answers))?;
    }
    Ok(script.outcome)
}

struct Script<'a> {
    name: String,
    basalt: Basalt,
    postgres: &'a Postgres,
    engines: Engines,
    sessions: BTreeMap<String, Pair>,
    current: String,
    /// What the rows are in, for messages.
    state: &'static str,
    outcome: Outcome,
}

/// One session on each server.
struct Pair {
    basalt: Side,
    postgres: Side,
    /// What was sent and not waited for.
    sent: Option<(usize, Statement)>,
}

/// A connection, or the answer to come of what runs on it.
enum Side {
    Idle(Wire),
    Busy(Receiver<Result<(Wire, Answer)>>),
    Answered(Box<Result<(Wire, Answer)>>),
    Lost,
}

/// What PostgreSQL answered, by the line of the statement: simple, and extended where it was asked.
type Answers = BTreeMap<usize, (Answer, Option<Answer>)>;

impl Script<'_> {
    fn steps(&mut self, steps: &[Step]) -> Result<()> {
        for step in steps {
            self.step(step).with_context(|| format!("{}:{}", self.name, step.line))?;
        }
        Ok(())
    }

    fn in_state(&mut self, state: &'static str, steps: &[Step], known: Option<&Answers>) -> Result<Answers> {
        self.state = state;
        let mut answers = Answers::new();
        for step in steps {
            let Action::Statement(statement) = &step.action else {
                bail!("{}:{}: only queries may follow @states", self.name, step.line);
            };
            let known = known.and_then(|known| known.get(&step.line));
            let place = format!("{}:{}", self.name, step.line);
            if let Some(answer) = self.statement(step.line, statement, known).context(place)? {
                answers.insert(step.line, answer);
            }
        }
        Ok(answers)
    }

    fn step(&mut self, step: &Step) -> Result<()> {
        match &step.action {
            Action::Statement(statement) => match &statement.send {
                Some(name) => self.send(step.line, name, statement),
                None => self.statement(step.line, statement, None).map(|_| ()),
            },
            Action::Connection(name) => {
                self.current = name.clone();
                Ok(())
            }
            Action::Blocked(name) => self.blocked(step.line, name),
            Action::Wait(name) => self.wait(name),
            Action::Freeze => self.vacuum(false),
            Action::Compact => self.vacuum(true),
            Action::Restart => self.restart(),
            Action::SleepMs(ms) => {
                std::thread::sleep(Duration::from_millis(*ms));
                Ok(())
            }
            Action::States => bail!("@states may stand once in a file"),
        }
    }

    fn pair(&mut self, name: &str) -> Result<&mut Pair> {
        if !self.sessions.contains_key(name) {
            let pair = Pair {
                basalt: Side::Idle(self.basalt.connect()?),
                postgres: Side::Idle(self.postgres.connect()?),
                sent: None,
            };
            self.sessions.insert(name.to_string(), pair);
        }
        Ok(self.sessions.get_mut(name).expect("just inserted"))
    }

    fn statement(
        &mut self,
        line: usize,
        statement: &Statement,
        known: Option<&(Answer, Option<Answer>)>,
    ) -> Result<Option<(Answer, Option<Answer>)>> {
        let name = self.current.clone();
        let data = statement.copy_data();
        let pair = self.pair(&name)?;
        if statement.against == Against::OnlyPostgres {
            pair.postgres.wire()?.simple(&statement.sql, data.as_deref()).context("PostgreSQL")?;
            return Ok(None);
        }
        let basalt = pair.basalt.wire()?.simple(&statement.sql, data.as_deref());
        let basalt = self.alive(basalt)?;
        if statement.against == Against::OnlyBasalt {
            self.expect(line, statement, &basalt);
            return Ok(None);
        }
        let pair = self.pair(&name)?;
        let postgres = match known {
            Some((answer, _)) => answer.clone(),
            None => pair.postgres.wire()?.simple(&statement.sql, data.as_deref()).context("PostgreSQL")?,
        };
        self.compare(line, statement, "", &basalt, &postgres);
        if statement.text_only || !statement.is_query() || statement.against != Against::Both {
            return Ok(Some((postgres, None)));
        }
        let pair = self.pair(&name)?;
        let extended = pair.basalt.wire()?.extended(&statement.sql, true);
        let extended = self.alive(extended)?;
        let pair = self.pair(&name)?;
        let expected = match known {
            Some((_, Some(answer))) => answer.clone(),
            _ => pair.postgres.wire()?.extended(&statement.sql, true).context("PostgreSQL")?,
        };
        self.compare(line, statement, ", extended protocol", &extended, &expected);
        Ok(Some((postgres, Some(expected))))
    }

    /// A connection that breaks takes the server's last words along.
    fn alive(&self, answer: Result<Answer>) -> Result<Answer> {
        answer.with_context(|| format!("Basalt; its log ends:\n{}", self.basalt.log_tail()))
    }

    fn send(&mut self, line: usize, name: &str, statement: &Statement) -> Result<()> {
        let pair = self.pair(name)?;
        pair.basalt.send(&statement.sql)?;
        pair.postgres.send(&statement.sql)?;
        pair.sent = Some((line, statement.clone()));
        Ok(())
    }

    fn blocked(&mut self, line: usize, name: &str) -> Result<()> {
        std::thread::sleep(BLOCKED_FOR);
        let pair = self.pair(name)?;
        let waiting = (pair.basalt.is_waiting(), pair.postgres.is_waiting());
        if waiting != (true, true) {
            let failure = format!("{}:{line}: waiting on (Basalt, PostgreSQL): {waiting:?}\n", self.name);
            self.outcome.failures.push(failure);
        }
        Ok(())
    }

    fn wait(&mut self, name: &str) -> Result<()> {
        let pair = self.pair(name)?;
        let (line, statement) = pair.sent.take().context("nothing was sent on it")?;
        let postgres = pair.postgres.wait().context("PostgreSQL")?;
        let basalt = pair.basalt.wait();
        let basalt = self.alive(basalt)?;
        self.compare(line, &statement, "", &basalt, &postgres);
        Ok(())
    }

    fn vacuum(&mut self, full: bool) -> Result<()> {
        let sql = if full { "VACUUM FULL" } else { "VACUUM" };
        self.basalt.connect()?.run(sql)?;
        Ok(())
    }

    /// Changes the orientation of all tables.
    fn orient(&mut self, orientation: &str) -> Result<()> {
        let mut wire = self.basalt.connect()?;
        let tables = wire.run(
            "SELECT format('%I.%I', nspname, relname) FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace \
             WHERE relkind = 'r' AND relpersistence = 'p' AND nspname NOT IN ('pg_catalog', 'information_schema', 'basalt')",
        )?;
        for name in tables.rows.iter().filter_map(|row| row[0].as_deref()) {
            let name = String::from_utf8_lossy(name);
            wire.run(&format!("ALTER TABLE {name} SET (orientation = '{orientation}')"))?;
        }
        Ok(())
    }

    /// Sessions of both servers end; settings made by SET are lost on both.
    fn restart(&mut self) -> Result<()> {
        self.sessions.clear();
        self.basalt.kill_and_start()
    }

    /// Whether an answer says nothing here, which is counted.
    fn passes_over(&mut self, statement: &Statement) -> bool {
        let passes = self.engines != Engines::Chosen && statement.is_of_chosen_engines();
        self.outcome.passed_over += usize::from(passes);
        passes
    }

    fn expect(&mut self, line: usize, statement: &Statement, basalt: &Answer) {
        if self.passes_over(statement) {
            return;
        }
        let shown = render_expected(basalt, statement);
        let expected = statement.tail.clone().unwrap_or_default();
        self.outcome.compared += 1;
        if shown != expected {
            self.fail(line, statement, "", ("expected", &expected), &shown, basalt);
        }
    }

    fn compare(&mut self, line: usize, statement: &Statement, how: &str, basalt: &Answer, postgres: &Answer) {
        if self.passes_over(statement) {
            return;
        }
        let shown = render(basalt, statement);
        let reference = render(postgres, statement);
        self.outcome.compared += 1;
        self.outcome.statements.push((statement.sql.clone(), shown == reference));
        if matches!(statement.against, Against::Differs(_)) {
            self.expect(line, statement, basalt);
            if shown == reference {
                let failure = format!("{}:{line}: @differs, but the answers are the same\n", self.name);
                self.outcome.failures.push(failure);
            }
        } else if shown != reference {
            self.fail(line, statement, how, ("PostgreSQL", &reference), &shown, basalt);
        }
    }

    fn fail(
        &mut self,
        line: usize,
        statement: &Statement,
        how: &str,
        (reference, expected): (&str, &[String]),
        shown: &[String],
        basalt: &Answer,
    ) {
        let state = if self.state.is_empty() { String::new() } else { format!(", {}", self.state) };
        let mut text = format!("{}:{line}{how}{state}\n{}\n", self.name, indent(&statement.sql));
        text.push_str(&format!("  - {reference}   + Basalt\n{}", difference(expected, shown)));
        if let Some(error) = basalt.error() {
            text.push_str(&format!("  Basalt says: {}\n", error.message()));
        }
        self.outcome.failures.push(text);
    }
}

impl Side {
    fn wire(&mut self) -> Result<&mut Wire> {
        match self {
            Side::Idle(wire) => Ok(wire),
            _ => bail!("the session is busy or lost"),
        }
    }

    fn send(&mut self, sql: &str) -> Result<()> {
        let Side::Idle(mut wire) = std::mem::replace(self, Side::Lost) else { bail!("the session is busy or lost") };
        let (sender, receiver) = channel();
        let sql = sql.to_string();
        std::thread::spawn(move || {
            let answer = wire.simple(&sql, None).map(|answer| (wire, answer));
            // The script may have ended already.
            let _ = sender.send(answer);
        });
        *self = Side::Busy(receiver);
        Ok(())
    }

    fn is_waiting(&mut self) -> bool {
        let Side::Busy(receiver) = self else { return false };
        match receiver.try_recv() {
            Ok(answer) => {
                *self = Side::Answered(Box::new(answer));
                false
            }
            Err(_) => true,
        }
    }

    fn wait(&mut self) -> Result<Answer> {
        let answer = match std::mem::replace(self, Side::Lost) {
            Side::Answered(answer) => *answer,
            Side::Busy(receiver) => match receiver.recv_timeout(ANSWER_TIMEOUT) {
                Ok(answer) => answer,
                Err(RecvTimeoutError::Timeout) => bail!("no answer for {ANSWER_TIMEOUT:?}"),
                Err(RecvTimeoutError::Disconnected) => bail!("the session's thread has ended"),
            },
            _ => bail!("nothing was sent on it"),
        };
        let (wire, answer) = answer?;
        *self = Side::Idle(wire);
        Ok(answer)
    }
}

impl Statement {
    fn copy_data(&self) -> Option<Vec<u8>> {
        let lines = self.tail.as_ref().filter(|_| matches!(self.against, Against::Both))?;
        if self.binary_copy {
            let digits: String = lines.concat().split_whitespace().collect();
            let bytes =
                (0..digits.len() / 2).map(|at| u8::from_str_radix(&digits[at * 2..at * 2 + 2], 16).unwrap_or(0));
            return Some(bytes.collect());
        }
        Some(lines.iter().flat_map(|line| [line.as_bytes(), b"\n"].concat()).collect())
    }
}

fn indent(text: &str) -> String {
    text.lines().map(|line| format!("    {line}")).collect::<Vec<_>>().join("\n")
}

/// The lines between the common head and the common tail.
fn difference(expected: &[String], shown: &[String]) -> String {
    const LINES_MAX: usize = 12;
    let head = expected.iter().zip(shown).take_while(|(a, b)| a == b).count();
    let rest = (&expected[head..], &shown[head..]);
    let tail = rest.0.iter().rev().zip(rest.1.iter().rev()).take_while(|(a, b)| a == b).count();
    let mut out = String::new();
    if head > 0 {
        out.push_str(&format!("    {}\n", expected[0]));
    }
    for (sign, lines) in [('-', &rest.0[..rest.0.len() - tail]), ('+', &rest.1[..rest.1.len() - tail])] {
        lines.iter().take(LINES_MAX).for_each(|line| out.push_str(&format!("  {sign} {line}\n")));
        if lines.len() > LINES_MAX {
            out.push_str(&format!("  {sign} … {} more\n", lines.len() - LINES_MAX));
        }
    }
    out
}
