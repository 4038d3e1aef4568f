//! The first packet: encryption requests, CancelRequest, and what a client asks for when it connects.

use super::frontend::{Body, malformed};
use super::{Client, Fault};
use crate::listen::Shared;
use crate::wire::Wire;
use basalt_query::SqlError;
use tokio_rustls::TlsAcceptor;

const CANCEL_REQUEST: u32 = 1234 << 16 | 5678;
const SSL_REQUEST: u32 = 1234 << 16 | 5679;
const GSSENC_REQUEST: u32 = 1234 << 16 | 5680;

/// A StartupMessage, taken apart.
#[derive(PartialEq, Eq, Debug, Default)]
pub struct Startup {
    pub user: String,
    pub database: String,
    /// Settings, those inside of `options` included, in the order given.
    pub settings: Vec<(String, String)>,
    /// The client asked for a minor version above 0, or for `_pq_.` options (these).
    pub negotiate: Option<Vec<String>>,
}

/// Answers encryption and cancel requests until the StartupMessage comes. [`Fault::Closed`] after a
/// CancelRequest, which has no answer.
pub async fn receive(mut client: Client, shared: &Shared) -> Result<(Client, Startup), (Client, Fault)> {
    let (mut asked_tls, mut asked_gss) = (false, false);
    loop {
        let packet = match client.input.startup(&mut client.wire).await {
            Ok(packet) => packet,
            Err(fault) => return Err((client, fault)),
        };
        let mut body = Body { rest: &packet };
        let result = match body.u32() {
            Ok(SSL_REQUEST) if !asked_tls => {
                asked_tls = true;
                client = match answer_tls(client, shared.tls.as_ref()).await {
                    Ok(client) => client,
                    Err(failed) => return Err(failed),
                };
                continue;
            }
            Ok(GSSENC_REQUEST) if !asked_gss => {
                asked_gss = true;
                client.out.raw(b'N');
                match client.flush().await {
                    Ok(()) => continue,
                    Err(error) => Err(Fault::Io(error)),
                }
            }
            Ok(CANCEL_REQUEST) => match (body.u32(), body.u32()) {
                (Ok(pid), Ok(secret)) => {
                    shared.db.cancel(pid as i32, secret as i32);
                    Err(Fault::Closed)
                }
                _ => Err(malformed("invalid length of cancel request").into()),
            },
            Ok(version) if version >> 16 == 3 => parse(version & 0xffff, body).map_err(Fault::from),
            Ok(version) => Err(SqlError::fatal(
                "0A000",
                format!(
                    "unsupported frontend protocol {}.{}: server supports 3.0 to 3.0",
                    version >> 16,
                    version & 0xffff
                ),
            )
            .into()),
            Err(error) => Err(error.into()),
        };
        return match result {
            Ok(startup) => Ok((client, startup)),
            Err(fault) => Err((client, fault)),
        };
    }
}

/// Answers SSLRequest, and shakes hands if encryption is offered.
async fn answer_tls(mut client: Client, acceptor: Option<&TlsAcceptor>) -> Result<Client, (Client, Fault)> {
    let acceptor = match (&client.wire, acceptor) {
        (Wire::Tcp(_), Some(acceptor)) => acceptor,
        _ => {
            client.out.raw(b'N');
            return match client.flush().await {
                Ok(()) => Ok(client),
                Err(error) => Err((client, error.into())),
            };
        }
    };
    // Bytes sent before the handshake could be a third party's (CVE-2021-23214).
    if !client.input.is_empty() {
        let error = SqlError::fatal("08P01", "received unencrypted data after SSL request");
        return Err((client, error.into()));
    }
    client.out.raw(b'S');
    if let Err(error) = client.flush().await {
        return Err((client, error.into()));
    }
    let Client { wire: Wire::Tcp(stream), input, out } = client else { unreachable!("checked above") };
    match acceptor.accept(stream).into_fallible().await {
        Ok(stream) => Ok(Client { wire: Wire::Tls(Box::new(stream)), input, out }),
        Err((error, stream)) => Err((Client { wire: Wire::Tcp(stream), input, out }, Fault::Io(error))),
    }
}

fn parse(minor: u32, mut body: Body<'_>) -> Result<Startup, SqlError> {
    let mut startup = Startup::default();
    let mut extensions = Vec::new();
    loop {
        let name = body.text()?;
        if name.is_empty() {
            break;
        }
        let value = body.text()?;
        match name {
            "user" => startup.user = value.to_string(),
            "database" => startup.database = value.to_string(),
            "options" => split_options(value, &mut startup.settings)?,
            "replication" => refuse_replication(value)?,
            name if name.starts_with("_pq_.") => extensions.push(name.to_string()),
            name => startup.settings.push((name.to_string(), value.to_string())),
        }
    }
    if !body.rest.is_empty() {
        return Err(malformed("invalid startup packet layout: expected terminator as last byte"));
    }
    if startup.user.is_empty() {
        return Err(SqlError::fatal("28000", "no PostgreSQL user name specified in startup packet"));
    }
    if startup.database.is_empty() {
        startup.database = startup.user.clone();
    }
    if minor > 0 || !extensions.is_empty() {
        startup.negotiate = Some(extensions);
    }
    Ok(startup)
}

fn refuse_replication(value: &str) -> Result<(), SqlError> {
    match value {
        "false" | "off" | "no" | "0" => Ok(()),
        _ => Err(SqlError::fatal("0A000", "replication connections are not supported")),
    }
}

/// `options`: what would stand on PostgreSQL's command line, `-c name=value` and `--name=value`, words
/// separated by blanks, `\` before a blank or another `\`.
fn split_options(options: &str, settings: &mut Vec<(String, String)>) -> Result<(), SqlError> {
    let words = split_words(options);
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let setting = match word.strip_prefix("--") {
            Some(setting) => Some(setting),
            None => match word.strip_prefix("-c") {
                Some("") => words.next().map(String::as_str),
                setting => setting,
            },
        };
        match setting.and_then(|setting| setting.split_once('=')) {
            Some((name, value)) if !name.is_empty() => settings.push((name.replace('-', "_"), value.to_string())),
            _ => {
                return Err(SqlError::fatal(
                    "42601",
                    format!("invalid command-line argument for server process: {word}"),
                ));
            }
        }
    }
    Ok(())
}

fn split_words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = None::<String>;
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => word.get_or_insert_default().extend(chars.next()),
            c if c.is_ascii_whitespace() => words.extend(word.take()),
            c => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    words
}

#[cfg(test)]
mod tests;
