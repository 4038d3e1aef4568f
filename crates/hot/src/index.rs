//! The ordered index: a B+-tree over separators that finds the page responsible for a key.
//!
//! Node: `children.len() - 1` separators; child `i` is responsible for keys from separator `i - 1` (or the
//! node's own lower bound) up to separator `i`. At level 0 children are pages, above they are nodes. A
//! removed child leaves its keys to a neighbour; nodes are not merged, an empty one is removed.

use crate::heads::Heads;
use crate::slab::Slab;

const CHILDREN_MAX: usize = 128;

#[derive(Default)]
struct Node {
    level: u8,
    heads: Heads,
    separators: Vec<Box<[u8]>>,
    children: Vec<u32>,
}

pub struct Index {
    nodes: Slab<Node>,
    root: u32,
    separator_bytes: usize,
}

impl Index {
    /// One page is responsible for all keys.
    pub fn new(page: u32) -> Index {
        let mut nodes = Slab::default();
        let root = nodes.insert(Node { children: vec![page], ..Node::default() });
        Index { nodes, root, separator_bytes: 0 }
    }

    /// The page responsible for `key`.
    #[inline]
    pub fn find(&self, key: &[u8]) -> u32 {
        let mut node = &self.nodes[self.root];
        loop {
            let child = node.children[node.position(key)];
            if node.level == 0 {
                return child;
            }
            node = &self.nodes[child];
        }
    }

    /// Makes `page` responsible from `separator` on, up to where the page found there ended.
    pub fn insert(&mut self, separator: Box<[u8]>, page: u32) {
        let path = self.path(&separator);
        self.separator_bytes += separator.len();
        let (mut separator, mut child) = (separator, page);
        for (at, position) in path.into_iter().rev() {
            let node = &mut self.nodes[at];
            node.insert(position, separator, child);
            if node.children.len() <= CHILDREN_MAX {
                return;
            }
            let (middle, right) = node.split(position);
            separator = middle;
            child = self.nodes.insert(right);
        }
        let mut root = Node { level: self.nodes[self.root].level + 1, ..Node::default() };
        root.children.push(self.root);
        root.insert(0, separator, child);
        self.root = self.nodes.insert(root);
    }

    /// Removes the page responsible for `key`; a neighbour becomes responsible. Not for the only page.
    pub fn remove(&mut self, key: &[u8]) {
        for (at, position) in self.path(key).into_iter().rev() {
            let node = &mut self.nodes[at];
            self.separator_bytes -= node.remove(position);
            if !node.children.is_empty() {
                break;
            }
            assert!(at != self.root, "the only page stays");
            self.nodes.remove(at);
        }
        while self.nodes[self.root].level > 0 && self.nodes[self.root].children.len() == 1 {
            self.root = self.nodes.remove(self.root).children[0];
        }
    }

    /// Whether the left neighbour takes over when the page responsible for `key` is removed.
    pub fn left_inherits(&self, key: &[u8]) -> bool {
        self.path(key).last().is_some_and(|(_, position)| *position > 0)
    }

    /// Memory of the tree; separators and child lists at their usual three quarters of capacity.
    pub fn bytes(&self) -> usize {
        let slot = size_of::<Box<[u8]>>() + size_of::<u64>() + size_of::<u32>();
        self.nodes.bytes() + self.nodes.len() * CHILDREN_MAX * slot + self.separator_bytes
    }

    fn path(&self, key: &[u8]) -> Vec<(u32, usize)> {
        let mut path = Vec::new();
        let mut at = self.root;
        loop {
            let node = &self.nodes[at];
            let position = node.position(key);
            path.push((at, position));
            if node.level == 0 {
                return path;
            }
            at = node.children[position];
        }
    }
}

impl Node {
    /// Of the child responsible for `key`.
    #[inline]
    fn position(&self, key: &[u8]) -> usize {
        match self.heads.find(key, |i| &self.separators[i]) {
            Ok(equal) => equal + 1,
            Err(greater) => greater,
        }
    }

    /// `child` takes over the keys from `separator` on of the child at `position`.
    fn insert(&mut self, position: usize, separator: Box<[u8]>, child: u32) {
        self.heads.insert(position, &separator, |i| &self.separators[i]);
        self.separators.insert(position, separator);
        self.children.insert(position + 1, child);
    }

    /// Splits off the right part; the separator between goes up. An insertion at the end leaves this node
    /// full, so that ascending keys fill their nodes.
    fn split(&mut self, inserted: usize) -> (Box<[u8]>, Node) {
        let ascending = inserted + 2 == self.children.len();
        let middle = if ascending { self.separators.len() - 1 } else { self.separators.len() / 2 };
        let separators = self.separators.split_off(middle + 1);
        let up = self.separators.pop().expect("the middle one");
        let children = self.children.split_off(middle + 1);
        let right =
            Node { level: self.level, heads: Heads::build(separators.len(), |i| &separators[i]), separators, children };
        self.heads = Heads::build(self.separators.len(), |i| &self.separators[i]);
        (up, right)
    }

    /// Returns the length of the separator that went.
    fn remove(&mut self, position: usize) -> usize {
        self.children.remove(position);
        if self.separators.is_empty() {
            return 0;
        }
        let gone = position.saturating_sub(1);
        self.heads.remove(gone);
        self.separators.remove(gone).len()
    }
}

#[cfg(test)]
mod tests;
