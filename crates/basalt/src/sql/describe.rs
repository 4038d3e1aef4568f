//! Commands that are the client's own: those with a backslash, and the few words that people try.

pub const HELP: &str = "\
Statements end with a semicolon and may span lines. Ctrl-C cancels, Ctrl-D leaves.
  \\d          list tables and views
  \\d NAME     describe a table or view
  \\l          list databases
  \\timing     tell how long every statement takes, or stop telling
  \\q          leave
Data of COPY … FROM STDIN follows the statement; a line with \\. ends it.
";

#[derive(PartialEq, Eq, Debug)]
pub enum Meta {
    /// What the answer is found with.
    Query(String),
    Timing,
    Help,
    Leave,
    /// And what to say of it.
    Unknown(String),
}

impl Meta {
    /// `None`: the line is SQL.
    pub fn parse(line: &str) -> Option<Meta> {
        let line = line.trim();
        let (verb, argument) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        let argument = argument.trim().trim_end_matches(';');
        Some(match (verb.trim_end_matches(';'), argument) {
            ("exit" | "quit" | "\\q", "") => Meta::Leave,
            ("help" | "\\?" | "\\h", "") => Meta::Help,
            ("\\timing", "") => Meta::Timing,
            ("\\d" | "\\dt", "") => Meta::Query(
                "SELECT table_schema AS schema, table_name AS name, table_type AS type FROM information_schema.tables \
                 WHERE table_schema NOT IN ('pg_catalog', 'information_schema', 'basalt') ORDER BY 1, 2"
                    .to_string(),
            ),
            ("\\d", name) => Meta::Query(describe_table(name)),
            ("\\l", "") => Meta::Query("SELECT datname AS name FROM pg_catalog.pg_database ORDER BY 1".to_string()),
            ("\\copy", _) => Meta::Unknown(
                "\\copy is not understood here: use COPY … FROM STDIN with its data, or basalt load with files".into(),
            ),
            (verb, _) if verb.starts_with('\\') => {
                Meta::Unknown(format!("invalid command {verb} {argument}").trim().to_string() + "; \\? for help")
            }
            _ => return None,
        })
    }
}

/// A name that no relation has is an error of the cast.
fn describe_table(name: &str) -> String {
    let name = name.replace('\'', "''");
    format!(
        "SELECT a.attname AS \"column\", pg_catalog.format_type(a.atttypid, a.atttypmod) AS type, \
         CASE WHEN a.attnotnull THEN 'not null' END AS nullable, c.column_default AS \"default\" \
         FROM pg_catalog.pg_attribute a \
         JOIN pg_catalog.pg_class r ON r.oid = a.attrelid JOIN pg_catalog.pg_namespace n ON n.oid = r.relnamespace \
         LEFT JOIN information_schema.columns c \
         ON c.table_schema = n.nspname AND c.table_name = r.relname AND c.column_name = a.attname \
         WHERE a.attrelid = '{name}'::regclass AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_lines_are_commands() {
        assert_eq!(Meta::parse("quit;\n"), Some(Meta::Leave));
        assert_eq!(Meta::parse("exit"), Some(Meta::Leave));
        assert_eq!(Meta::parse("help\n"), Some(Meta::Help));
        assert_eq!(Meta::parse("SELECT 1;"), None);
        assert_eq!(Meta::parse("help me"), None);
        assert_eq!(Meta::parse(""), None);
        let Some(Meta::Unknown(said)) = Meta::parse("\\foo bar") else { panic!("\\foo is understood") };
        assert!(said.contains("\\foo"), "{said}");
    }
}
