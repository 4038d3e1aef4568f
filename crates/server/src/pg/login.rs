//! From a connected socket to a session: first packet, limits, authentication.
//!
//! A role with a password proves it with SCRAM-SHA-256; a role without one is trusted on this machine and
//! refused elsewhere. Elsewhere a role that does not exist and one without a password go through the same
//! exchange as any other, so that a stranger cannot tell which roles exist.

use super::frontend::{Body, malformed};
use super::scram::{Exchange, Verifier};
use super::startup::{self, Startup};
use super::{Client, Fault, Peer};
use crate::listen::Shared;
use basalt_query::{Session, SqlError, StartupParams, TransactionStatus};

/// Logs a client in and greets it.
pub async fn log_in(client: Client, peer: Peer, shared: &Shared) -> Result<(Client, Session), (Client, Fault)> {
    let (mut client, startup) = startup::receive(client, shared).await?;
    match open(&mut client, startup, peer, shared).await {
        Ok(session) => {
            client.input.large_bytes_max = shared.config.message_bytes_max;
            Ok((client, session))
        }
        // Whatever goes wrong before login ends the connection.
        Err(Fault::Statement(error)) => Err((client, Fault::Fatal(error))),
        Err(fault) => Err((client, fault)),
    }
}

async fn open(client: &mut Client, startup: Startup, peer: Peer, shared: &Shared) -> Result<Session, Fault> {
    if let Some(options) = &startup.negotiate {
        let options: Vec<&str> = options.iter().map(String::as_str).collect();
        client.out.negotiate_protocol_version(&options);
    }
    let role = shared.db.role(&startup.user);
    refuse_beyond_limit(shared, role.as_ref().is_some_and(|role| role.superuser))?;
    let password = role.as_ref().and_then(|role| role.password.as_deref());
    let now = shared.db.os().clock.unix_micros();
    if password.is_some() && role.as_ref().is_some_and(|role| !role.password_is_valid(now)) {
        tracing::warn!(user = startup.user, "the password is no longer valid");
        let message = format!("password authentication failed for user \"{}\"", startup.user);
        return Err(SqlError::fatal("28P01", message).into());
    }
    match password {
        Some(password) => authenticate(client, &startup.user, Some(password), shared).await?,
        None if peer.is_local() => {}
        None => authenticate(client, &startup.user, None, shared).await?,
    }
    let params = StartupParams {
        user: startup.user,
        database: startup.database,
        options: startup.settings,
        client_addr: peer.addr(),
    };
    let mut session = Session::open(&shared.db, params)?;
    client.out.authentication_ok();
    for (name, value) in session.parameter_status() {
        client.out.parameter_status(name, &value);
    }
    let (pid, secret) = session.backend_key();
    client.out.backend_key(pid, secret);
    client.out.notices(&mut session);
    client.out.ready(TransactionStatus::Idle);
    client.flush().await?;
    Ok(session)
}

/// 53300 before any password is asked for. [`Session::open`] decides; this spares the exchange.
fn refuse_beyond_limit(shared: &Shared, superuser: bool) -> Result<(), SqlError> {
    let config = shared.db.config();
    let reserved = if superuser { 0 } else { config.superuser_reserved_connections };
    let free = config.connections_max.saturating_sub(shared.db.session_count());
    match free > reserved {
        true => Ok(()),
        false if superuser || free == 0 => Err(SqlError::fatal("53300", "sorry, too many clients already")),
        false => {
            let message = "remaining connection slots are reserved for non-replication superuser connections";
            Err(SqlError::fatal("53300", message))
        }
    }
}

/// The SASL exchange. Without a password nothing that the client says is right.
async fn authenticate(client: &mut Client, user: &str, password: Option<&str>, shared: &Shared) -> Result<(), Fault> {
    let verifier = match password {
        Some(password) => Verifier::parse(password).ok_or_else(|| {
            SqlError::fatal("XX001", format!("the stored password of role \"{user}\" is not a SCRAM-SHA-256 verifier"))
        })?,
        None => Verifier::mock(&shared.mock_secret, user),
    };
    client.out.authentication_sasl(super::scram::MECHANISM);
    client.flush().await?;

    let message = sasl_message(client).await?;
    let mut body = Body { rest: &message };
    let mechanism = body.text()?;
    if mechanism != super::scram::MECHANISM {
        return Err(
            malformed(format!("client selected an invalid SASL authentication mechanism \"{mechanism}\"")).into()
        );
    }
    let first = match body.u32()? as i32 {
        -1 => {
            client.out.authentication_sasl_data(11, "");
            client.flush().await?;
            sasl_message(client).await?
        }
        len => message.slice_ref(body.bytes(usize::try_from(len).map_err(|_| malformed("invalid SASL message"))?)?),
    };
    let mut nonce = [0; 18];
    shared.db.os().random.fill(&mut nonce);
    let (exchange, reply) = Exchange::start(verifier, utf8(&first)?, &nonce)?;
    client.out.authentication_sasl_data(11, &reply);
    client.flush().await?;

    let last = sasl_message(client).await?;
    match exchange.finish(utf8(&last)?)? {
        Some(signature) if password.is_some() => {
            client.out.authentication_sasl_data(12, &signature);
            Ok(())
        }
        _ => {
            tracing::warn!(user, "password authentication failed");
            Err(SqlError::fatal("28P01", format!("password authentication failed for user \"{user}\"")).into())
        }
    }
}

async fn sasl_message(client: &mut Client) -> Result<bytes::Bytes, Fault> {
    let message = client.input.message(&mut client.wire).await?;
    match message.tag {
        b'p' => Ok(message.body),
        b'X' => Err(Fault::Closed),
        other => Err(malformed(format!("expected SASL response, got message type {other}")).into()),
    }
}

fn utf8(bytes: &[u8]) -> Result<&str, SqlError> {
    std::str::from_utf8(bytes).map_err(|_| malformed("malformed SCRAM message"))
}
