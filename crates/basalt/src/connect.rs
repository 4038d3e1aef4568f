//! Connecting to a server as any client does, for the commands that are clients.

use crate::cli::ConnectArgs;
use anyhow::{Context, Result, anyhow};
use tokio_postgres::{AsyncMessage, Client, Config, NoTls};

/// Connects; notices go to standard error as they come.
pub async fn connect(args: &ConnectArgs) -> Result<Client> {
    let mut config: Config = args.url.parse().with_context(|| format!("--url {}", args.url))?;
    if config.get_password().is_none()
        && let Ok(password) = std::env::var("PGPASSWORD")
    {
        config.password(password);
    }
    config.application_name("basalt");
    let (client, mut connection) =
        config.connect(NoTls).await.map_err(|error| anyhow!("cannot connect: {}", describe(&error)))?;
    tokio::spawn(async move {
        loop {
            match futures::future::poll_fn(|cx| connection.poll_message(cx)).await {
                Some(Ok(AsyncMessage::Notice(notice))) => eprintln!("{}:  {}", notice.severity(), notice.message()),
                Some(Ok(_)) => {}
                // The client's calls fail with the reason.
                Some(Err(_)) | None => return,
            }
        }
    });
    Ok(client)
}

/// An error as psql prints it.
pub fn describe(error: &tokio_postgres::Error) -> String {
    let Some(db) = error.as_db_error() else {
        return match std::error::Error::source(error) {
            Some(source) => format!("{error}: {source}"),
            None => error.to_string(),
        };
    };
    let mut text = format!("{}:  {} ({})", db.severity(), db.message(), db.code().code());
    for (label, value) in [("DETAIL", db.detail()), ("HINT", db.hint()), ("CONTEXT", db.where_())] {
        if let Some(value) = value {
            text.push_str(&format!("\n{label}:  {value}"));
        }
    }
    text
}

/// A runtime for one client.
pub fn runtime() -> Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().context("cannot start a thread")
}
