//! Connecting to a server as any client does, for the commands that are clients.

use crate::cli::ConnectArgs;
use anyhow::{Context, Result, anyhow};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_postgres::error::ErrorPosition;
use tokio_postgres::tls::NoTlsStream;
use tokio_postgres::{AsyncMessage, Client, Config, Connection, NoTls};

/// Of a line that an error points into, at most this much is shown.
const LINE_CHARS_MAX: usize = 72;

/// Connects; notices go to standard error as they come.
pub async fn connect(args: &ConnectArgs) -> Result<Client> {
    let (client, connection) =
        config(args)?.connect(NoTls).await.map_err(|error| anyhow!("cannot connect: {}", describe(&error)))?;
    tokio::spawn(drive(connection));
    Ok(client)
}

pub fn config(args: &ConnectArgs) -> Result<Config> {
    let mut config: Config = args.url.parse().with_context(|| format!("--url {}", args.url))?;
    if config.get_password().is_none()
        && let Ok(password) = std::env::var("PGPASSWORD")
    {
        config.password(password);
    }
    if config.get_application_name().is_none() {
        config.application_name("basalt");
    }
    Ok(config)
}

/// Moves a connection's messages until it ends.
pub async fn drive<S>(mut connection: Connection<S, NoTlsStream>)
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    loop {
        match futures::future::poll_fn(|cx| connection.poll_message(cx)).await {
            Some(Ok(AsyncMessage::Notice(notice))) => eprintln!("{}:  {}", notice.severity(), notice.message()),
            Some(Ok(_)) => {}
            // The client's calls fail with the reason.
            Some(Err(_)) | None => return,
        }
    }
}

/// An error as psql prints it.
pub fn describe(error: &tokio_postgres::Error) -> String {
    describe_in(error, "")
}

/// An error of this statement, with the place in it.
pub fn describe_in(error: &tokio_postgres::Error, sql: &str) -> String {
    let Some(db) = error.as_db_error() else {
        return match std::error::Error::source(error) {
            Some(source) => format!("{error}: {source}"),
            None => error.to_string(),
        };
    };
    let mut text = format!("{}:  {} ({})", db.severity(), db.message(), db.code().code());
    if let Some(ErrorPosition::Original(position)) = db.position()
        && let Some(place) = point_at(sql, *position as usize)
    {
        text.push_str(&place);
    }
    for (label, value) in [("DETAIL", db.detail()), ("HINT", db.hint()), ("CONTEXT", db.where_())] {
        if let Some(value) = value {
            text.push_str(&format!("\n{label}:  {value}"));
        }
    }
    text
}

/// The line that holds a character (counted from 1) of a statement, and a caret below the character.
fn point_at(sql: &str, position: usize) -> Option<String> {
    let before: String = sql.chars().take(position.checked_sub(1)?).collect();
    if before.chars().count() + 1 != position {
        return None;
    }
    let start = before.rfind('\n').map_or(0, |at| at + 1);
    let number = before.matches('\n').count() + 1;
    let mut at = before[start..].chars().count();
    let line = sql.get(start..)?.lines().next()?;
    // One column each, so that the caret stands where it should.
    let mut chars: Vec<char> = line.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    let mut dots = "";
    if chars.len() > LINE_CHARS_MAX {
        let cut = at.saturating_sub(LINE_CHARS_MAX / 2);
        chars = chars[cut..chars.len().min(cut + LINE_CHARS_MAX)].to_vec();
        at -= cut;
        dots = if cut > 0 { "..." } else { "" };
    }
    let label = format!("LINE {number}: {dots}");
    let line: String = chars.into_iter().collect();
    Some(format!("\n{label}{}\n{:width$}^", line.trim_end(), "", width = label.len() + at))
}

/// A runtime for one client.
pub fn runtime() -> Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().context("cannot start a thread")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_caret_stands_below_the_character() {
        assert_eq!(point_at("SELECT x", 8).unwrap(), "\nLINE 1: SELECT x\n               ^");
        assert_eq!(point_at("SELECT 1,\n\tö, x\nFROM t", 15).unwrap(), "\nLINE 2:  ö, x\n            ^");
        let long = format!("SELECT {}x", "1, ".repeat(100));
        let place = point_at(&long, 308).unwrap();
        let lines: Vec<&str> = place.lines().collect();
        assert_eq!(lines[1].chars().nth(lines[2].len() - 1), Some('x'), "{place}");
        assert_eq!(point_at("SELECT", 0), None);
        assert_eq!(point_at("SELECT", 100), None);
    }
}
