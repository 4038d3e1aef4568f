//! Recovery: from a data directory to an engine's state.
//!
//! 1. Lock the directory; read the root. No root: a new directory (which must be empty).
//! 2. Make the next epoch durable in the root, before anything else is written.
//! 3. Load the root's checkpoint: catalog, tablets, files with their delete maps, hot rows.
//! 4. Replay the log from the root's replay start: records are gathered by transaction and applied at a
//!    commit record whose version is above the checkpoint's.
//! 5. Open the log behind its end; delete files of earlier epochs that nothing lists.

mod apply;

use crate::checkpoint::body::Body;
use crate::checkpoint::root::Root;
use crate::checkpoint::{self};
use crate::data_file::DataFile;
use crate::engine::{DroppedFile, Ids, Recovered};
use crate::sequence::State;
use crate::tablet::{EntryStamps, FileEntry, Tablet};
use crate::{Catalog, EngineConfig, Error, RecoveryProgress, Result};
use apply::Replayer;
use basalt_cold::{BlockCache, DeleteMap, FileKind, Files, LocalStore, RowFile};
use basalt_hot::Change;
use basalt_meta::{CommitOrder, FileInfo, FileStamps, TxnTable};
use basalt_sched::Os;
use basalt_types::{Epoch, FileId, Lsn, ObjectId, Rid, Stamp, TabletId, Version};
use basalt_wal::{Log, LogConfig};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64};

/// What the block cache may take of the memory limit: it and the row cache have a quarter.
pub(crate) fn cache_bytes(config: &EngineConfig) -> u64 {
    config.memory_bytes_max / 4 - config.row_cache_bytes()
}

/// Opens the store and cache of a data directory.
pub(crate) fn open_files(os: &Os, config: &EngineConfig) -> Result<(Files, Arc<BlockCache>)> {
    let dir = &config.data_dir;
    let store = LocalStore::open(os.fs.clone(), dir.clone()).map_err(|error| directory_error(dir, &error))?;
    // Until it is known what the files hold ([`Engine::share_cache`]).
    let cache_bytes = cache_bytes(config);
    let cache = BlockCache::new(cache_bytes / 8, cache_bytes - cache_bytes / 8);
    Ok((Files::local(store), Arc::new(cache)))
}

pub(crate) fn recover(os: &Os, config: &EngineConfig, progress: &dyn Fn(RecoveryProgress)) -> Result<Recovered> {
    let dir = &config.data_dir;
    let directory = lock_directory(os, dir)?;
    let found = Root::read(os, dir)?;
    if found.is_none() {
        check_new_directory(os, dir)?;
    }
    for sub in ["log", "files", "tmp"] {
        os.fs.create_dir_all(&dir.join(sub)).map_err(|error| directory_error(&dir.join(sub), &error))?;
    }
    let before = found.unwrap_or(Root { epoch: Epoch(0), checkpoint: None, replay_start: Lsn(0) });
    let root = Root { epoch: Epoch(before.epoch.0 + 1), ..before };
    root.write(os, dir)?;
    basalt_sched::failpoint::hit("recovery-epoch-durable");

    let (files, cache) = open_files(os, config)?;
    let mut own_files = Vec::new();
    let body = match root.checkpoint {
        None => None,
        Some(id) => {
            own_files.push((id, FileKind::Checkpoint));
            Some(read_body(&files, id)?)
        }
    };
    let checkpointed = body.as_ref().map_or(Version::ZERO, |body| body.version);
    let sequences = body.iter().flat_map(|body| &body.sequences);
    let sequences = sequences.map(|listed| (listed.state, State::new(listed.value, listed.logged_at))).collect();
    let (catalog, ids) = match &body {
        None => (Catalog::initial(), (basalt_meta::catalog::FIRST_USER_ID, 1)),
        Some(body) => (body.catalog.clone(), (body.next_object, body.next_tablet)),
    };
    let mut tablets = HashMap::new();
    for tablet in body.iter().flat_map(|body| &body.tablets) {
        let table = catalog
            .table_of(tablet.id)
            .ok_or_else(|| Error::Corrupt(format!("the checkpoint lists tablet {} of no table", tablet.id)))?;
        let loaded = load_tablet(&files, &cache, tablet, table.id)?;
        own_files.extend(tablet.hot.as_ref().map(|hot| (hot.id, FileKind::Row)));
        tablets.insert(tablet.id, Arc::new(loaded));
    }

    let mut replayer = Replayer::new(&files, &cache, catalog, tablets, sequences, checkpointed, ids);
    let log_dir = dir.join("log");
    let mut records = 0u64;
    let seen = std::cell::Cell::new(0u64);
    let end = basalt_wal::replay(
        os,
        &log_dir,
        root.replay_start,
        &mut |at| {
            progress(RecoveryProgress { done_bytes: at.done_bytes, total_bytes: at.total_bytes, records: seen.get() });
        },
        &mut |lsn, bytes| {
            records += 1;
            seen.set(records);
            replayer.visit(lsn, bytes)
        },
    )?;
    let replayed = replayer.finish();

    let order = Arc::new(CommitOrder::new(replayed.last_version));
    let publish = order.clone();
    let defaults = LogConfig::new(log_dir);
    // What is logged while a checkpoint is made counts too.
    let used = config.checkpoint_log_bytes.saturating_mul(5) / config.log_file_bytes.max(1) / 4;
    let log_config = LogConfig {
        file_bytes: config.log_file_bytes,
        recycle_files_max: defaults.recycle_files_max.saturating_add(used as usize),
        ..defaults
    };
    let log = Log::open(os.clone(), log_config, root.epoch, end.end, Box::new(move |lsn| publish.durable(lsn)))?;
    let listed = listed_files(&replayed.tablets, &own_files, &replayed.dropped);
    basalt_sched::failpoint::hit("recovery-log-open");
    remove_unlisted(&files, &listed, root.epoch)?;
    if records > 0 {
        tracing::info!(records, torn_bytes = end.torn_bytes, version = %replayed.last_version, "log replayed");
    }
    let ids = Ids {
        epoch: root.epoch,
        txn: AtomicU64::new(1),
        file: AtomicU32::new(1),
        owner: AtomicU64::new(1),
        object: AtomicU32::new(replayed.next_object),
        tablet: AtomicU32::new(replayed.next_tablet),
    };
    Ok(Recovered {
        catalog: replayed.catalog,
        tablets: replayed.tablets,
        order,
        txns: Arc::new(TxnTable::default()),
        log,
        files,
        cache,
        ids,
        checkpoints: checkpoint::State::new(root, own_files, os.clock.monotonic(), checkpointed),
        sequences: replayed.sequences,
        dropped: replayed.dropped,
        directory,
    })
}

pub(crate) fn lock_directory(os: &Os, dir: &Path) -> Result<Box<dyn Send + Sync>> {
    os.fs.create_dir_all(dir).map_err(|error| directory_error(dir, &error))?;
    os.fs.lock(&dir.join("LOCK")).map_err(|error| match error.kind() {
        io::ErrorKind::WouldBlock => Error::DirectoryInUse { path: dir.display().to_string() },
        _ => directory_error(dir, &error),
    })
}

fn directory_error(path: &Path, error: &io::Error) -> Error {
    match error.kind() {
        io::ErrorKind::StorageFull => Error::NoSpace { what: "data directory" },
        _ => Error::Directory(format!("cannot use data directory {}: {error}", path.display())),
    }
}

/// A directory without a root must hold nothing of anybody's. (A first start that was cut short leaves
/// only empty directories and the lock.)
fn check_new_directory(os: &Os, dir: &Path) -> Result<()> {
    let entries = os.fs.list(dir).map_err(|error| directory_error(dir, &error))?;
    for entry in entries {
        let ours = ["LOCK", "root.tmp"].contains(&entry.name.as_str());
        let empty = ["log", "files", "tmp"].contains(&entry.name.as_str())
            && os.fs.list(&dir.join(&entry.name)).is_ok_and(|inside| inside.is_empty());
        if !ours && !empty {
            return Err(Error::Directory(format!(
                "{} has no root file but is not empty (it holds {:?}): it is not a Basalt data directory, or its root is lost",
                dir.display(),
                entry.name
            )));
        }
    }
    Ok(())
}

pub(crate) fn read_body(files: &Files, id: FileId) -> Result<Body> {
    let path = Files::path(id, FileKind::Checkpoint);
    let bytes = files.bytes(&path)?;
    Body::decode(&files.read(&path, 0..bytes)?, path.as_ref())
}

fn load_tablet(
    files: &Files,
    cache: &Arc<BlockCache>,
    body: &checkpoint::body::TabletBody,
    table: basalt_types::ObjectId,
) -> Result<Tablet> {
    let mut entries = Vec::with_capacity(body.files.len());
    for listed in &body.files {
        entries.push(Arc::new(open_entry(files, cache, &listed.info, &listed.deletes)?));
    }
    let tablet = Tablet::new(body.id, table, entries, body.next_rid);
    if let Some(hot) = &body.hot {
        let rows = RowFile::open(files, hot.id, cache)?;
        for entry in rows.iter(0) {
            let (_, entry) = entry?;
            let change = Change { key: entry.key.as_bytes(), row: entry.row.as_deref(), rid: entry.rid };
            tablet.hot.load_many(&[change], entry.version);
        }
    }
    Ok(tablet)
}

/// Opens a listed file.
pub(crate) fn open_entry(files: &Files, cache: &Arc<BlockCache>, info: &FileInfo, deletes: &[u8]) -> Result<FileEntry> {
    let data = DataFile::open(files, cache, info.id, info.kind)?;
    if u64::from(data.rows()) != info.rows {
        let found = data.rows();
        return Err(Error::Corrupt(format!("file {} has {found} rows, the file list says {}", info.id, info.rows)));
    }
    let deletes = match deletes {
        [] => DeleteMap::new(),
        bytes => DeleteMap::from_bytes(bytes, data.rows(), Version::ZERO)?,
    };
    let stamps = match info.stamps {
        FileStamps::PerRow => EntryStamps::PerRow,
        FileStamps::Uniform(version) => {
            EntryStamps::Uniform { stamp: AtomicU64::new(Stamp::version(version).raw()), seq: 0 }
        }
    };
    Ok(FileEntry { data, deletes, stamps, bytes: info.bytes })
}

fn listed_files(
    tablets: &HashMap<TabletId, Arc<Tablet>>,
    own: &[(FileId, FileKind)],
    dropped: &BTreeMap<FileId, DroppedFile>,
) -> HashSet<FileId> {
    let views = tablets.values().flat_map(|tablet| tablet.view().files.iter().map(|f| f.id()).collect::<Vec<_>>());
    views.chain(own.iter().map(|(id, _)| *id)).chain(dropped.keys().copied()).collect()
}

/// Deletes what an earlier start wrote and nothing names: files of aborted or cut-short work.
fn remove_unlisted(files: &Files, listed: &HashSet<FileId>, epoch: Epoch) -> Result<()> {
    for (id, kind, _) in files.list()? {
        if id.epoch < epoch && !listed.contains(&id) {
            files.delete(id, kind)?;
        }
    }
    Ok(())
}

/// What replay left.
struct Replayed {
    catalog: Catalog,
    tablets: HashMap<TabletId, Arc<Tablet>>,
    sequences: HashMap<ObjectId, State>,
    dropped: BTreeMap<FileId, DroppedFile>,
    last_version: Version,
    next_object: u32,
    next_tablet: u32,
}

/// A tablet that a replayed catalog edit makes.
fn new_tablet(id: TabletId, table: basalt_types::ObjectId) -> Arc<Tablet> {
    Arc::new(Tablet::new(id, table, Vec::new(), Rid(1)))
}
