use super::*;

fn settings() -> Settings {
    Settings::new([])
}

#[test]
fn definitions_are_sorted_and_their_defaults_are_canonical() {
    for pair in DEFINITIONS.windows(2) {
        assert!(pair[0].name.to_lowercase() < pair[1].name.to_lowercase(), "{} {}", pair[0].name, pair[1].name);
    }
    for definition in DEFINITIONS {
        assert_eq!(
            value::canonical(definition, definition.default).unwrap(),
            definition.default,
            "{}",
            definition.name
        );
    }
}

#[test]
fn values_are_shown_as_postgresql_shows_them() {
    for (name, given, shown) in [
        ("statement_timeout", "5s", "5s"),
        ("statement_timeout", "90000", "90s"),
        ("statement_timeout", "1.5min", "90s"),
        ("statement_timeout", "0", "0"),
        ("work_mem", "64MB", "64MB"),
        ("work_mem", "65", "65kB"),
        ("datestyle", "german", "German, DMY"),
        ("DATESTYLE", "sql, ymd", "SQL, YMD"),
        ("search_path", "a, \"B c\", PUBLIC", "a, \"B c\", public"),
        ("synchronous_commit", "OFF", "off"),
        ("synchronous_commit", "true", "on"),
        ("client_encoding", "utf-8", "UTF8"),
        ("enable_sort", "f", "off"),
        ("random_page_cost", "1.10", "1.1"),
        ("my.own", "Whatever", "Whatever"),
    ] {
        let mut settings = settings();
        settings.set(name, given, false, false).unwrap();
        assert_eq!(settings.show(name).unwrap(), shown, "{name} = {given}");
    }
}

#[test]
fn wrong_values_and_names_are_refused() {
    for (name, given, sqlstate) in [
        ("statement_timeout", "5 apples", "22023"),
        ("statement_timeout", "-1", "22023"),
        ("work_mem", "1kB", "22023"),
        ("datestyle", "roman", "22023"),
        ("client_encoding", "LATIN1", "22023"),
        ("enable_sort", "maybe", "22023"),
        ("synchronous_commit", "perhaps", "22023"),
        ("TimeZone", "Nowhere/Land", "22023"),
        ("no_such_setting", "1", "42704"),
        ("basalt.no_such_setting", "1", "42704"),
        ("server_version", "16", "55P02"),
        ("basalt.memory_limit", "1GB", "55P02"),
        ("log_min_duration_statement", "1", "42501"),
    ] {
        assert_eq!(settings().set(name, given, false, false).unwrap_err().sqlstate, sqlstate, "{name} = {given}");
    }
}

#[test]
fn rollback_restores_and_commit_ends_local_values() {
    let mut settings = settings();
    settings.set("statement_timeout", "1s", false, false).unwrap();
    let mark = settings.mark();
    settings.set("statement_timeout", "2s", false, false).unwrap();
    settings.set("lock_timeout", "3s", true, false).unwrap();
    assert_eq!(settings.effective().lock_timeout, Some(Duration::from_secs(3)));
    settings.end_local();
    assert_eq!(settings.effective().lock_timeout, None);
    assert_eq!(settings.effective().statement_timeout, Some(Duration::from_secs(2)));
    settings.restore(mark);
    assert_eq!(settings.effective().statement_timeout, Some(Duration::from_secs(1)));
    settings.reset("statement_timeout", false, false).unwrap();
    assert_eq!(settings.effective().statement_timeout, None);
}

#[test]
fn layers_win_in_order_and_startup_values_survive_reset() {
    let layer = [("work_mem".to_string(), "1MB".to_string()), ("WORK_MEM".to_string(), "2MB".to_string())];
    let mut settings = Settings::new(layer.iter().map(|(name, value)| ("command line", name, value)));
    assert_eq!(settings.show("work_mem").unwrap(), "2MB");
    let source =
        |settings: &Settings, name: &str| settings.rows().into_iter().find(|row| row.name == name).unwrap().source;
    assert_eq!(source(&settings, "work_mem"), "command line");
    assert_eq!(source(&settings, "application_name"), "default");
    settings.set_startup("application_name", "psql", false).unwrap();
    assert_eq!(source(&settings, "application_name"), "client");
    settings.set("application_name", "other", false, false).unwrap();
    assert_eq!(source(&settings, "application_name"), "session");
    settings.reset_all();
    assert_eq!(settings.show("application_name").unwrap(), "psql");
}
