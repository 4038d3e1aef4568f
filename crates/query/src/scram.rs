//! What is kept of a password: a SCRAM-SHA-256 verifier (RFC 5802, RFC 7677) in PostgreSQL's text form
//! (manual 53.8, `pg_authid.rolpassword`). Checking a client's proof against it is `server`'s part.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256};

/// PostgreSQL's defaults.
pub const ITERATIONS: u32 = 4096;
/// A role may bring its own verifier, and HTTP has to hash what is sent as often as that says.
const ITERATIONS_MAX: u32 = 1_000_000;
pub const SALT_BYTES: usize = 16;

const PREFIX: &str = "SCRAM-SHA-256$";

/// `SCRAM-SHA-256$<iterations>:<salt>$<stored key>:<server key>`, the last three in base64.
pub fn make_verifier(password: &str, salt: &[u8], iterations: u32) -> String {
    let prepared = stringprep::saslprep(password).map_or_else(|_| password.to_string(), |text| text.into_owned());
    let mut salted = [0; 32];
    pbkdf2::pbkdf2_hmac::<Sha256>(prepared.as_bytes(), salt, iterations, &mut salted);
    let stored_key = Sha256::digest(hmac(&salted, b"Client Key"));
    let server_key = hmac(&salted, b"Server Key");
    let (salt, stored, server) = (BASE64.encode(salt), BASE64.encode(stored_key), BASE64.encode(server_key));
    format!("{PREFIX}{iterations}:{salt}${stored}:{server}")
}

/// Whether a password is the one that was made into this verifier. Takes as long wherever the two differ.
pub fn is_password(password: &str, verifier: &str) -> bool {
    let Some((iterations, rest)) = verifier.strip_prefix(PREFIX).and_then(|rest| rest.split_once(':')) else {
        return false;
    };
    let (Ok(iterations @ ..=ITERATIONS_MAX), Some((salt, _))) = (iterations.parse(), rest.split_once('$')) else {
        return false;
    };
    let Ok(salt) = BASE64.decode(salt) else { return false };
    let made = make_verifier(password, &salt, iterations);
    made.len() == verifier.len() && made.bytes().zip(verifier.bytes()).fold(0, |all, (a, b)| all | (a ^ b)) == 0
}

/// Whether a password is one already hashed by the client.
pub fn is_verifier(text: &str) -> bool {
    let Some((head, keys)) = text.strip_prefix(PREFIX).and_then(|rest| rest.split_once('$')) else { return false };
    let (Some((iterations, salt)), Some((stored, server))) = (head.split_once(':'), keys.split_once(':')) else {
        return false;
    };
    let is_key = |key: &str| BASE64.decode(key).is_ok_and(|key| key.len() == 32);
    iterations.parse::<u32>().is_ok_and(|count| (1..=ITERATIONS_MAX).contains(&count))
        && BASE64.decode(salt).is_ok()
        && is_key(stored)
        && is_key(server)
}

fn hmac(key: &[u8], data: &[u8]) -> [u8; 32] {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("HMAC takes keys of any length");
    mac.update(data);
    mac.finalize().into_bytes().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The exchange of RFC 7677, section 3: its proof follows from these keys.
    #[test]
    fn keys_are_those_of_rfc_7677() {
        let salt = BASE64.decode("W22ZaJ0SNY7soEsUEjb6gQ==").unwrap();
        let verifier = make_verifier("pencil", &salt, 4096);
        assert!(is_verifier(&verifier));
        let (_, server_key) = verifier.rsplit_once(':').unwrap();
        let signed = "n=user,r=rOprNGfwEbeRWgbNEkqO,\
                      r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096,\
                      c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0";
        let signature = hmac(&BASE64.decode(server_key).unwrap(), signed.as_bytes());
        assert_eq!(BASE64.encode(signature), "6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=");
    }

    #[test]
    fn only_the_password_is_the_password() {
        let verifier = make_verifier("p\u{e4}ncil: x", b"salt of a password", 10);
        assert!(is_password("p\u{e4}ncil: x", &verifier));
        for wrong in ["", "pencil: x", "p\u{e4}ncil: x ", verifier.as_str()] {
            assert!(!is_password(wrong, &verifier), "{wrong}");
        }
        for damaged in ["", "SCRAM-SHA-256$", "SCRAM-SHA-256$10:?$a:b", "pencil"] {
            assert!(!is_password("pencil", damaged), "{damaged}");
        }
    }

    #[test]
    fn other_text_is_no_verifier() {
        for text in ["", "pencil", "SCRAM-SHA-256$", "SCRAM-SHA-256$x:AAAA$AAAA:AAAA", "md5abc"] {
            assert!(!is_verifier(text), "{text}");
        }
    }
}
