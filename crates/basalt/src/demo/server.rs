//! The demonstration's server: this program again, as `basalt start`, in a process of its own.
//!
//! A process of its own shows what a user will have: its memory is the server's alone, and it goes on for psql
//! while the view is busy. It is in a process group of its own, so that Ctrl-C in the terminal reaches only the
//! demonstration, which then ends it in order.

use anyhow::{Context, Result, anyhow, bail};
use basalt_sched::Os;
use rustix::process::{Pid, Signal, kill_process};
use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Recovery of a large data directory takes its time; silence for longer means that something hangs.
const START_TIMEOUT: Duration = Duration::from_secs(600);
/// A checkpoint of what is in memory.
const STOP_TIMEOUT: Duration = Duration::from_secs(120);
const STOP_POLL: Duration = Duration::from_millis(20);
/// The end of its log, for errors.
const LOG_LINES_MAX: usize = 20;

pub struct Server {
    child: Child,
    /// Where clients connect.
    pub url: String,
    log: Arc<Mutex<VecDeque<String>>>,
}

impl Server {
    /// Returns when the server is ready.
    pub fn start(data_dir: &Path, listen: &str, http: &str) -> Result<Server> {
        let program = std::env::current_exe().context("cannot find this program's own file")?;
        let mut command = Command::new(program);
        command.arg("start").arg("--data-dir").arg(data_dir).args(["--listen", listen, "--http", http]);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
        let mut child = command.spawn().context("cannot start the server")?;
        let log = Arc::new(Mutex::new(VecDeque::new()));
        let (said, lines) = channel();
        if let Some(stdout) = child.stdout.take() {
            std::thread::spawn(move || each_line(stdout, |line| said.send(line).unwrap_or(())));
        }
        if let Some(stderr) = child.stderr.take() {
            let log = log.clone();
            std::thread::spawn(move || each_line(stderr, |line| keep(&log, line)));
        }
        let mut server = Server { child, url: String::new(), log };
        server.url =
            server.wait_until_ready(&lines).with_context(|| format!("the server on {listen} did not start"))?;
        Ok(server)
    }

    fn wait_until_ready(&mut self, lines: &Receiver<String>) -> Result<String> {
        loop {
            match lines.recv_timeout(START_TIMEOUT) {
                Ok(line) => {
                    if let Some(at) = line.find("postgresql://") {
                        return Ok(line[at..].trim().to_string());
                    }
                }
                Err(RecvTimeoutError::Timeout) => bail!("it was not ready within {START_TIMEOUT:?}"),
                Err(RecvTimeoutError::Disconnected) => {
                    let status = self.child.wait().context("waiting for the server")?;
                    bail!("{}", self.last_words().unwrap_or_else(|| format!("it ended with {status}")));
                }
            }
        }
    }

    /// Why it ended, if it has ended by itself.
    pub fn ended(&mut self) -> Option<String> {
        let status = self.child.try_wait().ok().flatten()?;
        let log: Vec<String> = self.log.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect();
        Some(format!("the server ended with {status}; the end of its log:\n{}", log.join("\n")))
    }

    /// The last line that it logged: for a server that does not start, the reason.
    fn last_words(&self) -> Option<String> {
        let log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        let line = log.iter().rev().find(|line| !line.trim().is_empty())?;
        Some(line.strip_prefix("basalt: ").unwrap_or(line).to_string())
    }

    /// Lets it end in order: what is in memory gets its checkpoint.
    pub fn stop(mut self, os: &Os) -> Result<()> {
        if let Some(why) = self.ended() {
            bail!(why);
        }
        kill_process(Pid::from_child(&self.child), Signal::TERM).context("cannot end the server")?;
        let deadline = os.clock.monotonic() + STOP_TIMEOUT;
        loop {
            match self.child.try_wait().context("waiting for the server")? {
                Some(status) if status.success() => return Ok(()),
                Some(_) => return Err(anyhow!(self.ended().unwrap_or_default())),
                None if os.clock.monotonic() > deadline => {
                    bail!("the server did not end within {STOP_TIMEOUT:?} and was killed; nothing committed is lost")
                }
                None => os.clock.sleep(STOP_POLL),
            }
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Fails only for a process that has ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Reads to the end, or the server would stand still when the pipe is full.
fn each_line(pipe: impl Read, mut f: impl FnMut(String)) {
    for line in BufReader::new(pipe).split(b'\n').map_while(std::io::Result::ok) {
        f(String::from_utf8_lossy(&line).into_owned());
    }
}

fn keep(log: &Mutex<VecDeque<String>>, line: String) {
    let mut log = log.lock().unwrap_or_else(PoisonError::into_inner);
    if log.len() == LOG_LINES_MAX {
        log.pop_front();
    }
    log.push_back(line);
}
