use super::*;

fn read(minor: u32, packet: &[u8]) -> Result<Startup, SqlError> {
    parse(minor, Body { rest: packet })
}

fn pair(name: &str, value: &str) -> (String, String) {
    (name.to_string(), value.to_string())
}

#[test]
fn a_startup_packet_becomes_user_database_and_settings() {
    let startup =
        read(0, b"user\0ann\0database\0shop\0application_name\0psql\0options\0-c geqo=off --statement-timeout=5s\0\0");
    let startup = startup.unwrap();
    assert_eq!((startup.user.as_str(), startup.database.as_str()), ("ann", "shop"));
    assert_eq!(
        startup.settings,
        [pair("application_name", "psql"), pair("geqo", "off"), pair("statement_timeout", "5s")]
    );
    assert_eq!(startup.negotiate, None);
}

#[test]
fn the_database_defaults_to_the_users_name() {
    assert_eq!(read(0, b"user\0ann\0\0").unwrap().database, "ann");
}

#[test]
fn options_keep_escaped_blanks() {
    let mut settings = Vec::new();
    split_options(r"-csearch_path=a,\ b  -c x=\\", &mut settings).unwrap();
    assert_eq!(settings, [pair("search_path", "a, b"), pair("x", "\\")]);
    assert_eq!(split_options("-c", &mut settings).unwrap_err().sqlstate, "42601");
    assert_eq!(split_options("-B 5", &mut settings).unwrap_err().sqlstate, "42601");
}

#[test]
fn newer_minor_versions_are_negotiated_down() {
    assert_eq!(read(2, b"user\0ann\0\0").unwrap().negotiate, Some(vec![]));
    assert_eq!(read(0, b"user\0ann\0_pq_.x\x001\0\0").unwrap().negotiate, Some(vec!["_pq_.x".to_string()]));
}

#[test]
fn packets_that_do_not_fit_are_refused() {
    assert_eq!(read(0, b"\0").unwrap_err().sqlstate, "28000");
    assert_eq!(read(0, b"user\0ann\0").unwrap_err().sqlstate, "08P01");
    assert_eq!(read(0, b"user\0ann\0\0x").unwrap_err().sqlstate, "08P01");
    assert_eq!(read(0, b"user\0ann\0replication\0database\0\0").unwrap_err().sqlstate, "0A000");
    assert_eq!(read(0, b"user\0\xff\0\0").unwrap_err().sqlstate, "22021");
}
