use super::*;
use crate::cli::{Cli, Command};
use basalt_sched::Os;
use clap::Parser;

fn read(args: &[&str], environment: &[(&str, &str)], file: Option<&str>) -> Result<StartConfig> {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("basalt.toml");
    let os = Os::real();
    let mut line = vec!["basalt", "start"];
    line.extend(args);
    if let Some(text) = file {
        os.fs.write_atomically(&path, text.as_bytes()).unwrap();
        line.extend(["--config", path.to_str().unwrap()]);
    }
    let Command::Start(args) = Cli::parse_from(line).command else { unreachable!("it says start") };
    let environment = environment.iter().map(|(name, value)| (name.to_string(), value.to_string()));
    StartConfig::read(args, environment, &*os.fs)
}

fn catalog(pairs: &[(&str, &str)]) -> Settings {
    pairs.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect()
}

#[test]
fn flags_go_before_environment_before_catalog_before_file() {
    let file = Some("[basalt]\nmemory_limit = \"1GB\"\nsegment_rows = 100000\n");
    let memory = |args: &[&str], environment: &[(&str, &str)], in_catalog: &[(&str, &str)]| {
        read(args, environment, file).unwrap().engine(&catalog(in_catalog)).memory_bytes_max >> 30
    };
    let (flag, variable) = (["--set", "basalt.memory_limit=4GB"], [("BASALT_MEMORY_LIMIT", "3GB")]);
    let in_catalog = [("basalt.memory_limit", "2147483648")];
    assert_eq!(memory(&flag, &variable, &in_catalog), 4);
    assert_eq!(memory(&[], &variable, &in_catalog), 3);
    assert_eq!(memory(&[], &[], &in_catalog), 2);
    assert_eq!(memory(&[], &[], &[]), 1);
    assert_eq!(read(&[], &[], file).unwrap().engine(&Settings::new()).segment_rows, 100_000);
}

#[test]
fn the_file_holds_start_options_and_settings() {
    let config = read(&[], &[], Some("listen = \"127.0.0.1:6000\"\nhttp = \"off\"\nstatement_timeout = 5000\n"));
    let config = config.unwrap();
    assert_eq!(config.listen, "127.0.0.1:6000".parse().unwrap());
    assert_eq!(config.http, None);
    assert_eq!(config.under.get("statement_timeout").map(String::as_str), Some("5000"));
    let config = read(&["--listen", "127.0.0.1:7000"], &[], Some("listen = \"127.0.0.1:6000\"")).unwrap();
    assert_eq!(config.listen.port(), 7000);
}

#[test]
fn mistakes_are_named_where_they_were_made() {
    let message = |result: Result<StartConfig>| format!("{:#}", result.unwrap_err());
    assert_eq!(
        message(read(&["--set", "basalt.nonsense=1"], &[], None)),
        "--set basalt.nonsense=1: unrecognized configuration parameter \"basalt.nonsense\""
    );
    assert!(
        message(read(&[], &[("BASALT_NONSENSE", "1")], None)).starts_with("environment variable BASALT_NONSENSE: ")
    );
    let wrong = message(read(&[], &[], Some("[basalt]\nmemory_limit = \"lots\"\n")));
    assert!(wrong.contains("basalt.toml: basalt.memory_limit: "), "{wrong}");
    assert!(message(read(&[], &[], Some("listen = \n"))).contains("basalt.toml: "));
    assert!(message(read(&["--listen", "nowhere"], &[], None)).contains("listen: cannot resolve \"nowhere\""));
}
