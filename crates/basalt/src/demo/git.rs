//! The history of a git repository, oldest commit first, as `git log` streams it.
//!
//! git is a process of its own, read through a pipe: nothing is held but the commit being read, and a reader
//! that stops ends it. What comes is bytes (paths and names in any encoding); see [`parse`].

mod parse;

use anyhow::{Context, Result, anyhow, bail};
use parse::Parser;
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::thread::JoinHandle;

/// As much of what git complains about as is worth repeating.
const COMPLAINT_BYTES_MAX: u64 = 16 << 10;
const PIPE_BYTES: usize = 1 << 16;

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Commit {
    pub sha: String,
    pub author: String,
    /// Seconds since 1970-01-01 UTC, as the committer's and the author's clocks had it: neither need grow.
    pub committed_at: i64,
    pub authored_at: i64,
    pub parents: usize,
    pub subject: String,
    /// Empty for merges: `git log` counts a change once, at the commit that made it.
    pub changes: Vec<Change>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Change {
    /// After the change, if it is a rename.
    pub path: String,
    /// Lines. `None` for a binary file.
    pub added: Option<i32>,
    pub deleted: Option<i32>,
}

/// A repository that has at least one commit.
#[derive(Clone, Debug)]
pub struct Repository {
    path: PathBuf,
    /// Its top folder, for people.
    pub name: String,
}

impl Repository {
    pub fn open(path: &Path) -> Result<Repository> {
        let inside = git(path, &["rev-parse", "--absolute-git-dir"])?;
        let git_dir = inside.with_context(|| {
            format!(
                "{} is not in a git repository: name one with --repo PATH, or run the TPC-H demo with --tpch 0.1",
                path.display()
            )
        })?;
        git(path, &["rev-parse", "--quiet", "--verify", "HEAD^{commit}"])?
            .map_err(|_| anyhow!("the git repository {git_dir} has no commits yet"))?;
        // A bare repository has no top folder.
        let name = git(path, &["rev-parse", "--show-toplevel"])?.unwrap_or(git_dir);
        Ok(Repository { path: path.to_path_buf(), name })
    }

    /// Starts reading from the oldest commit.
    pub fn log(&self) -> Result<Log> {
        let mut command = command(&self.path);
        command.args(["log", "--reverse", "--numstat", "-z", "-M", "--no-color", "--no-ext-diff", "--no-textconv"]);
        command.args(["--no-show-signature", "--no-notes", "--no-mailmap", "--encoding=UTF-8"]);
        command.arg(format!("--format=tformat:{}", parse::FORMAT));
        command.args(["HEAD", "--"]);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().map_err(spawn_error)?;
        let stdout = child.stdout.take().context("git has no standard output")?;
        let stderr = child.stderr.take().context("git has no standard error")?;
        // Read to its end, or git would stand still when the pipe is full.
        let complaint = std::thread::spawn(move || {
            let (mut text, mut stderr) = (Vec::new(), stderr);
            let read = (&mut stderr).take(COMPLAINT_BYTES_MAX).read_to_end(&mut text);
            let drained = std::io::copy(&mut stderr, &mut std::io::sink());
            read.and(drained).map(|_| String::from_utf8_lossy(&text).trim().to_string()).unwrap_or_default()
        });
        Ok(Log { parser: Parser::new(BufReader::with_capacity(PIPE_BYTES, stdout)), child, complaint: Some(complaint) })
    }
}

/// A running `git log`; ends it when dropped.
pub struct Log {
    parser: Parser<BufReader<ChildStdout>>,
    child: Child,
    complaint: Option<JoinHandle<String>>,
}

impl Log {
    /// The next commit; `None` after the newest.
    pub fn next(&mut self) -> Result<Option<Commit>> {
        let commit = self.parser.next().context("reading the output of git log")?;
        if commit.is_none()
            && let Some(complaint) = self.complaint.take()
        {
            let status = self.child.wait().context("waiting for git log")?;
            if !status.success() {
                bail!("git log failed ({status}): {}", complaint.join().unwrap_or_default());
            }
        }
        Ok(commit)
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        // Fails only for a process that has ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn command(path: &Path) -> Command {
    let mut command = Command::new("git");
    command.arg("-C").arg(path).arg("--no-pager").args(["-c", "core.quotePath=false", "-c", "diff.renames=true"]);
    command.env("LC_ALL", "C").env("GIT_OPTIONAL_LOCKS", "0").env("GIT_TERMINAL_PROMPT", "0").stdin(Stdio::null());
    command
}

/// What a short git command prints; the inner error is git's own complaint.
fn git(path: &Path, args: &[&str]) -> Result<Result<String>> {
    let output = command(path).args(args).output().map_err(spawn_error)?;
    if output.status.success() {
        return Ok(Ok(String::from_utf8_lossy(&output.stdout).trim().to_string()));
    }
    Ok(Err(anyhow!("git: {}", String::from_utf8_lossy(&output.stderr).trim())))
}

fn spawn_error(error: std::io::Error) -> anyhow::Error {
    match error.kind() {
        std::io::ErrorKind::NotFound => anyhow!(
            "git is not installed, or not on PATH: the demo reads a repository's history with it. \
             The TPC-H demo needs none: basalt demo --tpch 0.1"
        ),
        _ => anyhow!("cannot run git: {error}"),
    }
}

#[cfg(test)]
mod tests;
