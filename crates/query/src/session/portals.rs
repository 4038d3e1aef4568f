//! A session's portals by name. Drivers use the one without a name for nearly everything: it is found without a search.

use super::prepared::Portal;
use std::collections::HashMap;

#[derive(Default)]
pub(crate) struct Portals {
    unnamed: Option<Portal>,
    named: HashMap<String, Portal, ahash::RandomState>,
}

impl Portals {
    pub fn get(&self, name: &str) -> Option<&Portal> {
        match name {
            "" => self.unnamed.as_ref(),
            name => self.named.get(name),
        }
    }

    pub fn get_mut(&mut self, name: &str) -> Option<&mut Portal> {
        match name {
            "" => self.unnamed.as_mut(),
            name => self.named.get_mut(name),
        }
    }

    pub fn contains(&self, name: &str) -> bool {
        self.get(name).is_some()
    }

    /// In the place of one that has the name.
    pub fn insert(&mut self, name: &str, portal: Portal) {
        match name {
            "" => self.unnamed = Some(portal),
            name => drop(self.named.insert(name.to_string(), portal)),
        }
    }

    pub fn remove(&mut self, name: &str) -> Option<Portal> {
        match name {
            "" => self.unnamed.take(),
            name => self.named.remove(name),
        }
    }

    pub fn retain(&mut self, is_kept: impl Fn(&Portal) -> bool) {
        self.unnamed.take_if(|portal| !is_kept(portal));
        self.named.retain(|_, portal| is_kept(portal));
    }

    pub fn clear(&mut self) {
        self.retain(|_| false);
    }

    pub fn iter(&self) -> impl Iterator<Item = (&str, &Portal)> {
        let unnamed = self.unnamed.iter().map(|portal| ("", portal));
        unnamed.chain(self.named.iter().map(|(name, portal)| (name.as_str(), portal)))
    }

    pub fn values_mut(&mut self) -> impl Iterator<Item = &mut Portal> {
        self.unnamed.iter_mut().chain(self.named.values_mut())
    }
}
