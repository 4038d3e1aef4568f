//! The example exchange of RFC 7677, section 3: user "user", password "pencil".
use super::*;

const SALT: &str = "W22ZaJ0SNY7soEsUEjb6gQ==";
const CLIENT_NONCE: &str = "rOprNGfwEbeRWgbNEkqO";
/// The RFC's server nonce is text that is no base64 of ours, so the exchange is put together here.
const SERVER_NONCE: &str = "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0";

/// SaltedPassword of the example, and the keys that follow from it (RFC 5802 section 3).
fn pencil() -> Verifier {
    let salted = [
        0xc4, 0xa4, 0x95, 0x10, 0x32, 0x3a, 0xb4, 0xf9, 0x52, 0xca, 0xc1, 0xfa, 0x99, 0x44, 0x19, 0x39, 0xe7, 0x8e,
        0xa7, 0x4d, 0x6b, 0xe8, 0x1d, 0xdf, 0x70, 0x96, 0xe8, 0x75, 0x13, 0xdc, 0x61, 0x5d,
    ];
    let client_key = hmac(&salted, b"Client Key");
    let stored = BASE64.encode(Sha256::digest(client_key));
    let server = BASE64.encode(hmac(&salted, b"Server Key"));
    Verifier::parse(&format!("SCRAM-SHA-256$4096:{SALT}${stored}:{server}")).unwrap()
}

fn rfc_exchange() -> Exchange {
    let first = format!("n=user,r={CLIENT_NONCE}");
    let nonce = format!("{CLIENT_NONCE}{SERVER_NONCE}");
    let signed = format!("{first},r={nonce},s={SALT},i=4096");
    Exchange { verifier: pencil(), binding: "biws".into(), nonce, signed }
}

#[test]
fn the_rfcs_proof_is_accepted_and_answered_with_its_signature() {
    let last = format!("c=biws,r={CLIENT_NONCE}{SERVER_NONCE},p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=");
    let answer = rfc_exchange().finish(&last).unwrap();
    assert_eq!(answer.as_deref(), Some("v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="));
}

#[test]
fn a_wrong_proof_is_no_error_but_no_signature() {
    let last = format!("c=biws,r={CLIENT_NONCE}{SERVER_NONCE},p={}", BASE64.encode([7; 32]));
    assert_eq!(rfc_exchange().finish(&last).unwrap(), None);
}

#[test]
fn a_replayed_nonce_and_a_changed_binding_are_refused() {
    let proof = BASE64.encode([7; 32]);
    for last in [
        format!("c=biws,r=other,p={proof}"),
        format!("c=eSws,r={CLIENT_NONCE}{SERVER_NONCE},p={proof}"),
        format!("c=biws,r={CLIENT_NONCE}{SERVER_NONCE}"),
        format!("c=biws,r={CLIENT_NONCE}{SERVER_NONCE},p=AAAA"),
    ] {
        assert_eq!(rfc_exchange().finish(&last).unwrap_err().sqlstate, "08P01", "{last}");
    }
}

#[test]
fn first_messages_are_checked() {
    let start = |first: &str| Exchange::start(pencil(), first, &[1; 18]).map(|(_, reply)| reply);
    assert!(start("n,,n=,r=abc").unwrap().starts_with("r=abcAQEB"));
    assert!(start("y,,n=,r=abc").is_ok());
    for bad in ["", "n,,", "n,,n=x", "n,,n=x,r=", "n,,n=x,r=a b", "p=tls-unique,,n=,r=abc", "q,,n=,r=abc"] {
        assert_eq!(start(bad).unwrap_err().sqlstate, "08P01", "{bad}");
    }
    assert_eq!(start("n,a=ann,n=,r=abc").unwrap_err().sqlstate, "0A000");
}

#[test]
fn strangers_get_a_stable_salt() {
    let secret = [3; 32];
    assert_eq!(Verifier::mock(&secret, "ann").salt, Verifier::mock(&secret, "ann").salt);
    assert_ne!(Verifier::mock(&secret, "ann").salt, Verifier::mock(&secret, "bob").salt);
}
