//! A repository's history as rows: table `commits`, and in `changes` what each did to each file.
//!
//! A history is soon at its end. Then it is replayed, with new ids, and with times that go on where they ended,
//! so that rows keep arriving in the order of time.

use super::git::{Change, Commit, Log, Repository};
use super::scene::{Batch, Copy, Query, Scene, Source, push_text};
use anyhow::{Result, anyhow, bail};
use chrono::DateTime;
use std::io::Write;
use tokio_postgres::Client;

/// A history of up to this many rows is kept in memory; a longer one is read again from git.
const ROWS_KEPT_MAX: usize = 500_000;
/// Times stay below year 9999: a history that has been replayed that far begins anew.
const SECONDS_MAX: i64 = 253_402_300_799;

const TABLES: &str = "\
CREATE TABLE IF NOT EXISTS commits (
    commit_id bigint PRIMARY KEY, sha text NOT NULL, author text NOT NULL, committed_at timestamptz NOT NULL,
    authored_at timestamptz NOT NULL, parents int NOT NULL, files int NOT NULL, subject text NOT NULL);
CREATE TABLE IF NOT EXISTS changes (
    change_id bigint PRIMARY KEY, commit_id bigint NOT NULL, path text NOT NULL, added int, deleted int,
    committed_at timestamptz NOT NULL);";

const LOOKUP: &str = "SELECT commit_id, left(sha, 10) AS sha, author, committed_at, subject \
                      FROM commits WHERE commit_id = {key}";
const TOP: &str = "SELECT path, count(*) AS changes, sum(added) AS added, sum(deleted) AS deleted \
                   FROM changes GROUP BY path ORDER BY changes DESC, path LIMIT 5";
const JOIN: &str = "SELECT date_trunc('month', c.committed_at) AS month, count(DISTINCT c.author) AS authors, \
                    count(*) AS changes, sum(f.added) AS added \
                    FROM commits c JOIN changes f ON f.commit_id = c.commit_id \
                    GROUP BY 1 ORDER BY 1 DESC LIMIT 5";

/// Makes the tables, or goes on with those that are there.
pub async fn prepare(client: &Client, repository: Repository) -> Result<Scene> {
    let describe = |error| anyhow!("{}", crate::connect::describe(&error));
    client.batch_execute(TABLES).await.map_err(describe)?;
    let sql =
        "SELECT (SELECT coalesce(max(commit_id), 0) FROM commits), (SELECT coalesce(max(change_id), 0) FROM changes)";
    let ids = client.query_one(sql, &[]).await.map_err(describe)?;
    let query = |name, title, sql: &str| Query { name, title, sql: sql.to_string() };
    Ok(Scene {
        title: format!("git history of {}", repository.name),
        probe: "SELECT 1 FROM commits WHERE commit_id = $1",
        queries: vec![
            query("lookup", "a commit by its key", LOOKUP),
            query("top", "the paths that change most", TOP),
            query("join", "commits joined with changes, by month", JOIN),
        ],
        source: Box::new(History::new(repository, ids.get(0), ids.get(1))),
    })
}

pub struct History {
    repository: Repository,
    reading: Reading,
    last_commit_id: i64,
    last_change_id: i64,
    /// Least and greatest commit time of the first round.
    times: Option<(i64, i64)>,
    rounds: i64,
}

enum Reading {
    /// At the start of a round.
    Start,
    /// `kept`: the round's commits so far, unless they are too many.
    Git {
        log: Log,
        kept: Option<Vec<Commit>>,
        rows: usize,
    },
    Memory {
        commits: Vec<Commit>,
        next: usize,
    },
}

impl History {
    pub fn new(repository: Repository, last_commit_id: i64, last_change_id: i64) -> History {
        History { repository, reading: Reading::Start, last_commit_id, last_change_id, times: None, rounds: 0 }
    }

    /// The next commit, from the beginning again after the last.
    fn next_commit(&mut self) -> Result<Commit> {
        loop {
            match &mut self.reading {
                Reading::Start => {
                    self.reading = Reading::Git { log: self.repository.log()?, kept: Some(Vec::new()), rows: 0 };
                }
                Reading::Git { log, kept, rows } => match log.next()? {
                    Some(commit) => {
                        *rows += 1 + commit.changes.len();
                        if *rows > ROWS_KEPT_MAX {
                            *kept = None;
                        }
                        kept.iter_mut().for_each(|kept| kept.push(commit.clone()));
                        if self.rounds == 0 {
                            let time = commit.committed_at;
                            let (least, greatest) = self.times.unwrap_or((time, time));
                            self.times = Some((least.min(time), greatest.max(time)));
                        }
                        return Ok(commit);
                    }
                    None if *rows == 0 => bail!("the history of {} is empty", self.repository.name),
                    None => {
                        self.rounds += 1;
                        self.reading = match kept.take() {
                            Some(commits) => Reading::Memory { commits, next: 0 },
                            None => Reading::Start,
                        };
                    }
                },
                Reading::Memory { commits, next } => {
                    if let Some(commit) = commits.get(*next) {
                        *next += 1;
                        return Ok(commit.clone());
                    }
                    self.rounds += 1;
                    *next = 0;
                }
            }
        }
    }

    /// Seconds that this round's times are later than the first round's.
    fn shift(&self) -> i64 {
        let Some((least, greatest)) = self.times else { return 0 };
        let round = greatest - least + 1;
        // As many rounds as there are before SECONDS_MAX, authors' clocks that run ahead included.
        let rounds_max = ((SECONDS_MAX - greatest) / 2 / round).max(1);
        self.rounds % rounds_max * round
    }
}

impl Source for History {
    fn next_batch(&mut self, rows: u64) -> Result<Batch> {
        let (mut commits, mut changes) = (Vec::new(), Vec::new());
        let (mut commit_rows, mut change_rows) = (0, 0);
        while commit_rows == 0 || commit_rows + change_rows < rows {
            let mut commit = self.next_commit()?;
            let shift = self.shift();
            commit.committed_at = (commit.committed_at + shift).min(SECONDS_MAX);
            commit.authored_at = (commit.authored_at + shift).min(SECONDS_MAX);
            self.last_commit_id += 1;
            push_commit(&mut commits, self.last_commit_id, &commit)?;
            commit_rows += 1;
            for change in &commit.changes {
                self.last_change_id += 1;
                write!(changes, "{}\t{}\t", self.last_change_id, self.last_commit_id)?;
                push_change(&mut changes, change, commit.committed_at)?;
                change_rows += 1;
            }
        }
        let commits = Copy { sql: "COPY commits FROM STDIN", rows: commit_rows, bytes: commits.into() };
        let changes = Copy { sql: "COPY changes FROM STDIN", rows: change_rows, bytes: changes.into() };
        let copies = [commits, changes].into_iter().filter(|copy| copy.rows > 0).collect();
        Ok(Batch { copies, key: self.last_commit_id, round: self.rounds.unsigned_abs() })
    }
}

fn push_commit(out: &mut Vec<u8>, id: i64, commit: &Commit) -> Result<()> {
    write!(out, "{id}\t{}\t", commit.sha)?;
    push_text(out, &commit.author);
    for seconds in [commit.committed_at, commit.authored_at] {
        out.push(b'\t');
        push_time(out, seconds)?;
    }
    write!(out, "\t{}\t{}\t", commit.parents, commit.changes.len())?;
    push_text(out, &commit.subject);
    out.push(b'\n');
    Ok(())
}

fn push_change(out: &mut Vec<u8>, change: &Change, committed_at: i64) -> Result<()> {
    push_text(out, &change.path);
    for count in [change.added, change.deleted] {
        match count {
            Some(count) => write!(out, "\t{count}")?,
            None => out.extend_from_slice(b"\t\\N"),
        }
    }
    out.push(b'\t');
    push_time(out, committed_at)?;
    out.push(b'\n');
    Ok(())
}

/// As timestamptz.
fn push_time(out: &mut Vec<u8>, unix_seconds: i64) -> Result<()> {
    let time = DateTime::from_timestamp(unix_seconds, 0).unwrap_or_default();
    write!(out, "{}+00", time.naive_utc())?;
    Ok(())
}

#[cfg(test)]
mod tests;
