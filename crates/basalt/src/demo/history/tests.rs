use super::*;
use basalt_sched::Os;
use std::path::Path;
use std::process::{Command, Stdio};

fn repository(dir: &Path) -> Repository {
    let git = |args: &[&str]| {
        let identity = ["-c", "user.name=A", "-c", "user.email=a@b", "-c", "commit.gpgSign=false"];
        let mut command = Command::new("git");
        command.arg("-C").arg(dir).args(identity).args(args).stdout(Stdio::null());
        for variable in ["GIT_AUTHOR_DATE", "GIT_COMMITTER_DATE"] {
            command.env(variable, "@86400 +0000");
        }
        assert!(command.status().unwrap().success(), "git {args:?}");
    };
    git(&["init", "-q", "-b", "main", "."]);
    for (name, bytes) in [("text\\x", &b"a\nb\n"[..]), ("binary", b"\0\x01")] {
        Os::real().fs.write_atomically(&dir.join(name), bytes).unwrap();
        git(&["add", "."]);
        git(&["commit", "-q", "-m", "tab\there"]);
    }
    Repository::open(dir).unwrap()
}

#[test]
fn a_history_is_replayed_with_new_ids_and_later_times() {
    let dir = tempfile::tempdir().unwrap();
    let mut history = History::new(repository(dir.path()), 10, 20);
    let batch = history.next_batch(6).unwrap();
    assert_eq!((batch.rows(), batch.key), (6, 13));
    let text = |at: usize| String::from_utf8(batch.copies[at].bytes.to_vec()).unwrap();
    assert_eq!(batch.copies[0].sql, "COPY commits FROM STDIN");
    let commits: Vec<Vec<String>> =
        text(0).lines().map(|line| line.split('\t').map(str::to_string).collect()).collect();
    let ids: Vec<&str> = commits.iter().map(|fields| fields[0].as_str()).collect();
    assert_eq!(ids, ["11", "12", "13"]);
    assert_eq!(commits[0][1], commits[2][1], "the third is the first one again");
    let times: Vec<&str> = commits.iter().map(|fields| fields[3].as_str()).collect();
    assert_eq!(times, ["1970-01-02 00:00:00+00", "1970-01-02 00:00:00+00", "1970-01-02 00:00:01+00"]);
    assert_eq!(commits[0][7], "tab\\there");
    assert_eq!(
        text(1),
        "21\t11\ttext\\\\x\t2\t0\t1970-01-02 00:00:00+00\n\
         22\t12\tbinary\t\\N\t\\N\t1970-01-02 00:00:00+00\n\
         23\t13\ttext\\\\x\t2\t0\t1970-01-02 00:00:01+00\n"
    );
}

#[test]
fn times_stay_where_postgresql_has_times() {
    let dir = tempfile::tempdir().unwrap();
    let mut history = History::new(repository(dir.path()), 0, 0);
    history.times = Some((0, SECONDS_MAX / 3));
    for rounds in [0, 1, 2, 1_000_000_000] {
        history.rounds = rounds;
        assert!(history.shift() + SECONDS_MAX / 3 <= SECONDS_MAX, "{rounds} rounds");
    }
    let mut out = Vec::new();
    push_time(&mut out, SECONDS_MAX).unwrap();
    assert_eq!(out, b"9999-12-31 23:59:59+00");
}
