//! The settings that exist: PostgreSQL's where the meaning is the same, and Basalt's own.

/// In what numbers are counted. A value may be given in any unit of the same dimension.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unit {
    None,
    Bytes,
    Kilobytes,
    /// PostgreSQL's `8kB` blocks.
    Blocks,
    Milliseconds,
    Seconds,
    Minutes,
}

#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Kind {
    Bool,
    Int {
        min: i64,
        max: i64,
        unit: Unit,
    },
    Real {
        min: f64,
        max: f64,
    },
    Enum(&'static [&'static str]),
    Text,
    DateStyle,
    TimeZone,
    ClientEncoding,
    /// Names with commas between.
    Names,
    /// `name = share`, with commas between.
    QueryGroups,
}

/// Who may change a setting, and when (`pg_settings.context`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Context {
    Internal,
    /// At start: flag, environment, file or `ALTER SYSTEM` before a restart.
    Postmaster,
    /// By `ALTER SYSTEM`, for sessions that begin afterwards.
    Sighup,
    /// As `Backend`, by superusers.
    Superuser,
    User,
}

impl Context {
    pub fn name(self) -> &'static str {
        match self {
            Context::Internal => "internal",
            Context::Postmaster => "postmaster",
            Context::Sighup => "sighup",
            Context::Superuser => "superuser",
            Context::User => "user",
        }
    }
}

pub struct Definition {
    pub name: &'static str,
    pub kind: Kind,
    /// In the form that [`super::value::canonical`] gives.
    pub default: &'static str,
    pub context: Context,
    pub category: &'static str,
    pub description: &'static str,
    /// Sent to the client as ParameterStatus.
    pub reported: bool,
}

const CLIENT: &str = "Client Connection Defaults / Statement Behavior";
const LOCALE: &str = "Client Connection Defaults / Locale and Formatting";
const FILES: &str = "File Locations";
const PRESET: &str = "Preset Options";
const COMPAT: &str = "Version and Platform Compatibility / Previous PostgreSQL Versions";
const LOGGING: &str = "Reporting and Logging / When to Log";
const MEMORY: &str = "Resource Usage / Memory";
const WAL: &str = "Write-Ahead Log / Settings";
const PLANNER: &str = "Query Tuning / Planner Method Configuration";
const BASALT: &str = "Basalt";

const fn define(
    name: &'static str,
    kind: Kind,
    default: &'static str,
    context: Context,
    category: &'static str,
    description: &'static str,
) -> Definition {
    Definition { name, kind, default, context, category, description, reported: false }
}

const fn reported(definition: Definition) -> Definition {
    Definition { reported: true, ..definition }
}

const fn int(min: i64, max: i64, unit: Unit) -> Kind {
    Kind::Int { min, max, unit }
}

const I32_MAX: i64 = i32::MAX as i64;
const ISOLATION: Kind = Kind::Enum(&["serializable", "repeatable read", "read committed", "read uncommitted"]);
const LEVELS: Kind = Kind::Enum(&[
    "debug5", "debug4", "debug3", "debug2", "debug1", "log", "notice", "warning", "error", "info", "fatal", "panic",
]);

/// In alphabetical order, whatever the case.
pub static DEFINITIONS: &[Definition] = {
    use Context::*;
    use Kind::*;
    use Unit::*;
    &[
        reported(define(
            "application_name",
            Text,
            "",
            User,
            "Reporting and Logging / What to Log",
            "Sets the application name to be reported in statistics and logs.",
        )),
        define("array_nulls", Bool, "on", User, COMPAT, "Enable input of NULL elements in arrays."),
        define(
            "autovacuum",
            Bool,
            "on",
            Sighup,
            "Autovacuum",
            "Accepted for compatibility: freezing and compaction run by themselves.",
        ),
        define(
            "backslash_quote",
            Enum(&["safe_encoding", "on", "off"]),
            "safe_encoding",
            User,
            COMPAT,
            "Sets whether \"\\'\" is allowed in string literals.",
        ),
        define(
            "basalt.bulk_rows_min",
            int(1, i64::MAX, None),
            "16384",
            Postmaster,
            BASALT,
            "Batches of at least this many rows per tablet go straight to files.",
        ),
        define(
            "basalt.checkpoint_interval",
            int(1, I32_MAX, Seconds),
            "300",
            Postmaster,
            BASALT,
            "Longest time between checkpoints while there is something to write.",
        ),
        define(
            "basalt.checkpoint_log_size",
            int(1 << 20, i64::MAX, Bytes),
            "1073741824",
            Postmaster,
            BASALT,
            "Log written since the last checkpoint that starts the next one.",
        ),
        define(
            "basalt.cool_after",
            int(0, I32_MAX, Milliseconds),
            "10000",
            Postmaster,
            BASALT,
            "Rows not changed for this long are cool enough to become columns.",
        ),
        define(
            "basalt.enable_column_engine",
            Bool,
            "on",
            User,
            PLANNER,
            "Enables the planner's use of the column engine; without it the fallback runs what it would.",
        ),
        define(
            "basalt.enable_row_engine",
            Bool,
            "on",
            User,
            PLANNER,
            "Enables the planner's use of the row engine, for changes of one row by its key, too.",
        ),
        define(
            "basalt.freeze_rows_min",
            int(1, i64::MAX, None),
            "65536",
            Postmaster,
            BASALT,
            "A tablet with fewer cool rows than this stays hot.",
        ),
        define(
            "basalt.huge_pages",
            Kind::Enum(&["try", "off"]),
            "try",
            Postmaster,
            BASALT,
            "Whether the program's code is moved to huge pages at start.",
        ),
        define(
            "basalt.large_changes_min",
            int(0, i64::MAX, None),
            "16384",
            Postmaster,
            BASALT,
            "Rows that an UPDATE or DELETE changes one by one before it goes on with what rests in files together.",
        ),
        define(
            "basalt.locator_memory_limit",
            int(0, i64::MAX, Bytes),
            "268435456",
            Postmaster,
            BASALT,
            "Memory for locators, which find keys where files overlap; at most a quarter of basalt.memory_limit.",
        ),
        define(
            "basalt.max_active_queries",
            int(1, 1_000_000, None),
            "100",
            Postmaster,
            BASALT,
            "Queries of a query group that run at once; others wait in the order of arrival.",
        ),
        define(
            "basalt.max_locks",
            int(1000, i64::MAX, None),
            "10000000",
            Postmaster,
            BASALT,
            "Row locks held at once.",
        ),
        define(
            "basalt.max_queued_queries",
            int(0, 1_000_000, None),
            "1000",
            Postmaster,
            BASALT,
            "Queries of a query group that wait for their turn; whoever comes beyond that is refused (53400).",
        ),
        define(
            "basalt.memory_limit",
            int(64 << 20, i64::MAX, Bytes),
            "4294967296",
            Postmaster,
            BASALT,
            "Memory for hot rows, undo, caches and buffers.",
        ),
        define(
            "basalt.query_group",
            Text,
            crate::query_groups::DEFAULT_GROUP,
            User,
            BASALT,
            "The query group that statements belong to; one that is gone is the default one.",
        ),
        define(
            "basalt.query_groups",
            Kind::QueryGroups,
            "",
            Sighup,
            BASALT,
            "Query groups and their shares of the query threads, as in 'etl = 20, dashboards = 80'.",
        ),
        define(
            "basalt.query_log_entries",
            int(0, 1_000_000, None),
            "4096",
            Sighup,
            BASALT,
            "Statements that basalt.query_log keeps; 0 keeps none.",
        ),
        define(
            "basalt.query_log_min_duration",
            int(-1, I32_MAX, Milliseconds),
            "1",
            Superuser,
            BASALT,
            "Statements that take at least this long, or fail, are kept in basalt.query_log; -1 keeps none.",
        ),
        define(
            "basalt.query_memory_limit",
            int(16 << 20, i64::MAX, Bytes),
            "2147483648",
            Postmaster,
            BASALT,
            "Memory that running queries may hold together before they spill; unset no more than half of basalt.memory_limit.",
        ),
        define("basalt.query_workers", int(1, 1024, None), "2", Postmaster, BASALT, "Threads that run queries."),
        define(
            "basalt.row_cache_limit",
            int(0, i64::MAX, Bytes),
            "134217728",
            Postmaster,
            BASALT,
            "Memory for rows that are read by key again and again; at most a sixteenth of basalt.memory_limit.",
        ),
        define("basalt.segment_rows", int(65_536, i64::MAX, None), "1048576", Postmaster, BASALT, "Rows per segment."),
        define(
            "basalt.temp_limit",
            int(0, i64::MAX, Bytes),
            "0",
            Postmaster,
            BASALT,
            "Disk space that running queries may spill to together; 0 is half of what is free at start.",
        ),
        define(
            "block_size",
            int(8192, 8192, None),
            "8192",
            Internal,
            PRESET,
            "Shows the size of a disk block, as clients expect one.",
        ),
        define("bytea_output", Enum(&["escape", "hex"]), "hex", User, CLIENT, "Sets the output format for bytea."),
        define(
            "check_function_bodies",
            Bool,
            "on",
            User,
            CLIENT,
            "Accepted for compatibility: there are no user-defined functions.",
        ),
        reported(define(
            "client_encoding",
            ClientEncoding,
            "UTF8",
            User,
            LOCALE,
            "Sets the client's character set encoding.",
        )),
        define(
            "client_min_messages",
            LEVELS,
            "notice",
            User,
            CLIENT,
            "Sets the message levels that are sent to the client.",
        ),
        define("data_directory", Text, "", Internal, FILES, "Shows where the data is kept."),
        reported(define("DateStyle", DateStyle, "ISO, MDY", User, LOCALE, "Sets the display format for dates.")),
        define(
            "deadlock_timeout",
            int(1, I32_MAX, Milliseconds),
            "1000",
            Superuser,
            "Lock Management",
            "Sets the time to wait on a lock before checking for deadlock.",
        ),
        define("default_statistics_target", int(1, 10_000, None), "100", User, PLANNER, "Accepted for compatibility."),
        define("default_table_access_method", Text, "heap", User, CLIENT, "Accepted for compatibility."),
        define("default_tablespace", Text, "", User, CLIENT, "Accepted for compatibility: there are no tablespaces."),
        define("default_text_search_config", Text, "pg_catalog.simple", User, LOCALE, "Accepted for compatibility."),
        define(
            "default_transaction_deferrable",
            Bool,
            "off",
            User,
            CLIENT,
            "Sets the default deferrable status of new transactions.",
        ),
        define(
            "default_transaction_isolation",
            ISOLATION,
            "read committed",
            User,
            CLIENT,
            "Sets the transaction isolation level of each new transaction.",
        ),
        reported(define(
            "default_transaction_read_only",
            Bool,
            "off",
            User,
            CLIENT,
            "Sets the default read-only status of new transactions.",
        )),
        define("effective_cache_size", int(1, I32_MAX, Blocks), "524288", User, PLANNER, "Accepted for compatibility."),
        define("enable_hashagg", Bool, "on", User, PLANNER, "Accepted for compatibility."),
        define("enable_hashjoin", Bool, "on", User, PLANNER, "Accepted for compatibility."),
        define("enable_indexscan", Bool, "on", User, PLANNER, "Accepted for compatibility."),
        define("enable_mergejoin", Bool, "on", User, PLANNER, "Accepted for compatibility."),
        define("enable_nestloop", Bool, "on", User, PLANNER, "Accepted for compatibility."),
        define("enable_seqscan", Bool, "on", User, PLANNER, "Accepted for compatibility."),
        define("enable_sort", Bool, "on", User, PLANNER, "Accepted for compatibility."),
        define(
            "escape_string_warning",
            Bool,
            "on",
            User,
            COMPAT,
            "Warn about backslash escapes in ordinary string literals.",
        ),
        define(
            "extra_float_digits",
            int(-15, 3, None),
            "1",
            User,
            LOCALE,
            "Sets the number of digits displayed for floating-point values.",
        ),
        define("geqo", Bool, "on", User, PLANNER, "Accepted for compatibility."),
        define(
            "idle_in_transaction_session_timeout",
            int(0, I32_MAX, Milliseconds),
            "0",
            User,
            CLIENT,
            "Sets the maximum allowed idle time between queries, when in a transaction.",
        ),
        define(
            "idle_session_timeout",
            int(0, I32_MAX, Milliseconds),
            "0",
            User,
            CLIENT,
            "Sets the maximum allowed idle time between queries, when not in a transaction.",
        ),
        reported(define(
            "in_hot_standby",
            Bool,
            "off",
            Internal,
            PRESET,
            "Shows whether hot standby is currently active.",
        )),
        reported(define("integer_datetimes", Bool, "on", Internal, PRESET, "Datetimes are integer based.")),
        reported(define(
            "IntervalStyle",
            Enum(&["postgres", "postgres_verbose", "sql_standard", "iso_8601"]),
            "postgres",
            User,
            LOCALE,
            "Sets the display format for interval values.",
        )),
        reported(define(
            "is_superuser",
            Bool,
            "off",
            Internal,
            PRESET,
            "Shows whether the current user is a superuser.",
        )),
        define("jit", Bool, "off", User, PLANNER, "Accepted for compatibility."),
        define("lc_collate", Text, "C", Internal, PRESET, "Shows the collation order locale."),
        define("lc_ctype", Text, "C", Internal, PRESET, "Shows the character classification locale."),
        define("lc_messages", Text, "C", User, LOCALE, "Sets the language in which messages are displayed."),
        define("lc_monetary", Text, "C", User, LOCALE, "Sets the locale for formatting monetary amounts."),
        define("lc_numeric", Text, "C", User, LOCALE, "Sets the locale for formatting numbers."),
        define("lc_time", Text, "C", User, LOCALE, "Sets the locale for formatting date and time values."),
        define(
            "listen_addresses",
            Text,
            "127.0.0.1",
            Postmaster,
            "Connections and Authentication / Connection Settings",
            "Sets the host name or IP address(es) to listen to.",
        ),
        define(
            "lock_timeout",
            int(0, I32_MAX, Milliseconds),
            "0",
            User,
            CLIENT,
            "Sets the maximum allowed duration of any wait for a lock.",
        ),
        define(
            "log_min_duration_statement",
            int(-1, I32_MAX, Milliseconds),
            "-1",
            Superuser,
            LOGGING,
            "Sets the minimum execution time above which statements are logged.",
        ),
        define(
            "log_min_messages",
            LEVELS,
            "warning",
            Superuser,
            LOGGING,
            "Accepted for compatibility: the log level is set at start.",
        ),
        define(
            "log_statement",
            Enum(&["none", "ddl", "mod", "all"]),
            "none",
            Superuser,
            LOGGING,
            "Sets the type of statements logged.",
        ),
        define(
            "maintenance_work_mem",
            int(1024, I32_MAX, Kilobytes),
            "65536",
            User,
            MEMORY,
            "Accepted for compatibility.",
        ),
        define(
            "max_connections",
            int(1, 262_143, None),
            "500",
            Postmaster,
            "Connections and Authentication / Connection Settings",
            "Sets the maximum number of concurrent connections.",
        ),
        define(
            "max_identifier_length",
            int(63, 63, None),
            "63",
            Internal,
            PRESET,
            "Shows the maximum identifier length.",
        ),
        define("max_index_keys", int(32, 32, None), "32", Internal, PRESET, "Shows the maximum number of index keys."),
        define(
            "max_parallel_workers_per_gather",
            int(0, 1024, None),
            "2",
            User,
            "Resource Usage / Asynchronous Behavior",
            "Accepted for compatibility.",
        ),
        define(
            "old_snapshot_threshold",
            int(-1, 86_400, Minutes),
            "-1",
            Postmaster,
            "Resource Usage / Asynchronous Behavior",
            "Time before a snapshot is too old to read at (72000); -1 disables it.",
        ),
        define(
            "password_encryption",
            Enum(&["scram-sha-256"]),
            "scram-sha-256",
            User,
            "Connections and Authentication / Authentication",
            "Chooses the algorithm for encrypting passwords.",
        ),
        define(
            "plan_cache_mode",
            Enum(&["auto", "force_generic_plan", "force_custom_plan"]),
            "auto",
            User,
            PLANNER,
            "Under force_custom_plan every execution of the column engine's queries is planned anew.",
        ),
        define(
            "port",
            int(0, 65_535, None),
            "5433",
            Postmaster,
            "Connections and Authentication / Connection Settings",
            "Sets the TCP port the server listens on.",
        ),
        define("quote_all_identifiers", Bool, "off", User, COMPAT, "Accepted for compatibility."),
        define("random_page_cost", Real { min: 0.0, max: f64::MAX }, "4", User, PLANNER, "Accepted for compatibility."),
        define("role", Text, "none", User, "Ungrouped", "Sets the current role."),
        define("row_security", Bool, "on", User, CLIENT, "Accepted for compatibility: there are no row policies."),
        define(
            "search_path",
            Names,
            "\"$user\", public",
            User,
            CLIENT,
            "Sets the schema search order for names that are not schema-qualified.",
        ),
        define("seq_page_cost", Real { min: 0.0, max: f64::MAX }, "1", User, PLANNER, "Accepted for compatibility."),
        reported(define(
            "server_encoding",
            Text,
            "UTF8",
            Internal,
            PRESET,
            "Shows the server (database) character set encoding.",
        )),
        reported(define("server_version", Text, super::SERVER_VERSION, Internal, PRESET, "Shows the server version.")),
        define(
            "server_version_num",
            int(150_000, 150_000, None),
            "150000",
            Internal,
            PRESET,
            "Shows the server version as an integer.",
        ),
        reported(define("session_authorization", Text, "", User, "Ungrouped", "Sets the current session user name.")),
        define(
            "shared_buffers",
            int(16, I32_MAX, Blocks),
            "16384",
            Postmaster,
            MEMORY,
            "Accepted for compatibility: see basalt.memory_limit.",
        ),
        define("shared_preload_libraries", Text, "", Postmaster, CLIENT, "Accepted for compatibility."),
        define("ssl", Bool, "off", Sighup, "Connections and Authentication / SSL", "Enables SSL connections."),
        reported(define(
            "standard_conforming_strings",
            Bool,
            "on",
            User,
            COMPAT,
            "Causes '...' strings to treat backslashes literally.",
        )),
        define(
            "statement_timeout",
            int(0, I32_MAX, Milliseconds),
            "0",
            User,
            CLIENT,
            "Sets the maximum allowed duration of any statement.",
        ),
        define(
            "superuser_reserved_connections",
            int(0, 262_143, None),
            "3",
            Postmaster,
            "Connections and Authentication / Connection Settings",
            "Sets the number of connection slots reserved for superusers.",
        ),
        define("synchronize_seqscans", Bool, "on", User, COMPAT, "Accepted for compatibility."),
        define(
            "synchronous_commit",
            Enum(&["local", "remote_write", "remote_apply", "on", "off"]),
            "on",
            User,
            WAL,
            "Sets whether a commit waits until it is durable.",
        ),
        define("temp_buffers", int(100, I32_MAX, Blocks), "1024", User, MEMORY, "Accepted for compatibility."),
        reported(define(
            "TimeZone",
            TimeZone,
            "UTC",
            User,
            LOCALE,
            "Sets the time zone for displaying and interpreting time stamps.",
        )),
        define("timezone_abbreviations", Text, "Default", User, LOCALE, "Accepted for compatibility."),
        define(
            "transaction_deferrable",
            Bool,
            "off",
            User,
            CLIENT,
            "Whether to defer a read-only serializable transaction.",
        ),
        define(
            "transaction_isolation",
            ISOLATION,
            "read committed",
            User,
            CLIENT,
            "Sets the current transaction's isolation level.",
        ),
        define("transaction_read_only", Bool, "off", User, CLIENT, "Sets the current transaction's read-only status."),
        define("transform_null_equals", Bool, "off", User, COMPAT, "Accepted for compatibility."),
        define("wal_block_size", int(8192, 8192, None), "8192", Internal, PRESET, "Shows the block size of the log."),
        define(
            "wal_level",
            Enum(&["minimal", "replica", "logical"]),
            "replica",
            Postmaster,
            WAL,
            "Accepted for compatibility.",
        ),
        define(
            "work_mem",
            int(64, I32_MAX, Kilobytes),
            "4096",
            User,
            MEMORY,
            "Accepted for compatibility: see basalt.query_memory_limit.",
        ),
        define("xmlbinary", Enum(&["base64", "hex"]), "base64", User, CLIENT, "Accepted for compatibility."),
        define("xmloption", Enum(&["content", "document"]), "content", User, CLIENT, "Accepted for compatibility."),
    ]
};

/// Names compare without case.
pub fn find(name: &str) -> Option<&'static Definition> {
    DEFINITIONS.iter().find(|definition| definition.name.eq_ignore_ascii_case(name))
}
