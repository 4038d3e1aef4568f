//! Basalt's binary as built beside the test, on a data directory that outlives its kills.

use super::free_addr;
use crate::wire::Wire;
use anyhow::{Context, Result, bail, ensure};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

const START_TIMEOUT: Duration = Duration::from_secs(60);

#[derive(Clone, Debug, Default)]
pub struct BasaltOptions {
    /// Further arguments of `basalt start`.
    pub args: Vec<String>,
    pub env: Vec<(String, String)>,
}

impl BasaltOptions {
    pub fn set(mut self, setting: &str) -> BasaltOptions {
        self.args.extend(["--set".into(), setting.into()]);
        self
    }

    pub fn arg(mut self, argument: &str) -> BasaltOptions {
        self.args.push(argument.into());
        self
    }
}

pub struct Basalt {
    child: Option<Child>,
    pub addr: SocketAddr,
    pub dir: PathBuf,
    log: PathBuf,
    options: BasaltOptions,
    /// Removed with the server, if the directory is its own.
    _own: Option<tempfile::TempDir>,
}

impl Basalt {
    /// On a directory of its own.
    pub fn start() -> Result<Basalt> {
        Basalt::start_with(BasaltOptions::default())
    }

    pub fn start_with(options: BasaltOptions) -> Result<Basalt> {
        let own = tempfile::Builder::new().prefix("basalt-it-").tempdir()?;
        let dir = own.path().join("data");
        let log = own.path().join("server.log");
        let mut server = Basalt { child: None, addr: free_addr()?, dir, log, options, _own: Some(own) };
        server.launch()?;
        Ok(server)
    }

    /// On a directory that the caller keeps.
    pub fn start_on(dir: &Path, log: &Path, options: BasaltOptions) -> Result<Basalt> {
        let (dir, log) = (dir.to_path_buf(), log.to_path_buf());
        let mut server = Basalt { child: None, addr: free_addr()?, dir, log, options, _own: None };
        server.launch()?;
        Ok(server)
    }

    /// The binary that cargo built: `target/<profile>/basalt`, two levels above the test's executable, unless
    /// BASALT_BIN names another.
    pub fn binary() -> Result<PathBuf> {
        if let Some(path) = std::env::var_os("BASALT_BIN") {
            return Ok(path.into());
        }
        let test = std::env::current_exe()?;
        let found = test.ancestors().skip(1).take(3).map(|dir| dir.join("basalt")).find(|path| path.is_file());
        found.with_context(|| format!("no binary `basalt` beside {}: cargo build -p basalt", test.display()))
    }

    /// `basalt start` with these arguments; its output goes to `log`.
    pub fn command(dir: &Path, addr: SocketAddr, options: &BasaltOptions) -> Result<Command> {
        let mut command = Command::new(Basalt::binary()?);
        command.arg("start").arg("--data-dir").arg(dir).args(["--listen", &addr.to_string()]);
        if !options.args.iter().any(|argument| argument == "--http") {
            command.args(["--http", "off"]);
        }
        // Every BASALT_ variable is a setting to the server: the tests' own are not for it.
        let ours = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
        ours.filter(|name| name.starts_with("BASALT_")).for_each(|name| {
            command.env_remove(name);
        });
        command.args(&options.args).envs(options.env.iter().map(|(name, value)| (name, value)));
        command.stdin(Stdio::null());
        Ok(command)
    }

    fn launch(&mut self) -> Result<()> {
        let log = std::fs::OpenOptions::new().create(true).append(true).open(&self.log)?;
        let mut command = Basalt::command(&self.dir, self.addr, &self.options)?;
        self.child = Some(command.stdout(log.try_clone()?).stderr(log).spawn().context("starting basalt")?);
        let until = Instant::now() + START_TIMEOUT;
        loop {
            // A refusal for want of connections also shows that it runs.
            if Wire::try_connect(self.addr, "basalt", "basalt").is_ok() {
                return Ok(());
            }
            let ended = self.child.as_mut().map(Child::try_wait).transpose()?.flatten();
            if let Some(status) = ended {
                self.child = None;
                bail!("basalt ended with {status}:\n{}", self.log_tail());
            }
            ensure!(Instant::now() < until, "basalt does not answer on {}:\n{}", self.addr, self.log_tail());
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    pub fn connect(&self) -> Result<Wire> {
        Wire::connect(self.addr, "basalt", "basalt").with_context(|| self.log_tail())
    }

    pub fn process_id(&self) -> Option<u32> {
        self.child.as_ref().map(Child::id)
    }

    /// What it has computed for so far, in steps of 10 ms.
    pub fn cpu_time(&self) -> Result<Duration> {
        let id = self.process_id().context("it does not run")?;
        cpu_time_of(&std::fs::read_to_string(format!("/proc/{id}/stat"))?)
    }

    /// What its threads of this name have, to the nanosecond: those that end take theirs with them.
    pub fn cpu_time_of(&self, thread: &str) -> Result<Duration> {
        let id = self.process_id().context("it does not run")?;
        let mut all = Duration::ZERO;
        for task in std::fs::read_dir(format!("/proc/{id}/task"))? {
            let task = task?.path();
            // A thread may end while it is looked at.
            let Ok(name) = std::fs::read_to_string(task.join("comm")) else { continue };
            if name.trim_end() == thread {
                let stat = std::fs::read_to_string(task.join("schedstat"))?;
                let nanos = stat.split_whitespace().next().context("an empty schedstat")?;
                all += Duration::from_nanos(nanos.parse()?);
            }
        }
        Ok(all)
    }

    pub fn is_running(&mut self) -> bool {
        self.child.as_mut().is_some_and(|child| matches!(child.try_wait(), Ok(None)))
    }

    /// kill -9.
    pub fn kill(&mut self) -> Result<()> {
        if let Some(mut child) = self.child.take() {
            child.kill()?;
            child.wait()?;
        }
        Ok(())
    }

    /// SIGTERM, and how it ended.
    pub fn terminate(&mut self, timeout: Duration) -> Result<ExitStatus> {
        let child = self.child.as_mut().context("it does not run")?;
        let sent = Command::new("kill").args(["-TERM", &child.id().to_string()]).status()?;
        ensure!(sent.success(), "kill -TERM: {sent}");
        let until = Instant::now() + timeout;
        loop {
            if let Some(status) = child.try_wait()? {
                self.child = None;
                return Ok(status);
            }
            ensure!(Instant::now() < until, "still running {timeout:?} after SIGTERM:\n{}", self.log_tail());
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Starts again on the same directory and address.
    pub fn start_again(&mut self) -> Result<()> {
        ensure!(self.child.is_none(), "it still runs");
        self.launch()
    }

    pub fn kill_and_start(&mut self) -> Result<()> {
        self.kill()?;
        self.start_again()
    }

    /// The end of what the server has logged, as evidence.
    pub fn log_tail(&self) -> String {
        let log = std::fs::read(&self.log).unwrap_or_default();
        let log = String::from_utf8_lossy(&log);
        let lines: Vec<&str> = log.lines().collect();
        lines[lines.len().saturating_sub(30)..].join("\n")
    }
}

/// CPU time of a process, from proc(5)'s `stat`: the name in parentheses may hold anything,
/// utime and stime are the fields 14 and 15.
fn cpu_time_of(stat: &str) -> Result<Duration> {
    const TICK: Duration = Duration::from_millis(10);
    let (_, fields) = stat.rsplit_once(')').context("a process without a name")?;
    let ticks = fields.split_whitespace().skip(11).take(2).map(str::parse::<u32>).sum::<Result<u32, _>>()?;
    Ok(TICK * ticks)
}

impl Drop for Basalt {
    fn drop(&mut self) {
        let _ = self.kill();
    }
}
