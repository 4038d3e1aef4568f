//! What a server starts with, from flags, environment variables and a TOML file.
//!
//! Start options (where the data is, where to listen) have a flag each. Everything else is a *setting*, as
//! in `pg_settings`, and is checked by the one list that `basalt-query` keeps. `ALTER SYSTEM SET` stands
//! between environment and file, and is known only once the catalog is read: the two sides travel apart.

use crate::cli::{LogFormat, StartArgs};
use anyhow::{Context, Result, anyhow, bail};
use basalt_engine::EngineConfig;
use basalt_query::DatabaseConfig;
use basalt_query::settings::check_system_value;
use basalt_sched::FileSystem;
use basalt_server::{ServerConfig, TlsFiles};
use clap::ValueEnum;
use std::collections::{BTreeMap, BTreeSet};
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::time::Duration;

const ENV_PREFIX: &str = "BASALT_";
/// Variables that are options of some command, not settings.
const ENV_OPTIONS: &[&str] = &[
    "BASALT_DATA_DIR",
    "BASALT_LISTEN",
    "BASALT_HTTP",
    "BASALT_SOCKET",
    "BASALT_CONFIG",
    "BASALT_FAILPOINT",
    "BASALT_WEAKEN",
    "BASALT_TLS_CERT",
    "BASALT_TLS_KEY",
    "BASALT_LOG",
    "BASALT_LOG_FORMAT",
    "BASALT_URL",
];

/// Settings by canonical name, in canonical form.
pub type Settings = BTreeMap<String, String>;

#[derive(Debug)]
pub struct StartConfig {
    pub data_dir: PathBuf,
    pub listen: SocketAddr,
    /// Rather than with a flag or variable.
    listen_in_file: bool,
    pub http: Option<SocketAddr>,
    pub socket: Option<PathBuf>,
    pub tls: Option<TlsFiles>,
    tls_in_file: bool,
    pub log: String,
    pub log_format: LogFormat,
    /// From flags and environment: above `ALTER SYSTEM SET`.
    pub over: Settings,
    /// Which of these come from the environment.
    pub from_environment: BTreeSet<String>,
    /// From the file: below it.
    pub under: Settings,
}

/// The file's start options; what else is in it is a setting.
#[derive(Default)]
struct FileOptions {
    paths: BTreeMap<String, PathBuf>,
    words: BTreeMap<String, String>,
    settings: Settings,
}

/// Where it listens unless told otherwise.
const LISTEN: &str = "127.0.0.1:5433";
const FILE_PATHS: &[&str] = &["data_dir", "socket", "tls_cert", "tls_key"];
const FILE_WORDS: &[&str] = &["listen", "http", "log", "log_format"];

impl StartConfig {
    pub fn read(
        args: StartArgs,
        environment: impl Iterator<Item = (String, String)>,
        fs: &dyn FileSystem,
    ) -> Result<StartConfig> {
        let mut file = match &args.config {
            Some(path) => read_file(fs, path).with_context(|| format!("configuration file {}", path.display()))?,
            None => FileOptions::default(),
        };
        let mut over = environment_settings(environment)?;
        let mut from_environment: BTreeSet<String> = over.keys().cloned().collect();
        for setting in &args.settings {
            let (name, value) = setting.split_once('=').ok_or_else(|| anyhow!("--set {setting}: write NAME=VALUE"))?;
            let (name, value) = check(name.trim(), value.trim()).with_context(|| format!("--set {setting}"))?;
            from_environment.remove(&name);
            over.insert(name, value);
        }
        let listen_in_file = args.listen.is_none() && file.words.contains_key("listen");
        let tls_in_file = args.tls_cert.is_none() && file.paths.contains_key("tls_cert");
        let mut word = |flag: Option<String>, name: &str, default: &str| {
            flag.or_else(|| file.words.remove(name)).unwrap_or_else(|| default.to_string())
        };
        let listen = resolve("listen", &word(args.listen, "listen", LISTEN))?;
        let http = match word(args.http, "http", "127.0.0.1:5480").as_str() {
            "off" | "" => None,
            addr => Some(resolve("http", addr)?),
        };
        let log = word(args.log, "log", "info");
        let log_format = match args.log_format {
            Some(format) => format,
            None => LogFormat::from_str(&word(None, "log_format", "text"), true)
                .map_err(|_| anyhow!("log_format is either \"text\" or \"json\""))?,
        };
        let mut path = |flag: Option<PathBuf>, name: &str| flag.or_else(|| file.paths.remove(name));
        let tls = match (path(args.tls_cert, "tls_cert"), path(args.tls_key, "tls_key")) {
            (Some(certificate), Some(key)) => Some(TlsFiles { certificate, key }),
            (None, None) => None,
            _ => bail!("tls_cert and tls_key go together"),
        };
        Ok(StartConfig {
            data_dir: path(args.data_dir, "data_dir").unwrap_or_else(|| "basalt-data".into()),
            socket: path(args.socket, "socket"),
            listen,
            listen_in_file,
            http,
            tls,
            tls_in_file,
            log,
            log_format,
            over,
            from_environment,
            under: file.settings,
        })
    }

    /// The effective value of a setting that is needed at start.
    fn effective<'s>(&'s self, catalog: &'s Settings, name: &str) -> Option<&'s str> {
        let value = self.over.get(name).or_else(|| catalog.get(name)).or_else(|| self.under.get(name))?;
        Some(value)
    }

    fn number(&self, catalog: &Settings, name: &str) -> Option<u64> {
        self.effective(catalog, name)?.parse().ok()
    }

    /// Whether the program's code shall be on huge pages.
    pub fn huge_pages(&self, catalog: &Settings) -> bool {
        self.effective(catalog, "basalt.huge_pages") != Some("off")
    }

    /// `catalog`: what `ALTER SYSTEM SET` left, empty as long as it is not known.
    pub fn engine(&self, catalog: &Settings) -> EngineConfig {
        let mut config = EngineConfig::new(&self.data_dir);
        let number = |name| self.number(catalog, name);
        let set = |field: &mut u64, name| *field = number(name).unwrap_or(*field);
        set(&mut config.memory_bytes_max, "basalt.memory_limit");
        config.row_group_bytes_max = (config.memory_bytes_max / 32).clamp(16 << 20, 256 << 20) as usize;
        set(&mut config.locator_bytes_max, "basalt.locator_memory_limit");
        set(&mut config.row_cache_bytes_max, "basalt.row_cache_limit");
        set(&mut config.checkpoint_log_bytes, "basalt.checkpoint_log_size");
        set(&mut config.freeze_rows_min, "basalt.freeze_rows_min");
        set(&mut config.segment_rows, "basalt.segment_rows");
        set(&mut config.large_changes_min, "basalt.large_changes_min");
        if let Some(seconds) = number("basalt.checkpoint_interval") {
            config.checkpoint_interval = Duration::from_secs(seconds);
        }
        if let Some(ms) = number("basalt.cool_after") {
            config.cool_after = Duration::from_millis(ms);
        }
        config.snapshot_age_max = number("old_snapshot_threshold").map(|minutes| Duration::from_secs(60 * minutes));
        if let Some(rows) = number("basalt.bulk_rows_min") {
            config.bulk_rows_min = rows as usize;
        }
        if let Some(locks) = number("basalt.max_locks") {
            config.locks_max = locks as usize;
        }
        config
    }

    pub fn database(&self, catalog: &Settings) -> DatabaseConfig {
        let mut config = DatabaseConfig::new(self.data_dir.join("tmp"));
        let number = |name| self.number(catalog, name);
        // Caches take a quarter of all, hot rows and files that are written some more.
        let half = number("basalt.memory_limit").map_or(u64::MAX, |bytes| bytes / 2);
        let default = config.query_memory_bytes_max.min(half);
        config.query_memory_bytes_max = number("basalt.query_memory_limit").unwrap_or(default);
        config.temp_bytes_max = number("basalt.temp_limit").filter(|bytes| *bytes > 0);
        let set = |field: &mut usize, name| *field = number(name).map_or(*field, |value| value as usize);
        set(&mut config.query_workers, "basalt.query_workers");
        set(&mut config.admission.active_max, "basalt.max_active_queries");
        set(&mut config.admission.queued_max, "basalt.max_queued_queries");
        set(&mut config.connections_max, "max_connections");
        set(&mut config.superuser_reserved_connections, "superuser_reserved_connections");
        let over = self.over.clone().into_iter();
        (config.environment_settings, config.settings) =
            over.partition(|(name, _)| self.from_environment.contains(name));
        config.file_settings = self.under.clone().into_iter().collect();
        let mut given = |in_file: bool, name: &str, value: String| match in_file {
            true => config.file_settings.push((name.into(), value)),
            false => config.settings.push((name.into(), value)),
        };
        if self.listen_in_file || self.listen.to_string() != LISTEN {
            given(self.listen_in_file, "port", self.listen.port().to_string());
            given(self.listen_in_file, "listen_addresses", self.listen.ip().to_string());
        }
        if self.tls.is_some() {
            given(self.tls_in_file, "ssl", "on".into());
        }
        config
    }

    pub fn server(&self) -> ServerConfig {
        let mut config = ServerConfig::new(self.listen);
        config.http = self.http;
        config.socket_dir = self.socket.clone();
        config.tls = self.tls.clone();
        config
    }
}

fn check(name: &str, value: &str) -> Result<(String, String)> {
    check_system_value(name, value).map_err(|error| match error.hint {
        Some(hint) => anyhow!("{} ({hint})", error.message),
        None => anyhow!("{}", error.message),
    })
}

/// `BASALT_MEMORY_LIMIT` is `basalt.memory_limit`; `BASALT_STATEMENT_TIMEOUT`, for which there is no
/// `basalt.` setting, is `statement_timeout`.
fn environment_settings(environment: impl Iterator<Item = (String, String)>) -> Result<Settings> {
    let mut settings = Settings::new();
    for (variable, value) in environment {
        let Some(name) = variable.strip_prefix(ENV_PREFIX) else { continue };
        if ENV_OPTIONS.contains(&variable.as_str()) {
            continue;
        }
        let name = name.to_ascii_lowercase();
        let own = format!("basalt.{name}");
        let name = if basalt_query::settings::definitions::find(&own).is_some() { own } else { name };
        let (name, value) = check(&name, &value).with_context(|| format!("environment variable {variable}"))?;
        settings.insert(name, value);
    }
    Ok(settings)
}

fn read_file(fs: &dyn FileSystem, path: &Path) -> Result<FileOptions> {
    let text = String::from_utf8(fs.read(path)?).map_err(|_| anyhow!("it is not UTF-8 text"))?;
    parse_file(&text)
}

fn parse_file(text: &str) -> Result<FileOptions> {
    let table: toml::Table = text.parse().map_err(|error: toml::de::Error| anyhow!("{}", error.to_string().trim()))?;
    let mut options = FileOptions::default();
    for (name, value) in table {
        match value {
            toml::Value::Table(inner) => {
                for (key, value) in inner {
                    options.add(&format!("{name}.{key}"), value)?;
                }
            }
            value => options.add(&name, value)?,
        }
    }
    Ok(options)
}

impl FileOptions {
    fn add(&mut self, name: &str, value: toml::Value) -> Result<()> {
        let text = match value {
            toml::Value::String(text) => text,
            toml::Value::Integer(number) => number.to_string(),
            toml::Value::Float(number) => number.to_string(),
            toml::Value::Boolean(value) => (if value { "on" } else { "off" }).to_string(),
            _ => bail!("{name}: neither text nor number nor true or false"),
        };
        if FILE_PATHS.contains(&name) {
            self.paths.insert(name.to_string(), text.into());
        } else if FILE_WORDS.contains(&name) {
            self.words.insert(name.to_string(), text);
        } else {
            let (key, value) = check(name, &text).with_context(|| name.to_string())?;
            self.settings.insert(key, value);
        }
        Ok(())
    }
}

/// The first address of a host and port.
fn resolve(what: &str, text: &str) -> Result<SocketAddr> {
    let mut addrs =
        text.to_socket_addrs().with_context(|| format!("{what}: cannot resolve \"{text}\" as HOST:PORT"))?;
    addrs.next().ok_or_else(|| anyhow!("{what}: \"{text}\" has no address"))
}

#[cfg(test)]
mod tests;
