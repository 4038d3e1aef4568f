use super::*;
use basalt_sched::os::hooked::{Hooks, hooked};
use basalt_sched::os::real::RealFs;
use basalt_sched::os::{File, FileSystem, OpenMode};
use basalt_types::Epoch;
use object_store::{PutMode, PutOptions, UpdateVersion};
use parking_lot::Mutex;
use std::io;

fn local() -> (tempfile::TempDir, Arc<dyn ObjectStore>) {
    let dir = tempfile::tempdir().unwrap();
    let store = LocalStore::open(Arc::new(RealFs), dir.path()).unwrap();
    (dir, Arc::new(store))
}

fn id(serial: u32) -> FileId {
    FileId { epoch: Epoch(3), serial }
}

#[test]
fn files_appear_whole_when_finished_and_not_before() {
    let (dir, store) = local();
    for store in [store, Arc::new(object_store::memory::InMemory::new())] {
        let files = Files::new(store);
        let mut sink = files.create(id(1), FileKind::Segment).unwrap();
        let content: Vec<u8> = (0..20_000_000u32).map(|i| ((i * 7) >> 3) as u8).collect();
        for piece in content.chunks(3_000_001) {
            sink.write(piece).unwrap();
        }
        assert_eq!(sink.position(), content.len() as u64);
        assert_eq!(files.list().unwrap(), []);
        assert_eq!(sink.finish().unwrap(), content.len() as u64);
        let path = Files::path(id(1), FileKind::Segment);
        assert_eq!(files.list().unwrap(), [(id(1), FileKind::Segment, content.len() as u64)]);
        assert_eq!(files.bytes(&path).unwrap(), content.len() as u64);
        assert_eq!(files.read(&path, 9_000_000..9_000_100).unwrap(), content[9_000_000..9_000_100]);
        assert!(files.read(&path, 19_999_999..20_000_001).is_err());

        drop(files.create(id(2), FileKind::Row).unwrap());
        files.delete(id(1), FileKind::Segment).unwrap();
        files.delete(id(1), FileKind::Segment).unwrap();
        assert!(files.read(&path, 0..1).is_err());
        assert_eq!(files.list().unwrap(), []);
    }
    assert_eq!(dir.path().join("tmp").read_dir().unwrap().count(), 0);
}

#[test]
fn conditional_puts_let_one_writer_win() {
    let (_dir, store) = local();
    let path = Path::from("root");
    let put = |text: &'static str, mode: PutMode| block_on(store.put_opts(&path, text.into(), PutOptions::from(mode)));
    let first = put("one", PutMode::Create).unwrap();
    assert!(matches!(put("two", PutMode::Create), Err(object_store::Error::AlreadyExists { .. })));
    let second = put("two", PutMode::Update(UpdateVersion::from(first.clone()))).unwrap();
    let stale = put("three", PutMode::Update(UpdateVersion::from(first)));
    assert!(matches!(stale, Err(object_store::Error::Precondition { .. })));
    let head = block_on(store.head(&path)).unwrap();
    assert_eq!((head.e_tag, head.size), (second.e_tag, 3));
    let got = block_on(async { store.get(&path).await?.bytes().await }).unwrap();
    assert_eq!(got, "two");
}

#[test]
fn listing_shows_objects_and_prefixes_but_no_unfinished_writes() {
    let (_dir, store) = local();
    for path in ["a", "files/1", "files/2", "log/x/3"] {
        block_on(store.put(&Path::from(path), "x".into())).unwrap();
    }
    let _unfinished = block_on(store.put_multipart(&Path::from("files/9"))).unwrap();
    let listed = block_on(store.list_with_delimiter(None)).unwrap();
    assert_eq!(listed.common_prefixes, [Path::from("files"), Path::from("log")]);
    let objects: Vec<_> = listed.objects.into_iter().map(|meta| meta.location).collect();
    assert_eq!(objects, [Path::from("a")]);
    let all: Vec<_> = block_on(store.list(None).map_ok(|meta| meta.location.to_string()).try_collect()).unwrap();
    assert_eq!(all, ["a", "files/1", "files/2", "log/x/3"]);
}

#[test]
fn opening_a_store_removes_unfinished_writes_of_an_earlier_start() {
    let (dir, store) = local();
    let upload = block_on(store.put_multipart(&Path::from("files/9"))).unwrap();
    std::mem::forget(upload);
    assert_eq!(dir.path().join("tmp").read_dir().unwrap().count(), 1);
    LocalStore::open(Arc::new(RealFs), dir.path()).unwrap();
    assert_eq!(dir.path().join("tmp").read_dir().unwrap().count(), 0);
}

/// An otherwise real file system.
enum Odd {
    FailsSync,
    FailsWriteOut,
    /// Nothing can be opened to be written that is there.
    RefusesOpen,
    /// Notes what is written out.
    Notes(Arc<Mutex<Vec<(u64, u64)>>>),
}

fn gone() -> io::Result<()> {
    Err(io::Error::other("the disk is gone"))
}

impl Hooks for Odd {
    fn open(&self, path: &std::path::Path, mode: OpenMode) -> io::Result<Arc<dyn File>> {
        match (self, mode) {
            (Odd::RefusesOpen, OpenMode::Write) => Err(io::ErrorKind::PermissionDenied.into()),
            _ => RealFs.open(path, mode),
        }
    }

    fn sync(&self, file: &dyn File) -> io::Result<()> {
        if matches!(self, Odd::FailsSync) { gone() } else { file.sync() }
    }

    fn write_out(&self, file: &dyn File, offset: u64, bytes: u64) -> io::Result<()> {
        match self {
            Odd::FailsWriteOut if bytes > 0 => return gone(),
            Odd::Notes(noted) if bytes > 0 => noted.lock().push((offset, bytes)),
            _ => {}
        }
        file.write_out(offset, bytes)
    }
}

#[test]
fn a_failed_sync_leaves_no_file() {
    let dir = tempfile::tempdir().unwrap();
    let files = Files::new(Arc::new(LocalStore::open(hooked(Odd::FailsSync), dir.path()).unwrap()));
    let mut sink = files.create(id(1), FileKind::Row).unwrap();
    sink.write(b"content").unwrap();
    let error = sink.finish().unwrap_err().to_string();
    assert!(error.contains("files/00000003-00000001.row") && error.contains("the disk is gone"), "{error}");
    assert!(files.put(&Path::from("root"), vec![1]).is_err());
    assert_eq!(files.list().unwrap(), []);
    assert_eq!(dir.path().join("tmp").read_dir().unwrap().count(), 0);
}

fn files_on(fs: Odd) -> (tempfile::TempDir, Files) {
    let dir = tempfile::tempdir().unwrap();
    let files = Files::new(Arc::new(LocalStore::open(hooked(fs), dir.path()).unwrap()));
    (dir, files)
}

fn written(files: &Files, content: &[u8]) -> crate::Result<u64> {
    let mut sink = files.create(id(1), FileKind::Row)?;
    for piece in content.chunks(777_777) {
        sink.write(piece)?;
    }
    sink.finish()
}

/// The system tells of a page that it could not write to whoever asks first: that was not the sync.
#[test]
fn a_piece_that_cannot_be_written_out_leaves_no_file() {
    let (dir, files) = files_on(Odd::FailsWriteOut);
    assert!(written(&files, &vec![7; 2 << 20]).is_err());
    assert_eq!((files.list().unwrap(), dir.path().join("tmp").read_dir().unwrap().count()), (vec![], 0));
    // The last piece, and what is less than one, are left to the sync.
    assert!(written(&files, &vec![7; (2 << 20) - 1]).is_ok());
}

#[test]
fn a_large_file_is_written_out_by_pieces_in_turn() {
    let noted = Arc::new(Mutex::new(Vec::new()));
    let (dir, files) = files_on(Odd::Notes(noted.clone()));
    // Parts of 8 MiB, and pieces that do not end where these do.
    let content: Vec<u8> = (0..(20 << 20) + 12_345u32).map(|i| (i / 7) as u8).collect();
    written(&files, &content).unwrap();
    assert!(RealFs.read(&dir.path().join("files/00000003-00000001.row")).unwrap() == content);
    let mut end = 0;
    for (offset, bytes) in noted.lock().iter() {
        assert!(*offset == end && (1..=2 << 20).contains(bytes), "{offset} {bytes} behind {end}");
        end += bytes;
    }
    assert!(end >= 18 << 20, "{end}");
}

#[test]
fn a_removed_file_gives_back_its_room_unless_it_has_another_name() {
    let (dir, store) = local();
    let files = Files::new(store);
    let path = dir.path().join("files/00000003-00000001.row");
    for has_other_name in [false, true] {
        written(&files, &vec![7; 20 << 20]).unwrap();
        if has_other_name {
            std::fs::hard_link(&path, dir.path().join("copy")).unwrap();
        }
        let still_open = RealFs.open(&path, OpenMode::Read).unwrap();
        files.delete(id(1), FileKind::Row).unwrap();
        assert!(!path.exists());
        let left = still_open.len().unwrap();
        assert_eq!(left, if has_other_name { 20 << 20 } else { 8 << 20 });
    }
}

#[test]
fn a_file_that_cannot_be_opened_to_be_written_is_removed() {
    let (dir, files) = files_on(Odd::RefusesOpen);
    written(&files, &[7; 100]).unwrap();
    files.delete(id(1), FileKind::Row).unwrap();
    assert!(!dir.path().join("files/00000003-00000001.row").exists());
}
