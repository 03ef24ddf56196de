//! The messages that a slice met, by their keys and in the order in which they were met.

use std::collections::HashMap;
use std::sync::Arc;

use crate::revision::Touched;

/// Messages, each once.
#[derive(Default)]
pub struct Met {
    /// In the order in which they were met.
    pub list: Vec<Touched>,
    places: HashMap<Arc<str>, usize>,
}

impl Met {
    /// The place of a message in the list.
    #[must_use]
    pub fn place(&self, key: &str) -> Option<usize> {
        self.places.get(key).copied()
    }

    /// A message by its key.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&Touched> {
        self.place(key).map(|place| &self.list[place])
    }

    /// Makes room for so many.
    pub fn expect(&mut self, messages: usize) {
        self.list.reserve(messages);
        self.places.reserve(messages);
    }

    /// Adds a message that was not met yet; returns its place.
    pub fn add(&mut self, touched: Touched) -> usize {
        let place = self.list.len();
        self.places.insert(touched.message.key.clone(), place);
        self.list.push(touched);
        place
    }
}
