//! Which state of a definition somebody has read, so that nobody puts his own over one that he has not seen.

/// The state of a definition: one further with each commit that changes it. It is told by who reads the definition and
/// changes a copy of it, and compared where the copy is committed.
///
/// It says nothing of what is defined: definitions that differ in it alone are equal. Nor is it kept, as it tells
/// transactions from one another that run at the same time: what was read from disk is at its first state.
#[derive(Clone, Copy, Eq, Debug)]
pub struct Revision(u64);

impl Revision {
    /// Of what has not been committed yet.
    pub const NEW: Revision = Revision(0);

    /// Of what was committed by an earlier start.
    pub fn kept() -> Revision {
        Revision::NEW.next()
    }

    pub fn is_new(self) -> bool {
        self.0 == Revision::NEW.0
    }

    pub fn next(self) -> Revision {
        Revision(self.0 + 1)
    }

    /// Whether both are the same state, which `==` does not ask.
    pub fn is(self, other: Revision) -> bool {
        self.0 == other.0
    }
}

impl PartialEq for Revision {
    fn eq(&self, _: &Revision) -> bool {
        true
    }
}
