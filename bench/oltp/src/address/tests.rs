use super::*;

fn place(url: &str) -> Place {
    url.parse::<Address>().unwrap().place
}

#[test]
fn hosts_and_folders() {
    assert!(matches!(place("postgresql://u@127.0.0.1:5433/d"), Place::Tcp(host) if host == "127.0.0.1:5433"));
    assert!(matches!(place("postgresql://u@db/d"), Place::Tcp(host) if host == "db:5432"));
    let path = PathBuf::from("/var/tmp/a b/.s.PGSQL.5433");
    assert!(matches!(place("postgresql://u@%2Fvar%2ftmp%2Fa%20b:5433/d"), Place::Unix(found) if found == path));
}

#[test]
fn what_is_no_address() {
    for url in [
        "http://u@h/d",
        "postgresql://h/d",
        "postgresql://u@h",
        "postgresql://u@%2/d",
        "postgresql://u@%zz/d",
        "postgresql://u@%ff/d",
    ] {
        assert!(url.parse::<Address>().is_err(), "{url}");
    }
}
