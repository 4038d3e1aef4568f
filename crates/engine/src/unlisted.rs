//! Files on disk that no view and no record names yet: an error or a panic on the way gives them up.

use crate::Engine;
use basalt_meta::FileKind;
use basalt_types::FileId;
use std::sync::Arc;

pub(crate) struct Unlisted {
    engine: Arc<Engine>,
    files: Vec<(FileId, FileKind)>,
}

impl Unlisted {
    pub fn new(engine: &Arc<Engine>) -> Unlisted {
        Unlisted { engine: engine.clone(), files: Vec::new() }
    }

    /// From before anything of the file is in the store: what is not there is no error to remove.
    pub fn add(&mut self, id: FileId, kind: FileKind) {
        self.files.push((id, kind));
    }

    /// They are listed now.
    pub fn keep(mut self) {
        self.files.clear();
    }
}

impl Drop for Unlisted {
    fn drop(&mut self) {
        self.files.iter().for_each(|(id, kind)| self.engine.discard_file(*id, *kind));
    }
}
