use super::*;
use basalt_sched::os::real::RealFs;
use basalt_types::Epoch;
use object_store::{PutMode, PutOptions, UpdateVersion};

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
