use super::parse::Parser;
use super::*;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

fn parsed(bytes: &[u8]) -> std::io::Result<Vec<Commit>> {
    let mut parser = Parser::new(bytes);
    std::iter::from_fn(|| parser.next().transpose()).collect()
}

fn files(commit: &Commit) -> Vec<(&str, Option<i32>, Option<i32>)> {
    commit.changes.iter().map(|change| (change.path.as_str(), change.added, change.deleted)).collect()
}

#[test]
fn renames_binaries_and_merges_are_understood() {
    let log = b"\x02aa\0\0A\tb\\c\x0010\x0020\0first\0\0\n6\t0\tone\0-\t-\tbin\0\
                \x02bb\0aa\0B\x0030\x0040\0\0\0\n0\t1\t\0one\0tw\to\n\x02\0\
                \x02cc\0aa bb\0C\x0050\x0060\0Merge\0\0";
    let commits = parsed(log).unwrap();
    assert_eq!(commits.len(), 3);
    assert_eq!((commits[0].parents, commits[1].parents, commits[2].parents), (0, 1, 2));
    assert_eq!((commits[0].authored_at, commits[0].committed_at), (10, 20));
    assert_eq!((commits[0].author.as_str(), commits[0].subject.as_str()), ("A\tb\\c", "first"));
    assert_eq!(files(&commits[0]), [("one", Some(6), Some(0)), ("bin", None, None)]);
    assert_eq!(files(&commits[1]), [("tw\to\n\u{2}", Some(0), Some(1))]);
    assert!(commits[2].changes.is_empty());
}

#[test]
fn a_path_like_a_commit_is_a_path() {
    let log = b"\x02aa\0\0A\x001\x002\0s\0\0\n1\t0\t\x02bb\x001\t1\t\0\x02x\0\x02y\0";
    assert_eq!(files(&parsed(log).unwrap()[0]), [("\u{2}bb", Some(1), Some(0)), ("\u{2}y", Some(1), Some(1))]);
}

#[test]
fn bytes_and_times_that_make_no_sense_are_kept_harmless() {
    let log = b"\x02aa\0\0caf\xe9\099999999999999999999\0-5\0s\0\0\n99999999999\t0\tp\0";
    let commit = &parsed(log).unwrap()[0];
    assert_eq!(commit.author, "caf\u{fffd}");
    assert_eq!((commit.authored_at, commit.committed_at), (0, 0));
    assert_eq!(files(commit), [("p", Some(i32::MAX), Some(0))]);
}

#[test]
fn output_that_is_cut_or_foreign_is_an_error() {
    for log in [
        &b"\x02aa\0\0A"[..],
        b"fatal: what",
        b"\x02aa\0\0A\x001\x002\0s\0\0\nx\ty\tp\0",
        b"\x02aa\0\0A\x001\x002\0s\0\0\n1\0",
    ] {
        assert!(parsed(log).is_err(), "{}", String::from_utf8_lossy(log));
    }
}

/// Runs git with an identity of its own, whatever the machine has.
fn run(dir: &Path, args: &[&OsStr]) {
    let identity = ["-c", "user.name=A", "-c", "user.email=a@b", "-c", "commit.gpgSign=false"];
    let status =
        Command::new("git").arg("-C").arg(dir).args(identity).args(args).stdout(Stdio::null()).status().unwrap();
    assert!(status.success(), "git {args:?}");
}

fn git_words(dir: &Path, words: &str) {
    run(dir, &words.split(' ').map(OsStr::new).collect::<Vec<_>>());
}

#[test]
fn a_real_repository_is_read_oldest_first() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    git_words(dir, "init -q -b main .");
    let put = |name: &[u8], bytes: &[u8]| {
        let write =
            |dir: &Path| basalt_sched::Os::real().fs.write_atomically(&dir.join(OsStr::from_bytes(name)), bytes);
        write(dir).unwrap();
        git_words(dir, "add .");
    };
    put(b"one", b"a\nb\nc\nd\ne\n");
    git_words(dir, "commit -q -m first");
    run(dir, &["mv".as_ref(), "one".as_ref(), OsStr::from_bytes(b"t\two\n")]);
    put(b"caf\xe9", b"\0\x01");
    git_words(dir, "commit -q -m second");
    git_words(dir, "commit -q --allow-empty --allow-empty-message -m ");

    let repository = Repository::open(dir).unwrap();
    let mut log = repository.log().unwrap();
    let commits: Vec<Commit> = std::iter::from_fn(|| log.next().transpose()).collect::<Result<_>>().unwrap();
    let subjects: Vec<&str> = commits.iter().map(|commit| commit.subject.as_str()).collect();
    assert_eq!(subjects, ["first", "second", ""]);
    assert_eq!(files(&commits[0]), [("one", Some(5), Some(0))]);
    assert_eq!(files(&commits[1]), [("caf\u{fffd}", None, None), ("t\two\n", Some(0), Some(0))]);
    assert_eq!(commits[2].parents, 1);
}

#[test]
fn a_folder_without_a_repository_and_one_without_commits_say_so() {
    let dir = tempfile::tempdir().unwrap();
    let error = format!("{:#}", Repository::open(dir.path()).unwrap_err());
    assert!(error.contains("is not in a git repository") && error.contains("--repo"), "{error}");
    git_words(dir.path(), "init -q .");
    let error = format!("{:#}", Repository::open(dir.path()).unwrap_err());
    assert!(error.contains("has no commits yet"), "{error}");
}
