//! What both file formats share.
