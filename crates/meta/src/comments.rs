//! Comments on objects whose definition has no place for one: columns, constraints, roles, databases.

use basalt_types::ObjectId;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What a comment is about, as in `pg_description`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub struct CommentKey {
    /// Oid of the system catalog that lists the object.
    pub class: u32,
    pub object: ObjectId,
    /// A column's number; otherwise 0.
    pub part: i32,
}

/// Kept as a list: JSON maps have texts as keys.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(from = "Vec<(CommentKey, String)>", into = "Vec<(CommentKey, String)>")]
pub struct Comments(BTreeMap<CommentKey, String>);

impl Comments {
    pub fn get(&self, class: u32, object: ObjectId, part: i32) -> Option<&str> {
        self.0.get(&CommentKey { class, object, part }).map(String::as_str)
    }

    pub fn set(&mut self, key: CommentKey, text: Option<String>) {
        match text {
            Some(text) => self.0.insert(key, text),
            None => self.0.remove(&key),
        };
    }

    /// The object is gone.
    pub fn forget(&mut self, object: ObjectId) {
        self.0.retain(|key, _| key.object != object);
    }

    pub fn iter(&self) -> impl Iterator<Item = (&CommentKey, &str)> {
        self.0.iter().map(|(key, text)| (key, text.as_str()))
    }
}

impl From<Vec<(CommentKey, String)>> for Comments {
    fn from(list: Vec<(CommentKey, String)>) -> Comments {
        Comments(list.into_iter().collect())
    }
}

impl From<Comments> for Vec<(CommentKey, String)> {
    fn from(comments: Comments) -> Vec<(CommentKey, String)> {
        comments.0.into_iter().collect()
    }
}
