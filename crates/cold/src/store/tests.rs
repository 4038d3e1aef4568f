use super::*;
use basalt_sched::os::real::RealFs;
use basalt_sched::os::{DirEntry, File, FileSystem, OpenMode};
use basalt_types::Epoch;
use object_store::{PutMode, PutOptions, UpdateVersion};
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

/// The real file system, except that syncing a file fails.
struct FailingSync;

struct FailingFile(Arc<dyn File>);

impl File for FailingFile {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        self.0.read_at(buf, offset)
    }
    fn write_at(&self, buf: &[u8], offset: u64) -> io::Result<()> {
        self.0.write_at(buf, offset)
    }
    fn len(&self) -> io::Result<u64> {
        self.0.len()
    }
    fn set_len(&self, len: u64) -> io::Result<()> {
        self.0.set_len(len)
    }
    fn allocate(&self, len: u64) -> io::Result<()> {
        self.0.allocate(len)
    }
    fn sync(&self) -> io::Result<()> {
        Err(io::Error::other("the disk is gone"))
    }
}

impl FileSystem for FailingSync {
    fn open(&self, path: &std::path::Path, mode: OpenMode) -> io::Result<Arc<dyn File>> {
        Ok(Arc::new(FailingFile(RealFs.open(path, mode)?)))
    }
    fn rename(&self, from: &std::path::Path, to: &std::path::Path) -> io::Result<()> {
        RealFs.rename(from, to)
    }
    fn remove(&self, path: &std::path::Path) -> io::Result<()> {
        RealFs.remove(path)
    }
    fn list(&self, dir: &std::path::Path) -> io::Result<Vec<DirEntry>> {
        RealFs.list(dir)
    }
    fn create_dir_all(&self, dir: &std::path::Path) -> io::Result<()> {
        RealFs.create_dir_all(dir)
    }
    fn sync_dir(&self, dir: &std::path::Path) -> io::Result<()> {
        RealFs.sync_dir(dir)
    }
    fn lock(&self, path: &std::path::Path) -> io::Result<Box<dyn Send + Sync>> {
        RealFs.lock(path)
    }
    fn free_bytes(&self, path: &std::path::Path) -> io::Result<u64> {
        RealFs.free_bytes(path)
    }
}

#[test]
fn a_failed_sync_leaves_no_file() {
    let dir = tempfile::tempdir().unwrap();
    let files = Files::new(Arc::new(LocalStore::open(Arc::new(FailingSync), dir.path()).unwrap()));
    let mut sink = files.create(id(1), FileKind::Row).unwrap();
    sink.write(b"content").unwrap();
    let error = sink.finish().unwrap_err().to_string();
    assert!(error.contains("files/00000003-00000001.row") && error.contains("the disk is gone"), "{error}");
    assert!(files.put(&Path::from("root"), vec![1]).is_err());
    assert_eq!(files.list().unwrap(), []);
    assert_eq!(dir.path().join("tmp").read_dir().unwrap().count(), 0);
}
