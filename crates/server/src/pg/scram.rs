//! The server's side of SCRAM-SHA-256 (RFC 5802, RFC 7677) as PostgreSQL speaks it (manual 55.3.1).
//!
//! ```text
//! client first   n,,n=user,r=<client nonce>
//! server first   r=<client nonce><server nonce>,s=<salt>,i=<iterations>
//! client final   c=biws,r=<both nonces>,p=<proof>
//! server final   v=<server signature>
//! ```
//!
//! The password itself never comes here: the stored verifier is enough to check a proof. Channel binding
//! is not offered.

use super::frontend::malformed;
use basalt_query::SqlError;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256};

pub const MECHANISM: &str = "SCRAM-SHA-256";
const MOCK_ITERATIONS: u32 = 4096;

/// What is stored of a password: `SCRAM-SHA-256$<iterations>:<salt>$<stored key>:<server key>`.
pub struct Verifier {
    iterations: u32,
    salt: Vec<u8>,
    stored_key: [u8; 32],
    server_key: [u8; 32],
}

impl Verifier {
    pub fn parse(text: &str) -> Option<Verifier> {
        let rest = text.strip_prefix("SCRAM-SHA-256$")?;
        let (head, keys) = rest.split_once('$')?;
        let (iterations, salt) = head.split_once(':')?;
        let (stored, server) = keys.split_once(':')?;
        Some(Verifier {
            iterations: iterations.parse().ok()?,
            salt: BASE64.decode(salt).ok()?,
            stored_key: BASE64.decode(stored).ok()?.try_into().ok()?,
            server_key: BASE64.decode(server).ok()?.try_into().ok()?,
        })
    }

    /// For a user without a password: the same salt each time, and keys that no proof fits.
    pub fn mock(secret: &[u8; 32], user: &str) -> Verifier {
        let salt = hmac(secret, user.as_bytes());
        Verifier { iterations: MOCK_ITERATIONS, salt: salt[..16].to_vec(), stored_key: [0; 32], server_key: *secret }
    }
}

/// Between the server's first message and the client's last.
pub struct Exchange {
    verifier: Verifier,
    /// Base64 of the header that the client final message must repeat.
    binding: String,
    nonce: String,
    /// `client-first-bare,server-first`, the beginning of what both sign.
    signed: String,
}

impl Exchange {
    /// Reads the client's first message; returns the server's.
    pub fn start(verifier: Verifier, first: &str, server_nonce: &[u8]) -> Result<(Exchange, String), SqlError> {
        let bad = |detail: &str| malformed("malformed SCRAM message").with_detail(detail);
        let mut parts = first.splitn(3, ',');
        let (Some(binding), Some(authzid), Some(bare)) = (parts.next(), parts.next(), parts.next()) else {
            return Err(bad("The message has no header."));
        };
        match binding {
            "n" | "y" => {}
            binding if binding.starts_with("p=") => {
                return Err(bad("The client selected SCRAM-SHA-256 without channel binding, but the SCRAM message \
                                includes channel binding data."));
            }
            _ => return Err(bad("Unexpected channel-binding flag.")),
        }
        if !authzid.is_empty() {
            return Err(SqlError::fatal("0A000", "client uses authorization identity, but it is not supported"));
        }
        let mut attributes = bare.split(',');
        // The user name here is ignored: the startup packet's counts.
        if !attributes.next().is_some_and(|user| user.starts_with("n=")) {
            return Err(bad("Expected attribute \"n\"."));
        }
        let client_nonce = attributes.next().and_then(|nonce| nonce.strip_prefix("r="));
        let Some(client_nonce) = client_nonce.filter(|nonce| is_nonce(nonce)) else {
            return Err(bad("Expected attribute \"r\" with a printable nonce."));
        };
        let nonce = format!("{client_nonce}{}", BASE64.encode(server_nonce));
        let reply = format!("r={nonce},s={},i={}", BASE64.encode(&verifier.salt), verifier.iterations);
        let binding = BASE64.encode(format!("{binding},,"));
        let signed = format!("{bare},{reply}");
        Ok((Exchange { verifier, binding, nonce, signed }, reply))
    }

    /// Reads the client's final message; returns the server's, or `None` if the proof is wrong.
    pub fn finish(self, last: &str) -> Result<Option<String>, SqlError> {
        let bad = |detail: &str| malformed("malformed SCRAM message").with_detail(detail);
        let (without_proof, proof) = last.rsplit_once(",p=").ok_or_else(|| bad("Expected attribute \"p\"."))?;
        let proof: [u8; 32] = BASE64
            .decode(proof)
            .ok()
            .and_then(|proof| proof.try_into().ok())
            .ok_or_else(|| bad("Malformed proof in client-final-message."))?;
        let mut attributes = without_proof.split(',');
        if attributes.next().and_then(|binding| binding.strip_prefix("c=")) != Some(&self.binding) {
            return Err(malformed("unexpected SCRAM channel-binding attribute in client-final-message"));
        }
        if attributes.next().and_then(|nonce| nonce.strip_prefix("r=")) != Some(&self.nonce) {
            return Err(bad("Nonce does not match."));
        }
        let signed = format!("{},{without_proof}", self.signed);
        let client_signature = hmac(&self.verifier.stored_key, signed.as_bytes());
        let mut client_key = proof;
        client_key.iter_mut().zip(client_signature).for_each(|(key, signature)| *key ^= signature);
        let presented: [u8; 32] = Sha256::digest(client_key).into();
        if !equal(&presented, &self.verifier.stored_key) {
            return Ok(None);
        }
        let signature = hmac(&self.verifier.server_key, signed.as_bytes());
        Ok(Some(format!("v={}", BASE64.encode(signature))))
    }
}

fn is_nonce(nonce: &str) -> bool {
    !nonce.is_empty() && nonce.bytes().all(|byte| (0x21..=0x7e).contains(&byte))
}

fn hmac(key: &[u8], data: &[u8]) -> [u8; 32] {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("HMAC takes keys of any length");
    mac.update(data);
    mac.finalize().into_bytes().into()
}

/// Takes the same time wherever the difference is.
fn equal(a: &[u8; 32], b: &[u8; 32]) -> bool {
    a.iter().zip(b).fold(0, |difference, (a, b)| difference | (a ^ b)) == 0
}

#[cfg(test)]
mod tests;
